package v1alpha1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/expression"
)

const flowWithInputs = `{"id":"t","name":"t","nodes":[{"id":"s","type":"start","name":"S","config":{"inputs":[
	{"name":"ref","required":true},{"name":"base","required":true},{"name":"note"}]}},{"id":"e","type":"end","name":"E"}],
	"edges":[{"id":"x","source":"s","target":"e"}]}`

func withTrigger(t api.Trigger, inputs string) *api.Composition {
	c := draft(flowWithInputs)
	t.Name, t.EventType = "opened", "issue.created"
	if inputs != "" {
		t.Inputs = &runtime.RawExtension{Raw: []byte(inputs)}
	}
	c.Spec.Triggers = []api.Trigger{t}
	return c
}

func TestValidateTriggers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		trigger api.Trigger
		inputs  string
		want    []string
	}{
		"a trigger": {api.Trigger{Filter: "event.ref != ''", DedupeKey: "event.ref"}, `{"ref":"event.ref","n":2}`, nil},
		"faults in order": {
			api.Trigger{Filter: "1", DedupeKey: "context.x", Run: api.TriggeredRun{ActiveDeadline: "P"}},
			`{"ref":" "}`,
			[]string{
				"spec.triggers[opened].run.activeDeadline: Invalid value: \"P\": must be an ISO 8601 duration such as PT30M or P2D: \"P\" is no ISO 8601 duration: it has no component",
				"spec.triggers[opened].filter: Invalid value: must be a condition, and is of type int",
				"spec.triggers[opened].inputs[ref]: Invalid value: must not be blank; literal text is written as \"'text'\"",
				"spec.triggers[opened].dedupeKey: Invalid value: must be an expression over event: 1:1: undeclared reference to 'context'",
			},
		},
		"inputs that are none": {api.Trigger{}, `[]`, []string{"spec.triggers[opened].inputs: Invalid value: must be an object"}},
	} {
		got := messages(validateTriggers(withTrigger(tc.trigger, tc.inputs), expression.NewCache()))
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got := validateTriggers(withTrigger(api.Trigger{Filter: "1 +"}, ""), nil); got != nil {
		t.Errorf("without a cache of expressions: got %v", got)
	}
}

func TestTriggerWarnings(t *testing.T) {
	t.Parallel()
	for inputs, want := range map[string][]string{
		`{"ref":"event.ref","base":"'main'"}`: {},
		`{"ref":null,"note":"event.id"}`: {
			`spec.triggers[opened].inputs: "base" is required by the workflow; runs without it are refused`,
			`spec.triggers[opened].inputs: "ref" is required by the workflow; runs without it are refused`,
		},
		`[]`: {},
	} {
		comp := withTrigger(api.Trigger{}, inputs)
		got := triggerWarnings(comp.Spec.Triggers, newVerdicts(nil).of(comp.Spec.Workflow).required)
		if diff := cmp.Diff(want, append([]string{}, got...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", inputs, diff)
		}
	}
	if got := triggerWarnings(withTrigger(api.Trigger{}, "").Spec.Triggers, nil); got != nil {
		t.Errorf("without a workflow: got %v", got)
	}
}

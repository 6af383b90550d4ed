package v1alpha1_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/testing/console"
)

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var object T
	if err := yaml.UnmarshalStrict([]byte(text), &object); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return object
}

// The run that the page about supervised runs shows is that of the sample.
func TestPageShowsTheRunOfTheSample(t *testing.T) {
	t.Parallel()
	sample := decode[api.WorkflowRun](t, read(t, "../../config/samples/adversarial-implementation/run.yaml"))
	for _, block := range console.Blocks(read(t, "../../docs/supervised.md")) {
		if !strings.Contains(block.Text, "kind: WorkflowRun\n") {
			continue
		}
		shown := decode[api.WorkflowRun](t, block.Text)
		shown.Namespace, sample.Namespace = "", ""
		if diff := cmp.Diff(jsonOf(t, sample), jsonOf(t, shown)); diff != "" {
			t.Errorf("supervised 60: the page shows another run (-sample +page):\n%s", diff)
		}
		return
	}
	t.Error("supervised 60: the page shows no run")
}

func jsonOf(t *testing.T, run api.WorkflowRun) string {
	t.Helper()
	text, err := yaml.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The agents of the sample are the two that its inputs name by default, and answer prompts.
func TestSampleHasItsAgents(t *testing.T) {
	t.Parallel()
	var names []string
	for text := range strings.SplitSeq(read(t, "../../config/samples/adversarial-implementation/sessiontemplates.yaml"), "\n---\n") {
		template := decode[api.SessionTemplate](t, text)
		if template.Spec.Role != api.SessionRole("Prompt") {
			t.Errorf("%s has the role %q", template.Name, template.Spec.Role)
		}
		names = append(names, template.Name)
	}
	if diff := cmp.Diff([]string{"planner", "implementor"}, names); diff != "" {
		t.Errorf("templates (-want +got):\n%s", diff)
	}
}

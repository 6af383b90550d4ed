package workflow

import (
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// newExpressions shares one cache among all tests: building its environments takes most of their time.
var newExpressions = sync.OnceValue(expression.NewCache)

// parse reads YAML, or JSON, as a JSON tree.
func parse(t testing.TB, text string) any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("parse %s: %v", text, err)
	}
	v, err := jsonvalue.Decode(data)
	if err != nil {
		t.Fatalf("parse %s: %v", text, err)
	}
	return v
}

// flow is a document with these entries of nodes and edges.
func flow(nodes, edges string) string {
	return "{id: w, name: W, nodes: [" + nodes + "], edges: [" + edges + "]}"
}

const (
	startNode = "{id: s, type: start, name: S, config: {inputs: []}}"
	endNode   = "{id: e, type: end, name: E}"
)

// around is a document in which a node x stands between start and end, by edges sx and xe.
func around(kind, config string) string {
	return flow(startNode+", {id: x, type: "+kind+", name: X, config: {"+config+"}}, "+endNode,
		"{id: sx, source: s, target: x}, {id: xe, source: x, target: e}")
}

// action is around an action, whose required configuration is there.
func action(config string) string {
	return around("action", "actionType: a, inputs: {}, outputs: []"+also(config))
}

func task(config string) string {
	return around("human-task", "description: D"+also(config))
}

func receive(config string) string {
	return around("receive-event", "eventType: t"+also(config))
}

func also(config string) string {
	if config == "" {
		return ""
	}
	return ", " + config
}

// codes writes problems as CODE or CODE(id), with errors marked by an exclamation mark.
func codes(problems []Problem) []string {
	written := []string{}
	for _, p := range problems {
		text := p.Code
		if p.IsError() {
			text += "!"
		}
		if id := p.NodeID + p.EdgeID; id != "" {
			text += "(" + strings.ReplaceAll(id, " ", "_") + ")"
		}
		written = append(written, text)
	}
	return written
}

func fieldsOfWant(want string) []string {
	return append([]string{}, strings.Fields(want)...)
}

// A validation case is a document with exactly the problems want, and one that comes near but has only those of rest.
type validationCase struct {
	bad, want  string
	good, rest string
}

func TestValidateReleaseExample(t *testing.T) {
	text, err := os.ReadFile("testdata/release.yaml")
	if err != nil {
		t.Fatal(err)
	}
	problems := Validate(parse(t, string(text)), newExpressions())
	if diff := cmp.Diff([]string{}, codes(problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestBlankIsValid(t *testing.T) {
	if problems := Validate(Blank("triage"), newExpressions()); len(problems) > 0 {
		t.Errorf("Validate() = %v, want none", problems)
	}
}

func TestBlankIsTheDocumented(t *testing.T) {
	want := parse(t, `
id: triage
name: triage
nodes:
- {id: start-1, type: start, name: Start, config: {inputs: []}}
- {id: end-1, type: end, name: End, config: {}}
edges:
- {id: edge-1, source: start-1, target: end-1, priority: 0, isDefault: true}`)
	if diff := cmp.Diff(want, any(Blank("triage"))); diff != "" {
		t.Errorf("Blank() (-want +got):\n%s", diff)
	}
}

func allCases() map[string]map[string]validationCase {
	return map[string]map[string]validationCase{
		"budgets":      budgetCases(),
		"shape":        shapeCases(),
		"structure":    structureCases(),
		"connectivity": connectivityCases(),
		"edges":        edgeCases(),
		"semantics":    semanticCases(),
		"parallel":     parallelCases(),
	}
}

func TestValidate(t *testing.T) {
	for phase, cases := range allCases() {
		for name, tc := range cases {
			t.Run(phase+"/"+name, func(t *testing.T) {
				got := codes(Validate(parse(t, tc.bad), newExpressions()))
				if diff := cmp.Diff(fieldsOfWant(tc.want), got); diff != "" {
					t.Errorf("bad document (-want +got):\n%s", diff)
				}
				if tc.good == "" {
					return
				}
				got = codes(Validate(parse(t, tc.good), newExpressions()))
				if diff := cmp.Diff(fieldsOfWant(tc.rest), got); diff != "" {
					t.Errorf("good document (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// Every rule must have a case in which it fires and a document near it in which it does not.
func TestValidateCasesAreComplete(t *testing.T) {
	phases := map[string][]rule{
		"budgets": budgetRules, "shape": shapeRules, "structure": structureRules, "connectivity": connectivityRules,
		"edges": edgeRules, "semantics": semanticRules, "parallel": parallelRules,
	}
	cases := allCases()
	for phase, rules := range phases {
		for _, r := range rules {
			if !hasCase(cases[phase], r) {
				t.Errorf("phase %s: no case for %s %s", phase, r.severity, r.code)
			}
		}
	}
}

func hasCase(cases map[string]validationCase, r rule) bool {
	word := r.code
	if r.severity == SeverityError {
		word += "!"
	}
	has := func(want string) bool {
		for field := range strings.FieldsSeq(want) {
			if base, _, _ := strings.Cut(field, "("); base == word {
				return true
			}
		}
		return false
	}
	for _, tc := range cases {
		if has(tc.want) && tc.good != "" && !has(tc.rest) {
			return true
		}
	}
	return false
}

// A recorder notes what it is asked and finds nothing wrong.
type recorder struct {
	asked []string
}

func (r *recorder) Check(scope, text string) (string, error) {
	r.asked = append(r.asked, scope+": "+text)
	return "bool", nil
}

func TestRetryProblemsSayWhatIsAllowed(t *testing.T) {
	for retry, want := range map[string]string{
		"maxAttempts: 0":                      "maxAttempts of retry must be an integer from 1 to 10",
		"backoff: {initial: 10s}":             "backoff.initial of retry must be a positive duration",
		"backoff: {factor: 11}":               "backoff.factor of retry must be a number from 1 to 10",
		"backoff: {max: PT0S}":                "backoff.max of retry must be a positive duration",
		"backoff: {initial: PT2S, max: PT1S}": "backoff.max of retry must not be less than backoff.initial",
	} {
		problems := Validate(parse(t, action("retry: {"+retry+"}")), nil)
		if len(problems) != 1 || problems[0].Message != want {
			t.Errorf("%s: %v, want %s", retry, problems, want)
		}
	}
}

func TestValidateAsksForEveryExpressionOnce(t *testing.T) {
	text, err := os.ReadFile("testdata/release.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{}
	Validate(parse(t, string(text)), r)
	want := []string{
		"edge-condition: context.approved == true && context.window == 'night'",
		"edge-condition: context.approved == true",
		"action-input: context.ref",
		"action-input: context.risk",
		"human-task-title: 'Release ' + context.ref",
		"receive-event-match: event.payload.base == 'main'",
		"receive-event-output: event.actor.login",
		"correlation-subscription-key: context.ref",
		"correlation-event-key: event.ref",
	}
	if diff := cmp.Diff(want, r.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

func TestProblemJSON(t *testing.T) {
	got, err := json.Marshal([]Problem{
		{Severity: SeverityError, Code: "C", Message: "m"},
		{Severity: SeverityWarning, Code: "C", Message: "m", NodeID: "n"},
		{Severity: SeverityWarning, Code: "C", Message: "m", EdgeID: "e"},
	})
	want := `[{"severity":"error","code":"C","message":"m"},` +
		`{"severity":"warning","code":"C","message":"m","nodeId":"n"},` +
		`{"severity":"warning","code":"C","message":"m","edgeId":"e"}]`
	if err != nil || string(got) != want {
		t.Errorf("Marshal() = %s, %v, want %s", got, err, want)
	}
}

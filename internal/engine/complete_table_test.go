package engine_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/engine"
)

// A run that fails in a way of the engine's own, told up to the failure.
func failures() map[string]func(t *testing.T) *story {
	start := func(doc, inputs string) func(t *testing.T) *story {
		return func(t *testing.T) *story { return tell(t, doc, inputs) }
	}
	completed := func(kind, inputs, result string) func(t *testing.T) *story {
		return func(t *testing.T) *story {
			s := tell(t, single(kind, false), inputs)
			s.complete("x#1", result)
			return s
		}
	}
	large := "{a: " + strings.Repeat("x", engine.MaxContextBytes) + "}"
	return map[string]func(t *testing.T) *story{
		"INPUT_RESOLUTION/EXPRESSION_ERROR": start(single("action {actionType: a, inputs: {i: context.missing}, outputs: []}", false), "{}"),
		"RESULT_VALIDATION/INVALID_RESULT": func(t *testing.T) *story {
			s := tell(t, single(ask, false), "{}")
			s.do(func(in engine.Instance) engine.Step {
				return engine.Complete(t.Context(), s.def, in, s.at("x#1"), nil, "", s.now)
			})
			return s
		},
		"OUTPUT_VALIDATION/MISSING_OUTPUT": completed("action {actionType: a, inputs: {}, outputs: [{name: a, required: true}]}", "{}", "{b: 1}"),
		"OUTPUT_MAPPING/CONTEXT_TOO_LARGE": completed(act, "{}", large),
		"OUTPUT_MAPPING/EXPRESSION_ERROR": func(t *testing.T) *story {
			s := tell(t, single("receive-event {eventType: t, outputs: [{contextKey: a, expression: event.missing}]}", false), "{}")
			s.deliver("x#1", "{type: t, id: '1'}", noon)
			return s
		},
		"EXECUTION/ATTEMPT_TIMEOUT": func(t *testing.T) *story {
			s := tell(t, single("action {actionType: a, inputs: {}, outputs: [], timeout: PT1S}", false), "{}")
			s.after(time.Second).timeOut("x#1")
			return s
		},
		"EXECUTION/TASK_EXPIRED": func(t *testing.T) *story {
			s := tell(t, single("human-task {description: D, outputs: [], timeout: PT1S}", false), "{}")
			s.timeOut("x#1")
			return s
		},
		"EDGE_CONDITION/EXPRESSION_ERROR": start(choice("a {condition: context.missing}", "b {isDefault: true}"), "{}"),
		"EDGE_SELECTION/NO_MATCHING_EDGE": start(choice("a {condition: 'false'}"), "{}"),
		"EDGE_SELECTION/MOVE_LIMIT":       start(flow("s "+from+"\nx action {actionType: a, inputs: {i: context.missing}, outputs: []}\ne end {}", "s x {}\nx e {}\nx x {isError: true}"), "{}"),
		"EDGE_SELECTION/DEADLOCK": func(t *testing.T) *story {
			s := tell(t, flow("s "+from+"\na "+act+"\nb "+act+"\nj "+act+"\ne end {}", "s a {}\ns b {}\na j {}\nb j {}\nj e {}"), "{}")
			s.in.ActiveBranches, s.in.Visits["b"] = s.in.ActiveBranches[:1], 0
			s.in = engine.Complete(t.Context(), s.def, s.in, s.at("a#1"), engine.Values{}, "", noon).Instance
			return s
		},
		"ERROR_HANDLER/CONTEXT_TOO_LARGE": func(t *testing.T) *story {
			s := tell(t, single(act, true), "{a: "+strings.Repeat("x", engine.MaxContextBytes-20)+"}")
			s.fail("x#1", exit(engine.PhaseExecution))
			return s
		},
	}
}

// Every pair of phase and code that the engine finds has a story, and none that it does not.
func TestEveryFailureOfTheEngine(t *testing.T) {
	for want, story := range failures() {
		t.Run(want, func(t *testing.T) {
			s := story(t)
			s.wantStatus(engine.StatusFailed)
			if got := s.in.Failure.Phase + "/" + s.in.Failure.Code; got != want {
				t.Errorf("the run failed with %s: %+v", got, s.in.Failure)
			}
		})
	}
	codes := map[string]bool{}
	for pair := range failures() {
		_, code, _ := strings.Cut(pair, "/")
		codes[code] = true
	}
	var want []string
	for name, value := range constants(t) {
		if strings.HasPrefix(name, "Code") {
			want = append(want, value)
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(codes))); diff != "" {
		t.Errorf("codes (-declared +told):\n%s", diff)
	}
}

// Every reason, status, outcome and phase that the package exports is what some test asks for.
func TestEveryConstantIsAskedFor(t *testing.T) {
	var tests strings.Builder
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tests.Write(text)
	}
	declared := constants(t)
	for name := range declared {
		if !strings.Contains(tests.String(), "engine."+name) && !strings.HasPrefix(name, "Code") && !strings.HasPrefix(name, "Outcome") {
			t.Errorf("no test asks for %s", name)
		}
	}
	for _, outcome := range []string{"Completed", "TimedOut", "Failed", "Cancelled"} {
		if declared["Outcome"+outcome] != outcome || !strings.Contains(tests.String(), `#1 `+outcome+`"`) {
			t.Errorf("no test asks for the outcome %s", outcome)
		}
	}
	if len(declared) < 35 {
		t.Errorf("only %d constants are declared", len(declared))
	}
}

// constants are the exported string constants of the package, by name.
func constants(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "instance.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			if literal, ok := spec.Values[0].(*ast.BasicLit); ok && spec.Names[0].IsExported() {
				found[spec.Names[0].Name] = strings.Trim(literal.Value, `"`)
			}
		}
		return true
	})
	return found
}

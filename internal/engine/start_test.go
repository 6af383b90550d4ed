package engine_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

const oneAction = `
s start {inputs: [{name: a, required: true}, {name: b, contextKey: c}]}
x action {actionType: a, inputs: {}, outputs: []}
e end {}`

const oneActionEdges = `
s x {}
x e {}`

func TestStartKeepsAllInputs(t *testing.T) {
	s := tell(t, flow(oneAction, oneActionEdges), "{a: 1.0, b: null, more: [1e0, 1.5, 9223372036854775807, 9223372036854775808]}")
	s.wantOpen("x#1")
	want := engine.Values{"a": int64(1), "b": nil, "more": []any{int64(1), 1.5, int64(math.MaxInt64), float64(1 << 63)}}
	if diff := cmp.Diff(want, s.in.Context); diff != "" {
		t.Errorf("context (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(engine.Values{"a": int64(1), "b": nil}, s.entry("s#1").Input); diff != "" {
		t.Errorf("declared inputs (-want +got):\n%s", diff)
	}
	if s.in.Step != 1 || !s.in.StartedOn.Equal(noon) || s.branch("x#1").Branch != "root" {
		t.Errorf("instance = %+v", s.in)
	}
}

func TestStartRefuses(t *testing.T) {
	valid := flow(oneAction, oneActionEdges)
	tests := map[string]struct {
		doc    string
		inputs engine.Values
		want   error
	}{
		"a required input that is absent": {valid, nil, &engine.InputError{Name: "a", Rule: engine.RuleRequired}},
		"a required input that is null":   {valid, engine.Values{"a": nil}, &engine.InputError{Name: "a", Rule: engine.RuleRequired}},
		"inputs that are no JSON":         {valid, engine.Values{"a": math.NaN()}, &engine.InputError{Rule: engine.RuleJSON}},
		"text that is no Unicode":         {valid, engine.Values{"a": "\xff"}, &engine.InputError{Rule: engine.RuleJSON}},
		"a definition with errors":        {flow("s start {inputs: []}", ""), nil, &engine.ProblemsError{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			def, problems := engine.New(parse(t, tc.doc).(map[string]any), newExpressions())
			_, err := engine.Start(t.Context(), def, tc.inputs, noon)
			if refused := (*engine.ProblemsError)(nil); errors.As(err, &refused) {
				if diff := cmp.Diff(problems, refused.Problems); diff != "" || !strings.Contains(err.Error(), "NO_END_NODE") {
					t.Errorf("error %q, problems (-want +got):\n%s", err, diff)
				}
				err = &engine.ProblemsError{}
			}
			if diff := cmp.Diff(tc.want, err); diff != "" {
				t.Errorf("Start() error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStartOfNoDocument(t *testing.T) {
	def, problems := engine.New(nil, nil)
	if !workflow.HasErrors(problems) {
		t.Fatalf("New(nil) has problems %v, want an error", problems)
	}
	if _, err := engine.Start(t.Context(), def, nil, noon); !errors.As(err, new(*engine.ProblemsError)) {
		t.Errorf("Start() error = %v, want a ProblemsError", err)
	}
}

func TestStartWithTooLargeInputs(t *testing.T) {
	// {"a":"…"} has 8 bytes around the text.
	for size, want := range map[int]engine.Status{
		engine.MaxContextBytes - 8: engine.StatusWaiting, engine.MaxContextBytes - 7: engine.StatusFailed,
	} {
		s := tell(t, flow(oneAction, oneActionEdges), "{a: "+strings.Repeat("x", size)+"}")
		s.wantStatus(want)
		if want == engine.StatusFailed {
			s.wantFailure(engine.PhaseOutputMapping, engine.CodeContextTooLarge, "s#1")
			s.wantContext("{}")
			s.wantHistory("s#1 Failed")
		}
	}
}

func TestStartIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	step, err := engine.Start(ctx, define(t, flow(oneAction, oneActionEdges)), engine.Values{"a": "1"}, noon)
	if !errors.Is(err, context.Canceled) || step.Reason != engine.ReasonInterrupted || step.Applied {
		t.Errorf("Start() = %+v, %v", step, err)
	}
}

func TestStartStraightToTheEnd(t *testing.T) {
	s := tell(t, flow("s start {inputs: []}\ne end {}", "s e {isDefault: true}"), "{}")
	s.wantStatus(engine.StatusCompleted)
	s.wantHistory("s#1 Completed", "e#1 Completed")
	if got := s.def.Outcome(s.last); got != "" {
		t.Errorf("Outcome() = %q, want none", got)
	}
}

// A definition is its own copy: nothing done to the document afterwards changes it.
func TestNewCopiesTheDocument(t *testing.T) {
	doc := parse(t, flow(oneAction, oneActionEdges)).(map[string]any)
	def, _ := engine.New(doc, newExpressions())
	clear(doc)
	step, err := engine.Start(t.Context(), def, engine.Values{"a": "1"}, noon)
	if err != nil || len(step.Opened) != 1 {
		t.Errorf("Start() = %+v, %v", step, err)
	}
}

func TestStartNormalizesTimes(t *testing.T) {
	berlin := time.FixedZone("", 3600)
	now := time.Date(2026, 3, 2, 13, 0, 0, 5, berlin)
	step, err := engine.StartRun(t.Context(), define(t, flow(oneAction, oneActionEdges)), engine.Values{"a": "1"}, now.Add(-time.Minute), now)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := step.Instance.ActiveBranches[0].EnteredOn, now.UTC(); got != want {
		t.Errorf("entered on %v, want %v", got, want)
	}
	if got, want := step.Instance.StartedOn, now.Add(-time.Minute).UTC(); got != want {
		t.Errorf("started on %v, want %v", got, want)
	}
}

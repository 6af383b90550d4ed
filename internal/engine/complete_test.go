package engine_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/engine"
)

// single is a run of one node x, between start and end, whose error edge, if asked for, leads to the end lost.
func single(kind string, withErrorEdge bool) string {
	nodes := "s " + from + "\nx " + kind + "\ne end {outcome: done}\nlost end {outcome: lost}\n"
	edges := "s x {}\nx e {}\n"
	if withErrorEdge {
		return flow(nodes, edges+"x lost {isError: true}")
	}
	return flow(strings.Replace(nodes, "lost end {outcome: lost}\n", "", 1), edges)
}

func TestCompleteMovesOutputs(t *testing.T) {
	tests := map[string]struct{ outputs, result, want string }{
		"declared ones to their keys":     {"[{name: a, contextKey: b}, {name: c}]", "{a: 1, c: 2}", "{b: 1, c: 2}"},
		"others as they are":              {"[]", "{a: {b: [1]}}", "{a: {b: [1]}}"},
		"nulls stay":                      {"[{name: a, contextKey: b}]", "{a: null, c: null}", "{b: null, c: null}"},
		"none that is not there":          {"[{name: a, contextKey: b}]", "{}", "{}"},
		"declared ones over others":       {"[{name: a, contextKey: b}]", "{a: 1, b: 2}", "{b: 1}"},
		"names swapped":                   {"[{name: a, contextKey: b}, {name: b, contextKey: a}]", "{a: 1, b: 2}", "{a: 2, b: 1}"},
		"the later of two for one key":    {"[{name: a, contextKey: c}, {name: b, contextKey: c}]", "{a: 1, b: 2}", "{c: 2}"},
		"a blank context key is the name": {"[{name: a, contextKey: ' '}]", "{a: 1}", "{a: 1}"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for _, kind := range []string{"action {actionType: a, inputs: {}, outputs: ", "human-task {description: D, outputs: "} {
				s := tell(t, single(kind+tc.outputs+"}", false), "{}")
				s.complete("x#1", tc.result)
				s.wantStatus(engine.StatusCompleted)
				s.wantContext(tc.want)
				if got := map[string]any(s.entry("x#1").Output); len(got) > 0 {
					if diff := cmp.Diff(map[string]any(values(t, tc.want)), got); diff != "" {
						t.Errorf("output (-want +got):\n%s", diff)
					}
				}
			}
		})
	}
}

func TestCompleteMergesShallowly(t *testing.T) {
	s := tell(t, single(comp, false), "{a: {b: 1, c: 2}, d: 3}")
	s.complete("x#1", "{a: {b: 4}}")
	s.wantContext("{a: {b: 4}, d: 3}")
}

func TestCompleteRequiresOutputsOfActionsOnly(t *testing.T) {
	outputs := "outputs: [{name: a, required: true, contextKey: b}]}"
	for name, result := range map[string]string{"absent": "{}", "null": "{a: null}", "under its key": "{b: 1}"} {
		t.Run(name, func(t *testing.T) {
			s := tell(t, single("action {actionType: a, inputs: {}, "+outputs, false), "{}")
			s.complete("x#1", result)
			if f := s.wantFailure(engine.PhaseOutputValidation, engine.CodeMissingOutput, "x#1"); f.Field != "a" {
				t.Errorf("failure = %+v", f)
			}
			s.wantHistory("s#1 Completed", "x#1 Failed")
			s.wantContext("{}")
		})
	}
	s := tell(t, single("human-task {description: D, "+outputs, false), "{}")
	s.complete("x#1", "{}")
	s.wantStatus(engine.StatusCompleted)
}

func TestCompleteWithWhatIsNoObject(t *testing.T) {
	deep := engine.Values{}
	for range 2000 {
		deep = engine.Values{"a": deep}
	}
	for name, out := range map[string]engine.Values{
		"nothing":       nil,
		"no number":     {"a": []any{math.Inf(1)}},
		"no Unicode":    {"a\xff": 1},
		"no JSON":       {"a": struct{}{}},
		"a bottomless":  deep,
		"strings of Go": {"a": []string{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(t, single(act, false), "{}")
			s.do(func(in engine.Instance) engine.Step {
				return engine.Complete(t.Context(), s.def, in, s.at("x#1"), out, "", s.now)
			})
			s.wantFailure(engine.PhaseResultValidation, engine.CodeInvalidResult, "x#1")
		})
	}
}

// Results are copied: what the caller does to them afterwards is of no account.
func TestCompleteCopiesTheResult(t *testing.T) {
	s := tell(t, single(act, false), "{}")
	list := []any{int64(1)}
	out := engine.Values{"a": list}
	s.do(func(in engine.Instance) engine.Step {
		return engine.Complete(t.Context(), s.def, in, s.at("x#1"), out, "", s.now)
	})
	list[0] = "changed"
	s.wantContext("{a: [1]}")
}

func TestContextIsBounded(t *testing.T) {
	for size, fits := range map[int]bool{engine.MaxContextBytes - 8: true, engine.MaxContextBytes - 7: false} {
		s := tell(t, single(act, false), "{}")
		s.complete("x#1", "{a: "+strings.Repeat("x", size)+"}")
		if fits {
			s.wantStatus(engine.StatusCompleted)
			continue
		}
		s.wantFailure(engine.PhaseOutputMapping, engine.CodeContextTooLarge, "x#1")
		s.wantContext("{}")
	}
}

// Values stored elsewhere count, and a key is either here or there.
func TestContextReferences(t *testing.T) {
	s := tell(t, single("action {actionType: a, inputs: {}, outputs: []}", false), "{}")
	s.in.ContextRefs = map[string]engine.ContextRef{
		"big": {Digest: "sha256:1", ConfigMap: "c", Bytes: engine.MaxContextBytes - 20}, "old": {Bytes: 5},
	}
	in := s.in
	step := engine.Complete(t.Context(), s.def, in, s.at("x#1"), engine.Values{"a": strings.Repeat("x", 30)}, "", noon)
	if step.Instance.Failure == nil || step.Instance.Failure.Code != engine.CodeContextTooLarge {
		t.Errorf("failure = %+v", step.Instance.Failure)
	}
	step = engine.Complete(t.Context(), s.def, in, s.at("x#1"), engine.Values{"big": "x", "a": strings.Repeat("x", 30)}, "", noon)
	if diff := cmp.Diff(map[string]engine.ContextRef{"old": {Bytes: 5}}, step.Instance.ContextRefs); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
	if len(in.ContextRefs) != 2 {
		t.Error("the instance handed in was changed")
	}
}

func TestInputsAreResolvedOnEntry(t *testing.T) {
	config := "inputs: {b: context.num + 1, a: 5, c: '', d: {e: context.num}, f: null, g: \"'text'\", h: context.num == 1.0}"
	want := "{b: 2, a: 5, c: null, d: {e: context.num}, f: null, g: text, h: true}"
	for _, kind := range []string{
		"action {actionType: a, outputs: [], " + config + "}",
		"human-task {description: D, outputs: [], " + config + "}",
		"component {component: c, " + config + "}",
	} {
		s := tell(t, single(kind, false), "{num: 1}")
		if diff := cmp.Diff(values(t, want), s.branch("x#1").Input); diff != "" {
			t.Errorf("%s: input (-want +got):\n%s", kind, diff)
		}
		s.complete("x#1", "{}")
		if diff := cmp.Diff(values(t, want), s.entry("x#1").Input); diff != "" {
			t.Errorf("%s: input in history (-want +got):\n%s", kind, diff)
		}
	}
}

func TestInputsThatHaveNoValue(t *testing.T) {
	for _, kind := range []string{
		"action {actionType: a, outputs: [], inputs: {a: '1', b: context.missing}}",
		"human-task {description: D, outputs: [], inputs: {a: '1', b: context.missing}}",
		"component {component: c, inputs: {a: '1', b: context.missing}}",
	} {
		s := tell(t, single(kind, false), "{}")
		f := s.wantFailure(engine.PhaseInputResolution, engine.CodeExpressionError, "x#1")
		if f.Field != "b" || f.Expression != "context.missing" || f.Node != "x" {
			t.Errorf("failure = %+v", f)
		}
		s.wantHistory("s#1 Completed", "x#1 Failed")

		s = tell(t, single(kind, true), "{}")
		s.wantHistory("s#1 Completed", "x#1 Failed", "lost#1 Completed")
	}
}

func TestInputsOfCallsForEachItemAreNotResolved(t *testing.T) {
	s := tell(t, single("component {component: c, inputs: {a: item.b}, forEach: {items: context.items, as: item, max: 3}}", false), "{}")
	s.wantOpen("x#1")
	if in := s.branch("x#1").Input; in != nil {
		t.Errorf("input = %v, want none", in)
	}
}

func TestTitles(t *testing.T) {
	for title, want := range map[string]string{
		"\"'Approve ' + context.ref\"": "Approve r-1",
		"context.missing":              "The x",
		"context.num":                  "1",
		"\"' '\"":                      "The x",
		"'null'":                       "The x",
		"''":                           "The x",
		"Approve it":                   "The x",
		"'[context.ref]'":              `["r-1"]`,
	} {
		s := tell(t, single("human-task {description: D, outputs: [], title: "+title+"}", false), "{ref: r-1, num: 1}")
		if got := s.branch("x#1").Title; got != want {
			t.Errorf("title %s gives %q, want %q", title, got, want)
		}
	}
}

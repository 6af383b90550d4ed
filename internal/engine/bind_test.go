package engine_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/engine"
)

func TestMergeKeepsAComponentOpen(t *testing.T) {
	s := tell(t, flow("start start {inputs: [{name: a}]}\ncall component {component: c, outputs: {b: result}}\ndo "+act+"\njoin wait {duration: PT0S}\nend end {}",
		"start call\nstart do {priority: 1}\ncall join\ndo join\njoin end"), "{a: 1}")
	merge := func(activation string, values engine.Values) {
		s.do(func(in engine.Instance) engine.Step {
			return engine.Merge(t.Context(), s.def, in, engine.Address{Activation: activation, Attempt: 1}, values, s.now)
		})
	}
	merge("call#1", engine.Values{"b": 2.0, "c": nil})
	if !s.last.Applied || len(s.last.Closed)+len(s.last.Opened) > 0 {
		t.Errorf("step %+v", s.last)
	}
	s.wantOpen("call#1", "do#1")
	s.wantContext("{a: 1, b: 2, c: null}")
	merge("do#1", engine.Values{"b": 3})
	s.wantReason(engine.ReasonWrongKind)
	merge("call#2", engine.Values{"b": 3})
	s.wantReason(engine.ReasonUnknownActivation)
	merge("call#1", engine.Values{"b": strings.Repeat("x", engine.MaxContextBytes)})
	s.wantFailure(engine.PhaseOutputMapping, engine.CodeContextTooLarge, "call#1")
	s.wantContext("{a: 1, b: 2, c: null}")
}

func TestVisibleHasEveryDeclaredKey(t *testing.T) {
	s := tell(t, flow("start start {inputs: [{name: a}]}\ncall component {component: c, outputs: {b: result}}\nend end {}", "start call\ncall end"), "{x: 1}")
	if diff := cmp.Diff(map[string]any{"a": nil, "b": nil, "x": int64(1)}, s.def.Visible(s.in)); diff != "" {
		t.Errorf("visible (-want +got):\n%s", diff)
	}
}

func TestNormal(t *testing.T) {
	got, err := engine.Normal(map[string]any{"a": []any{1.0, 1.5, int32(3)}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"a": []any{int64(1), 1.5, int64(3)}}, got); diff != "" {
		t.Errorf("normal (-want +got):\n%s", diff)
	}
	if _, err := engine.Normal(struct{}{}); err == nil {
		t.Error("a struct is a value of JSON")
	}
}

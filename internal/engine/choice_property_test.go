package engine_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// What a choice must come to, worked out from the document and the context alone.
type verdict struct {
	taken string // the edge, empty without one
	// failing is the edge whose condition has no value.
	failing string
}

// verdictOn looks at the conditions of a node that completed, one after the other, as the contract says.
func verdictOn(t *testing.T, flow *workflow.Workflow, node string, context engine.Values) verdict {
	t.Helper()
	variables := map[string]any{}
	for _, key := range flow.DeclaredKeys() {
		variables[key] = nil
	}
	maps.Copy(variables, context)
	byDefault := ""
	for _, e := range flow.Normal(node) {
		if e.IsDefault() {
			byDefault = e.ID()
			continue
		}
		program, err := newExpressions().Compile(expression.ScopeEdgeCondition, e.Condition())
		if err != nil {
			t.Fatal(err)
		}
		value, err := program.Eval(t.Context(), expression.Variables{Context: variables})
		if err != nil {
			return verdict{failing: e.ID()}
		}
		if value == true {
			return verdict{taken: e.ID()}
		}
	}
	return verdict{taken: byDefault}
}

// An error of a condition is never taken as false: in random runs every choice comes to what it must, and a condition
// without value ends the run whatever default stands beside it.
func TestChoicesOfRandomRuns(t *testing.T) {
	failed, chosen := 0, 0
	for seed := range uint64(250) {
		pick := drawing(seed, 5)
		p := play(t, generate(pick, false), pick)
		for range 30 {
			p.turn()
			node, ok := p.leftNode()
			if !ok {
				continue
			}
			want := verdictOn(t, p.def.Workflow(), node, p.in.Context)
			switch f := p.in.Failure; {
			case want.failing != "":
				failed++
				if f == nil || f.Phase != engine.PhaseEdgeCondition || f.Code != engine.CodeExpressionError || f.Edge != want.failing {
					t.Fatalf("seed %d: the condition of %s has no value, the run is %s with failure %+v", seed, want.failing, p.in.Status, f)
				}
			case want.taken == "":
				if f == nil || f.Code != engine.CodeNoMatchingEdge {
					t.Fatalf("seed %d: no edge of %s can be taken, the run is %s with failure %+v", seed, node, p.in.Status, f)
				}
			default:
				chosen++
				if !p.followed(want.taken) {
					t.Fatalf("seed %d: %s was not followed: %+v", seed, want.taken, p.last)
				}
			}
		}
	}
	if failed < 20 || chosen < 500 {
		t.Errorf("%d conditions failed, %d edges were chosen: the runs prove little", failed, chosen)
	}
}

// leftNode is the node that completed in the last step, if a choice followed on the context as it is now.
func (p *player) leftNode() (string, bool) {
	if !p.last.Applied || len(p.last.Closed) == 0 || p.last.Closed[0].Outcome != engine.OutcomeCompleted {
		return "", false
	}
	node := p.last.Closed[0].Node
	// A failure behind the choice would have changed the context since.
	isFailure := func(e engine.Entry) bool { return e.Outcome == engine.OutcomeFailed }
	return node, !p.def.Workflow().IsFork(node) && !slices.ContainsFunc(p.last.Closed, isFailure)
}

// followed tells whether the last step went along an edge: to something that closed at once, that is open, or to a join.
func (p *player) followed(edge string) bool {
	for _, e := range p.last.Closed {
		if e.Edge == edge {
			return true
		}
	}
	for _, b := range p.in.ActiveBranches {
		if b.Edge == edge {
			return true
		}
	}
	for _, arrived := range p.in.JoinArrivals {
		if slices.Contains(arrived, edge) {
			return true
		}
	}
	return false
}

package engine

import (
	"context"
	"maps"
	"time"

	"github.com/apitomy/axiom-operator/internal/workflow"
)

// Merge writes values into the context for a component that stays open, as Complete would do when it closes. Values that
// cannot enter the context fail the component.
//
//nolint:revive // a step gets all that it depends on as arguments
func Merge(ctx context.Context, d *Definition, in Instance, at Address, values Values, now time.Time) Step {
	s := begin(ctx, d, in, now)
	index, node, reason := s.find(at, workflow.KindComponent)
	if reason != "" {
		return s.refuse(reason)
	}
	if s.isInterrupted(nil) {
		return s.end()
	}
	if _, failure := s.bind(node, values); failure != nil {
		s.failParked(index, node, *failure)
	}
	return s.end()
}

// bind lets a result enter the context, whole or not at all, and returns what entered.
func (s *stepper) bind(node workflow.Node, out Values) (Values, *Failure) {
	merged, failure := outputs(node, out)
	if failure == nil {
		failure = s.merge(merged)
	}
	return merged, failure
}

// Visible is what expressions see of a run: its context, and null for each declared key that nobody wrote.
func (d *Definition) Visible(in Instance) map[string]any {
	return d.seeded(in.Context)
}

func (d *Definition) seeded(written Values) map[string]any {
	seeded := make(map[string]any, len(written)+len(d.declared))
	for _, key := range d.declared {
		seeded[key] = nil
	}
	maps.Copy(seeded, written)
	return seeded
}

// Normal copies a value in the one spelling that survives JSON: integral numbers that fit are int64. The error says that
// it is no value of JSON, or nested too deep.
func Normal(v any) (any, error) {
	return normalize(v, 0)
}

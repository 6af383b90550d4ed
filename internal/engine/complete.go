package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/apitomy/axiom-operator/internal/workflow"
)

// Complete delivers the result of an action, a human task or a component; by is the user, if it was one. A result that
// is nil is not an object.
//
//nolint:revive // a step gets all that it depends on as arguments
func Complete(ctx context.Context, d *Definition, in Instance, at Address, out Values, by string, now time.Time) Step {
	s := begin(ctx, d, in, now)
	index, node, reason := s.find(at, served...)
	if reason != "" {
		return s.refuse(reason)
	}
	if s.isInterrupted(nil) {
		return s.end()
	}
	merged, failure := s.bind(node, out)
	if failure != nil {
		s.failParked(index, node, *failure)
		return s.end()
	}
	b := s.take(index)
	s.close(b, Entry{Outcome: OutcomeCompleted, Output: merged, By: by})
	s.leave(b)
	return s.end()
}

// outputs turns a result into what enters the context: declared outputs go by their context key, all others pass.
func outputs(node workflow.Node, out Values) (Values, *Failure) {
	result, err := normalObject(out)
	if err != nil {
		return nil, &Failure{Phase: PhaseResultValidation, Code: CodeInvalidResult, Message: fmt.Sprintf("the result is %v", err)}
	}
	declared := node.OutputFields()
	for _, f := range declared {
		if node.Kind() == workflow.KindAction && f.IsRequired() && result[f.Name()] == nil {
			return nil, &Failure{
				Phase: PhaseOutputValidation, Code: CodeMissingOutput, Field: f.Name(),
				Message: fmt.Sprintf("output %q is required", f.Name()),
			}
		}
	}
	return renamed(result, declared), nil
}

// renamed moves declared outputs to their context keys. A value that nobody declared gives way where keys meet, and of
// two declared ones the later wins.
func renamed(result Values, declared []workflow.Field) Values {
	var merged Values
	put := func(key string, v any) {
		if merged == nil {
			merged = Values{}
		}
		merged[key] = v
	}
	names := map[string]bool{}
	for _, f := range declared {
		names[f.Name()] = true
	}
	for name, v := range result {
		if !names[name] {
			put(name, v)
		}
	}
	for _, f := range declared {
		if v, ok := result[f.Name()]; ok {
			put(f.EffectiveContextKey(), v)
		}
	}
	return merged
}

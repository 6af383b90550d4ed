package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/apitomy/axiom-operator/internal/workflow"
)

// Start begins a run that was created now. See StartRun.
func Start(ctx context.Context, d *Definition, inputs Values, now time.Time) (Step, error) {
	return StartRun(ctx, d, inputs, now, now)
}

// StartRun begins a run: the start node completes with the inputs, and the run moves on until everything is parked.
// Events are looked back for until created. Inputs beyond those declared are kept, and no types are checked.
//
// The error is a *ProblemsError if the definition has errors, an *InputError if inputs are missing, or that of a context
// that ended; whatever happens in the run itself is told by the step.
func StartRun(ctx context.Context, d *Definition, inputs Values, created, now time.Time) (Step, error) {
	if workflow.HasErrors(d.problems) {
		return Step{}, &ProblemsError{Problems: d.problems}
	}
	node, ok := d.flow.Start()
	if !ok {
		return Step{}, &ProblemsError{Problems: d.problems}
	}
	if inputs == nil {
		inputs = Values{}
	}
	given, err := normalObject(inputs)
	if err != nil {
		return Step{}, &InputError{Rule: RuleJSON}
	}
	declared, err := declaredInputs(node, given)
	if err != nil {
		return Step{}, err
	}
	s := begin(ctx, d, Instance{Status: StatusWaiting, StartedOn: created.UTC().Round(0)}, now)
	if s.isInterrupted(nil) {
		return s.end(), fmt.Errorf("start run: %w", context.Cause(ctx))
	}
	s.start(node, given, declared)
	step := s.end()
	if step.Reason == ReasonInterrupted {
		return step, fmt.Errorf("start run: %w", context.Cause(ctx))
	}
	return step, nil
}

func (s *stepper) start(node workflow.Node, given, declared Values) {
	b := s.visit(node, rootBranch)
	b.Input = declared
	if failure := s.merge(given); failure != nil {
		s.failNode(b, *failure)
		return
	}
	s.close(b, Entry{Outcome: OutcomeCompleted})
	s.leave(b)
}

// declaredInputs are those of the given inputs that the start node knows.
func declaredInputs(node workflow.Node, given Values) (Values, error) {
	var declared Values
	for _, f := range node.InputFields() {
		v, ok := given[f.Name()]
		if f.IsRequired() && v == nil {
			return nil, &InputError{Name: f.Name(), Rule: RuleRequired}
		}
		if !ok {
			continue
		}
		if declared == nil {
			declared = Values{}
		}
		declared[f.Name()] = v
	}
	return declared, nil
}

// Parked lists the open activations in the order they were entered, with their nodes.
func Parked(d *Definition, in Instance) []ParkedActivation {
	var parked []ParkedActivation
	for _, b := range in.ActiveBranches {
		if node, ok := d.flow.Node(b.Node); ok {
			parked = append(parked, ParkedActivation{
				ActiveBranch: b, Kind: node.Kind(), Name: node.Name(), Config: node.Config(),
			})
		}
	}
	return parked
}

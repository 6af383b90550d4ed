package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// runPlan is what one pass decided. The zero plan leaves the run as it is.
type runPlan struct {
	// verdict on a run that has no definition.
	verdict *runVerdict
	// isLost: the run must never start.
	isLost bool
	// lostValue says which value the run cannot go on without; empty: it can.
	lostValue string
	// isCancelled: the run ended before it began.
	isCancelled bool
	// instance after all that was applied, nil if nothing was.
	instance *engine.Instance
	// closed are the history entries of that.
	closed []engine.Entry
	// outcome of the end node that was reached.
	outcome string
	// resumed: the outstanding resume requests are honoured.
	resumed bool
	// held are the activations whose delivery waits for a resume request.
	held []string
}

func (p *runPlan) add(definition *runDefinition, step engine.Step) {
	p.instance = &step.Instance
	if definition == nil {
		p.closed = append(p.closed, step.Closed...)
		return
	}
	p.closed = append(p.closed, definition.engine.Describe(step.Closed)...)
	if outcome := definition.engine.Outcome(step); outcome != "" {
		p.outcome = outcome
	}
}

// decideStart starts a run, refuses it, or waits for its definition.
func decideStart(ctx context.Context, state *runState) (runPlan, error) {
	switch {
	case state.isLost:
		return runPlan{isLost: true}, nil
	case state.run.Spec.Cancel:
		return runPlan{isCancelled: true}, nil
	case state.verdict != nil:
		return runPlan{verdict: state.verdict}, nil
	}
	if verdict := state.definition.judge(); verdict != nil {
		return runPlan{verdict: verdict}, nil
	}
	inputs, verdict := judgeInputs(state)
	if verdict != nil {
		return runPlan{verdict: verdict}, nil
	}
	step, err := engine.StartRun(ctx, state.definition.engine, inputs, state.run.CreationTimestamp.Time, state.now)
	if missing, ok := errors.AsType[*engine.InputError](err); ok {
		return runPlan{verdict: refuseRun(api.ReasonInvalidInputs, "%v", missing)}, nil
	}
	if err != nil {
		return runPlan{}, fmt.Errorf("start run: %w", err)
	}
	var plan runPlan
	plan.add(state.definition, step)
	return plan, nil
}

// judgeInputs reads the inputs and refuses what admission would have refused.
func judgeInputs(state *runState) (engine.Values, *runVerdict) {
	if _, err := runDeadline(state.run, state.now); err != nil {
		return nil, refuseRun(api.ReasonInvalidInputs, "activeDeadline: %v", err)
	}
	inputs, err := runInputs(state.run)
	if err != nil {
		return nil, refuseRun(api.ReasonInvalidInputs, "the inputs are not a JSON object")
	}
	return inputs, nil
}

func runInputs(run *api.WorkflowRun) (engine.Values, error) {
	if run.Spec.Inputs == nil {
		return nil, nil
	}
	decoded, err := jsonvalue.Decode(run.Spec.Inputs.Raw)
	if err != nil {
		return nil, err
	}
	inputs, isObject := decoded.(map[string]any)
	if !isObject && decoded != nil {
		return nil, errors.New("not an object")
	}
	return inputs, nil
}

// runDeadline is when the run's time is up, zero if it is not limited.
func runDeadline(run *api.WorkflowRun, started time.Time) (time.Time, error) {
	if run.Spec.ActiveDeadline == "" {
		return time.Time{}, nil
	}
	limit, err := workflow.ParseDuration(run.Spec.ActiveDeadline)
	if err != nil {
		return time.Time{}, err
	}
	if limit <= 0 {
		return time.Time{}, errors.New("not a positive duration")
	}
	return started.Add(limit), nil
}

// decideStep applies to a started run what came to pass: its cancellation,
// else the end of its time, else the deliveries, each on the result of the
// last. The instance must be hydrated if anything is to be applied.
func decideStep(ctx context.Context, state *runState, deliveries []runDelivery) (runPlan, error) {
	var plan runPlan
	switch {
	case state.run.Spec.Cancel:
		plan.add(state.definition, engine.Cancel(state.instance, "the run was cancelled", state.now))
	case isPastDeadline(state):
		plan.add(state.definition, engine.Abort(state.instance, engine.Failure{
			Phase: engine.PhaseExecution, Code: codeDeadlineExceeded, Message: "the run took longer than its activeDeadline",
		}, state.now))
	case state.definition == nil:
		return runPlan{verdict: state.verdict}, nil
	default:
		return decideDeliveries(ctx, state, deliveries)
	}
	return plan, nil
}

func decideDeliveries(ctx context.Context, state *runState, deliveries []runDelivery) (runPlan, error) {
	let, held := gateDeliveries(state.run, deliveries)
	plan := runPlan{held: held, resumed: hasResumeRequest(state.run)}
	instance := state.instance
	for _, d := range let {
		step := d.apply(ctx, state.definition.engine, instance, state.now)
		if step.Reason == engine.ReasonInterrupted {
			return runPlan{}, fmt.Errorf("apply delivery to %s: %w", d.address.Activation, context.Cause(ctx))
		}
		if step.Applied {
			plan.add(state.definition, step)
			instance = step.Instance
		}
	}
	plan.leaveNotes(instance, state.offers)
	return plan, nil
}

// gateDeliveries holds back what needs a resume request that nobody made.
func gateDeliveries(run *api.WorkflowRun, deliveries []runDelivery) (let []runDelivery, held []string) {
	open := !run.Spec.IsExplicit() || hasResumeRequest(run)
	for _, d := range deliveries {
		if open || d.immediate {
			let = append(let, d)
			continue
		}
		held = append(held, d.address.Activation)
	}
	return let, held
}

func hasResumeRequest(run *api.WorkflowRun) bool {
	return run.Spec.ResumeRequests > run.Status.ObservedResumeRequests
}

func isPastDeadline(state *runState) bool {
	deadline := activeDeadline(state.run)
	return !deadline.IsZero() && !state.now.Before(deadline)
}

// activeDeadline of a started run, zero if its time is not limited.
func activeDeadline(run *api.WorkflowRun) time.Time {
	if run.Status.StartedAt == nil {
		return time.Time{}
	}
	deadline, err := runDeadline(run, run.Status.StartedAt.Time)
	if err != nil {
		// It was judged before the start, and it cannot change.
		return time.Time{}
	}
	return deadline
}

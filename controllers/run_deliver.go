package controllers

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/form"
	"github.com/apitomy/axiom-operator/internal/humantask"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// Codes of failures that are found outside the engine.
const (
	codeTaskFailed        = "TASK_FAILED"
	codeNameTaken         = "NAME_TAKEN"
	codeDeadlineExceeded  = "DEADLINE_EXCEEDED"
	codeExitCode          = "EXIT_CODE"
	codePodLost           = "POD_LOST"
	codeResultMissing     = "RESULT_MISSING"
	codeResultTooLarge    = "RESULT_TOO_LARGE"
	codeOutputContract    = "OUTPUT_CONTRACT"
	codeInputContract     = "INPUT_CONTRACT"
	codeUnknownActionType = "UNKNOWN_ACTION_TYPE"
	codeInvalidActionType = "INVALID_ACTION_TYPE"
	codeSecretUnusable    = "SECRET_UNUSABLE"
)

// maxFailureMessage is what the schema takes of a failure's message.
const maxFailureMessage = 4096

// runOutcome is what a delivery tells an activation.
type runOutcome int

const (
	outcomeComplete runOutcome = iota
	outcomeFail
	outcomeTimeOut
	outcomeDeliver
)

// runDelivery is one thing that came to pass for an open activation.
type runDelivery struct {
	// at is when it was observed.
	at      time.Time
	address engine.Address
	outcome runOutcome
	// values and by of outcomeComplete.
	values engine.Values
	by     string
	// failure of outcomeFail.
	failure engine.Failure
	// event of outcomeDeliver.
	event engine.Event
	// immediate deliveries do not wait for a resume request.
	immediate bool
}

// apply hands the delivery to the engine.
func (d runDelivery) apply(ctx context.Context, definition *engine.Definition, in engine.Instance, now time.Time) engine.Step {
	switch d.outcome {
	case outcomeComplete:
		return engine.Complete(ctx, definition, in, d.address, d.values, d.by, now)
	case outcomeFail:
		// What scripts and clusters say must fit the status, or it never changes again.
		d.failure.Message = truncate(d.failure.Message, maxFailureMessage)
		return engine.Fail(ctx, definition, in, d.address, d.failure, now)
	case outcomeTimeOut:
		return engine.TimeOut(ctx, definition, in, d.address, now)
	case outcomeDeliver:
		return engine.Deliver(ctx, definition, in, d.address, d.event, now)
	}
	return engine.Step{Instance: in}
}

// collectDeliveries finds at most one delivery for each open activation, in
// the order they were observed.
func collectDeliveries(state *runState) []runDelivery {
	var found []runDelivery
	for _, parked := range engine.Parked(state.definition.engine, state.instance) {
		if d := deliveryFor(state, parked); d != nil {
			d.address = engine.Address{Activation: parked.Activation, Attempt: parked.Attempt}
			found = append(found, *d)
		}
	}
	slices.SortStableFunc(found, func(a, b runDelivery) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.address.Activation, b.address.Activation))
	})
	return found
}

func deliveryFor(state *runState, parked engine.ParkedActivation) *runDelivery {
	switch parked.Kind {
	case workflow.KindHumanTask:
		if task := state.children.task(parked.Child); task != nil {
			return taskDelivery(task, state.now)
		}
	case workflow.KindAction:
		d := attemptDelivery(state, parked)
		if d != nil {
			d.immediate = true
		}
		return d
	case workflow.KindReceiveEvent:
		return eventDelivery(state, parked)
	case workflow.KindWait:
		return deadlineDelivery(parked.Deadline, state.now)
	case workflow.KindStart, workflow.KindEnd, workflow.KindComponent:
	}
	return nil
}

func deadlineDelivery(deadline, now time.Time) *runDelivery {
	if deadline.IsZero() || now.Before(deadline) {
		return nil
	}
	return &runDelivery{at: deadline, outcome: outcomeTimeOut}
}

// taskDelivery is what became of a task, nil while it is open.
func taskDelivery(task *api.HumanTask, now time.Time) *runDelivery {
	at := now
	if task.Status.AnsweredAt != nil {
		at = task.Status.AnsweredAt.Time
	}
	switch status := task.Status; {
	case status.Answer != nil:
		return answerDelivery(task, at)
	case status.Failure != nil:
		return &runDelivery{at: at, outcome: outcomeFail, failure: taskFailure(status.Failure.Reason)}
	case status.Closed != nil && status.Closed.Reason == api.CloseExpired:
		return &runDelivery{at: status.Closed.At.Time, outcome: outcomeTimeOut}
	case status.Closed != nil:
		// Nobody can answer it any more, so waiting would be for ever.
		return &runDelivery{at: status.Closed.At.Time, outcome: outcomeFail, failure: taskFailure("the task was closed")}
	}
	return nil
}

func taskFailure(message string) engine.Failure {
	return engine.Failure{Phase: engine.PhaseExecution, Code: codeTaskFailed, Message: message}
}

// answerDelivery takes an answer as admission would have accepted it; one that
// slipped past admission fails the node.
func answerDelivery(task *api.HumanTask, at time.Time) *runDelivery {
	by := ""
	if task.Status.AnsweredBy != nil {
		by = task.Status.AnsweredBy.Username
	}
	invalid := func(rule string) *runDelivery {
		return &runDelivery{at: at, outcome: outcomeFail, failure: engine.Failure{
			Phase: engine.PhaseResultValidation, Code: engine.CodeInvalidResult, Message: "the answer is not valid: " + rule,
		}}
	}
	answer, err := jsonvalue.Decode(task.Status.Answer.Raw)
	if err != nil {
		return invalid("json")
	}
	spec, err := humantask.Form(task)
	if err != nil {
		return invalid("form")
	}
	values, faults := form.Accept(spec, answer)
	if len(faults) > 0 {
		return invalid(taskFaults(faults))
	}
	return &runDelivery{at: at, outcome: outcomeComplete, values: values, by: by}
}

// maxTaskFaults bounds how many faults of an answer a message names.
const maxTaskFaults = 20

// taskFaults names paths and rules, never values.
func taskFaults(faults []form.FieldError) string {
	var texts []string
	for _, fault := range faults[:min(len(faults), maxTaskFaults)] {
		texts = append(texts, fault.Path+": "+fault.Rule)
	}
	return strings.Join(texts, "; ")
}

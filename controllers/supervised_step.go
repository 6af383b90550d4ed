package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/definition"
	"github.com/apitomy/axiom-operator/internal/effect"
	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/frames"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/streamevent"
	"github.com/apitomy/axiom-operator/internal/workflow"
	"github.com/apitomy/axiom-operator/internal/workspace"
)

// maxActionResult is the size in bytes of what an action may return.
const maxActionResult = 192 << 10

// proceed carries a run that has begun: into a new execution if one is due, and
// through the one that is open as far as it goes.
func (r *SupervisedRunReconciler) proceed(ctx context.Context, run *api.WorkflowRun) (time.Duration, error) {
	open := openExecution(run)
	isOwn := open != nil && r.executions.isOwn(run.UID, open.Number)
	wantsResume := run.Spec.ResumeRequests > run.Status.ObservedResumeRequests
	p, verdict, err := r.reopen(ctx, run, !isOwn && (open != nil || wantsResume))
	if err != nil {
		return 0, err
	}
	if verdict != nil {
		return r.refuseDefinition(ctx, p, verdict)
	}
	defer p.close()
	if err := r.load(ctx, p); err != nil {
		return r.lose(ctx, p, err)
	}
	if open != nil && !isOwn {
		if err := r.recover(ctx, p, open.Number); err != nil {
			return 0, err
		}
	}
	return r.goOn(ctx, p, wantsResume)
}

// goOn claims answers where that is asked for, and executes what is open.
func (r *SupervisedRunReconciler) goOn(ctx context.Context, p *supervisedPass, wantsResume bool) (time.Duration, error) {
	tasks, err := r.openTasks(ctx, p)
	if err != nil {
		return r.lose(ctx, p, err)
	}
	if wantsResume {
		if err := r.resume(ctx, p, tasks); err != nil {
			return 0, err
		}
	}
	if openExecution(p.run) == nil {
		return r.wait(ctx, p, tasks)
	}
	return r.execute(ctx, p)
}

func (p *supervisedPass) close() {
	if p.objects != nil {
		p.objects.close()
	}
}

func openExecution(run *api.WorkflowRun) *api.RunExecution {
	if count := len(run.Status.Executions); count > 0 && run.Status.Executions[count-1].EndedAt == nil {
		return &run.Status.Executions[count-1]
	}
	return nil
}

// openNext opens an execution in this pass.
func (p *supervisedPass) openNext(reason api.ExecutionReason, requestedBy string) int64 {
	number := int64(1)
	if count := len(p.executions); count > 0 {
		number = p.executions[count-1].Number + 1
	}
	p.executions = append(p.executions, api.RunExecution{
		Number: number, Reason: reason, RequestedBy: requestedBy, StartedAt: metav1.NewTime(p.now).Rfc3339Copy(),
	})
	if len(p.executions) > maxExecutions {
		p.executions = p.executions[len(p.executions)-maxExecutions:]
	}
	return number
}

// endOpen ends the execution that is open, if one is.
func (p *supervisedPass) endOpen(ended api.ExecutionEnd) {
	if count := len(p.executions); count > 0 && p.executions[count-1].EndedAt == nil {
		now := metav1.NewTime(p.now).Rfc3339Copy()
		p.executions[count-1].EndedAt, p.executions[count-1].Ended = &now, ended
	}
}

// recover takes up an execution that another process left open.
func (r *SupervisedRunReconciler) recover(ctx context.Context, p *supervisedPass, left int64) error {
	p.endOpen(api.ExecutionInterrupted)
	number := p.openNext(api.ExecutionRecovered, "")
	if err := r.commit(ctx, p); err != nil {
		return err
	}
	r.executions.note(p.run.UID, number)
	r.tell(p.run, "Normal", string(api.ExecutionRecovered), "Recover", fmt.Sprintf("execution %d goes on as %d", left, number))
	return nil
}

// resume claims what was answered and opens an execution, in one update. Without
// an answer or anything else that is due, only the request is observed.
func (r *SupervisedRunReconciler) resume(ctx context.Context, p *supervisedPass, tasks map[string]*api.HumanTask) error {
	claims, refusal, err := r.claims(ctx, p, tasks)
	if err != nil {
		return err
	}
	p.refusedAnswer = &refusal
	if refusal != "" {
		return r.commit(ctx, p)
	}
	p.seenResumes = true
	hasNews := false
	for _, claim := range claims {
		if err := r.apply(ctx, p, claim.activation, claim.served); err != nil {
			return err
		}
		hasNews = true
	}
	isDue, err := r.arrive(ctx, p)
	if err != nil {
		return err
	}
	number := int64(0)
	if hasNews || isDue {
		if err := r.prepare(ctx, p); err != nil {
			return err
		}
		if openExecution(p.run) == nil {
			number = p.openNext(api.ExecutionResumed, p.run.Annotations[api.AnnotationResumedBy])
		}
	}
	if err := r.commit(ctx, p); err != nil {
		return err
	}
	if number > 0 {
		r.executions.note(p.run.UID, number)
	}
	return nil
}

// arrive gives the open receivers their events, and lets the waits go on whose time
// has come. It tells whether any did.
func (r *SupervisedRunReconciler) arrive(ctx context.Context, p *supervisedPass) (bool, error) {
	hasNews := false
	for _, parked := range frames.Parked(p.def, p.state) {
		if parked.Kind != workflow.KindWait && parked.Kind != workflow.KindReceiveEvent {
			continue
		}
		step, err := r.arrival(ctx, p, parked)
		if err != nil {
			return false, err
		}
		if !step.Applied && !parked.Deadline.IsZero() && !p.now.Before(parked.Deadline) {
			step = frames.TimeOut(ctx, p.def, p.state, engine.Address{Activation: parked.Activation}, p.now)
		}
		if !step.Applied {
			continue
		}
		if err := p.take(ctx, step, receiptOf{}); err != nil {
			return false, err
		}
		hasNews = true
	}
	return hasNews, nil
}

// arrival is what the first stored event that is meant for an activation leads to;
// no step that applies if there is none.
func (r *SupervisedRunReconciler) arrival(ctx context.Context, p *supervisedPass, parked frames.ParkedActivation) (frames.Step, error) {
	wanted, _ := parked.Config["eventType"].(string)
	if parked.Kind != workflow.KindReceiveEvent || strings.TrimSpace(wanted) == "" {
		return frames.Step{}, nil
	}
	// A resume is one look, so it is not left to a cache.
	var stored api.StreamEventList
	if err := r.Live.List(ctx, &stored, client.InNamespace(p.run.Namespace)); err != nil {
		return frames.Step{}, fmt.Errorf("list events: %w", err)
	}
	streamevent.Sort(stored.Items)
	for i := range stored.Items {
		if stored.Items[i].Spec.Type != wanted {
			continue
		}
		arrived, err := engineEvent(&stored.Items[i])
		if err != nil {
			continue // what cannot be read is meant for nobody
		}
		step := frames.Deliver(ctx, p.def, p.state, engine.Address{Activation: parked.Activation}, arrived, p.now)
		if step.Applied || ctx.Err() != nil {
			return step, ctx.Err()
		}
	}
	return frames.Step{}, nil
}

// execute serves open activations, one step at a time, until none of them can go
// on now.
func (r *SupervisedRunReconciler) execute(ctx context.Context, p *supervisedPass) (time.Duration, error) {
	ctx, done := r.flights.begin(ctx, p.run.UID)
	defer done()
	for {
		again, isWorking, err := r.serveNext(ctx, p)
		if err != nil {
			return r.lose(ctx, p, err)
		}
		switch {
		case isRunFinished(p.run):
			r.executions.forget(p.run.UID)
			return soon, nil
		case again == stepped:
			continue
		case isWorking:
			return again, r.commit(ctx, p)
		}
		return r.suspend(ctx, p)
	}
}

// stepped says that a step was made.
const stepped = time.Duration(-1)

// serveNext serves open activations in turn until one is over, and commits the
// step that follows. Else it tells whether any is being worked on, and when to
// look again.
func (r *SupervisedRunReconciler) serveNext(ctx context.Context, p *supervisedPass) (again time.Duration, isWorking bool, err error) {
	for _, parked := range frames.Parked(p.def, p.state) {
		intent := p.intent(parked.Activation)
		if parked.Kind != workflow.KindAction || intent == nil {
			continue
		}
		p.now = r.Clock.Now()
		result, err := r.serve(ctx, p, intent)
		if err != nil {
			return 0, false, err
		}
		if result.isOver {
			return stepped, true, r.step(ctx, p, parked.Activation, result)
		}
		isWorking = true
		if result.after > 0 && (again == 0 || result.after < again) {
			again = result.after
		}
	}
	return again, isWorking, nil
}

// step applies what became of an activation and commits it with the intents of
// what is entered.
func (r *SupervisedRunReconciler) step(ctx context.Context, p *supervisedPass, activation string, result served) error {
	if err := r.apply(ctx, p, activation, result); err != nil {
		return err
	}
	if err := r.prepare(ctx, p); err != nil {
		return err
	}
	return r.commit(ctx, p)
}

// apply lets the engine decide what follows. Results that must not be kept become
// failures.
func (r *SupervisedRunReconciler) apply(ctx context.Context, p *supervisedPass, activation string, result served) error {
	failure := result.failure
	if failure == nil {
		failure = r.judgeResult(result.outputs)
	}
	receipt := r.receipt(p, activation, result)
	at := engine.Address{Activation: activation, Attempt: 1}
	var step frames.Step
	if failure != nil {
		step = frames.Fail(ctx, p.def, p.state, at, *failure, p.now)
	} else {
		step = frames.Complete(ctx, p.def, p.state, at, result.outputs, result.by, p.now)
	}
	return p.take(ctx, step, receiptOf{activation: activation, receipt: receipt})
}

func (r *SupervisedRunReconciler) judgeResult(outputs map[string]any) *engine.Failure {
	if size := jsonvalue.Size(outputs); size > maxActionResult {
		return &engine.Failure{
			Phase: engine.PhaseResultValidation, Code: effect.CodeResultTooLarge,
			Message: fmt.Sprintf("the result has %d bytes, the limit is %d", size, maxActionResult),
		}
	}
	return r.gate(outputs)
}

// receipt is what the history tells of an effect, beside its input and output.
func (r *SupervisedRunReconciler) receipt(p *supervisedPass, activation string, result served) map[string]any {
	intent := p.intent(activation)
	if intent == nil {
		return nil
	}
	receipt := map[string]any{"action": intent.Action, "request": intent.Request.Digest}
	if intent.Key != "" {
		receipt["key"] = intent.Key
	}
	maps.Copy(receipt, result.receipt)
	if data, err := jsonvalue.Canonical(result.outputs); err == nil && result.failure == nil {
		receipt["result"] = content.Digest(data)
	}
	return receipt
}

// serve does what an intent asks for, as far as it can be done now.
func (r *SupervisedRunReconciler) serve(ctx context.Context, p *supervisedPass, intent *api.RunIntent) (served, error) {
	request, err := r.readRequest(ctx, p.run, intent)
	if err != nil {
		return served{}, err
	}
	if request.Action == definition.ActionAgentPrompt {
		return r.servePrompt(ctx, p, intent, request)
	}
	local := r.localActions()[request.Action]
	if local == nil {
		return r.serveEffect(ctx, p, intent, request)
	}
	if err := r.openObjects(ctx, p); err != nil {
		return r.missedObjects(ctx, p, intent, err)
	}
	before := p.workspace.DeepCopy()
	outputs, receipt, err := local(ctx, p, request)
	if err == nil {
		err = r.keepObjects(ctx, p)
	}
	if err != nil {
		p.objects.Discard()
		p.workspace = *before
		return r.missedObjects(ctx, p, intent, err)
	}
	return completed(outputs, receipt), nil
}

// missedObjects is missed for what needs the run's objects.
func (r *SupervisedRunReconciler) missedObjects(ctx context.Context, p *supervisedPass, intent *api.RunIntent, err error) (served, error) {
	if isBaseLost(err) {
		p.close()
		p.objects = nil
		return served{after: firstRetry}, nil
	}
	return r.missed(ctx, p, intent, err)
}

// suspend ends the execution once no pod of the run is left.
func (r *SupervisedRunReconciler) suspend(ctx context.Context, p *supervisedPass) (time.Duration, error) {
	if _, err := r.openTasks(ctx, p); err != nil {
		return r.lose(ctx, p, err)
	}
	isQuiet, err := r.restSessions(ctx, p.run)
	if err != nil {
		return 0, err
	}
	if !isQuiet {
		p.podsTerminating = true
		return podsRetry, r.commit(ctx, p)
	}
	p.endOpen(api.ExecutionSuspended)
	return 0, r.commit(ctx, p)
}

// wait tells people what a suspended run waits for.
func (r *SupervisedRunReconciler) wait(ctx context.Context, p *supervisedPass, tasks map[string]*api.HumanTask) (time.Duration, error) {
	for _, intent := range p.intents {
		if task := tasks[intent.Activation]; task != nil && (task.Status.Answer != nil || task.Status.Failure != nil) {
			p.answered = append(p.answered, intent.Activation)
		}
	}
	return 0, r.commit(ctx, p)
}

// lose stops a run whose values or objects are gone, until somebody brings them
// back.
func (r *SupervisedRunReconciler) lose(ctx context.Context, p *supervisedPass, err error) (time.Duration, error) {
	switch {
	case isDamaged(err):
		p.stalled, p.stalledMessage = api.ReasonWorkspaceDamaged, "the run's Git objects cannot be put together again"
	case isValueLost(err):
		p.stalled, p.stalledMessage = api.ReasonValueLost, err.Error()
	default:
		return 0, err
	}
	return lostValueRetry, r.commit(ctx, p)
}

func isBaseLost(err error) bool {
	return errors.Is(err, workspace.ErrBaseLost)
}

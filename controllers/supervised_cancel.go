package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/frames"
)

// cancel winds a run down: it fences new steps, lets the pods go, voids what is
// asked, and ends.
func (r *SupervisedRunReconciler) cancel(ctx context.Context, run *api.WorkflowRun) (time.Duration, error) {
	if !apimeta.IsStatusConditionTrue(run.Status.Conditions, api.ConditionCancelling) {
		return soon, r.fence(ctx, run)
	}
	isQuiet, err := r.stopSessions(ctx, run)
	if err != nil || !isQuiet {
		return podsRetry, err
	}
	p, err := r.lastPass(ctx, run)
	if err != nil {
		return 0, err
	}
	p.isCancelling = true
	step := frames.Cancel(p.def, p.state, "the run was cancelled", p.now)
	if err := p.take(ctx, step, receiptOf{}); err != nil {
		return 0, err
	}
	p.recordUncertain(run.Status.Intents)
	p.intents = nil
	p.endOpen(api.ExecutionCancelled)
	if err := r.commit(ctx, p); err != nil {
		return 0, err
	}
	return soon, nil
}

// fence writes that no new step begins.
func (r *SupervisedRunReconciler) fence(ctx context.Context, run *api.WorkflowRun) error {
	fenced := run.DeepCopy()
	set := runConditions{conditions: &fenced.Status.Conditions, generation: run.Generation, now: metav1.NewTime(r.Clock.Now()).Rfc3339Copy()}
	set.set(api.ConditionCancelling, metav1.ConditionTrue, api.ReasonProgressing, "")
	if err := r.Client.Status().Update(ctx, fenced); err != nil {
		return fmt.Errorf("update run status: %w", err)
	}
	return nil
}

// lastPass is for ending a run: what of its values is lost does not matter.
func (r *SupervisedRunReconciler) lastPass(ctx context.Context, run *api.WorkflowRun) (*supervisedPass, error) {
	p, verdict, err := r.reopen(ctx, run, false)
	if err != nil {
		return nil, err
	}
	if verdict != nil {
		return nil, errors.New("the definition cannot be read: " + verdict.message)
	}
	if err := r.load(ctx, p); err != nil && !isValueLost(err) {
		return nil, err
	}
	if p.state.Root.Status == "" {
		return nil, errors.New("the run's state cannot be read")
	}
	return p, nil
}

// recordUncertain notes the effects that were sent and whose outcome nobody
// learned.
func (p *supervisedPass) recordUncertain(intents []api.RunIntent) {
	for _, intent := range intents {
		if intent.Marked == nil {
			continue
		}
		for i := range p.closed {
			if p.closed[i].Activation == intent.Activation {
				p.closed[i].receipt = map[string]any{
					"action": intent.Action, "key": intent.Key, "request": intent.Request.Digest, "decision": decisionUncertain,
				}
			}
		}
	}
}

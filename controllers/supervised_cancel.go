package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/effect"
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
	defer p.close()
	receipts, err := r.lastReceipts(ctx, p)
	if err != nil {
		return 0, err
	}
	p.isCancelling = true
	step := frames.Cancel(p.def, p.state, "the run was cancelled", p.now)
	if err := p.take(ctx, step, receiptOf{}); err != nil {
		return 0, err
	}
	p.tellLast(receipts)
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

// lastPass is for ending a run: what of its definition or its values is lost does
// not matter.
func (r *SupervisedRunReconciler) lastPass(ctx context.Context, run *api.WorkflowRun) (*supervisedPass, error) {
	p, verdict, err := r.reopen(ctx, run, false)
	if err != nil {
		return nil, err
	}
	if verdict != nil {
		p = r.passWithoutBundle(run)
	}
	if err := r.load(ctx, p); err != nil && !isValueLost(err) {
		return nil, err
	}
	if p.state.Root.Status == "" {
		return nil, errors.New("the run's state cannot be read")
	}
	return p, nil
}

// lastReceipts are of the effects that may have been sent and that no receipt tells
// of, by activation. Each is looked at once more; what is not seen to be there then is
// uncertain.
func (r *SupervisedRunReconciler) lastReceipts(ctx context.Context, p *supervisedPass) (map[string]map[string]any, error) {
	receipts := map[string]map[string]any{}
	for i := range p.intents {
		intent := &p.intents[i]
		if !r.mayBeSent(p.run, intent) {
			continue
		}
		last, isThere := r.lookOnce(ctx, p, intent)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !isThere {
			last = served{receipt: map[string]any{"decision": decisionUncertain}}
		}
		receipts[intent.Activation] = r.receipt(p, intent.Activation, last)
	}
	return receipts, nil
}

// mayBeSent tells whether an effect may have been brought about. What a process did
// that is gone is not known, unless it is a create, which is marked before it leaves.
func (r *SupervisedRunReconciler) mayBeSent(run *api.WorkflowRun, intent *api.RunIntent) bool {
	if upsertOutputs[intent.Action] == "" {
		return false
	}
	open := openExecution(run)
	isFromOther := open != nil && !r.executions.isOwn(run.UID, open.Number)
	return intent.Marked != nil || isFromOther || r.performed.isSent(run.UID, intent.Activation)
}

func (r *SupervisedRunReconciler) lookOnce(ctx context.Context, p *supervisedPass, intent *api.RunIntent) (served, bool) {
	request, err := r.readRequest(ctx, p.run, intent)
	if err != nil {
		return served{}, false
	}
	wish, err := r.effectOf(ctx, p, request)
	if err != nil {
		return served{}, false
	}
	observed, err := observeEffect(ctx, wish)
	if err != nil || observed.Verdict != effect.Compatible {
		return served{}, false
	}
	return r.settled(p, intent, request, observed), true
}

// tellLast has the entries of what a cancel closed tell what became of effects.
func (p *supervisedPass) tellLast(receipts map[string]map[string]any) {
	for i := range p.closed {
		if receipt := receipts[p.closed[i].Activation]; receipt != nil {
			p.closed[i].receipt = receipt
		}
	}
}

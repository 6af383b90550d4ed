package controllers

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/turns"
)

const (
	// maxDeliveries is how often an agent gets the prompt of a run. It may be given
	// again since it has no effect but the reply.
	maxDeliveries = 3

	detailSessionGone    = "The agent session is gone"
	detailSessionStopped = "The agent session was stopped"
	detailAskedToStop    = "The turn was interrupted"
	startFailureOfRun    = "The agent could not be started: "
)

// serveRun brings the prompt of a run to its session's agent, and the reply back.
func (r *TurnReconciler) serveRun(ctx context.Context, turn *api.Turn) (step, error) {
	status := &turn.Status
	switch {
	case turns.IsOver(status.State):
		return step{}, nil
	case status.State != api.TurnWorking:
		status.State, status.StartedAt, status.Prompt = api.TurnWorking, r.now(), &turn.Spec.Prompt.Message
		return step{}, nil
	}
	session, err := r.sessionOfRun(ctx, turn)
	if err != nil {
		return step{}, err
	}
	if session == nil {
		r.failPrompt(turn, codeAgentLost, detailSessionGone)
		return step{}, nil
	}
	prompt := session.Status.Prompt
	isOwn := isPromptOf(prompt, turn)
	if isOwn {
		status.Restarts, status.Deliveries = prompt.Restarts, deliveriesOf(prompt)
	}
	switch {
	case isOwn && prompt.State == api.PromptDone:
		return step{}, r.concludeRun(ctx, turn, session)
	case session.Spec.Stopped:
		r.cancelPrompt(turn, detailSessionStopped)
		return step{}, nil
	case !isOwn:
		return r.queueRun(ctx, turn, session)
	}
	return r.tendRun(ctx, turn, session)
}

// sessionOfRun reads the turn's session live, nil if it is gone or another one of
// its name.
func (r *TurnReconciler) sessionOfRun(ctx context.Context, turn *api.Turn) (*api.AgentSession, error) {
	session, err := r.readSession(ctx, turn)
	if err != nil || session == nil || !isOwnedBy(session, types.UID(turn.Spec.Prompt.RunRef.UID)) {
		return nil, err
	}
	return session, nil
}

// deliveriesOf counts how often a runner had the prompt.
func deliveriesOf(prompt *api.SessionPrompt) int32 {
	if prompt.State == api.PromptQueued {
		return prompt.Restarts
	}
	return prompt.Restarts + 1
}

// queueRun puts the prompt into the session. The one before it, if it is still
// outstanding, is taken back first; but the turns of a supervised run wait for each
// other.
func (r *TurnReconciler) queueRun(ctx context.Context, turn *api.Turn, session *api.AgentSession) (step, error) {
	if fresh, err := isFresh(ctx, r.Direct, turn); err != nil || !fresh {
		return step{}, err
	}
	now := r.Clock.Now()
	left := r.deadline(turn, session).Sub(now)
	switch {
	case turn.Spec.Interrupt:
		r.cancelPrompt(turn, detailAskedToStop)
		return step{}, nil
	case left <= 0:
		r.failPrompt(turn, codeAgentTimeout, detailTimedOut)
		return step{}, nil
	}
	isBusy, err := r.isBusy(ctx, session)
	switch {
	case err != nil:
		return step{}, err
	case isBusy:
		return step{again: left}, nil
	case withdrawPrompt(session, now) && hasWork(session):
		return step{}, r.updateSession(ctx, session)
	case hasWork(session):
		return step{again: left}, nil
	}
	if err := r.wake(ctx, session); err != nil {
		return step{}, err
	}
	putPrompt(session, turn, now)
	return step{}, r.updateSession(ctx, session)
}

// isBusy tells whether another open turn has the session's agent to itself.
func (r *TurnReconciler) isBusy(ctx context.Context, session *api.AgentSession) (bool, error) {
	if !takesPrompts(session) || !hasWork(session) {
		return false, nil
	}
	other, err := readTurn(ctx, r.Direct, session.Namespace, session.Status.Prompt.ID)
	return err == nil && holds(other, session) && isPromptOf(session.Status.Prompt, other), err
}

// wake lets a suspended session have a pod again.
func (r *TurnReconciler) wake(ctx context.Context, session *api.AgentSession) error {
	if !session.Spec.Suspended {
		return nil
	}
	session.Spec.Suspended = false
	return wrap("wake session", r.Direct.Update(ctx, session))
}

// tendRun decides about a prompt that is on its way or with the agent.
func (r *TurnReconciler) tendRun(ctx context.Context, turn *api.Turn, session *api.AgentSession) (step, error) {
	now := r.Clock.Now()
	prompt := session.Status.Prompt
	left := r.deadline(turn, session).Sub(now)
	startLeft, isStarting := r.startLeft(session)
	switch {
	case prompt.State == api.PromptLost:
		decideLostRun(prompt, now)
		return step{}, r.updateSession(ctx, session)
	case turn.Spec.Interrupt || left <= 0:
		if withdrawPrompt(session, now) {
			return step{}, r.updateSession(ctx, session)
		}
		return step{}, nil
	case isStarting && startLeft <= 0:
		concludePrompt(prompt, api.PromptResult{Outcome: api.OutcomeFailed, Detail: startFailurePrefix + r.startTrouble(session)})
		return step{}, r.updateSession(ctx, session)
	case isStarting:
		return step{again: min(left, startLeft)}, nil
	}
	return step{again: left}, nil
}

// decideLostRun gives a prompt whose pod is gone to another one, a few times.
func decideLostRun(prompt *api.SessionPrompt, now time.Time) {
	switch {
	case prompt.Cancel:
		concludePrompt(prompt, api.PromptResult{Outcome: api.OutcomeInterrupted})
	case deliveriesOf(prompt) >= maxDeliveries:
		concludePrompt(prompt, api.PromptResult{Outcome: api.OutcomeFailed, Detail: detailPodLost})
	default:
		requeuePrompt(prompt, now)
	}
}

// concludeRun records the reply, or why there is none.
func (r *TurnReconciler) concludeRun(ctx context.Context, turn *api.Turn, session *api.AgentSession) error {
	prompt := session.Status.Prompt
	result := prompt.Result
	if result == nil {
		result = &api.PromptResult{Outcome: api.OutcomeFailed}
	}
	status := &turn.Status
	status.Reply, status.ReplyRef, status.Usage = result.Reply, result.ReplyRef, result.Usage
	if err := r.keepReply(ctx, turn); err != nil {
		return err
	}
	isLate := !r.Clock.Now().Before(r.timeUp(turn, session))
	switch {
	case result.Outcome == api.OutcomeCompleted && result.ReplyRef != nil && status.ReplyRef == nil:
		r.failPrompt(turn, codeAgentLost, "The reply is lost")
	case result.Outcome == api.OutcomeCompleted:
		status.State, status.FinishedAt = api.TurnCompleted, r.now()
	case turn.Spec.Interrupt:
		r.cancelPrompt(turn, detailAskedToStop)
	case result.Code == "" && (prompt.Cancel || isLate):
		r.failPrompt(turn, codeAgentTimeout, detailTimedOut)
	default:
		r.failPrompt(turn, codeOfResult(result), detailOfResult(result))
	}
	return nil
}

// codeOfResult names why a prompt failed that nobody cancelled.
func codeOfResult(result *api.PromptResult) string {
	switch {
	case result.Code != "":
		return result.Code
	case strings.HasPrefix(result.Detail, codeAgentDenied):
		return codeAgentDenied
	case result.Detail == detailPodLost || strings.HasPrefix(result.Detail, startFailurePrefix):
		return codeAgentLost
	}
	return codeAgentError
}

// detailOfResult says the same for people.
func detailOfResult(result *api.PromptResult) string {
	if trouble, isStart := strings.CutPrefix(result.Detail, startFailurePrefix); isStart {
		return startFailureOfRun + trouble
	}
	detail := strings.TrimPrefix(result.Detail, codeAgentDenied+": ")
	switch {
	case detail != "":
		return detail
	case result.StopReason != "":
		return "The agent stopped: " + result.StopReason
	}
	return detailSessionEnded
}

func (r *TurnReconciler) failPrompt(turn *api.Turn, code, detail string) {
	fail(turn, detail, r.now())
	turn.Status.Code = code
}

// cancelPrompt ends a turn that somebody stopped.
func (r *TurnReconciler) cancelPrompt(turn *api.Turn, detail string) {
	turn.Status.State, turn.Status.Detail, turn.Status.FinishedAt = api.TurnCancelled, detail, r.now()
}

// turnsOfRunSession maps the session of an attempt to the turns that are open in it.
func (r *TurnReconciler) turnsOfRunSession(ctx context.Context, session *api.AgentSession) []reconcile.Request {
	run := metav1.GetControllerOf(session)
	if run == nil {
		return nil
	}
	list := &api.TurnList{}
	err := r.Client.List(ctx, list, client.InNamespace(session.Namespace), client.MatchingLabels{api.LabelRun: string(run.UID)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Turns of a run could not be listed", "session", session.Name)
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		turn := &list.Items[i]
		if turn.Spec.SessionRef != nil && turn.Spec.SessionRef.Name == session.Name && !turns.IsOver(turn.Status.State) {
			requests = append(requests, requestFor(turn.Namespace, turn.Name))
		}
	}
	return requests
}

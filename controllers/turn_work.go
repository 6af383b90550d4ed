package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/turns"
)

const (
	defaultTurnTimeout  = 30 * time.Minute
	defaultStartTimeout = 5 * time.Minute
	// timeoutGrace is what the runner has to end a turn that timed out by itself
	// before the operator does.
	timeoutGrace = time.Minute

	detailPodLost  = "The agent pod was lost"
	detailTimedOut = "The turn took longer than its time limit"
	detailReleased = "The composition was released from this turn"
	detailIgnored  = "The agent did not stop when it was interrupted"
)

// work brings the prompt to the agent and waits for its result.
func (r *TurnReconciler) work(ctx context.Context, turn *api.Turn) (step, error) {
	if turn.Spec.CompositionRef == nil {
		return r.workFree(ctx, turn)
	}
	comp, err := r.readComposition(ctx, turn)
	if err != nil {
		return step{}, err
	}
	if comp == nil || comp.Status.Claim == nil || comp.Status.Claim.UID != string(turn.UID) {
		fail(turn, detailReleased, r.now())
		return step{comp: comp}, nil
	}
	done := step{comp: comp}
	session, err := r.ensureSession(ctx, comp)
	if errors.Is(err, errForeign) {
		// It may be that of a composition which had this name and is being
		// collected.
		return r.awaitStart(turn, done, err.Error()), nil
	}
	if err != nil {
		return done, err
	}
	return r.serve(ctx, turn, session, done)
}

// serve brings the prompt to the session's agent and its result to the turn.
func (r *TurnReconciler) serve(ctx context.Context, turn *api.Turn, session *api.AgentSession, done step) (step, error) {
	prompt := session.Status.Prompt
	isOwn := isPromptOf(prompt, turn)
	switch {
	case isOwn && prompt.State == api.PromptDone:
		turn.Status.Restarts = prompt.Restarts
		return done, r.finish(ctx, turn, done.comp, prompt)
	case session.Spec.Stopped:
		failAgent(turn, detailSessionEnded, r.now())
		return done, nil
	case !isOwn:
		return r.queue(ctx, turn, session, done)
	}
	turn.Status.Restarts = prompt.Restarts
	return r.tend(ctx, turn, session, done)
}

// awaitStart fails a turn whose agent did not come up in time, and otherwise
// says when that will be.
func (r *TurnReconciler) awaitStart(turn *api.Turn, done step, trouble string) step {
	left := turn.Status.StartedAt.Add(r.startTimeout()).Sub(r.Clock.Now())
	if left <= 0 {
		failAgent(turn, startFailurePrefix+trouble, r.now())
		return done
	}
	done.again = left
	return done
}

// queue puts the turn's prompt into the session. A prompt before it belongs to
// a turn that is over: it is taken back first.
func (r *TurnReconciler) queue(ctx context.Context, turn *api.Turn, session *api.AgentSession, done step) (step, error) {
	fresh, err := isFresh(ctx, r.Direct, turn)
	if err != nil || !fresh {
		return done, err
	}
	if turns.HasEffect(&turn.Status) {
		// There was a session before this one, and what its agent did would be done
		// again.
		failAgent(turn, detailPodLost, r.now())
		return done, nil
	}
	if turn.Spec.Interrupt {
		return done, r.finish(ctx, turn, done.comp, interrupted(turn))
	}
	changed := withdrawPrompt(session, r.Clock.Now())
	switch {
	case hasWork(session) && changed:
		return done, r.updateSession(ctx, session)
	case hasWork(session):
		return r.awaitTurn(turn, session, done), nil
	}
	putPrompt(session, turn, r.Clock.Now())
	return done, r.updateSession(ctx, session)
}

// awaitTurn waits for the agent to be done with the turn before, as long as
// this one may last.
func (r *TurnReconciler) awaitTurn(turn *api.Turn, session *api.AgentSession, done step) step {
	done.again = r.deadline(turn, session).Sub(r.Clock.Now())
	if done.again <= 0 {
		failAgent(turn, detailTimedOut, r.now())
	}
	return done
}

// interrupted is what becomes of a prompt that no agent ever saw.
func interrupted(turn *api.Turn) *api.SessionPrompt {
	prompt := &api.SessionPrompt{ID: turn.Name, Cancel: true}
	concludePrompt(prompt, api.PromptResult{Outcome: api.OutcomeInterrupted})
	return prompt
}

// tend decides about a prompt that is on its way or with the agent.
func (r *TurnReconciler) tend(ctx context.Context, turn *api.Turn, session *api.AgentSession, done step) (step, error) {
	now := r.Clock.Now()
	prompt := session.Status.Prompt
	left := r.deadline(turn, session).Sub(now)
	startLeft, isStarting := r.startLeft(session)
	switch {
	case prompt.State == api.PromptLost:
		// What the agent did last must not be missed.
		if fresh, err := isFresh(ctx, r.Direct, turn); err != nil || !fresh {
			return done, err
		}
		decideLost(turn, prompt, now)
		return done, r.updateSession(ctx, session)
	case turn.Spec.Interrupt || left <= 0:
		if withdrawPrompt(session, now) {
			return done, r.updateSession(ctx, session)
		}
		return done, nil
	case isStarting && startLeft <= 0:
		concludePrompt(prompt, api.PromptResult{Outcome: api.OutcomeFailed, Detail: startFailurePrefix + r.startTrouble(session)})
		return done, r.updateSession(ctx, session)
	}
	done.again = left
	if isStarting {
		done.again = min(left, startLeft)
	}
	return done, nil
}

// decideLost decides about a prompt whose pod is gone: it is given to another
// pod once, unless the agent did something with it already.
func decideLost(turn *api.Turn, prompt *api.SessionPrompt, now time.Time) {
	lost := api.PromptResult{Outcome: api.OutcomeFailed, Detail: detailPodLost}
	switch {
	case prompt.Cancel && !turn.Spec.Interrupt:
		lost.Detail = detailTimedOut
	case prompt.Cancel:
		lost.Detail = detailIgnored
	case !turns.HasEffect(&turn.Status) && !prompt.Effect && prompt.Restarts == 0:
		requeuePrompt(prompt, now)
		return
	}
	concludePrompt(prompt, lost)
}

// deadline is when the operator ends the turn.
func (r *TurnReconciler) deadline(turn *api.Turn, session *api.AgentSession) time.Time {
	return noLaterThan(turn.Spec.Prompt, r.timeUp(turn, session).Add(timeoutGrace))
}

// timeUp is when the turn has had its time; whoever works on it then has the grace
// to say so itself.
func (r *TurnReconciler) timeUp(turn *api.Turn, session *api.AgentSession) time.Time {
	timeout := defaultTurnTimeout
	if set := session.Spec.TurnTimeout; set != nil && set.Duration > 0 {
		timeout = set.Duration
	}
	return noLaterThan(turn.Spec.Prompt, turn.Status.StartedAt.Add(timeout))
}

// noLaterThan keeps a moment within the deadline of a run's prompt.
func noLaterThan(prompt *api.RunPrompt, moment time.Time) time.Time {
	if prompt == nil || prompt.Deadline == nil || moment.Before(prompt.Deadline.Time) {
		return moment
	}
	return prompt.Deadline.Time
}

// startLeft is how long a prompt may still wait for its agent to come up;
// isStarting is false when it does not wait for that.
func (r *TurnReconciler) startLeft(session *api.AgentSession) (left time.Duration, isStarting bool) {
	prompt := session.Status.Prompt
	if prompt.State != api.PromptQueued || prompt.QueuedAt == nil || isReady(session) {
		return 0, false
	}
	// While no operator listened, nobody could have said that the agent is there.
	return latest(r.since, prompt.QueuedAt).Add(r.startTimeout()).Sub(r.Clock.Now()), true
}

// startTrouble tells why an agent does not come up, as far as its session knows.
func (r *TurnReconciler) startTrouble(session *api.AgentSession) string {
	text := fmt.Sprintf("the agent was not ready within %s", r.startTimeout())
	for _, kind := range []string{api.ConditionWithinLimit, api.ConditionPodReady} {
		if found := apimeta.FindStatusCondition(session.Status.Conditions, kind); found != nil && found.Message != "" {
			return text + ": " + found.Message
		}
	}
	if session.Status.FailedStarts > 0 && session.Status.LastFailure != "" {
		return text + ": " + session.Status.LastFailure
	}
	return text
}

func (r *TurnReconciler) startTimeout() time.Duration {
	if r.StartTimeout <= 0 {
		return defaultStartTimeout
	}
	return r.StartTimeout
}

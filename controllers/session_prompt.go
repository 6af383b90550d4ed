package controllers

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// putPrompt queues the turn's prompt as the session's next.
func putPrompt(session *api.AgentSession, turn *api.Turn, now time.Time) {
	sequence := int64(1)
	if before := session.Status.Prompt; before != nil {
		sequence = before.Sequence + 1
	}
	session.Status.FailedStarts, session.Status.CurrentTurn = 0, turn.Name
	session.Status.Prompt = &api.SessionPrompt{
		Sequence: sequence, ID: turn.Name, TurnUID: string(turn.UID), Ref: *turn.Status.Prompt,
		State: api.PromptQueued, QueuedAt: timeOf(now), NewConversation: turn.Spec.NewConversation,
	}
}

// hasWork tells whether the session's prompt still waits for its result.
func hasWork(session *api.AgentSession) bool {
	prompt := session.Status.Prompt
	return prompt != nil && prompt.State != api.PromptDone
}

// wantsPod tells whether the session has work that needs a new pod. A prompt
// that was lost waits for its turn's decision first.
func wantsPod(session *api.AgentSession) bool {
	if !mayHavePod(session) {
		return false
	}
	prompt := session.Status.Prompt
	return startsAtOnce(session) || prompt != nil && prompt.State == api.PromptQueued && !prompt.Cancel
}

// mayHavePod tells whether nobody said that the session shall have no pod.
func mayHavePod(session *api.AgentSession) bool {
	return !session.Spec.Stopped && !session.Spec.Suspended
}

// takesPrompts tells whether the session is for the prompts of a supervised run.
func takesPrompts(session *api.AgentSession) bool { return session.Spec.Role == api.RolePrompt }

// isFree tells whether the session is free-standing: it belongs to nothing but
// the people who talk to it.
func isFree(session *api.AgentSession) bool {
	return session.Spec.CompositionRef == nil && session.Spec.RunRef == nil
}

// startsAtOnce tells whether the session's first agent is wanted before anybody
// says anything.
func startsAtOnce(session *api.AgentSession) bool {
	return isFree(session) && session.Status.ReadyAttempt == 0 && session.Status.FailedStarts < maxFailedStarts
}

// holds tells whether a free-standing session belongs to the turn for now; the
// turn is nil when it is gone.
func holds(turn *api.Turn, session *api.AgentSession) bool {
	return turn != nil && turn.Spec.SessionRef != nil && turn.Spec.SessionRef.Name == session.Name &&
		turn.DeletionTimestamp.IsZero() && !turns.IsOver(turn.Status.State)
}

// isReady tells whether the session's live pod has an initialised agent.
func isReady(session *api.AgentSession) bool {
	return session.Status.TokenHash != "" && session.Status.ReadyAttempt == session.Status.Attempt
}

// isPromptOf tells whether a prompt is that of the turn, and not of another
// turn which had its name.
func isPromptOf(prompt *api.SessionPrompt, turn *api.Turn) bool {
	return prompt != nil && prompt.ID == turn.Name && prompt.TurnUID == string(turn.UID)
}

// withdrawPrompt takes an outstanding prompt back. What a runner has, or may
// just be fetching, can only be cancelled: then the prompt stays outstanding
// until the runner says how it ended, or its pod is gone. It tells whether it
// changed anything.
func withdrawPrompt(session *api.AgentSession, now time.Time) bool {
	if !hasWork(session) {
		return false
	}
	prompt := session.Status.Prompt
	isOut := prompt.State == api.PromptDelivered || prompt.State == api.PromptQueued && isReady(session)
	if isOut && prompt.Cancel {
		return false
	}
	if !prompt.Cancel {
		prompt.Cancel, prompt.CancelledAt = true, timeOf(now)
	}
	if !isOut {
		concludePrompt(prompt, api.PromptResult{Outcome: api.OutcomeInterrupted})
	}
	return true
}

// requeuePrompt gives a lost prompt to the next pod.
func requeuePrompt(prompt *api.SessionPrompt, now time.Time) {
	prompt.State, prompt.Attempt, prompt.QueuedAt = api.PromptQueued, 0, timeOf(now)
	prompt.Restarts++
}

func concludePrompt(prompt *api.SessionPrompt, result api.PromptResult) {
	result.Detail = truncate(result.Detail, maxDetail)
	prompt.State, prompt.Result = api.PromptDone, &result
}

// timeOf is cut to seconds, the resolution of status times, so that a status
// read back is equal to the one written.
func timeOf(now time.Time) *metav1.Time {
	cut := metav1.NewTime(now).Rfc3339Copy()
	return &cut
}

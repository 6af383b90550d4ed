package controllers

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// hasWork tells whether the session's prompt still waits for its result.
func hasWork(session *api.AgentSession) bool {
	prompt := session.Status.Prompt
	return prompt != nil && prompt.State != api.PromptDone
}

// wantsPod tells whether the session has work that needs a new pod. A prompt
// that was lost waits for its turn's decision first.
func wantsPod(session *api.AgentSession) bool {
	prompt := session.Status.Prompt
	return !session.Spec.Stopped && prompt != nil && prompt.State == api.PromptQueued && !prompt.Cancel
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

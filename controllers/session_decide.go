package controllers

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/turns"
)

const (
	defaultIdleTimeout = 30 * time.Minute
	maxFailedStarts    = 3
	// cancelTimeout is what a runner has to report that a cancelled prompt has
	// ended; it terminates an agent that does not stop after 30 seconds, and
	// kills it after 10 more.
	cancelTimeout = time.Minute
	// silenceTimeout is how long a runner with a prompt may give no sign of life;
	// it has something to say every minute.
	silenceTimeout = 5 * time.Minute

	startFailurePrefix = "Could not start the workbench agent: "
	failurePodDeleted  = "the agent pod was deleted"
)

// sessionMove is the one thing to do about a session now.
type sessionMove int

const (
	// moveNone leaves everything as it is.
	moveNone sessionMove = iota
	// moveAttempt begins the next attempt: its Secret, then its entry in status.
	moveAttempt
	// moveCreatePod creates what the attempt in status names.
	moveCreatePod
	// moveEnd takes pod and token away: the attempt is over.
	moveEnd
	// moveGiveUp ends the prompt after too many failed starts.
	moveGiveUp
)

// decideSession tells what to do and, if that is nothing, when to look again.
// In status it takes back a prompt that nobody waits for, and records why an
// attempt ends.
func decideSession(state sessionState, options SessionOptions) (sessionMove, time.Duration) {
	if !isAwaited(state) {
		withdrawPrompt(state.session, state.now)
	}
	status := &state.session.Status
	if status.TokenHash == "" {
		return decideWithoutPod(state), 0
	}
	if reason, over := attemptOver(state, options); over {
		status.LastFailure = truncate(reason, maxDetail)
		return moveEnd, 0
	}
	if state.pod == nil {
		return moveCreatePod, 0
	}
	status.PodUID = string(state.pod.UID)
	return moveNone, untilLimit(state, options)
}

// isAwaited tells whether a turn waits for the session's prompt.
func isAwaited(state sessionState) bool {
	turn := state.turn
	return turn != nil && isPromptOf(state.session.Status.Prompt, turn) &&
		turn.DeletionTimestamp.IsZero() && !turns.IsOver(turn.Status.State)
}

func decideWithoutPod(state sessionState) sessionMove {
	status := &state.session.Status
	switch {
	case !wantsPod(state.session), state.leaving != nil:
		return moveNone
	case state.impossible != "":
		status.LastFailure = truncate(state.impossible, maxDetail)
		return moveGiveUp
	case status.FailedStarts >= maxFailedStarts:
		return moveGiveUp
	case !state.withinLimit:
		return moveNone
	}
	return moveAttempt
}

// attemptOver tells whether the live attempt has ended or must end, and why; an
// empty reason stands for an end in good order.
func attemptOver(state sessionState, options SessionOptions) (reason string, over bool) {
	if !mayHavePod(state.session) {
		return "", true
	}
	if reason, over := podOver(state); over {
		return reason, true
	}
	for _, limit := range attemptLimits(state, options) {
		if !state.now.Before(limit.at) {
			return limit.reason, true
		}
	}
	return "", false
}

// podOver tells whether the attempt's pod is gone, has ended, or can never be.
func podOver(state sessionState) (reason string, over bool) {
	session, pod := state.session, state.pod
	switch {
	case pod == nil && session.Status.PodUID != "":
		return failurePodDeleted, true
	case pod == nil && state.impossible != "":
		return state.impossible, true
	case pod == nil:
		return "", !hasWork(session) && !startsAtOnce(session) // nobody waits for it any more
	case !pod.DeletionTimestamp.IsZero():
		return failurePodDeleted, true
	case isEnded(pod):
		return podEnd(pod), true
	}
	return "", false
}

// attemptLimit is a moment at which an attempt ends unless something happens.
type attemptLimit struct {
	at     time.Time
	reason string
}

func attemptLimits(state sessionState, options SessionOptions) []attemptLimit {
	session := state.session
	switch {
	case isStarting(session):
		reason := fmt.Sprintf("the agent was not ready within %s", options.StartTimeout)
		if trouble := podTrouble(state.pod); trouble != "" {
			reason += ": " + trouble
		}
		return []attemptLimit{{latest(state.since, session.Status.StartedAt).Add(options.StartTimeout), reason}}
	case !hasWork(session):
		return idleLimit(session)
	}
	var limits []attemptLimit
	prompt := session.Status.Prompt
	if prompt.Cancel && prompt.CancelledAt != nil {
		limits = append(limits, attemptLimit{
			latest(state.since, prompt.CancelledAt).Add(cancelTimeout), fmt.Sprintf("the agent did not stop within %s of being asked to", cancelTimeout),
		})
	}
	if session.Status.LastHeartbeatAt != nil {
		last := latest(state.since, session.Status.LastHeartbeatAt, session.Status.LastActivityAt, prompt.QueuedAt)
		limits = append(limits, attemptLimit{last.Add(silenceTimeout), fmt.Sprintf("the agent's runner was silent for %s", silenceTimeout)})
	}
	return limits
}

// latest of the times that are set and the moment since, which may be zero.
func latest(since time.Time, times ...*metav1.Time) time.Time {
	found := since
	for _, t := range times {
		if t != nil && t.After(found) {
			found = t.Time
		}
	}
	return found
}

// idleLimit is when an idle session is suspended, if it ever is.
func idleLimit(session *api.AgentSession) []attemptLimit {
	timeout := defaultIdleTimeout
	if set := session.Spec.IdleTimeout; set != nil {
		timeout = set.Duration
	}
	last := latest(time.Time{}, session.Status.StartedAt, session.Status.LastActivityAt)
	if timeout <= 0 || last.IsZero() {
		return nil
	}
	return []attemptLimit{{at: last.Add(timeout)}}
}

// untilLimit is how long the attempt may go on as it is; zero: for ever.
func untilLimit(state sessionState, options SessionOptions) time.Duration {
	next := time.Duration(0)
	for _, limit := range attemptLimits(state, options) {
		if left := limit.at.Sub(state.now); next == 0 || left < next {
			next = left
		}
	}
	return next
}

// isStarting tells whether the live attempt's agent is not initialised yet.
func isStarting(session *api.AgentSession) bool {
	return session.Status.TokenHash != "" && session.Status.ReadyAttempt < session.Status.Attempt && session.Status.StartedAt != nil
}

// failedStarts counts the attempt that ends now if its agent never took a
// prompt that was there to take.
func failedStarts(session *api.AgentSession) int32 {
	prompt := session.Status.Prompt
	isUntaken := prompt != nil && prompt.State == api.PromptQueued
	if !mayHavePod(session) || isReady(session) && !isUntaken {
		return 0
	}
	return session.Status.FailedStarts + 1
}

func isEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// podTrouble tells why a pod does not come up, empty when it just takes time.
func podTrouble(pod *corev1.Pod) string {
	if pod == nil {
		return ""
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return "the pod cannot be scheduled: " + condition.Message
		}
	}
	for _, container := range containerStatuses(pod) {
		if waiting := container.State.Waiting; waiting != nil && waiting.Message != "" {
			return fmt.Sprintf("container %s: %s: %s", container.Name, waiting.Reason, waiting.Message)
		}
	}
	return ""
}

// podEnd tells how a pod ended.
func podEnd(pod *corev1.Pod) string {
	if pod.Status.Reason != "" {
		return fmt.Sprintf("the agent pod ended: %s: %s", pod.Status.Reason, pod.Status.Message)
	}
	for _, container := range containerStatuses(pod) {
		ended := container.State.Terminated
		if ended == nil || ended.ExitCode == 0 {
			continue
		}
		text := fmt.Sprintf("container %s ended with exit code %d", container.Name, ended.ExitCode)
		if ended.Reason != "" && ended.Reason != "Error" {
			text += " (" + ended.Reason + ")"
		}
		return text
	}
	return "the agent pod ended"
}

func containerStatuses(pod *corev1.Pod) []corev1.ContainerStatus {
	return append(append([]corev1.ContainerStatus(nil), pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...)
}

package controllers

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/template"
)

const (
	defaultIdleTimeout = 30 * time.Minute
	maxFailedStarts    = 3

	startFailurePrefix = "Could not start the workbench agent: "
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
// It also records in status why an attempt ends.
func decideSession(state sessionState, options SessionOptions) (sessionMove, time.Duration) {
	status := &state.session.Status
	if status.TokenHash == "" {
		return decideWithoutPod(state)
	}
	if reason, over := attemptOver(state, options); over {
		status.LastFailure = reason
		return moveEnd, 0
	}
	if state.pod == nil {
		return moveCreatePod, 0
	}
	if status.PodUID == "" {
		status.PodUID = string(state.pod.UID)
	}
	return moveNone, untilTimeout(state, options)
}

func decideWithoutPod(state sessionState) (sessionMove, time.Duration) {
	switch {
	case !wantsPod(state.session):
		return moveNone, 0
	case state.impossible != "":
		state.session.Status.LastFailure = state.impossible
		return moveGiveUp, 0
	case state.session.Status.FailedStarts >= maxFailedStarts:
		return moveGiveUp, 0
	case !state.withinLimit:
		return moveNone, 0
	}
	return moveAttempt, 0
}

// attemptOver tells whether the live attempt has ended or must end, and why; an
// empty reason stands for an end in good order.
func attemptOver(state sessionState, options SessionOptions) (reason string, over bool) {
	session, pod := state.session, state.pod
	switch {
	case session.Spec.Stopped:
		return "", true
	case pod == nil:
		return "the agent pod was deleted", session.Status.PodUID != ""
	case !pod.DeletionTimestamp.IsZero():
		return "the agent pod was deleted", true
	case pod.Status.Phase == corev1.PodFailed, pod.Status.Phase == corev1.PodSucceeded:
		return podEnd(pod), true
	case isStarting(session):
		waited := state.now.Sub(session.Status.StartedAt.Time)
		return fmt.Sprintf("the agent was not ready within %s%s", options.StartTimeout, podTrouble(pod)), waited >= options.StartTimeout
	}
	idle, left := idleFor(state)
	return "", idle && left <= 0
}

// untilTimeout is when a start or an idle time ends.
func untilTimeout(state sessionState, options SessionOptions) time.Duration {
	if isStarting(state.session) {
		return state.session.Status.StartedAt.Add(options.StartTimeout).Sub(state.now)
	}
	if idle, left := idleFor(state); idle {
		return left
	}
	return 0
}

// idleFor tells whether the session may be suspended, and in how long.
func idleFor(state sessionState) (idle bool, left time.Duration) {
	session := state.session
	timeout := defaultIdleTimeout
	if set := session.Spec.IdleTimeout; set != nil {
		timeout = set.Duration
	}
	if timeout <= 0 || hasWork(session) || isStarting(session) {
		return false, 0
	}
	last := session.Status.StartedAt
	if last == nil || last.Before(session.Status.LastActivityAt) {
		last = session.Status.LastActivityAt
	}
	if last == nil {
		return false, 0
	}
	return true, last.Add(timeout).Sub(state.now)
}

func isStarting(session *api.AgentSession) bool {
	return session.Status.ReadyAttempt < session.Status.Attempt && session.Status.StartedAt != nil
}

// wantsPod tells whether the session has work that needs a new pod. A prompt
// that was lost waits for its turn's decision first.
func wantsPod(session *api.AgentSession) bool {
	prompt := session.Status.Prompt
	return !session.Spec.Stopped && prompt != nil && prompt.State == api.PromptQueued
}

func hasWork(session *api.AgentSession) bool {
	prompt := session.Status.Prompt
	return prompt != nil && prompt.State != api.PromptDone
}

// setSessionStatus derives phase and conditions from what is recorded.
func setSessionStatus(state sessionState) {
	session := state.session
	status := &session.Status
	status.ObservedGeneration = session.Generation
	status.Capabilities = template.Capabilities(session.Spec.TemplateRef.Name, session.Spec.CompositionRef != nil)
	if !hasWork(session) {
		status.CurrentTurn = ""
	}
	status.Phase = sessionPhase(session)

	set := conditionSetter{conditions: &status.Conditions, generation: session.Generation}
	phase := string(status.Phase)
	podReady := status.TokenHash != "" && status.ReadyAttempt == status.Attempt
	ready := status.Phase == api.SessionReady || status.Phase == api.SessionWorking || status.Phase == api.SessionSuspended
	message := ""
	if !ready {
		message = status.LastFailure
	}
	set.set(api.ConditionReady, readiness(status.Phase, ready), phase, message)
	set.set(api.ConditionPodReady, statusOf(podReady), phase, podMessage(state))
	if wantsPod(session) && status.TokenHash == "" && !state.withinLimit {
		set.set(api.ConditionWithinLimit, metav1.ConditionFalse, api.ReasonSessionLimit, "other sessions of the namespace use all slots")
	} else {
		set.set(api.ConditionWithinLimit, metav1.ConditionTrue, "SlotFree", "")
	}
}

func sessionPhase(session *api.AgentSession) api.SessionPhase {
	status := &session.Status
	switch {
	case session.Spec.Stopped:
		return api.SessionStopped
	case status.TokenHash != "" && status.ReadyAttempt < status.Attempt:
		return api.SessionStarting
	case status.TokenHash != "" && hasWork(session):
		return api.SessionWorking
	case status.TokenHash != "":
		return api.SessionReady
	case status.FailedStarts >= maxFailedStarts:
		return api.SessionFailed
	case status.Attempt > 0 && !hasWork(session):
		return api.SessionSuspended
	}
	return api.SessionPending
}

func readiness(phase api.SessionPhase, ready bool) metav1.ConditionStatus {
	if phase == api.SessionPending || phase == api.SessionStarting {
		return metav1.ConditionUnknown
	}
	return statusOf(ready)
}

func podMessage(state sessionState) string {
	if state.pod == nil || !isStarting(state.session) {
		return ""
	}
	return podTrouble(state.pod)
}

// podTrouble tells why a pod does not come up, empty when it just takes time.
func podTrouble(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return ": the pod cannot be scheduled: " + condition.Message
		}
	}
	for _, container := range append(append([]corev1.ContainerStatus(nil), pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...) {
		if waiting := container.State.Waiting; waiting != nil && waiting.Message != "" {
			return fmt.Sprintf(": container %s: %s: %s", container.Name, waiting.Reason, waiting.Message)
		}
	}
	return ""
}

// podEnd tells how a pod ended.
func podEnd(pod *corev1.Pod) string {
	if pod.Status.Reason != "" {
		return fmt.Sprintf("the agent pod ended: %s: %s", pod.Status.Reason, pod.Status.Message)
	}
	for _, container := range append(append([]corev1.ContainerStatus(nil), pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...) {
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

package controllers

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/template"
)

// setSessionStatus derives phase and conditions from what is recorded.
func setSessionStatus(state sessionState) {
	session := state.session
	status := &session.Status
	status.ObservedGeneration = session.Generation
	status.Capabilities = template.Capabilities(session.Spec.TemplateRef.Name, session.Spec.CompositionRef != nil).Names()
	if !isHeldBy(session, state.holder) {
		status.CurrentTurn = ""
	}
	status.Phase = sessionPhase(state)
	setSessionConditions(state)
}

// isHeldBy tells whether a turn works in the session. A free-standing one is the
// turn's until the turn is over; any other is as long as its prompt is outstanding,
// since what it belongs to keeps turns apart.
func isHeldBy(session *api.AgentSession, holder *api.Turn) bool {
	if !isFree(session) {
		return hasWork(session)
	}
	return holds(holder, session)
}

func setSessionConditions(state sessionState) {
	session := state.session
	status := &session.Status
	set := conditionSetter{conditions: &status.Conditions, generation: session.Generation}
	phase := string(status.Phase)

	ready := sessionReadiness(status.Phase)
	message := ""
	if ready != metav1.ConditionTrue {
		message = status.LastFailure
	}
	set.set(api.ConditionReady, ready, phase, message)

	message = ""
	switch {
	case isStarting(session):
		message = podTrouble(state.pod)
	case state.leaving != nil:
		message = "the pod of the attempt before is still on its way out"
	}
	set.set(api.ConditionPodReady, statusOf(isReady(session)), phase, message)

	if wantsPod(session) && status.TokenHash == "" && !state.withinLimit {
		set.set(api.ConditionWithinLimit, metav1.ConditionFalse, api.ReasonSessionLimit, "other sessions of the namespace use all slots")
	} else {
		set.set(api.ConditionWithinLimit, metav1.ConditionTrue, "SlotFree", "")
	}
}

func sessionPhase(state sessionState) api.SessionPhase {
	session := state.session
	status := &session.Status
	switch {
	case session.Spec.Stopped:
		return api.SessionStopped
	case isStarting(session):
		return api.SessionStarting
	case status.TokenHash != "" && hasWork(session):
		return api.SessionWorking
	case status.TokenHash != "":
		return api.SessionReady
	case state.leaving != nil:
		return api.SessionPending // it is not suspended while a pod of it exists
	case session.Spec.Suspended:
		return api.SessionSuspended
	case status.FailedStarts >= maxFailedStarts:
		return api.SessionFailed
	case status.Attempt > 0 && !hasWork(session) && !wantsPod(session):
		return api.SessionSuspended
	}
	return api.SessionPending
}

// sessionReadiness stays True while the session is suspended: the next prompt
// starts the agent.
func sessionReadiness(phase api.SessionPhase) metav1.ConditionStatus {
	switch phase {
	case api.SessionReady, api.SessionWorking, api.SessionSuspended:
		return metav1.ConditionTrue
	case api.SessionFailed, api.SessionStopped:
		return metav1.ConditionFalse
	default:
		return metav1.ConditionUnknown
	}
}

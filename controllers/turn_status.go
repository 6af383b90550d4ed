package controllers

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// settle ends the wait for a decision. The reason is kept in the condition
// Resolved, which setTurnConditions leaves alone once it is True.
func settle(turn *api.Turn, state api.TurnPhase, reason, detail string) {
	turn.Status.State = state
	if detail != "" {
		turn.Status.Detail = truncate(detail, maxDetail)
	}
	conditionSetter{conditions: &turn.Status.Conditions, generation: turn.Generation}.
		set(api.ConditionResolved, metav1.ConditionTrue, reason, turn.Status.Detail)
}

// setTurnConditions derives the conditions from the state.
func setTurnConditions(turn *api.Turn) {
	status := &turn.Status
	status.ObservedGeneration = turn.Generation
	if status.State == "" {
		status.State = api.TurnPending
	}
	set := conditionSetter{conditions: &status.Conditions, generation: turn.Generation}
	state := string(status.State)

	set.set(api.ConditionReady, turnReadiness(status.State), state, status.Detail)
	set.set(api.ConditionStarted, statusOf(status.StartedAt != nil), state, "")
	set.set(api.ConditionAgentDone, statusOf(turns.IsOver(status.State)), state, status.Detail)
	setResolved(set, status)
	setUndone(set, status)
}

func setResolved(set conditionSetter, status *api.TurnStatus) {
	resolved := turns.IsOver(status.State) && status.State != api.TurnAwaitingResolution
	if !resolved {
		set.set(api.ConditionResolved, metav1.ConditionFalse, string(status.State), "")
		return
	}
	reason, message := string(status.State), status.Detail
	for _, condition := range status.Conditions {
		if condition.Type == api.ConditionResolved && condition.Status == metav1.ConditionTrue {
			reason, message = condition.Reason, condition.Message
		}
	}
	set.set(api.ConditionResolved, metav1.ConditionTrue, reason, message)
}

func turnReadiness(state api.TurnPhase) metav1.ConditionStatus {
	switch state {
	case api.TurnCompleted, api.TurnApplied, api.TurnUndone:
		return metav1.ConditionTrue
	case api.TurnRejected, api.TurnStale, api.TurnFailed, api.TurnRefused, api.TurnCancelled:
		return metav1.ConditionFalse
	default:
		return metav1.ConditionUnknown
	}
}

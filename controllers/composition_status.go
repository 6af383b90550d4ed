package controllers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// setCompositionStatus writes all that the operator knows of a composition
// into its status. It is pure but for the object it is given. The record is the
// newest snapshot that is known, which need not be that of the present
// generation when it could not be taken.
func setCompositionStatus(state compositionState, newest snapshotRecord, recordErr error) {
	status := &state.comp.Status
	if status.Conditions == nil {
		status.Conditions = []metav1.Condition{}
	}
	status.WorkflowRevision = workflowRevisionOf(state.items)
	status.Items = statuses(state.items)
	for i := range status.Items {
		entry, known := newest.data.item(status.Items[i].Type, status.Items[i].Name)
		if known && entry.ContentRevision == status.Items[i].ContentRevision {
			status.Items[i].LastAuthor, status.Items[i].LastTurn = entry.Author, entry.Turn
		}
	}
	status.ProblemsTruncated = capProblems(status.Items)
	if recordErr == nil {
		status.Snapshot = newest.name
		status.ObservedGeneration = state.comp.Generation
		status.ObservedTurn = truncate(state.comp.Annotations[api.AnnotationTurn], maxName)
	}
	setTurnStatus(state)
	setTriggerStatus(state.comp, state.failures)
	setCompositionConditions(state, recordErr)
}

// setTurnStatus derives from the turns who works on the draft and what waits.
// Only the claim itself is written by somebody else: the turn that starts.
func setTurnStatus(state compositionState) {
	status := &state.comp.Status
	status.Session = ""
	if state.session != nil {
		status.Session = state.session.Name
	}
	if status.CurrentTurn == "" || !isHeld(status.Claim, state.current) {
		status.TurnState, status.CurrentTurn, status.Claim = api.TurnStateIdle, "", nil
	}
	status.PendingTurn = pendingTurn(state.turns)
}

// pendingTurn is the newest turn that waits for a decision, empty when none does.
func pendingTurn(all []api.Turn) string {
	var pending *api.Turn
	for i := range all {
		turn := &all[i]
		if turn.Status.State != api.TurnAwaitingResolution || !turn.DeletionTimestamp.IsZero() {
			continue
		}
		if pending == nil || isNewer(turn, pending) {
			pending = turn
		}
	}
	if pending == nil {
		return ""
	}
	return pending.Name
}

// isNewer orders the turns of a composition by when they started, which their
// numbers tell; those that never started go by when they were created.
func isNewer(a, b *api.Turn) bool {
	return cmp.Or(
		cmp.Compare(a.Status.Number, b.Status.Number),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
	) > 0
}

func setCompositionConditions(state compositionState, recordErr error) {
	status := &state.comp.Status
	set := conditionSetter{conditions: &status.Conditions, generation: state.comp.Generation}

	valid, reason, message := validity(status.Items)
	set.set(api.ConditionValid, statusOf(valid), reason, message)

	ready, reason, message := agentReadiness(state.session)
	set.set(api.ConditionAgentReady, statusOf(ready), reason, message)

	if status.PendingTurn != "" {
		set.set(api.ConditionTurnPending, metav1.ConditionTrue, api.ReasonAwaitingResolution, "turn "+status.PendingTurn+" waits for a resolution")
	} else {
		set.set(api.ConditionTurnPending, metav1.ConditionFalse, api.ReasonNone, "")
	}

	health := metav1.Condition{Status: metav1.ConditionTrue, Reason: api.ReasonReconciled}
	if recordErr != nil {
		health = metav1.Condition{Status: metav1.ConditionFalse, Reason: api.ReasonError, Message: "history could not be written; it is tried again"}
	}
	set.set(api.ConditionReconciled, health.Status, health.Reason, health.Message)
	set.set(api.ConditionReady, health.Status, health.Reason, health.Message)
}

// validity tells whether the draft could run, and the first reasons why not.
func validity(items []api.ItemStatus) (valid bool, reason, message string) {
	if !slices.ContainsFunc(items, func(item api.ItemStatus) bool { return item.Type == api.ItemWorkflow }) {
		return false, api.ReasonNoWorkflow, "the draft has no workflow yet"
	}
	var found []string
	for _, item := range items {
		for _, problem := range item.Problems {
			if problem.Severity == api.SeverityError {
				found = append(found, fmt.Sprintf("%s/%s %s: %s: %s", item.Type, item.Name, problem.Path, problem.Code, problem.Message))
			}
		}
	}
	if len(found) == 0 && !slices.ContainsFunc(items, func(item api.ItemStatus) bool { return !item.Valid }) {
		return true, api.ReasonValid, ""
	}
	const shown = 5
	message = strings.Join(found[:min(shown, len(found))], "; ")
	if len(found) > shown {
		message += fmt.Sprintf("; and %d more", len(found)-shown)
	}
	return false, api.ReasonProblems, message
}

func agentReadiness(session *api.AgentSession) (ready bool, reason, message string) {
	if session == nil {
		return false, api.ReasonNoSession, ""
	}
	switch session.Status.Phase {
	case api.SessionReady, api.SessionWorking:
		return true, string(session.Status.Phase), ""
	case api.SessionSuspended:
		return false, api.ReasonSuspended, "the next turn starts the agent again"
	case api.SessionFailed:
		return false, string(api.SessionFailed), session.Status.LastFailure
	case api.SessionStopped:
		return false, string(api.SessionStopped), ""
	default:
		return onItsWay(session)
	}
}

// onItsWay is the readiness of a session whose agent is not up yet.
func onItsWay(session *api.AgentSession) (ready bool, reason, message string) {
	if apimeta.IsStatusConditionFalse(session.Status.Conditions, api.ConditionWithinLimit) {
		return false, api.ReasonSessionLimit, "the agent waits for a free slot of the namespace"
	}
	return false, api.ReasonStarting, ""
}

func equalStatus[T any](a, b T) bool {
	return apiequality.Semantic.DeepEqual(a, b)
}

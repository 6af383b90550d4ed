package controllers

import (
	"fmt"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// runConditions sets conditions with the injected clock's time.
type runConditions struct {
	conditions *[]metav1.Condition
	generation int64
	now        metav1.Time
}

func (s runConditions) set(kind string, status metav1.ConditionStatus, reason, message string) {
	apimeta.SetStatusCondition(s.conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: truncate(message, maxMessage),
		ObservedGeneration: s.generation, LastTransitionTime: s.now,
	})
}

// setRunConditions reports a run as health tools read it: Ready when it
// completed, Stalled when it cannot get further, Reconciling in between.
func setRunConditions(state *runState, plan runPlan, status *api.WorkflowRunStatus, view runView) {
	set := runConditions{conditions: &status.Conditions, generation: state.run.Generation, now: metav1.NewTime(state.now).Rfc3339Copy()}
	setAccepted(set, plan, status)
	setWaiting(set, view)

	phase := string(view.phase)
	isFailed := view.phase == api.RunFailed
	isTerminal := status.FinishedAt != nil
	summary := runSummary(plan, status, view)
	if lost := whatIsLost(plan); lost != "" {
		set.set(api.ConditionReconciling, metav1.ConditionFalse, lost, "")
		set.set(api.ConditionStalled, metav1.ConditionTrue, lost, summary)
		set.set(api.ConditionReady, metav1.ConditionFalse, lost, summary)
		return
	}
	if isFailed {
		set.set(api.ConditionStalled, metav1.ConditionTrue, phase, summary)
	} else {
		set.set(api.ConditionStalled, metav1.ConditionFalse, api.ReasonNotStalled, "")
	}
	if isTerminal {
		set.set(api.ConditionReconciling, metav1.ConditionFalse, phase, "")
	} else {
		set.set(api.ConditionReconciling, metav1.ConditionTrue, api.ReasonProgressing, summary)
	}
	set.set(api.ConditionReady, statusOf(view.phase == api.RunCompleted), phase, summary)
}

// whatIsLost is the reason why a run cannot go on, empty if it can.
func whatIsLost(plan runPlan) string {
	switch {
	case plan.isLost:
		return api.ReasonStatusLost
	case plan.lostValue != "":
		return api.ReasonValueLost
	}
	return ""
}

func setAccepted(set runConditions, plan runPlan, status *api.WorkflowRunStatus) {
	switch {
	case plan.verdict != nil:
		set.set(api.ConditionAccepted, metav1.ConditionFalse, plan.verdict.reason, plan.verdict.message)
	case status.Definition != nil:
		set.set(api.ConditionAccepted, metav1.ConditionTrue, api.ReasonPinned, "snapshot "+status.Definition.Snapshot)
	case plan.isCancelled:
		set.set(api.ConditionAccepted, metav1.ConditionFalse, string(api.RunCancelled), "the run was cancelled before it began")
	case plan.isLost:
		set.set(api.ConditionAccepted, metav1.ConditionUnknown, api.ReasonStatusLost, "")
	}
}

func setWaiting(set runConditions, view runView) {
	isWaiting := view.phase == api.RunWaiting || view.phase == api.RunSuspended
	reason, message := string(view.phase), ""
	if isWaiting {
		reason, message = waitingReason(view), strings.Join(view.activations, ", ")
	}
	if isWaiting && len(view.answered) > 0 {
		message += "; answered: " + strings.Join(view.answered, ", ")
	}
	set.set(api.ConditionWaiting, statusOf(isWaiting), reason, message)
}

func waitingReason(view runView) string {
	switch {
	case view.phase == api.RunSuspended:
		return api.ReasonResume
	case len(view.waitsFor) == 1:
		return view.waitsFor[0]
	}
	return api.ReasonMultiple
}

// runSummary says in a line how it stands. It names codes and places, never a
// value: messages of failures may repeat what people and scripts said.
func runSummary(plan runPlan, status *api.WorkflowRunStatus, view runView) string {
	switch {
	case plan.isLost:
		return "the run has children but its status is gone; it does not start over"
	case plan.lostValue != "":
		return plan.lostValue
	case plan.verdict != nil:
		return plan.verdict.message
	case len(view.troubles) > 0:
		return strings.Join(view.troubles, "; ")
	case status.Instance != nil && status.Instance.Failure != nil:
		failure := status.Instance.Failure
		return fmt.Sprintf("%s in %s%s", failure.Code, failure.Phase, atActivation(failure.Activation))
	}
	return ""
}

func atActivation(activation string) string {
	if activation == "" {
		return ""
	}
	return " at " + activation
}

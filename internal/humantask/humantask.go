// Package humantask says how a human task stands: its phase and its condition,
// from what its status holds.
//
// Whoever ends a task writes that with the same update: admission for an
// answer, the operator for an end without one. Nobody has to come after them,
// and a task that was just made stands as its schema's default says. It also reads
// from a task what it asks, whom, and for how long. It knows nothing of rights, and
// of runs.
package humantask

import (
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// IsOpen tells whether a task still asks for an answer.
func IsOpen(task *api.HumanTask) bool {
	status := &task.Status
	return status.Answer == nil && status.Failure == nil && status.Closed == nil && task.DeletionTimestamp.IsZero()
}

// Observe sets phase, condition and observed generation of a status of the task.
// A condition that changes does so at the given time.
func Observe(task *api.HumanTask, status *api.HumanTaskStatus, now time.Time) {
	status.ObservedGeneration = task.Generation
	status.Phase = phaseOf(status)
	ready := metav1.Condition{
		Type: api.ConditionReady, Status: metav1.ConditionFalse, Reason: string(status.Phase), Message: messageOf(status),
		ObservedGeneration: task.Generation, LastTransitionTime: metav1.NewTime(now).Rfc3339Copy(),
	}
	if status.Phase == api.TaskCompleted {
		ready.Status = metav1.ConditionTrue
	}
	apimeta.SetStatusCondition(&status.Conditions, ready)
	if status.Phase != api.TaskAwaitingInput {
		date(status, task.CreationTimestamp)
	}
}

// date gives a condition that came from the schema's default, which knows no
// times, the time that it held from.
func date(status *api.HumanTaskStatus, created metav1.Time) {
	ready := apimeta.FindStatusCondition(status.Conditions, api.ConditionReady)
	if ready.LastTransitionTime.Unix() == 0 {
		ready.LastTransitionTime = created
	}
}

// phaseOf sums up who ended the task, if anybody did. An answer wins: nothing
// closes a task that has one.
func phaseOf(status *api.HumanTaskStatus) api.TaskPhase {
	switch {
	case status.Answer != nil:
		return api.TaskCompleted
	case status.Failure != nil:
		return api.TaskFailed
	case status.Closed == nil:
		return api.TaskAwaitingInput
	case status.Closed.Reason == api.CloseExpired:
		return api.TaskExpired
	}
	return api.TaskCancelled
}

// messageOf says in a line how the task stands, without what was answered.
func messageOf(status *api.HumanTaskStatus) string {
	switch {
	case status.Answer == nil && status.Failure == nil && status.Closed != nil:
		return status.Closed.Message
	case status.AnsweredBy != nil:
		return "answered by " + status.AnsweredBy.Username
	case status.Phase == api.TaskAwaitingInput:
		return "waits for an answer"
	}
	return ""
}

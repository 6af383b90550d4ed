package controllers

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// nextTaskStatus is the status of a task now. It closes an open task whose
// time is up, and leaves answer, failure and stamp to those who write them.
func nextTaskStatus(task *api.HumanTask, now time.Time) *api.HumanTaskStatus {
	status := task.Status.DeepCopy()
	status.ObservedGeneration = task.Generation
	if end := taskExpiry(task); isTaskOpen(task) && !end.IsZero() && !now.Before(end) {
		status.Closed = &api.TaskClosed{
			Reason: api.CloseExpired, Message: "nobody answered in time", At: metav1.NewTime(now).Rfc3339Copy(),
		}
	}
	status.Phase = taskPhase(status)
	set := runConditions{conditions: &status.Conditions, generation: task.Generation, now: metav1.NewTime(now).Rfc3339Copy()}
	set.set(api.ConditionReady, statusOf(status.Phase == api.TaskCompleted), string(status.Phase), taskMessage(status))
	return status
}

// taskPhase sums up who ended the task, if anybody did. An answer wins: nothing
// closes a task that has one.
func taskPhase(status *api.HumanTaskStatus) api.TaskPhase {
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

// taskMessage says in a line how the task stands, without what was answered.
func taskMessage(status *api.HumanTaskStatus) string {
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

// taskExpiry is when the task's time is up, zero if it is not limited. A
// duration that admission would have refused limits nothing.
func taskExpiry(task *api.HumanTask) time.Time {
	if task.Spec.ExpiresAfter == "" {
		return time.Time{}
	}
	limit, err := workflow.ParseDuration(task.Spec.ExpiresAfter)
	if err != nil || limit <= 0 {
		return time.Time{}
	}
	return task.CreationTimestamp.Add(limit)
}

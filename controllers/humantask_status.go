package controllers

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/humantask"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// nextTaskStatus is the status of a task now. It closes an open task whose
// time is up, and leaves answer, failure and stamp to those who write them.
func nextTaskStatus(task *api.HumanTask, now time.Time) *api.HumanTaskStatus {
	status := task.Status.DeepCopy()
	if end := taskExpiry(task); humantask.IsOpen(task) && !end.IsZero() && !now.Before(end) {
		status.Closed = &api.TaskClosed{
			Reason: api.CloseExpired, Message: "nobody answered in time", At: metav1.NewTime(now).Rfc3339Copy(),
		}
	}
	humantask.Observe(task, status, now)
	return status
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

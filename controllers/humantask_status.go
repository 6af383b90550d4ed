package controllers

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/humantask"
)

// nextTaskStatus is the status of a task now. It closes an open task whose
// time is up, and leaves answer, failure and stamp to those who write them.
func nextTaskStatus(task *api.HumanTask, now time.Time) *api.HumanTaskStatus {
	status := task.Status.DeepCopy()
	if end, isLimited := humantask.Expiry(task); humantask.IsOpen(task) && isLimited && !now.Before(end) {
		status.Closed = &api.TaskClosed{
			Reason: api.CloseExpired, Message: "nobody answered in time", At: metav1.NewTime(now).Rfc3339Copy(),
		}
	}
	humantask.Observe(task, status, now)
	return status
}

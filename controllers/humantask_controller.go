package controllers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/humantask"
)

// HumanTaskReconciler reports how far a task has come and closes it when its
// time is up, whoever made it. What becomes of an answer is its run's affair.
type HumanTaskReconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Clock is what expiry is measured with.
	Clock clock.PassiveClock
	// Recorder tells people of transitions.
	Recorder events.EventRecorder
}

// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=humantasks,verbs=get;list;watch
// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=humantasks/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager registers the controller.
func (r *HumanTaskReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&api.HumanTask{}, builder.WithPredicates(predicate.NewPredicateFuncs(r.isDue))).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

// isDue tells whether there is, or will be, anything to write of a task. Most are
// born and answered with all that is to be said of them.
func (r *HumanTaskReconciler) isDue(object client.Object) bool {
	task, isTask := object.(*api.HumanTask)
	if !isTask {
		return true
	}
	now := r.Clock.Now()
	status := nextTaskStatus(task, now)
	return !apiequality.Semantic.DeepEqual(&task.Status, status) || untilTaskExpires(task, status, now) > 0
}

// Reconcile writes the status of a task, and comes back when it expires.
func (r *HumanTaskReconciler) Reconcile(ctx context.Context, task *api.HumanTask) (ctrl.Result, error) {
	if !task.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	now := r.Clock.Now()
	status := nextTaskStatus(task, now)
	if err := r.report(ctx, task, status); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: untilTaskExpires(task, status, now)}, nil
}

// report writes the status once, then tells of the transition it made.
func (r *HumanTaskReconciler) report(ctx context.Context, task *api.HumanTask, status *api.HumanTaskStatus) error {
	if apiequality.Semantic.DeepEqual(&task.Status, status) {
		return nil
	}
	updated := task.DeepCopy()
	updated.Status = *status
	if err := r.Client.Status().Update(ctx, updated); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil
		}
		return fmt.Errorf("update task status: %w", err)
	}
	if r.Recorder != nil && task.Status.Phase != status.Phase {
		r.Recorder.Eventf(updated, nil, corev1.EventTypeNormal, string(status.Phase), "Report", "task is %s", status.Phase)
	}
	return nil
}

func untilTaskExpires(task *api.HumanTask, status *api.HumanTaskStatus, now time.Time) time.Duration {
	moments := runMoments{now: now}
	if end, isLimited := humantask.Expiry(task); isLimited && status.Phase == api.TaskAwaitingInput {
		moments.add(end)
	}
	return moments.until()
}

package controllers

import (
	"context"
	"errors"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/expression"
)

// StreamEventReconciler shows an event to the triggers, starts the runs that
// they ask for, and writes down what became of the event.
type StreamEventReconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Clock dates what triggers made of events.
	Clock clock.PassiveClock
	// Recorder tells people of triggers that fail.
	Recorder events.EventRecorder
	// Expressions compiles those of triggers.
	Expressions *expression.Cache
	// Receipts bring word from the controller of runs.
	Receipts *EventReceipts
}

// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=streamevents,verbs=get;list;watch
// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=streamevents/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=compositions,verbs=get;list;watch
// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=workflowruns,verbs=get;list;watch;create
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager registers the controller.
func (r *StreamEventReconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := indexTriggers(mgr); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&api.StreamEvent{}).
		Watches(&api.Composition{}, handler.EnqueueRequestsFromMapFunc(r.eventsFor)).
		WatchesRawSource(r.Receipts).
		Complete(r)
}

// Reconcile brings the status of an event up to date.
func (r *StreamEventReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	receipts := r.Receipts.of(req.NamespacedName)
	event := &api.StreamEvent{}
	err := r.Client.Get(ctx, req.NamespacedName, event)
	if apierrors.IsNotFound(err) || err == nil && !event.DeletionTimestamp.IsZero() {
		r.Receipts.forget(req.NamespacedName, receipts)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("read event: %w", err)
	}
	status := event.Status.DeepCopy()
	status.Deliveries = lastDeliveries(status.Deliveries, receipts...)

	// What was started is written down even if something else failed.
	triggerErr := r.applyTriggers(ctx, event, status)
	if triggerErr == nil && isUneventful(status) && r.Receipts.awaits(event) {
		return ctrl.Result{RequeueAfter: receiptPatience}, nil
	}
	setEventConditions(event, status, triggerErr, metav1.NewTime(r.Clock.Now()).Rfc3339Copy())
	if err := errors.Join(triggerErr, r.report(ctx, event, status)); err != nil {
		return ctrl.Result{}, err
	}
	r.Receipts.forget(req.NamespacedName, receipts)
	return ctrl.Result{}, nil
}

// isUneventful tells whether there is nothing to write but that the event was
// seen.
func isUneventful(status *api.StreamEventStatus) bool {
	return len(status.Conditions) == 0 && len(status.Triggers) == 0 && len(status.Deliveries) == 0
}

// setEventConditions reports an event as ready once all triggers have seen it.
func setEventConditions(event *api.StreamEvent, status *api.StreamEventStatus, triggerErr error, now metav1.Time) {
	set := runConditions{conditions: &status.Conditions, generation: event.Generation, now: now}
	if triggerErr != nil {
		set.set(api.ConditionReady, metav1.ConditionFalse, api.ReasonError, "a run could not be started yet; it is tried again")
		return
	}
	set.set(api.ConditionReady, metav1.ConditionTrue, api.ReasonObserved, "")
}

// report writes the status once, then tells of triggers that failed.
func (r *StreamEventReconciler) report(ctx context.Context, event *api.StreamEvent, status *api.StreamEventStatus) error {
	if apiequality.Semantic.DeepEqual(&event.Status, status) {
		return nil
	}
	updated := event.DeepCopy()
	updated.Status = *status
	err := r.Client.Status().Update(ctx, updated)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("update event status: %w", err)
	}
	r.announce(event, updated)
	return nil
}

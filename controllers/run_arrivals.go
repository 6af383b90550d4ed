package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/event"
)

// runQueue takes the runs to look at.
type runQueue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// indexEvents makes the cache find events by type and by id.
func indexEvents(mgr ctrl.Manager) error {
	ctx := context.Background() //nolint:forbidigo // set-up has no context, and the call waits for nothing
	indexer := mgr.GetFieldIndexer()
	err := errors.Join(
		indexer.IndexField(ctx, &api.StreamEvent{}, fieldEventType, func(object client.Object) []string {
			return []string{object.(*api.StreamEvent).Spec.Type}
		}),
		indexer.IndexField(ctx, &api.StreamEvent{}, fieldEventID, func(object client.Object) []string {
			return []string{object.(*api.StreamEvent).Spec.ID}
		}),
	)
	if err != nil {
		return fmt.Errorf("index events: %w", err)
	}
	return nil
}

// eventHandler wakes the runs that an event may be for when it arrives, and
// those that it comes to name as unable to tell.
func (r *WorkflowRunReconciler) eventHandler() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e ctrlevent.CreateEvent, queue runQueue) {
			// When the operator starts every run looks at what is stored by itself.
			if arrived, isEvent := e.Object.(*api.StreamEvent); isEvent && !e.IsInInitialList {
				enqueueRuns(queue, arrived.Namespace, r.runsFor(ctx, arrived))
			}
		},
		UpdateFunc: func(_ context.Context, e ctrlevent.UpdateEvent, queue runQueue) {
			before, wasEvent := e.ObjectOld.(*api.StreamEvent)
			after, isEvent := e.ObjectNew.(*api.StreamEvent)
			if wasEvent && isEvent {
				enqueueRuns(queue, after.Namespace, newlyFailed(before, after))
			}
		},
		DeleteFunc: func(_ context.Context, e ctrlevent.DeleteEvent, _ runQueue) {
			r.events.keys.Forget(string(e.Object.GetUID()))
		},
	}
}

func enqueueRuns(queue runQueue, namespace string, runs []string) {
	for _, run := range runs {
		queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: run}})
	}
}

// runsFor are the runs that wait for an event, and of those that cannot tell as
// many as the event can name.
func (r *WorkflowRunReconciler) runsFor(ctx context.Context, arrived *api.StreamEvent) []string {
	found := r.events.index.Find(arrived.Namespace, arrived.Spec.Type, func(eventKey string) (string, error) {
		return r.keyOf(ctx, arrived, event.Receiver{Correlates: true, EventKey: eventKey})
	})
	return append(found.Runs, found.Failed[:min(len(found.Failed), api.MaxDeliveries)]...)
}

// newlyFailed are the runs that an event names as unable to tell, and did not
// name before.
func newlyFailed(before, after *api.StreamEvent) []string {
	var runs []string
	for _, d := range after.Status.Deliveries {
		if d.Outcome == api.DeliveryError && !isListed(before.Status.Deliveries, d) {
			runs = append(runs, d.Run)
		}
	}
	return runs
}

// tellEvents sees to it that the events that a pass tried name the run.
func (r *WorkflowRunReconciler) tellEvents(ctx context.Context, state *runState, committed *api.WorkflowRun) error {
	if r.Receipts == nil {
		return nil
	}
	due, areAll, err := r.eventReceipts(ctx, state, committed)
	if err != nil {
		return err
	}
	for _, receipt := range due {
		r.Receipts.add(receipt)
	}
	if areAll {
		r.events.told.note(committed.UID, committed.Status.History.Total)
	}
	return nil
}

// expire deletes a run whose time to live is over, once nobody could take its
// absence for a sign that it was never started.
func (r *WorkflowRunReconciler) expire(ctx context.Context, run *api.WorkflowRun) (runPass, error) {
	isRecorded, err := r.isStartRecorded(ctx, run)
	if err != nil {
		return runPass{}, err
	}
	if !isRecorded {
		return runPass{again: recordPatience}, nil
	}
	return runPass{}, r.remove(ctx, run)
}

// recordPatience is how long an event may take to say that it started a run
// that is over already.
const recordPatience = time.Second

// isStartRecorded tells whether the event that a run was started for says so.
// Until then the run must be there: it is what keeps the event from starting it
// again.
func (r *WorkflowRunReconciler) isStartRecorded(ctx context.Context, run *api.WorkflowRun) (bool, error) {
	name := run.Annotations[api.AnnotationEvent]
	if name == "" || run.Annotations[api.AnnotationTrigger] == "" {
		return true, nil
	}
	var started api.StreamEvent
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: run.Namespace, Name: name}, &started)
	if apierrors.IsNotFound(err) {
		return true, nil // what is gone starts nothing
	}
	if err != nil {
		return false, fmt.Errorf("read event %s: %w", name, err)
	}
	return isRunRecorded(&started, run.Name), nil
}

// isRunRecorded tells whether an event says of a run that it or an equal event
// started it.
func isRunRecorded(e *api.StreamEvent, run string) bool {
	for i := range e.Status.Triggers {
		if e.Status.Triggers[i].Run == run {
			return true
		}
	}
	return false
}

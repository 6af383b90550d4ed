package controllers

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// eventReceipt is what became of an event at one activation.
type eventReceipt struct {
	event    *api.StreamEvent
	delivery api.EventDelivery
}

// isGiven tells whether the event as it was seen has the receipt, or has no
// room for it.
func (r eventReceipt) isGiven() bool {
	merged := lastDeliveries(r.event.Status.Deliveries, r.delivery)
	return slices.Equal(merged, r.event.Status.Deliveries)
}

// EventReceipts carries word of events from the controller of runs, which
// learns what became of them, to that of events, which writes it down. It keeps
// what is not written yet; what a crash takes is found out again when the
// operator starts. The zero value is ready.
type EventReceipts struct {
	mu      sync.Mutex
	pending map[types.NamespacedName][]api.EventDelivery
	// awaited are the events that were seen and of which nothing is written yet.
	awaited map[types.NamespacedName]types.UID
	queue   runQueue
}

// receiptPatience is how long word of an event is gathered, so that an event that
// many runs take at once is written once. It informs people; no run waits for it.
const receiptPatience = time.Second

var _ source.Source = (*EventReceipts)(nil)

// Start lets the events with news be looked at.
func (r *EventReceipts) Start(_ context.Context, queue runQueue) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = queue
	for name := range r.pending {
		queue.Add(reconcile.Request{NamespacedName: name})
	}
	return nil
}

func (r *EventReceipts) add(receipt eventReceipt) {
	name := client.ObjectKeyFromObject(receipt.event)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending == nil {
		r.pending = map[types.NamespacedName][]api.EventDelivery{}
	}
	r.pending[name] = lastDeliveries(r.pending[name], receipt.delivery)
	if r.queue != nil {
		r.queue.AddAfter(reconcile.Request{NamespacedName: name}, receiptPatience)
	}
}

// awaits tells of an event, the first time it is asked about, that word of it may
// be on its way.
func (r *EventReceipts) awaits(event *api.StreamEvent) bool {
	name := client.ObjectKeyFromObject(event)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.awaited[name] == event.UID {
		return false
	}
	if r.awaited == nil {
		r.awaited = map[types.NamespacedName]types.UID{}
	}
	r.awaited[name] = event.UID
	return true
}

// of an event, that are not written yet.
func (r *EventReceipts) of(event types.NamespacedName) []api.EventDelivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.pending[event])
}

// forget what is written, or cannot be written any more.
func (r *EventReceipts) forget(event types.NamespacedName, written []api.EventDelivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.awaited, event)
	left := slices.DeleteFunc(r.pending[event], func(d api.EventDelivery) bool { return slices.Contains(written, d) })
	if len(left) == 0 {
		delete(r.pending, event)
		return
	}
	r.pending[event] = left
}

// lastDeliveries adds to a list of deliveries and keeps the last ones, in their
// order. Of an activation there is one; that it completed is the last word.
func lastDeliveries(list []api.EventDelivery, more ...api.EventDelivery) []api.EventDelivery {
	merged := slices.Clone(list)
	for _, d := range more {
		at := slices.IndexFunc(merged, func(other api.EventDelivery) bool { return isSameActivation(other, d) })
		switch {
		case at < 0:
			merged = append(merged, d)
		case merged[at].Outcome != api.DeliveryCompleted && d.Outcome == api.DeliveryCompleted:
			merged[at] = d
		}
	}
	slices.SortStableFunc(merged, compareDeliveries)
	return merged[max(0, len(merged)-api.MaxDeliveries):]
}

// compareDeliveries orders by time. Of the same time, runs and activations that
// are first by name count as last, so that everybody agrees on which to keep.
func compareDeliveries(a, b api.EventDelivery) int {
	return cmp.Or(a.At.Compare(b.At.Time), cmp.Compare(b.Run, a.Run), cmp.Compare(b.UID, a.UID), cmp.Compare(b.Activation, a.Activation))
}

func isSameActivation(a, b api.EventDelivery) bool {
	return a.UID == b.UID && a.Activation == b.Activation
}

// isListed tells whether a list has the outcome of the activation.
func isListed(list []api.EventDelivery, d api.EventDelivery) bool {
	return slices.ContainsFunc(list, func(other api.EventDelivery) bool {
		return isSameActivation(other, d) && other.Outcome == d.Outcome
	})
}

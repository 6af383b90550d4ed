package controllers

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

func deliveryTo(run string, outcome api.DeliveryOutcome, after time.Duration) api.EventDelivery {
	return api.EventDelivery{
		Run: run, UID: "uid-of-" + run, Activation: "merged#1", Outcome: outcome, At: metav1.NewTime(runTestNow.Add(after)),
	}
}

func runsIn(list []api.EventDelivery) []string {
	var runs []string
	for _, d := range list {
		runs = append(runs, d.Run)
	}
	return runs
}

func TestLastDeliveries(t *testing.T) {
	t.Parallel()
	const failed, completed = api.DeliveryError, api.DeliveryCompleted
	for name, tc := range map[string]struct {
		list, more []api.EventDelivery
		want       []api.EventDelivery
	}{
		"in the order of time": {
			[]api.EventDelivery{deliveryTo("b", completed, time.Hour)},
			[]api.EventDelivery{deliveryTo("a", completed, 0)},
			[]api.EventDelivery{deliveryTo("a", completed, 0), deliveryTo("b", completed, time.Hour)},
		},
		"first names count as last": {
			nil,
			[]api.EventDelivery{deliveryTo("a", failed, 0), deliveryTo("b", failed, 0)},
			[]api.EventDelivery{deliveryTo("b", failed, 0), deliveryTo("a", failed, 0)},
		},
		"completion is the last word": {
			[]api.EventDelivery{deliveryTo("a", failed, 0)},
			[]api.EventDelivery{deliveryTo("a", completed, time.Hour)},
			[]api.EventDelivery{deliveryTo("a", completed, time.Hour)},
		},
		"an error is not": {
			[]api.EventDelivery{deliveryTo("a", completed, 0)},
			[]api.EventDelivery{deliveryTo("a", failed, time.Hour)},
			[]api.EventDelivery{deliveryTo("a", completed, 0)},
		},
		"each once": {
			[]api.EventDelivery{deliveryTo("a", failed, 0)},
			[]api.EventDelivery{deliveryTo("a", failed, time.Hour)},
			[]api.EventDelivery{deliveryTo("a", failed, 0)},
		},
	} {
		if diff := cmp.Diff(tc.want, lastDeliveries(tc.list, tc.more...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestDeliveriesSettle(t *testing.T) {
	t.Parallel()
	// Many runs know of one moment alone; whoever writes first, the same ones
	// stay, and nobody has news any more.
	var all []api.EventDelivery
	for i := range 3 * api.MaxDeliveries {
		all = append(all, deliveryTo(fmt.Sprintf("run-%03d", i), api.DeliveryError, 0))
	}
	forward := lastDeliveries(nil, all...)
	slices.Reverse(all)
	var list []api.EventDelivery
	for _, d := range all {
		list = lastDeliveries(list, d)
	}
	if !slices.Equal(runsIn(list), runsIn(forward)) || len(list) != api.MaxDeliveries {
		t.Errorf("order matters: %v and %v", runsIn(forward), runsIn(list))
	}
	if got := list[len(list)-1].Run; got != "run-000" {
		t.Errorf("the last is %s", got)
	}
	e := &api.StreamEvent{Status: api.StreamEventStatus{Deliveries: list}}
	for _, d := range all {
		if !(eventReceipt{e, d}).isGiven() {
			t.Errorf("%s still wants to be written", d.Run)
		}
	}
	if (eventReceipt{e, deliveryTo("late", api.DeliveryCompleted, time.Second)}).isGiven() {
		t.Error("news counts as given")
	}
}

func TestReceiptsAreKeptUntilTheyAreWritten(t *testing.T) {
	t.Parallel()
	receipts := &EventReceipts{}
	e := &api.StreamEvent{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "e1"}}
	name := types.NamespacedName{Namespace: "team", Name: "e1"}
	receipts.add(eventReceipt{e, deliveryTo("a", api.DeliveryCompleted, 0)})

	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	if err := receipts.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	if queue.Len() != 1 {
		t.Error("what came before the start is not looked at")
	}
	written := receipts.of(name)
	receipts.add(eventReceipt{e, deliveryTo("b", api.DeliveryCompleted, time.Second)})
	receipts.forget(name, written)
	if got := runsIn(receipts.of(name)); !slices.Equal(got, []string{"b"}) {
		t.Errorf("left are %v, want what came while the other was written", got)
	}
	receipts.forget(name, receipts.of(name))
	if len(receipts.pending) != 0 {
		t.Errorf("something is left: %v", receipts.pending)
	}
}

func TestWordOfAnEventIsAwaitedOnce(t *testing.T) {
	t.Parallel()
	receipts := &EventReceipts{}
	e := &api.StreamEvent{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "e1", UID: "1"}}
	again := e.DeepCopy()
	again.UID = "2"
	for i, want := range []bool{true, false} {
		if got := receipts.awaits(e); got != want {
			t.Errorf("look %d: awaits() = %t, want %t", i, got, want)
		}
	}
	if !receipts.awaits(again) {
		t.Error("another event of the name is not awaited")
	}
	receipts.forget(types.NamespacedName{Namespace: "team", Name: "e1"}, nil)
	if len(receipts.awaited) != 0 {
		t.Errorf("something is left: %v", receipts.awaited)
	}
}

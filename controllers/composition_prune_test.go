package controllers

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

func generations(b *bench, comp *api.Composition) []int64 {
	var found []int64
	for _, record := range b.history(comp) {
		found = append(found, record.data.Generation)
	}
	return found
}

// A run that has not pinned anything yet may have read a snapshot already.
func TestASnapshotThatARunIsAboutToPinIsKept(t *testing.T) {
	for name, tc := range map[string]struct {
		run  func(run *api.WorkflowRun, revision string)
		want []int64
	}{
		"the live one of a moment ago": {func(*api.WorkflowRun, string) {}, []int64{2, 3, 4, 5, 6, 7}},
		"an old revision":              {func(run *api.WorkflowRun, revision string) { run.Spec.CompositionRef.Revision = revision }, []int64{2, 6, 7}},
		"one of another composition":   {func(run *api.WorkflowRun, _ string) { run.Spec.CompositionRef.Name = "d" }, []int64{6, 7}},
		"nothing, for it is over":      {func(run *api.WorkflowRun, _ string) { run.Status.FinishedAt = timeOf(runTestNow) }, []int64{6, 7}},
	} {
		t.Run(name, func(t *testing.T) {
			comp := draft("c", func(comp *api.Composition) { comp.Spec.RevisionHistoryLimit = 2 })
			b := newBench(t, comp)
			edits(b, comp, "Edit 0", "ada")
			b.settleDown()
			run := &api.WorkflowRun{ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: teamA}}
			run.Spec.CompositionRef.Name = "c"
			tc.run(run, get(b, comp).Status.WorkflowRevision)
			if err := b.client.Create(b.ctx, run); err != nil {
				t.Fatal(err)
			}
			for i := range 5 {
				edits(b, comp, fmt.Sprint("Edit ", i+1), "ada")
				b.settleDown()
			}
			if diff := cmp.Diff(tc.want, generations(b, comp)); diff != "" {
				t.Errorf("generations (-want +got):\n%s", diff)
			}
		})
	}
}

// A run touches an old snapshot before it pins it; whoever had decided to delete
// it does not get to.
func TestASnapshotThatWasTouchedSinceItWasReadIsKept(t *testing.T) {
	comp := draft("c", func(comp *api.Composition) { comp.Spec.RevisionHistoryLimit = 2 })
	b := newBench(t, comp)
	edits(b, comp, "Edit 0", "ada")
	b.settleDown()
	old := snapshotName(comp, 2)
	r := b.compositions()
	touched := false
	r.Client = interceptor.NewClient(b.client.(client.WithWatch), interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.DeleteOption) error {
			if object.GetName() == old && !touched {
				touched = true
				runs := &WorkflowRunReconciler{Client: c}
				if isHeld, err := runs.hold(ctx, &api.WorkflowRun{ObjectMeta: metav1.ObjectMeta{Namespace: teamA, UID: "r"}}, old); err != nil || !isHeld {
					t.Errorf("the run holds it: %t, %v", isHeld, err)
				}
			}
			return c.Delete(ctx, object, opts...)
		},
	})
	for i := range 5 {
		edits(b, comp, fmt.Sprint("Edit ", i+1), "ada")
		for range 2 {
			if _, err := r.Reconcile(b.ctx, get(b, comp)); err != nil {
				t.Fatal(err)
			}
		}
		if touched {
			break
		}
	}
	if err := b.client.Get(b.ctx, client.ObjectKey{Namespace: teamA, Name: old}, &appsv1.ControllerRevision{}); err != nil {
		t.Errorf("the snapshot that was touched: %v", err)
	}
}

func TestASnapshotThatIsGoneIsNotHeld(t *testing.T) {
	b := newBench(t)
	runs := &WorkflowRunReconciler{Client: b.client}
	if isHeld, err := runs.hold(b.ctx, &api.WorkflowRun{ObjectMeta: metav1.ObjectMeta{Namespace: teamA, UID: "r"}}, "gone"); err != nil || isHeld {
		t.Errorf("held: %t, %v", isHeld, err)
	}
}

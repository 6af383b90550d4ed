package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// maxFinishedTurns of a composition are kept beside those that wait for a
// decision.
const maxFinishedTurns = 50

// pruneSnapshots deletes the oldest snapshots beyond the limit, but none that a
// turn counts from, that a run executes or that a run may be about to pin. A run
// that wants an old one touches it first; so one that was touched after it was
// read here is left for the next time.
func (r *CompositionReconciler) pruneSnapshots(ctx context.Context, state compositionState) error {
	superfluous := superfluousSnapshots(state.comp, state.snapshots)
	// The cache is asked first, since most of what it shows as pinned stays so.
	for _, reader := range []client.Reader{r.Client, r.Live} {
		if len(superfluous) == 0 {
			return nil
		}
		use, err := usedSnapshots(ctx, reader, state.comp)
		if err != nil {
			return err
		}
		superfluous = slices.DeleteFunc(superfluous, use.needs)
	}
	var errs []error
	for _, record := range superfluous {
		errs = append(errs, r.deleteSnapshot(ctx, state.comp.Namespace, record))
	}
	return errors.Join(errs...)
}

// deleteSnapshot deletes the very version that was read.
func (r *CompositionReconciler) deleteSnapshot(ctx context.Context, namespace string, record snapshotRecord) error {
	object := &appsv1.ControllerRevision{}
	object.Name, object.Namespace = record.name, namespace
	err := r.Client.Delete(ctx, object, client.Preconditions{UID: &record.uid, ResourceVersion: &record.version})
	if apierrors.IsConflict(err) {
		return nil
	}
	return wrap("delete snapshot", client.IgnoreNotFound(err))
}

// superfluousSnapshots are those beyond the limit that the composition itself
// does not need. The records are its history, oldest first.
func superfluousSnapshots(comp *api.Composition, records []snapshotRecord) []snapshotRecord {
	limit := int(comp.Spec.RevisionHistoryLimit)
	if limit == 0 || len(records) <= limit {
		return nil
	}
	needed := map[string]bool{
		comp.Status.Snapshot: true,
		newestAt(records, comp.Status.LastTurnGeneration).name: true,
	}
	if claim := comp.Status.Claim; claim != nil {
		// The turn that starts still has to tell its agent what was edited.
		needed[newestAt(records, claim.SinceGeneration).name] = true
	}
	return slices.DeleteFunc(slices.Clone(records[:len(records)-limit]), func(record snapshotRecord) bool { return needed[record.name] })
}

// snapshotUse is which snapshots of a composition its runs need.
type snapshotUse struct {
	// pinned by name.
	pinned map[string]bool
	// wanted revisions, of runs that have not pinned one yet. They may have read it
	// already.
	wanted map[string]bool
	// any: a run wants whatever is live when it looks, which may be older by now.
	any bool
}

func (u snapshotUse) needs(record snapshotRecord) bool {
	return u.any || u.pinned[record.name] || u.wanted[record.data.workflowRevision()]
}

func usedSnapshots(ctx context.Context, reader client.Reader, comp *api.Composition) (snapshotUse, error) {
	use := snapshotUse{pinned: map[string]bool{}, wanted: map[string]bool{}}
	runs := &api.WorkflowRunList{}
	if err := reader.List(ctx, runs, client.InNamespace(comp.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return use, fmt.Errorf("list runs of composition %s: %w", comp.Name, err)
	}
	for i := range runs.Items {
		run := &runs.Items[i]
		switch {
		case run.Status.Definition != nil:
			use.pinned[run.Status.Definition.Snapshot] = true
		case run.Spec.CompositionRef.Name != comp.Name || isRunFinished(run) || !run.DeletionTimestamp.IsZero():
		case run.Spec.CompositionRef.Revision == "":
			use.any = true
		default:
			use.wanted[run.Spec.CompositionRef.Revision] = true
		}
	}
	return use, nil
}

// pruneTurns deletes the oldest finished turns beyond the limit.
func (r *CompositionReconciler) pruneTurns(ctx context.Context, state compositionState) error {
	var errs []error
	for _, turn := range superfluousTurns(state.turns) {
		err := r.Client.Delete(ctx, &turn, client.Preconditions{UID: &turn.UID})
		errs = append(errs, wrap("delete turn", client.IgnoreNotFound(err)))
	}
	return errors.Join(errs...)
}

// superfluousTurns are the oldest finished ones beyond the limit.
func superfluousTurns(all []api.Turn) []api.Turn {
	finished := slices.DeleteFunc(slices.Clone(all), func(turn api.Turn) bool {
		return !turns.IsOver(turn.Status.State) || turn.Status.State == api.TurnAwaitingResolution || !turn.DeletionTimestamp.IsZero()
	})
	if len(finished) <= maxFinishedTurns {
		return nil
	}
	slices.SortFunc(finished, func(a, b api.Turn) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Status.Number, b.Status.Number), cmp.Compare(a.Name, b.Name))
	})
	return finished[:len(finished)-maxFinishedTurns]
}

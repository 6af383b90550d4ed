package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// maxFinishedTurns of a composition are kept beside those that wait for a
// decision.
const maxFinishedTurns = 50

// pruneSnapshots deletes the oldest snapshots beyond the limit, but none that a
// turn counts from or that a run executes.
func (r *CompositionReconciler) pruneSnapshots(ctx context.Context, state compositionState) error {
	superfluous := superfluousSnapshots(state.comp, state.snapshots)
	// The cache is asked first, since most of what it shows as pinned stays so.
	for _, reader := range []client.Reader{r.Client, r.Live} {
		if len(superfluous) == 0 {
			return nil
		}
		pinned, err := pinnedSnapshots(ctx, reader, state.comp)
		if err != nil {
			return err
		}
		superfluous = slices.DeleteFunc(superfluous, func(name string) bool { return pinned[name] })
	}
	var errs []error
	for _, name := range superfluous {
		object := &appsv1.ControllerRevision{}
		object.Name, object.Namespace = name, state.comp.Namespace
		errs = append(errs, wrap("delete snapshot", client.IgnoreNotFound(r.Client.Delete(ctx, object))))
	}
	return errors.Join(errs...)
}

// superfluousSnapshots are those beyond the limit that the composition itself
// does not need. The records are its history, oldest first.
func superfluousSnapshots(comp *api.Composition, records []snapshotRecord) []string {
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
	var names []string
	for _, record := range records[:len(records)-limit] {
		if !needed[record.name] {
			names = append(names, record.name)
		}
	}
	return names
}

func pinnedSnapshots(ctx context.Context, reader client.Reader, comp *api.Composition) (map[string]bool, error) {
	runs := &api.WorkflowRunList{}
	if err := reader.List(ctx, runs, client.InNamespace(comp.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list runs of composition %s: %w", comp.Name, err)
	}
	pinned := map[string]bool{}
	for i := range runs.Items {
		if definition := runs.Items[i].Status.Definition; definition != nil {
			pinned[definition.Snapshot] = true
		}
	}
	return pinned, nil
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

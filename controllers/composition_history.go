package controllers

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// record makes sure that what the draft holds has its snapshot, and returns the
// newest one. With an error comes the newest one that is known.
func (r *CompositionReconciler) record(ctx context.Context, state compositionState) (snapshotRecord, error) {
	cached := newestOf(state.snapshots)
	if isHistoryCurrent(state.comp) && cached.name == state.comp.Status.Snapshot {
		return cached, nil
	}
	// Who made what is new depends on all that came before, so the cache will
	// not do.
	records, err := listSnapshots(ctx, r.Live, state.comp)
	if err != nil {
		return cached, err
	}
	newest := newestOf(records)
	if newest.data.Generation >= state.comp.Generation {
		return newest, nil
	}
	found, err := r.turnsBehind(ctx, state)
	if err != nil {
		return newest, err
	}
	data, changed := nextSnapshot(state, newest.data, authorshipOf(state.comp, records, found), r.Clock.Now())
	if newest.name != "" && !changed {
		return newest, nil
	}
	taken, err := r.takeSnapshot(ctx, state.comp, data)
	if err != nil {
		return newest, err
	}
	return taken, nil
}

// turnsBehind are the turns that may have made what is new. The one that the
// edit names must not be missed because it is younger than the cache.
func (r *CompositionReconciler) turnsBehind(ctx context.Context, state compositionState) ([]api.Turn, error) {
	name := state.comp.Annotations[api.AnnotationTurn]
	if name == "" || slices.ContainsFunc(state.turns, func(turn api.Turn) bool { return turn.Name == name }) {
		return state.turns, nil
	}
	named, err := readTurn(ctx, r.Live, state.comp.Namespace, name)
	return replaceTurn(state.turns, name, named), err
}

// takeSnapshot stores a snapshot. One that an earlier life of this controller
// took stands: its attribution was made closer to the edit.
func (r *CompositionReconciler) takeSnapshot(ctx context.Context, comp *api.Composition, data snapshotData) (snapshotRecord, error) {
	object, err := snapshotObject(comp, data)
	if err != nil {
		return snapshotRecord{}, err
	}
	err = r.Client.Create(ctx, object)
	if err == nil {
		return snapshotRecord{name: object.Name, data: data}, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return snapshotRecord{}, fmt.Errorf("create snapshot: %w", err)
	}
	existing := &appsv1.ControllerRevision{}
	if err := r.Live.Get(ctx, types.NamespacedName{Namespace: comp.Namespace, Name: object.Name}, existing); err != nil {
		return snapshotRecord{}, fmt.Errorf("read snapshot %s: %w", object.Name, err)
	}
	if !metav1.IsControlledBy(existing, comp) || existing.Revision != data.Generation {
		return snapshotRecord{}, fmt.Errorf("ControllerRevision %s is not the composition's snapshot of generation %d", existing.Name, data.Generation)
	}
	return readSnapshot(existing)
}

// newestOf is the last of a history, the zero record when there is none.
func newestOf(records []snapshotRecord) snapshotRecord {
	if len(records) == 0 {
		return snapshotRecord{}
	}
	return records[len(records)-1]
}

// isHistoryCurrent tells whether what the draft holds has its snapshot.
func isHistoryCurrent(comp *api.Composition) bool {
	return comp.Status.ObservedGeneration == comp.Generation && comp.Status.Snapshot != ""
}

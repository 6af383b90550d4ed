package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// CompositionReconciler keeps the status and the history of compositions: what
// each item is, whether it is valid, who wrote it, and which turn works on the
// draft or waits for a person. It never writes a spec.
type CompositionReconciler struct {
	// Client reads from the cache.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Clock dates snapshots.
	Clock clock.PassiveClock
	// Expressions compiles the workflow's expressions.
	Expressions *expression.Cache
}

// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=compositions,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=compositions/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=compositions/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;delete

// compositionState is all that the status of a composition depends on.
type compositionState struct {
	comp      *api.Composition
	items     []itemView
	snapshots []snapshotRecord
	session   *api.AgentSession
	// turns of the composition, as the cache shows them.
	turns []api.Turn
	// current is the turn that holds the composition, read live; nil when it is gone.
	current *api.Turn
}

// SetupWithManager registers the controller.
func (r *CompositionReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&api.Composition{}).
		Owns(&appsv1.ControllerRevision{}).
		Owns(&api.AgentSession{}).
		Watches(&api.Turn{}, handler.EnqueueRequestsFromMapFunc(compositionOfTurn)).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

// Reconcile brings history and status up to the composition's generation.
func (r *CompositionReconciler) Reconcile(ctx context.Context, comp *api.Composition) (ctrl.Result, error) {
	if !comp.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	before := comp.DeepCopy()

	state, err := r.gather(ctx, comp)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("gather composition state: %w", err)
	}
	plan, recordErr := r.record(ctx, state)
	setCompositionStatus(state, plan, recordErr)

	if err := errors.Join(recordErr, r.report(ctx, before, comp)); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.prune(ctx, state, plan)
}

func (r *CompositionReconciler) gather(ctx context.Context, comp *api.Composition) (compositionState, error) {
	state := compositionState{comp: comp}
	var err error
	if state.items, err = itemsOf(comp, r.Expressions); err != nil {
		return state, err
	}
	if state.snapshots, err = listSnapshots(ctx, r.Client, comp); err != nil {
		return state, err
	}
	if state.turns, err = turnsOf(ctx, r.Client, comp); err != nil {
		return state, err
	}
	if state.session, err = sessionOf(ctx, r.Client, comp); err != nil {
		return state, err
	}
	if comp.Status.CurrentTurn == "" {
		return state, nil
	}
	// A turn that the cache misses may only be younger than the cache; releasing
	// its composition cannot be taken back.
	state.current, err = readTurn(ctx, r.Live, comp.Namespace, comp.Status.CurrentTurn)
	return state, err
}

// record writes a snapshot when any content changed, and returns the history
// that results.
func (r *CompositionReconciler) record(ctx context.Context, state compositionState) (snapshotRecord, error) {
	var newest *snapshotData
	if n := len(state.snapshots); n > 0 {
		newest = &state.snapshots[n-1].data
		if newest.Generation >= state.comp.Generation {
			return state.snapshots[n-1], nil
		}
	}
	data, changed := nextSnapshot(state.comp, statuses(state.items), newest, attribute(state, newest), r.Clock.Now())
	if newest != nil && !changed {
		return state.snapshots[len(state.snapshots)-1], nil
	}
	object, err := snapshotObject(state.comp, data)
	if err != nil {
		return snapshotRecord{}, err
	}
	err = r.Client.Create(ctx, object)
	if apierrors.IsAlreadyExists(err) {
		return r.existing(ctx, state.comp, object.Name)
	}
	if err != nil {
		return snapshotRecord{}, fmt.Errorf("create snapshot: %w", err)
	}
	return snapshotRecord{name: object.Name, data: data}, nil
}

// existing reads a snapshot that an earlier life of this controller took: its
// attribution stands, whatever a later one would say.
func (r *CompositionReconciler) existing(ctx context.Context, comp *api.Composition, name string) (snapshotRecord, error) {
	object := &appsv1.ControllerRevision{}
	if err := r.Live.Get(ctx, types.NamespacedName{Namespace: comp.Namespace, Name: name}, object); err != nil {
		return snapshotRecord{}, fmt.Errorf("read snapshot %s: %w", name, err)
	}
	return readSnapshot(object)
}

func (r *CompositionReconciler) report(ctx context.Context, before, comp *api.Composition) error {
	if equalStatus(before.Status, comp.Status) {
		return nil
	}
	err := r.Client.Status().Update(ctx, comp)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("update composition status: %w", err)
	}
	return nil
}

// prune deletes the oldest snapshots beyond the limit, but never one that a
// run executes, that a turn counts from, or the newest.
func (r *CompositionReconciler) prune(ctx context.Context, state compositionState, newest snapshotRecord) error {
	limit := int(state.comp.Spec.RevisionHistoryLimit)
	if limit == 0 || len(state.snapshots) <= limit {
		return nil
	}
	pinned, err := pinnedSnapshots(ctx, r.Live, state.comp)
	if err != nil {
		return err
	}
	var errs []error
	for _, record := range state.snapshots[:len(state.snapshots)-limit] {
		if pinned[record.name] || record.name == newest.name || record.data.Generation == state.comp.Status.LastTurnGeneration {
			continue
		}
		object := &appsv1.ControllerRevision{}
		object.Name, object.Namespace = record.name, state.comp.Namespace
		errs = append(errs, client.IgnoreNotFound(r.Client.Delete(ctx, object)))
	}
	return errors.Join(errs...)
}

func pinnedSnapshots(ctx context.Context, reader client.Reader, comp *api.Composition) (map[string]bool, error) {
	runs := &api.WorkflowRunList{}
	if err := reader.List(ctx, runs, client.InNamespace(comp.Namespace)); err != nil {
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

// attribute tells who made the present content: the turn whose annotation the
// last update brought, the pending turn whose result it is, else the user whom
// admission saw.
func attribute(state compositionState, newest *snapshotData) attribution {
	editor := state.comp.Annotations[api.AnnotationEditedBy]
	known := ""
	if newest != nil {
		known = newest.Turn
	}
	if turn := state.comp.Annotations[api.AnnotationTurn]; turn != "" && turn != known {
		return attribution{author: api.AuthorAI, username: editor, turn: turn}
	}
	revision := workflowRevisionOf(state.items)
	i := slices.IndexFunc(state.turns, func(turn api.Turn) bool {
		return turn.Status.State == api.TurnAwaitingResolution && turn.Status.ResultRevision == revision
	})
	if i >= 0 && revision != "" {
		return attribution{author: api.AuthorAI, username: state.turns[i].Annotations[api.AnnotationRequestedBy], turn: state.turns[i].Name}
	}
	return attribution{author: api.AuthorUser, username: editor}
}

// compositionOfTurn maps a turn to the composition it is for.
func compositionOfTurn(_ context.Context, object client.Object) []reconcile.Request {
	turn, isTurn := object.(*api.Turn)
	if !isTurn || turn.Spec.CompositionRef == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: turn.Namespace, Name: turn.Spec.CompositionRef.Name}}}
}

func turnsOf(ctx context.Context, reader client.Reader, comp *api.Composition) ([]api.Turn, error) {
	list := &api.TurnList{}
	if err := reader.List(ctx, list, client.InNamespace(comp.Namespace)); err != nil {
		return nil, fmt.Errorf("list turns: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(turn api.Turn) bool {
		return turn.Spec.CompositionRef == nil || turn.Spec.CompositionRef.Name != comp.Name
	}), nil
}

// readTurn returns nil when the turn does not exist.
func readTurn(ctx context.Context, reader client.Reader, namespace, name string) (*api.Turn, error) {
	turn := &api.Turn{}
	err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, turn)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // a deleted turn is an ordinary answer
	}
	if err != nil {
		return nil, fmt.Errorf("read turn %s: %w", name, err)
	}
	return turn, nil
}

// sessionOf returns the composition's agent session, nil when there is none.
func sessionOf(ctx context.Context, reader client.Reader, comp *api.Composition) (*api.AgentSession, error) {
	session := &api.AgentSession{}
	err := reader.Get(ctx, types.NamespacedName{Namespace: comp.Namespace, Name: sessionName(comp.Name)}, session)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // a composition without session is ordinary
	}
	if err != nil {
		return nil, fmt.Errorf("read agent session: %w", err)
	}
	return session, nil
}

// isHeld tells whether the turn still needs its hold on the composition.
func isHeld(comp *api.Composition, current *api.Turn) bool {
	claim := comp.Status.Claim
	return current != nil && claim != nil && string(current.UID) == claim.UID && !turns.IsOver(current.Status.State)
}

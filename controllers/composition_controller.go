package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=turns,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=streamevents;workflowruns,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;delete

// compositionState is all that the status of a composition depends on.
type compositionState struct {
	comp      *api.Composition
	items     []itemView
	snapshots []snapshotRecord
	session   *api.AgentSession
	// turns of the composition; those that status names were read live.
	turns []api.Turn
	// current is the turn that status says holds the composition, read live; nil
	// when it is gone.
	current *api.Turn
	// failures of the composition's triggers.
	failures map[string][]api.TriggerFailure
}

// SetupWithManager registers the controller.
func (r *CompositionReconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := indexFailedTriggers(mgr); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&api.Composition{}).
		Owns(&appsv1.ControllerRevision{}).
		Owns(&api.AgentSession{}).
		Watches(&api.Turn{}, handler.EnqueueRequestsFromMapFunc(compositionOfTurn)).
		Watches(&api.StreamEvent{}, failedTriggerHandler()).
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
	newest, recordErr := r.record(ctx, state)
	setCompositionStatus(state, newest, recordErr)

	if err := errors.Join(recordErr, r.report(ctx, before, comp)); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, errors.Join(r.pruneSnapshots(ctx, state), r.pruneTurns(ctx, state))
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
	if state.session, err = sessionOf(ctx, r.Client, comp); err != nil {
		return state, err
	}
	if state.failures, err = failedTriggers(ctx, r.Client, comp); err != nil {
		return state, err
	}
	return state, r.gatherTurns(ctx, &state)
}

// gatherTurns reads the turns from the cache, but live what status names: a
// turn that the cache misses or shows in an older state may only be younger
// than the cache, and what status says of it is not taken back for that.
func (r *CompositionReconciler) gatherTurns(ctx context.Context, state *compositionState) error {
	var err error
	if state.turns, err = turnsOf(ctx, r.Client, state.comp); err != nil {
		return err
	}
	status := &state.comp.Status
	if status.CurrentTurn != "" {
		if state.current, err = readTurn(ctx, r.Live, state.comp.Namespace, status.CurrentTurn); err != nil {
			return err
		}
		state.turns = replaceTurn(state.turns, status.CurrentTurn, state.current)
	}
	if status.PendingTurn == "" || status.PendingTurn == pendingTurn(state.turns) {
		return nil
	}
	pending, err := readTurn(ctx, r.Live, state.comp.Namespace, status.PendingTurn)
	if err != nil {
		return err
	}
	state.turns = replaceTurn(state.turns, status.PendingTurn, pending)
	return nil
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

// compositionOfTurn maps a turn to the composition it is for.
func compositionOfTurn(_ context.Context, object client.Object) []reconcile.Request {
	turn, isTurn := object.(*api.Turn)
	if !isTurn || turn.Spec.CompositionRef == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: turn.Namespace, Name: turn.Spec.CompositionRef.Name}}}
}

// turnsOf returns the composition's turns to look at, not to change: a cache
// gives out its own.
func turnsOf(ctx context.Context, reader client.Reader, comp *api.Composition) ([]api.Turn, error) {
	list := &api.TurnList{}
	if err := reader.List(ctx, list, client.InNamespace(comp.Namespace), client.UnsafeDisableDeepCopy); err != nil {
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

// replaceTurn puts a turn, or the fact that it is gone, in the place of what is
// listed under its name.
func replaceTurn(list []api.Turn, name string, turn *api.Turn) []api.Turn {
	others := slices.DeleteFunc(slices.Clone(list), func(t api.Turn) bool { return t.Name == name })
	if turn == nil {
		return others
	}
	return append(others, *turn)
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
	if !metav1.IsControlledBy(session, comp) {
		return nil, nil //nolint:nilnil // a stranger of that name is none
	}
	return session, nil
}

// isHeld tells whether a turn holds the composition and still needs to. The
// turn is the one that the claim names, nil when it is gone.
func isHeld(claim *api.Claim, turn *api.Turn) bool {
	return turn != nil && claim != nil && string(turn.UID) == claim.UID &&
		turn.DeletionTimestamp.IsZero() && !turns.IsOver(turn.Status.State)
}

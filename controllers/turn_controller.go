package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// TurnReconciler takes a turn from its message to its end: it claims the
// composition, queues the prompt in the agent's session, combines what the
// agent changed, and applies it when a person accepts.
//
//	Pending ─▶ Working ─▶ AwaitingResolution ─▶ Applied | Rejected | Stale | Failed
//	   │          └─────▶ Completed | Failed
//	   └─────▶ Refused
type TurnReconciler struct {
	// Client reads from the cache.
	Client client.Client
	// Direct reads and writes the API server without a cache.
	Direct client.Client
	// Clock dates turns and times them out.
	Clock clock.PassiveClock
	// Recorder tells people of transitions.
	Recorder events.EventRecorder
	// Expressions compiles the result's expressions.
	Expressions *expression.Cache
	// StartTimeout is what a turn's agent has to come up, waiting for a free slot
	// included; 5 minutes when zero.
	StartTimeout time.Duration

	// since is when this operator began to listen to runners.
	since time.Time
}

// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=turns,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=turns/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=turns/finalizers,verbs=update
// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=agentsessions,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=agentsessions/status,verbs=get;update;patch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

const (
	compositionKind = "Composition"
	sessionKind     = "AgentSession"
)

// maxEventNote is what the API takes of an Event's note, in bytes.
const maxEventNote = 1024

// step is what one pass of a turn decided beside its status.
type step struct {
	// again is when to look again; zero: when something changes.
	again time.Duration
	// comp is what events are about, nil when it is gone.
	comp *api.Composition
	// session is what events of a turn without composition are about, nil when it
	// is gone.
	session *api.AgentSession
}

// SetupWithManager registers the controller.
func (r *TurnReconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.since = r.Clock.Now()
	return ctrl.NewControllerManagedBy(mgr).
		For(&api.Turn{}).
		Watches(&api.AgentSession{}, handler.EnqueueRequestsFromMapFunc(r.workingTurnsOf)).
		Watches(&api.Composition{}, handler.EnqueueRequestsFromMapFunc(r.openTurnsOf)).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

// Reconcile moves a turn as far as it can go now.
func (r *TurnReconciler) Reconcile(ctx context.Context, turn *api.Turn) (ctrl.Result, error) {
	if !turn.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	before := turn.DeepCopy()

	done, stepErr := r.step(ctx, turn)
	setTurnConditions(turn)

	if err := errors.Join(stepErr, r.report(ctx, before, turn, done)); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: done.again}, nil
}

func (r *TurnReconciler) step(ctx context.Context, turn *api.Turn) (step, error) {
	switch {
	case turn.Spec.Prompt != nil:
		return r.serveRun(ctx, turn)
	case wantsPosting(turn):
		return step{}, r.postNotices(ctx, turn)
	case wantsFollowUp(turn):
		return r.followUp(ctx, turn)
	case wantsUndo(turn):
		return r.undo(ctx, turn)
	}
	switch turn.Status.State {
	case "", api.TurnPending:
		return r.start(ctx, turn)
	case api.TurnWorking:
		return r.work(ctx, turn)
	case api.TurnAwaitingResolution:
		return r.resolve(ctx, turn)
	default:
		return step{}, nil
	}
}

// report writes the status once, then tells of the transition it made.
func (r *TurnReconciler) report(ctx context.Context, before, turn *api.Turn, done step) error {
	if equalStatus(before.Status, turn.Status) {
		return nil
	}
	if err := r.Client.Status().Update(ctx, turn); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("update turn status: %w", err)
	}
	switch {
	case done.comp != nil:
		r.announce(before, turn, done.comp)
	case done.session != nil:
		r.announce(before, turn, done.session)
	}
	return nil
}

// announcements are the Events of a turn's states, on its composition.
var announcements = map[api.TurnPhase]struct{ kind, reason, note string }{
	api.TurnWorking:            {corev1.EventTypeNormal, "TurnStarted", "turn %s started"},
	api.TurnAwaitingResolution: {corev1.EventTypeNormal, "ChangeSetReady", "turn %s waits for a resolution"},
	api.TurnCompleted:          {corev1.EventTypeNormal, "TurnCompleted", "turn %s ended with nothing to resolve"},
	api.TurnApplied:            {corev1.EventTypeNormal, "TurnApplied", "turn %s was applied"},
	api.TurnRejected:           {corev1.EventTypeNormal, "TurnRejected", "turn %s was rejected"},
	api.TurnStale:              {corev1.EventTypeWarning, "TurnStale", "turn %s no longer fits the workflow"},
	api.TurnFailed:             {corev1.EventTypeWarning, "TurnFailed", "turn %s failed"},
	api.TurnUndone:             {corev1.EventTypeNormal, "TurnUndone", "turn %s was undone"},
	api.TurnRefused:            {corev1.EventTypeWarning, "TurnRefused", "turn %s was refused"},
}

// announce tells of a new state and of new words to the person.
func (r *TurnReconciler) announce(before, turn *api.Turn, about client.Object) {
	if a, announced := announcements[turn.Status.State]; announced && before.Status.State != turn.Status.State {
		r.Recorder.Eventf(about, turn, a.kind, a.reason, "Turn", a.note, turn.Name)
	}
	for _, notice := range turn.Status.Notices[len(before.Status.Notices):] {
		r.Recorder.Eventf(about, turn, corev1.EventTypeNormal, "AgentNotice", "Turn", "%s", truncate(notice, maxEventNote))
	}
}

func (r *TurnReconciler) content() content.Store {
	return content.Store{Client: r.Direct}
}

func (r *TurnReconciler) now() *metav1.Time {
	return timeOf(r.Clock.Now())
}

// readComposition reads the turn's composition live, nil when it is gone.
func (r *TurnReconciler) readComposition(ctx context.Context, turn *api.Turn) (*api.Composition, error) {
	comp := &api.Composition{}
	err := r.Direct.Get(ctx, types.NamespacedName{Namespace: turn.Namespace, Name: turn.Spec.CompositionRef.Name}, comp)
	if apierrors.IsNotFound(err) || err == nil && (!comp.DeletionTimestamp.IsZero() || isOfFormer(turn, comp, compositionKind)) {
		return nil, nil //nolint:nilnil // a composition that is gone is an ordinary answer
	}
	if err != nil {
		return nil, fmt.Errorf("read composition: %w", err)
	}
	return comp, nil
}

// isOfFormer tells whether the turn belongs to what had the name of its target
// before this one.
func isOfFormer(turn *api.Turn, target client.Object, kind string) bool {
	return !isOwnedBy(turn, target.GetUID()) && slices.ContainsFunc(turn.OwnerReferences, func(owner metav1.OwnerReference) bool {
		return owner.Kind == kind && owner.Name == target.GetName()
	})
}

// workingTurnsOf maps a session to the turns that wait for something of it: the
// one that it works for, and one that waits until the agent has left another.
func (r *TurnReconciler) workingTurnsOf(ctx context.Context, object client.Object) []reconcile.Request {
	session, isSession := object.(*api.AgentSession)
	if isSession && session.Spec.RunRef != nil {
		return r.turnsOfRunSession(ctx, session)
	}
	if !isSession {
		return nil
	}
	if session.Spec.CompositionRef == nil {
		return r.turnsOfFreeSession(ctx, session)
	}
	return r.turnsWith(ctx, session.Namespace, session.Spec.CompositionRef.Name, isWorking)
}

func isWorking(turn *api.Turn) bool { return turn.Status.State == api.TurnWorking }

// openTurnsOf maps a composition to its turns that may have waited for it.
func (r *TurnReconciler) openTurnsOf(ctx context.Context, object client.Object) []reconcile.Request {
	return r.turnsWith(ctx, object.GetNamespace(), object.GetName(), isOpen)
}

// isOpen tells whether the operator has something left to do for the turn.
func isOpen(turn *api.Turn) bool {
	return !turns.IsOver(turn.Status.State) || turn.Status.State == api.TurnAwaitingResolution || wantsUndo(turn) || wantsFollowUp(turn)
}

// turnsWith are the composition's turns of which something holds.
func (r *TurnReconciler) turnsWith(ctx context.Context, namespace, composition string, holds func(*api.Turn) bool) []reconcile.Request {
	comp := &api.Composition{}
	comp.Namespace, comp.Name = namespace, composition
	found, err := turnsOf(ctx, r.Client, comp)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Turns of a composition could not be listed", "composition", composition)
		return nil
	}
	var requests []reconcile.Request
	for i := range found {
		if holds(&found[i]) {
			requests = append(requests, requestFor(namespace, found[i].Name))
		}
	}
	return requests
}

func requestFor(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

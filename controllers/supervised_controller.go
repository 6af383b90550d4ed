package controllers

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/remotes"
	"github.com/apitomy/axiom-operator/internal/secretscan"
	"github.com/apitomy/axiom-operator/internal/workspace"
)

// SupervisedOptions are the operator's settings for supervised runs.
type SupervisedOptions struct {
	// Remotes names the ConfigMap that lists what may be talked to; without it
	// nothing may be.
	Remotes types.NamespacedName
	// Workers carry so many runs at a time, their effects included; 0: one.
	Workers int
	// Leadership is read again before anything leaves for a remote.
	Leadership Leadership
}

// SupervisedRunReconciler carries runs that are defined in Git. It pins and
// retains the definition, lets people answer and resume, has agents asked, and
// performs effects, each from a recorded intent to a recorded receipt.
//
//	Pending ─▶ Running ─▶ Suspended ─▶ Running ─▶ … ─▶ Completed | Failed | Cancelled
//
// A pass serves what is open until nothing can go on: then it waits for an agent
// or a remote, or the run suspends until a person resumes it.
type SupervisedRunReconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Live reads from the API server. Secrets are only ever read through it, by name.
	Live client.Reader
	// Clock is what deadlines are compared with.
	Clock clock.PassiveClock
	// Recorder tells people of transitions.
	Recorder events.EventRecorder
	// Options are the operator's settings.
	Options SupervisedOptions
	// Expressions compiles expressions.
	Expressions *expression.Cache
	// Scanner keeps secrets out of what is retained.
	Scanner *secretscan.Scanner
	// Network reaches the remotes that are listed.
	Network *remotes.Network
	// Bases keeps what was fetched.
	Bases *workspace.Cache

	// flights are the passes under way, to be ended by a cancel.
	flights supervisedFlights
	// bundles that are admitted.
	bundles supervisedBundles
	// executions that this process opened.
	executions supervisedExecutions
	// performed effects whose receipts are not recorded yet.
	performed supervisedPerformed
}

// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=workflowruns,verbs=get;list;watch;update;patch;delete
// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=agentsessions;turns,verbs=get;list;watch;create;patch

// SetupWithManager registers the controller.
func (r *SupervisedRunReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("supervisedrun").
		For(&api.WorkflowRun{}, builder.WithPredicates(r.interrupts(), predicate.NewPredicateFuncs(isFromGit))).
		Owns(&api.HumanTask{}).
		Owns(&api.Turn{}, builder.WithPredicates(promptNews())).
		Owns(&api.AgentSession{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Options.Workers}).
		Complete(r)
}

func isFromGit(object client.Object) bool {
	run, isRun := object.(*api.WorkflowRun)
	return isRun && run.Spec.Git != nil
}

// interrupts ends the pass over a run as soon as somebody wants it cancelled or
// deleted; it lets every event through.
func (r *SupervisedRunReconciler) interrupts() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e ctrlevent.UpdateEvent) bool {
		run, isRun := e.ObjectNew.(*api.WorkflowRun)
		if isRun && (run.Spec.Cancel || !run.DeletionTimestamp.IsZero()) {
			r.flights.interrupt(run.UID)
		}
		return true
	}}
}

// Reconcile carries a run as far as it can go now.
func (r *SupervisedRunReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	run := &api.WorkflowRun{}
	if err := r.Client.Get(ctx, req.NamespacedName, run); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if run.Spec.Git == nil {
		return ctrl.Result{}, nil
	}
	// What a step costs outside is much more than a read, so every pass begins with
	// what is stored.
	stored := &api.WorkflowRun{}
	if err := r.Live.Get(ctx, req.NamespacedName, stored); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	again, err := r.carry(ctx, stored)
	switch {
	case isSuperseded(err):
		return ctrl.Result{RequeueAfter: soon}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: again}, nil
}

// soon is when a pass that somebody else overtook starts over.
const soon = 50 * time.Millisecond

// carry looks at what a run needs and does it; the result is when to look again,
// zero if something will tell.
func (r *SupervisedRunReconciler) carry(ctx context.Context, run *api.WorkflowRun) (time.Duration, error) {
	switch {
	case !run.DeletionTimestamp.IsZero():
		return r.finalize(ctx, run)
	case isRunFinished(run):
		return r.rest(ctx, run)
	case !controllerutil.ContainsFinalizer(run, api.FinalizerSupervised):
		return soon, r.hold(ctx, run)
	case run.Status.Instance == nil:
		return r.begin(ctx, run)
	case run.Spec.Cancel:
		return r.cancel(ctx, run)
	}
	return r.proceed(ctx, run)
}

// hold keeps the run until its pods are gone and its effects are settled.
func (r *SupervisedRunReconciler) hold(ctx context.Context, run *api.WorkflowRun) error {
	held := run.DeepCopy()
	controllerutil.AddFinalizer(held, api.FinalizerSupervised)
	patch := client.MergeFromWithOptions(run, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, held, patch); err != nil {
		return fmt.Errorf("hold run: %w", err)
	}
	return nil
}

// finalize ends what of a deleted run is under way, then lets go of it. What it
// owns is collected.
func (r *SupervisedRunReconciler) finalize(ctx context.Context, run *api.WorkflowRun) (time.Duration, error) {
	if !controllerutil.ContainsFinalizer(run, api.FinalizerSupervised) {
		return 0, nil
	}
	isQuiet, err := r.stopSessions(ctx, run)
	if err != nil || !isQuiet {
		return podsRetry, err
	}
	released := run.DeepCopy()
	controllerutil.RemoveFinalizer(released, api.FinalizerSupervised)
	patch := client.MergeFromWithOptions(run, client.MergeFromWithOptimisticLock{})
	if err := client.IgnoreNotFound(r.Client.Patch(ctx, released, patch)); err != nil {
		return 0, fmt.Errorf("release run: %w", err)
	}
	r.executions.forget(run.UID)
	return 0, nil
}

// rest cleans up after a run that ended, and deletes it when its time has come.
func (r *SupervisedRunReconciler) rest(ctx context.Context, run *api.WorkflowRun) (time.Duration, error) {
	r.executions.forget(run.UID)
	if err := r.voidTasks(ctx, run); err != nil {
		return 0, err
	}
	isQuiet, err := r.stopSessions(ctx, run)
	if err != nil || !isQuiet {
		return podsRetry, err
	}
	expiry := runExpiry(run)
	if expiry.IsZero() {
		return 0, nil
	}
	if left := expiry.Sub(r.Clock.Now()); left > 0 {
		return left, nil
	}
	if err := client.IgnoreNotFound(r.Client.Delete(ctx, run, client.Preconditions{UID: &run.UID})); err != nil {
		return 0, fmt.Errorf("delete run: %w", err)
	}
	return 0, nil
}

// store keeps what runs have in objects of their own.
func (r *SupervisedRunReconciler) store() runStore {
	return runStore{client: r.Client, live: r.Live}
}

func (r *SupervisedRunReconciler) tell(run *api.WorkflowRun, kind, reason, action, note string) {
	if r.Recorder != nil {
		r.Recorder.Eventf(run, nil, kind, reason, action, "%s", truncate(note, maxRunNote))
	}
}

// tellWarning is for what a person should look at.
func (r *SupervisedRunReconciler) tellWarning(run *api.WorkflowRun, reason, action, note string) {
	r.tell(run, corev1.EventTypeWarning, reason, action, note)
}

// supervisedFlights are the passes under way, by run. The zero value is ready.
type supervisedFlights struct {
	mu    sync.Mutex
	under map[types.UID]context.CancelFunc
}

// begin returns a context that interrupt ends, and what ends it otherwise.
func (f *supervisedFlights) begin(ctx context.Context, uid types.UID) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.under == nil {
		f.under = map[types.UID]context.CancelFunc{}
	}
	f.under[uid] = cancel
	return ctx, func() {
		cancel()
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.under, uid)
	}
}

func (f *supervisedFlights) interrupt(uid types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if cancel := f.under[uid]; cancel != nil {
		cancel()
	}
}

// supervisedExecutions are those that this process opened, by run. The zero value
// is ready.
type supervisedExecutions struct {
	mu   sync.Mutex
	open map[types.UID]int64
}

func (e *supervisedExecutions) note(uid types.UID, number int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.open == nil {
		e.open = map[types.UID]int64{}
	}
	e.open[uid] = number
}

func (e *supervisedExecutions) isOwn(uid types.UID, number int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open[uid] == number
}

func (e *supervisedExecutions) forget(uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.open, uid)
}

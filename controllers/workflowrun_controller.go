package controllers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/telemetry"
)

// RunOptions are the operator's settings for runs.
type RunOptions struct {
	// OperatorImage has axiom-runner.
	OperatorImage string
	// ScriptImages run scripts that name no image, by interpreter.
	ScriptImages map[string]string
	// Resources of a script's container; what is unset has the operator's defaults.
	Resources *corev1.ResourceRequirements
	// Gateway is how pods reach the operator.
	Gateway GatewayOptions
	// PullPolicy of all containers.
	PullPolicy corev1.PullPolicy
	// StartTimeout is what the pod of an attempt has to start its containers; 10
	// minutes when zero.
	StartTimeout time.Duration
	// Random gives tokens.
	Random io.Reader
	// Workers reconcile so many runs at a time; 0: one.
	Workers int
}

// WorkflowRunReconciler carries runs from their start to their end: it lets
// the engine decide what follows from what came to pass, commits that in one
// status update, and then creates the tasks and pods that the status names.
//
//	Pending ─▶ Running ◀─▶ Waiting | Suspended ─▶ Completed | Failed | Cancelled
type WorkflowRunReconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Live reads from the API server. Secrets are only ever read through it, by name.
	Live client.Reader
	// Clock is what deadlines are compared with.
	Clock clock.PassiveClock
	// Recorder tells people of transitions.
	Recorder events.EventRecorder
	// Options are the operator's settings.
	Options RunOptions
	// Expressions compiles expressions.
	Expressions *expression.Cache
	// Receipts take what became of events; nil: nobody is told.
	Receipts *EventReceipts
	// Metrics and Tracing tell machines of commits; both may be nil.
	Metrics *RunMetrics
	Tracing *telemetry.Tracing

	commits     runCommits
	told        runTold
	definitions runDefinitions
	events      runEvents
}

// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=workflowruns,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=workflowruns/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=workflowruns/finalizers,verbs=update
// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=humantasks,verbs=get;list;watch;create
// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=humantasks/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=actiontypes;compositions;streamevents,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;create
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager registers the controller. The manager's cache should hold
// only the pods and ConfigMaps that carry the label of a run or a session.
func (r *WorkflowRunReconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := errors.Join(indexRuns(mgr), indexEvents(mgr)); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&api.WorkflowRun{}, builder.WithPredicates(r.news())).
		Owns(&api.HumanTask{}, builder.WithPredicates(predicate.Or(taskNews(), r.unexpected()))).
		Owns(&corev1.Pod{}).
		Owns(&corev1.ConfigMap{}, builder.WithPredicates(predicate.Or(configNews(), r.unexpected()))).
		Owns(&api.Turn{}, builder.WithPredicates(promptNews())).
		Owns(&api.AgentSession{}, builder.WithPredicates(predicate.Or(agentNews(), r.unexpected()))).
		Watches(&api.Composition{}, handler.EnqueueRequestsFromMapFunc(r.runsWaitingFor)).
		Watches(&api.StreamEvent{}, r.eventHandler()).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Options.Workers}).
		Complete(r)
}

// runsWaitingFor finds the runs of a composition that have no definition yet.
func (r *WorkflowRunReconciler) runsWaitingFor(ctx context.Context, comp client.Object) []reconcile.Request {
	var runs api.WorkflowRunList
	err := r.Client.List(ctx, &runs, client.InNamespace(comp.GetNamespace()), client.MatchingFields{fieldAwaits: comp.GetName()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil // the cache is not there yet, and then every run is looked at anyway
	}
	var requests []reconcile.Request
	for i := range runs.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&runs.Items[i])})
	}
	return requests
}

// maxRunPasses bounds how often one reconcile starts over.
const maxRunPasses = 20

// Reconcile carries a run as far as it can go now.
func (r *WorkflowRunReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	// What the run waits for is found out anew.
	r.events.index.Remove(req.Namespace, req.Name)
	run, err := r.read(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.traceAgain(ctx, run)
	var pass runPass
	for range maxRunPasses {
		if run == nil || !run.DeletionTimestamp.IsZero() {
			return ctrl.Result{}, nil
		}
		pass, err = r.pass(ctx, run, pass)
		if err == nil && len(pass.failed) == 0 && pass.next == nil {
			return ctrl.Result{RequeueAfter: pass.again}, nil
		}
		if run, err = r.following(ctx, run, pass, err); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{RequeueAfter: time.Second}, nil
}

// following is the run that the pass after a pass looks at: what was committed,
// or what is stored if somebody else was faster or a child could not be made.
func (r *WorkflowRunReconciler) following(ctx context.Context, run *api.WorkflowRun, pass runPass, err error) (*api.WorkflowRun, error) {
	switch {
	case err != nil && !apierrors.IsConflict(err):
		return nil, err
	case err == nil && len(pass.failed) == 0:
		return pass.next, nil
	}
	return r.live(ctx, run)
}

// read returns the run, nil if it is gone, and lets go of pods that runs of the
// name left behind.
func (r *WorkflowRunReconciler) read(ctx context.Context, name types.NamespacedName) (*api.WorkflowRun, error) {
	run := &api.WorkflowRun{}
	err := r.Client.Get(ctx, name, run)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read run: %w", err)
	}
	if err := r.releaseOrphans(ctx, name, run.UID); err != nil {
		return nil, err
	}
	switch {
	case run.UID == "", run.Spec.Git != nil:
		return nil, nil //nolint:nilnil // a run that is gone, or another controller's, is an ordinary answer
	case run.Status.Instance == nil:
		// A cache that lags behind the first commit would start the run again, in vain.
		return r.live(ctx, run)
	case r.commits.isBehind(run):
		return r.live(ctx, run)
	}
	return run, nil
}

// runPass is what is left after one pass.
type runPass struct {
	// failed children, to be delivered by the next pass.
	failed []runDelivery
	// made are the names of the children that were created, which a cache may not
	// know yet.
	made map[string]bool
	// next is the run as committed, if it must be looked at once more.
	next *api.WorkflowRun
	// again is when to look again; zero: when something changes.
	again time.Duration
}

// pass reads, decides, commits and acts once. A conflict means that it was
// computed from an old run and changed nothing.
func (r *WorkflowRunReconciler) pass(ctx context.Context, run *api.WorkflowRun, last runPass) (runPass, error) {
	state, err := r.gather(ctx, run)
	if err != nil {
		return runPass{}, err
	}
	state.made = last.made
	plan, err := r.decide(ctx, state, last.failed)
	if isValueLost(err) {
		plan, err = runPlan{lostValue: err.Error()}, nil
	}
	if err != nil {
		return runPass{}, err
	}
	committed, err := r.commit(ctx, state, plan)
	if err != nil || plan.isLost {
		return runPass{}, err
	}
	if plan.lostValue != "" {
		return runPass{again: lostValueRetry}, nil
	}
	var next runPass
	if next.failed, err = r.act(ctx, state, committed); err != nil {
		return runPass{}, err
	}
	isClean, err := r.cleanUp(ctx, state, committed)
	if err != nil {
		return runPass{}, err
	}
	next.made, next.again = state.made, nextRunMoment(state, committed)
	if opensSilently(run, committed) {
		next.next = committed
	}
	if isClean && isRunExpired(committed, state.now) {
		return r.expire(ctx, committed)
	}
	return next, nil
}

func (r *WorkflowRunReconciler) decide(ctx context.Context, state *runState, failed []runDelivery) (runPlan, error) {
	if isRunFinished(state.run) {
		return runPlan{}, nil
	}
	if state.run.Status.Instance == nil {
		return decideStart(ctx, state)
	}
	var deliveries []runDelivery
	isEnding := state.run.Spec.Cancel || isPastDeadline(state)
	if state.definition != nil {
		if err := r.offerEvents(ctx, state, isEnding); err != nil {
			return runPlan{}, err
		}
		deliveries = append(collectDeliveries(state), failed...)
	}
	if len(deliveries) > 0 || isEnding || state.wantsInputs() {
		// A run whose values were deleted can still be ended.
		if err := r.hydrateOnce(ctx, state); err != nil && (!isEnding || !isValueLost(err)) {
			return runPlan{}, err
		}
	}
	return decideStep(ctx, state, deliveries)
}

// commit stores the values that the new status refers to, then writes the
// status, and returns the run as it stands. A status that says the same as the
// old one is not written.
func (r *WorkflowRunReconciler) commit(ctx context.Context, state *runState, plan runPlan) (*api.WorkflowRun, error) {
	if err := r.foresee(ctx, state, plan); err != nil {
		return nil, err
	}
	status, pending, err := nextRunStatus(state, plan)
	if err != nil {
		return nil, err
	}
	if apiequality.Semantic.DeepEqual(&state.run.Status, status) {
		return state.run, nil
	}
	for _, data := range pending {
		if _, err := r.store().contents().Put(ctx, state.run, data); err != nil {
			return nil, err
		}
	}
	setReceipts(status, state.children)
	committed := state.run.DeepCopy()
	committed.Status = *status
	r.commits.begin(committed.UID, status)
	err = r.Client.Status().Update(ctx, committed)
	r.commits.end(committed, err)
	if err != nil {
		r.Metrics.failed(err)
		return nil, fmt.Errorf("update run status: %w", err)
	}
	r.report(ctx, state.run, committed, plan.closed)
	return committed, nil
}

// nextRunMoment is the time until the run must be looked at although nothing
// changed, zero if it need not be.
func nextRunMoment(state *runState, run *api.WorkflowRun) time.Duration {
	moments := runMoments{now: state.now}
	if end := runExpiry(run); !end.IsZero() {
		moments.add(end)
	}
	if isRunFinished(run) || run.Status.Instance == nil {
		return moments.until()
	}
	moments.add(activeDeadline(run))
	for _, branch := range run.Status.Instance.ActiveBranches {
		moments.add(runMoment(branch.NotBefore))
		moments.add(runMoment(branch.Deadline))
		if branch.Child == nil {
			continue
		}
		if pod := state.children.pods[branch.Child.Name]; pod != nil {
			moments.add(attemptMoment(pod, state.startTimeout))
		}
	}
	return moments.until()
}

// runExpiry is when a finished run is deleted, zero if it is kept.
func runExpiry(run *api.WorkflowRun) time.Time {
	if run.Status.FinishedAt == nil || run.Spec.TTLSecondsAfterFinished == nil {
		return time.Time{}
	}
	return run.Status.FinishedAt.Add(time.Duration(*run.Spec.TTLSecondsAfterFinished) * time.Second)
}

func isRunExpired(run *api.WorkflowRun, now time.Time) bool {
	end := runExpiry(run)
	return !end.IsZero() && !now.Before(end)
}

// runLiveClient writes as a client does, but reads from the API server.
type runLiveClient struct {
	client.Client
	live client.Reader
}

// Get reads one object from the API server.
func (c runLiveClient) Get(ctx context.Context, key types.NamespacedName, obj client.Object, opts ...client.GetOption) error {
	return c.live.Get(ctx, key, obj, opts...)
}

// List reads objects from the API server.
func (c runLiveClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.live.List(ctx, list, opts...)
}

// store keeps what runs have in objects of their own.
func (r *WorkflowRunReconciler) store() runStore {
	return runStore{client: r.Client, live: r.Live}
}

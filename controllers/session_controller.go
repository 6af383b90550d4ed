package controllers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/template"
)

// SessionOptions are the operator's settings for agent sessions.
type SessionOptions struct {
	// OperatorImage has axiom-runner and axiom-mcp, and runs the scripted agent.
	OperatorImage string
	// DefaultRuntime fills what neither composition nor template set.
	DefaultRuntime api.RuntimeSpec
	// Gateway is how pods reach the operator.
	Gateway GatewayOptions
	// PullPolicy of all containers.
	PullPolicy corev1.PullPolicy
	// MaxPerNamespace sessions have a pod at a time.
	MaxPerNamespace int
	// StartTimeout is what a pod has to bring its agent up.
	StartTimeout time.Duration
	// Random gives tokens.
	Random io.Reader
}

// GatewayOptions say how pods reach the gateway.
type GatewayOptions struct {
	// URL of the gateway with its base path, such as
	// https://axiom-gateway.axiom-system.svc/api/v1.
	URL string
	// CA returns the certificates that pods shall trust for it, PEM.
	CA func() []byte
	// Namespace and PodLabels find the gateway's pods for network policies.
	Namespace string
	PodLabels map[string]string
	// Port that those pods listen on.
	Port int32
}

// AgentSessionReconciler gives a session with work a pod and a token, notices
// when the pod is lost, and takes both away when the session is idle or stopped.
type AgentSessionReconciler struct {
	// Client reads from the cache.
	Client client.Client
	// Direct reads and writes the API server without a cache; Secrets are only
	// ever read through it, by name.
	Direct client.Client
	// Clock measures start and idle times.
	Clock clock.PassiveClock
	// Options are the operator's settings.
	Options SessionOptions

	// since is when this operator began to listen to runners.
	since time.Time
}

// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;create
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;create;update
// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=sessiontemplates,verbs=get;list;watch
// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=agentsessions/finalizers,verbs=update

// unseenRetry is when to look again for a pod that the cache does not show.
const unseenRetry = 5 * time.Second

// sessionState is what a session's next move depends on.
type sessionState struct {
	session *api.AgentSession
	// pod of the live attempt, nil when it does not exist.
	pod *corev1.Pod
	// isUnseen: the cache does not show that pod. One that goes before the cache
	// saw it goes without a word.
	isUnseen bool
	// leaving is the pod of an attempt that is over, while it still exists; only of
	// sessions of role Prompt, whose pods share a home.
	leaving *corev1.Pod
	// turn that the prompt is named for, nil when it is gone or there is no prompt
	// outstanding.
	turn *api.Turn
	// holder is the turn that a free-standing session is claimed by, nil when it is
	// gone or there is none.
	holder *api.Turn
	// template of the session.
	template api.SessionTemplateSpec
	// impossible tells why no pod can be made, empty when one can.
	impossible string
	// modelKeys are the variables that the model's Secret gives; only known when a
	// pod is made.
	modelKeys []string
	// withinLimit is false while the session waits because others of the namespace
	// fill all slots.
	withinLimit bool
	// since is when the operator began to listen: what a runner may have said
	// before is not held against it.
	since time.Time
	now   time.Time
}

// SetupWithManager registers the controller.
func (r *AgentSessionReconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.since = r.Clock.Now()
	return ctrl.NewControllerManagedBy(mgr).
		For(&api.AgentSession{}).
		Owns(&corev1.Pod{}).
		Watches(&api.AgentSession{}, handler.EnqueueRequestsFromMapFunc(r.waitingBeside)).
		Watches(&api.Turn{}, handler.EnqueueRequestsFromMapFunc(sessionOfTurn)).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

// Reconcile moves a session by one step: what a step needs to exist is
// committed to status before the step acts on it.
func (r *AgentSessionReconciler) Reconcile(ctx context.Context, session *api.AgentSession) (ctrl.Result, error) {
	if !session.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	before := session.DeepCopy()

	state, err := r.gather(ctx, session)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("gather session state: %w", err)
	}
	move, again := decideSession(state, r.Options)
	applyErr := r.apply(ctx, state, move)
	if takesPrompts(session) && session.Status.TokenHash == "" && state.leaving == nil {
		state.leaving = state.pod // the attempt ended just now
	}
	setSessionStatus(state)

	if err := errors.Join(applyErr, r.report(ctx, before, session)); err != nil {
		return ctrl.Result{}, err
	}
	if state.isUnseen && (again == 0 || again > unseenRetry) {
		again = unseenRetry
	}
	return ctrl.Result{RequeueAfter: again}, nil
}

func (r *AgentSessionReconciler) gather(ctx context.Context, session *api.AgentSession) (sessionState, error) {
	state := sessionState{session: session, since: r.since, now: r.Clock.Now()}
	var err error
	state.template, err = ResolveTemplate(ctx, r.Client, session.Namespace, session.Spec.TemplateRef.Name)
	if apierrors.IsNotFound(err) {
		state.impossible, err = fmt.Sprintf("session template %q does not exist", session.Spec.TemplateRef.Name), nil
	}
	if err != nil {
		return state, err
	}
	if err := r.gatherPod(ctx, &state); err != nil {
		return state, err
	}
	if err := r.gatherTurns(ctx, &state); err != nil {
		return state, err
	}
	state.withinLimit, err = r.hasSlot(ctx, session)
	return state, err
}

func (r *AgentSessionReconciler) gatherPod(ctx context.Context, state *sessionState) error {
	session := state.session
	var err error
	switch {
	case session.Status.TokenHash != "":
		state.pod, state.isUnseen, err = r.readPod(ctx, session)
	case takesPrompts(session) && session.Status.Attempt > 0:
		state.leaving, state.isUnseen, err = r.readPod(ctx, session)
	}
	return err
}

func (r *AgentSessionReconciler) gatherTurns(ctx context.Context, state *sessionState) error {
	session := state.session
	var err error
	if hasWork(session) {
		if state.turn, err = r.promptTurn(ctx, session); err != nil {
			return err
		}
	}
	if claimant := session.Status.CurrentTurn; claimant != "" && isFree(session) {
		state.holder, err = readTurn(ctx, r.Client, session.Namespace, claimant)
		if err == nil && !holds(state.holder, session) {
			// The cache may not know yet the turn of that name which has claimed it.
			state.holder, err = readTurn(ctx, r.Direct, session.Namespace, claimant)
		}
	}
	return err
}

// promptTurn reads the turn of the session's prompt. One that the cache misses
// is looked for live: its absence ends the prompt.
func (r *AgentSessionReconciler) promptTurn(ctx context.Context, session *api.AgentSession) (*api.Turn, error) {
	turn, err := readTurn(ctx, r.Client, session.Namespace, session.Status.Prompt.ID)
	if err != nil || turn != nil && isPromptOf(session.Status.Prompt, turn) {
		return turn, err
	}
	return readTurn(ctx, r.Direct, session.Namespace, session.Status.Prompt.ID)
}

// readPod reads the live attempt's pod; one that the cache misses is looked for
// live, since its absence means that it was lost. It is nil when it is gone.
func (r *AgentSessionReconciler) readPod(ctx context.Context, session *api.AgentSession) (pod *corev1.Pod, isUnseen bool, err error) {
	name := types.NamespacedName{Namespace: session.Namespace, Name: attemptName(session)}
	pod = &corev1.Pod{}
	err = r.Client.Get(ctx, name, pod)
	if isUnseen = apierrors.IsNotFound(err); isUnseen {
		err = r.Direct.Get(ctx, name, pod)
	}
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read agent pod: %w", err)
	}
	if !isOwnedBy(pod, session.UID) {
		return nil, false, nil // a stranger of that name is in the way, which its creation will tell
	}
	return pod, isUnseen, nil
}

// hasSlot tells whether a session that wants a pod may have one: those that
// have one and those that have waited longer come first. It reads live, since
// the slot that the cache shows as free may have been given away just now.
func (r *AgentSessionReconciler) hasSlot(ctx context.Context, session *api.AgentSession) (bool, error) {
	if !wantsPod(session) || session.Status.TokenHash != "" || session.Spec.RunRef != nil {
		return true, nil // sessions of runs are not counted
	}
	list := &api.AgentSessionList{}
	if err := r.Direct.List(ctx, list, client.InNamespace(session.Namespace)); err != nil {
		return false, fmt.Errorf("list sessions: %w", err)
	}
	used := 0
	for i := range list.Items {
		if isBefore(&list.Items[i], session) {
			used++
		}
	}
	return used < r.Options.MaxPerNamespace, nil
}

// isBefore tells whether another session takes a slot that this one waits for.
func isBefore(other, session *api.AgentSession) bool {
	if other.UID == session.UID || other.Spec.RunRef != nil {
		return false
	}
	isWaiting := wantsPod(other) && other.DeletionTimestamp.IsZero()
	return other.Status.TokenHash != "" || isWaiting && isOlder(other, session)
}

func (r *AgentSessionReconciler) report(ctx context.Context, before, session *api.AgentSession) error {
	if equalStatus(before.Status, session.Status) {
		return nil
	}
	if err := r.Client.Status().Update(ctx, session); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("update session status: %w", err)
	}
	return nil
}

// sessionOfTurn maps a turn to the session that may have its prompt: a prompt
// whose turn is over or gone is taken back.
func sessionOfTurn(_ context.Context, object client.Object) []reconcile.Request {
	turn, isTurn := object.(*api.Turn)
	if isTurn && turn.Spec.SessionRef != nil {
		return []reconcile.Request{requestFor(turn.Namespace, turn.Spec.SessionRef.Name)}
	}
	if !isTurn || turn.Spec.CompositionRef == nil {
		return nil
	}
	return []reconcile.Request{requestFor(turn.Namespace, sessionName(turn.Spec.CompositionRef.Name))}
}

// waitingBeside maps a session to those of its namespace that wait for a slot.
func (r *AgentSessionReconciler) waitingBeside(ctx context.Context, object client.Object) []reconcile.Request {
	list := &api.AgentSessionList{}
	if err := r.Client.List(ctx, list, client.InNamespace(object.GetNamespace())); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Waiting sessions could not be listed", "namespace", object.GetNamespace())
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		other := &list.Items[i]
		if other.UID != object.GetUID() && other.Status.TokenHash == "" && wantsPod(other) {
			requests = append(requests, requestFor(other.Namespace, other.Name))
		}
	}
	return requests
}

// ResolveTemplate returns a built-in template or a SessionTemplate of the
// namespace, its system prompt rendered.
func ResolveTemplate(ctx context.Context, reader client.Reader, namespace, name string) (api.SessionTemplateSpec, error) {
	if spec, isBuiltIn := template.BuiltIn(name); isBuiltIn {
		return spec, nil
	}
	object := &api.SessionTemplate{}
	if err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, object); err != nil {
		return api.SessionTemplateSpec{}, fmt.Errorf("read session template %s: %w", name, err)
	}
	spec := object.Spec
	spec.SystemPrompt = template.Render(spec.SystemPrompt)
	return spec, nil
}

func isOwnedBy(object client.Object, uid types.UID) bool {
	for _, reference := range object.GetOwnerReferences() {
		if reference.UID == uid {
			return true
		}
	}
	return false
}

func isOlder(a, b *api.AgentSession) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.Name < b.Name
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}

package controllers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/action"
	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/item"
	"github.com/apitomy/axiom-operator/internal/token"
)

// A childError is a failure of the activation that wanted the child; no
// repetition mends it.
type childError struct {
	failure engine.Failure
}

func (e *childError) Error() string {
	return e.failure.Code + ": " + e.failure.Message
}

func failChild(phase engine.Phase, code, format string, args ...any) error {
	return &childError{failure: engine.Failure{Phase: phase, Code: code, Message: fmt.Sprintf(format, args...)}}
}

// act tells events what became of them, and creates the children that the
// committed status names and that are not there. What keeps a child from ever being created comes back as deliveries.
func (r *WorkflowRunReconciler) act(ctx context.Context, state *runState, committed *api.WorkflowRun) ([]runDelivery, error) {
	if err := r.tellEvents(ctx, state, committed); err != nil {
		return nil, err
	}
	due := dueChildren(committed, state)
	if len(due) == 0 {
		return nil, nil
	}
	// A child cannot be taken back, so the run's say is asked for once more.
	live, err := r.asStored(ctx, state, committed)
	if err != nil || live == nil {
		return nil, err
	}
	var failed []runDelivery
	var errs []error
	for _, activation := range due {
		branch := runOpenBranch(live, activation)
		if branch == nil {
			continue
		}
		err := r.createChild(ctx, state, live, branch)
		var impossible *childError
		switch {
		case errors.As(err, &impossible):
			failed = append(failed, runDelivery{
				at:        state.now,
				address:   engine.Address{Activation: branch.Activation, Attempt: int(branch.Attempt)},
				outcome:   outcomeFail,
				failure:   impossible.failure,
				immediate: true,
			})
		case err != nil:
			r.tellRefusal(live, branch, err)
			errs = append(errs, fmt.Errorf("start %s: %w", branch.Activation, err))
		default:
			state.noteMade(branch.Child.Name)
			r.Metrics.created(branch.Child.Kind)
		}
	}
	return failed, errors.Join(errs...)
}

// tellRefusal tells people what quotas and policies keep from being made; the run
// tries again until they let it.
func (r *WorkflowRunReconciler) tellRefusal(run *api.WorkflowRun, branch *api.ActiveBranch, err error) {
	if r.Recorder == nil || !apierrors.IsForbidden(err) {
		return
	}
	r.Recorder.Eventf(run, nil, corev1.EventTypeWarning, "ChildRefused", "Create", "%s", truncate(branch.Activation+": "+err.Error(), maxRunNote))
}

// dueChildren are the open activations whose child should exist by now and was
// not seen.
func dueChildren(run *api.WorkflowRun, state *runState) []string {
	if run.Status.Instance == nil || isRunFinished(run) || state.definition == nil {
		return nil
	}
	var due []string
	for _, branch := range run.Status.Instance.ActiveBranches {
		if branch.Child == nil || state.made[branch.Child.Name] || !state.children.wants(branch.Child) {
			continue
		}
		if state.now.Before(runMoment(branch.NotBefore)) {
			continue
		}
		due = append(due, branch.Activation)
	}
	return due
}

// runMoment reads a moment of a status; an absent one is zero.
func runMoment(text string) time.Time {
	moment, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return moment
}

// live reads the run from the API server, nil if it is gone, on its way out or
// another one of the same name.
func (r *WorkflowRunReconciler) live(ctx context.Context, run *api.WorkflowRun) (*api.WorkflowRun, error) {
	live := &api.WorkflowRun{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(run), live)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // a run that is gone is an ordinary answer
	}
	if err != nil {
		return nil, fmt.Errorf("read run: %w", err)
	}
	if live.UID != run.UID || !live.DeletionTimestamp.IsZero() {
		return nil, nil //nolint:nilnil // as above
	}
	return live, nil
}

// asStored is the run as the API server has it. A commit of this pass was its
// answer to that: it takes none that was computed from an older version, and
// says what it stored.
func (r *WorkflowRunReconciler) asStored(ctx context.Context, state *runState, committed *api.WorkflowRun) (*api.WorkflowRun, error) {
	if committed.ResourceVersion != state.run.ResourceVersion && committed.DeletionTimestamp.IsZero() {
		return committed, nil
	}
	return r.live(ctx, committed)
}

// runOpenBranch is the activation in the run, nil if it has closed.
func runOpenBranch(run *api.WorkflowRun, activation string) *api.ActiveBranch {
	if isRunFinished(run) || run.Status.Instance == nil {
		return nil
	}
	for i := range run.Status.Instance.ActiveBranches {
		branch := &run.Status.Instance.ActiveBranches[i]
		if branch.Activation == activation && branch.Child != nil {
			return branch
		}
	}
	return nil
}

func (r *WorkflowRunReconciler) createChild(ctx context.Context, state *runState, run *api.WorkflowRun, branch *api.ActiveBranch) error {
	if state.now.Before(runMoment(branch.NotBefore)) {
		return nil // the live run is at a later attempt
	}
	input, err := r.store().loadInput(ctx, run, branch)
	if err != nil {
		return err
	}
	switch branch.Child.Kind {
	case childHumanTask:
		return r.createTask(ctx, state, run, branch, input)
	case childAgentSession:
		return r.createAgent(ctx, state, run, branch, input)
	}
	return r.createAttempt(ctx, state, run, branch, input)
}

func (r *WorkflowRunReconciler) createTask(ctx context.Context, state *runState, run *api.WorkflowRun, branch *api.ActiveBranch, input engine.Values) error {
	node, _ := state.definition.engine.Workflow().Node(branch.Node)
	task, err := runTask(run, branch, node, input)
	if err != nil {
		return failChild(engine.PhaseExecution, codeTaskFailed, "the task cannot be made: %v", err)
	}
	_, err = r.store().create(ctx, run, task, failChild(engine.PhaseExecution, codeTaskFailed, "the API server refused the task"))
	return err
}

// refused adds to a refusal which fields were at fault, without their values.
func refused(refusal, err error) error {
	var impossible *childError
	var status apierrors.APIStatus
	if !errors.As(refusal, &impossible) || !errors.As(err, &status) || status.Status().Details == nil {
		return refusal
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		fields = append(fields, cause.Field)
	}
	if len(fields) == 0 {
		return refusal
	}
	failure := impossible.failure
	failure.Message += ": " + strings.Join(taskNames(fields), ", ")
	return &childError{failure: failure}
}

// createAttempt makes all that an attempt needs, its pod last. What the
// attempt is given comes first: it marks that a Secret may be there.
func (r *WorkflowRunReconciler) createAttempt(ctx context.Context, state *runState, run *api.WorkflowRun, branch *api.ActiveBranch, input engine.Values) error {
	node, _ := state.definition.engine.Workflow().Node(branch.Node)
	actionType, err := r.lookUpAction(ctx, state, run.Namespace, runActionType(node.Config()))
	if err != nil {
		return err
	}
	if !actionType.RunsScript() {
		return modeChanged(actionType)
	}
	if err := r.checkAttempt(ctx, run, actionType, input); err != nil {
		return err
	}
	given, err := attemptInputs(run, branch, actionType, input)
	if err != nil {
		return err
	}
	refusal := failChild(engine.PhaseExecutorLookup, codeInvalidActionType, "the API server refused the action's pod")
	if err := r.closeOff(ctx, run, refusal); err != nil {
		return err
	}
	if _, err := r.store().create(ctx, run, given, refusal); err != nil {
		return err
	}
	hash, err := r.createToken(ctx, run, branch, refusal)
	if err != nil {
		return err
	}
	pod := attemptPod(run, branch, actionType, r.Options)
	pod.Annotations[api.AnnotationTokenHash] = hash
	_, err = r.store().create(ctx, run, pod, refusal)
	return err
}

// closeOff makes sure of the run's network policy. Only the first pod of a run
// finds it missing, so it is looked for before it is made.
func (r *WorkflowRunReconciler) closeOff(ctx context.Context, run *api.WorkflowRun, refusal error) error {
	policy := attemptPolicy(run, r.Options.Gateway)
	there := &metav1.PartialObjectMetadata{}
	there.SetGroupVersionKind(networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"))
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(policy), there)
	if err == nil && metav1.IsControlledBy(there, run) {
		return nil
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("look at network policy: %w", err)
	}
	_, err = r.store().create(ctx, run, policy, refusal)
	return err
}

// createToken makes the attempt's Secret and returns the hash of the token in
// it, which may be one that an earlier life made.
func (r *WorkflowRunReconciler) createToken(ctx context.Context, run *api.WorkflowRun, branch *api.ActiveBranch, refusal error) (string, error) {
	value, err := token.New(r.Options.Random)
	if err != nil {
		return "", fmt.Errorf("make attempt token: %w", err)
	}
	stored, err := r.store().create(ctx, run, attemptSecret(run, branch, value, r.Options.Gateway.CA()), refusal)
	if err != nil {
		return "", err
	}
	secret, _ := stored.(*corev1.Secret)
	return token.Hash(string(secret.Data[secretKeyToken])), nil
}

// lookUpAction finds the action type that an attempt executes.
func (r *WorkflowRunReconciler) lookUpAction(ctx context.Context, state *runState, namespace, name string) (action.Type, error) {
	spec, err := r.findAction(ctx, state, namespace, name)
	if err != nil {
		return action.Type{}, err
	}
	if spec == nil {
		return action.Type{}, failChild(engine.PhaseExecutorLookup, codeUnknownActionType, "there is no action type %q", name)
	}
	return r.usableAction(name, *spec)
}

// findAction finds an action type in the run's snapshot, else among the library
// objects of its namespace; nil if there is none.
func (r *WorkflowRunReconciler) findAction(ctx context.Context, state *runState, namespace, name string) (*api.ActionTypeSpec, error) {
	for i := range state.definition.ActionTypes {
		if own := &state.definition.ActionTypes[i]; own.Name == name {
			return &own.ActionTypeSpec, nil
		}
	}
	library := &api.ActionType{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, library)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // an unknown action type is an ordinary answer
	}
	if err != nil {
		return nil, fmt.Errorf("read action type %s: %w", name, err)
	}
	return &library.Spec, nil
}

func (r *WorkflowRunReconciler) usableAction(name string, spec api.ActionTypeSpec) (action.Type, error) {
	t, err := action.ReadType(name, spec)
	if err != nil {
		return t, failChild(engine.PhaseExecutorLookup, codeInvalidActionType, "action type %q cannot be read", name)
	}
	for _, p := range t.Problems(action.Surroundings{CheckPrompt: item.PromptCheck(r.Expressions)}) {
		if p.IsError() {
			return t, failChild(engine.PhaseExecutorLookup, codeInvalidActionType, "action type %q: %s at %s: %s", name, p.Code, p.Path, p.Message)
		}
	}
	return t, nil
}

// checkAttempt compares the inputs with the contract and looks for the keys of
// Secrets that the script wants. It passes no value on.
func (r *WorkflowRunReconciler) checkAttempt(ctx context.Context, run *api.WorkflowRun, t action.Type, input engine.Values) error {
	if failure := contractFailure(engine.PhaseInputResolution, codeInputContract, action.CheckContract(t.Inputs, input)); failure != nil {
		return &childError{failure: *failure}
	}
	for _, v := range t.Env {
		if v.Secret == nil {
			continue
		}
		if err := r.checkSecret(ctx, run.Namespace, *v.Secret); err != nil {
			return err
		}
	}
	return nil
}

// checkSecret refuses a Secret whose owner did not say, by the label, that pods
// may have it. Whether there is one without the label is nobody's business.
func (r *WorkflowRunReconciler) checkSecret(ctx context.Context, namespace string, ref action.KeyRef) error {
	secret := &corev1.Secret{}
	if isObjectName(ref.Name) {
		err := client.IgnoreNotFound(r.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, secret))
		if err != nil {
			return fmt.Errorf("look at secret %s: %w", ref.Name, err)
		}
	}
	if !api.IsCredential(secret) {
		return failChild(engine.PhaseExecutorLookup, codeSecretUnusable,
			"secret %q does not exist or lacks the label %s=true", ref.Name, api.LabelCredential)
	}
	if _, has := secret.Data[ref.Key]; !has {
		return failChild(engine.PhaseExecutorLookup, codeSecretUnusable, "secret %q has no key %q", ref.Name, ref.Key)
	}
	return nil
}

// asChildError tells whether an error is one that no repetition mends.
func asChildError(err error) (*childError, bool) {
	var impossible *childError
	return impossible, errors.As(err, &impossible)
}

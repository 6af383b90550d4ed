package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/token"
)

const (
	secretKeyToken = "token"
	secretKeyCA    = "ca.crt"
)

// impossibleError is a failure that no repetition mends.
type impossibleError struct{ reason string }

func (e *impossibleError) Error() string { return e.reason }

// apply carries out a move. One that cannot succeed ends the attempt, and the
// next pass gives up.
func (r *AgentSessionReconciler) apply(ctx context.Context, state sessionState, move sessionMove) error {
	switch move {
	case moveNone:
		return nil
	case moveAttempt:
		return r.orGiveUp(ctx, state, r.beginAttempt(ctx, state))
	case moveCreatePod:
		return r.orGiveUp(ctx, state, r.createPod(ctx, state))
	case moveEnd:
		return r.endAttempt(ctx, state)
	case moveGiveUp:
		status := &state.session.Status
		status.FailedStarts = maxFailedStarts
		if hasWork(state.session) {
			concludePrompt(status.Prompt, api.PromptResult{Outcome: api.OutcomeFailed, Detail: startFailurePrefix + status.LastFailure})
		}
	}
	return nil
}

func (r *AgentSessionReconciler) orGiveUp(ctx context.Context, state sessionState, err error) error {
	impossible := (*impossibleError)(nil)
	if !errors.As(err, &impossible) {
		return err
	}
	if err := r.endAttempt(ctx, state); err != nil {
		return err
	}
	status := &state.session.Status
	status.LastFailure, status.FailedStarts = truncate(impossible.reason, maxDetail), maxFailedStarts
	return nil
}

// unlessRefused makes a failure final if the API server said no to the object
// itself, as quotas and policies do.
func unlessRefused(what string, err error) error {
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
		return &impossibleError{reason: what + ": " + err.Error()}
	}
	return wrap(what, err)
}

// beginAttempt makes the next attempt's Secret and names it in status; the pod
// comes with the next pass, once that status is stored. A Secret that an
// earlier life made is taken over, so the hash is always that of what is stored.
func (r *AgentSessionReconciler) beginAttempt(ctx context.Context, state sessionState) error {
	session := state.session
	attempt := session.Status.Attempt + 1
	secret, err := r.ensureSecret(ctx, session, attempt)
	if err != nil {
		return err
	}
	hasPast, err := r.openJournal(ctx, state)
	if err != nil {
		return err
	}
	status := &session.Status
	if !takesPrompts(session) { // of those, whoever lets go of their conversation knows
		status.RecapPending = hasPast
	}
	status.Attempt, status.TokenHash = attempt, token.Hash(string(secret.Data[secretKeyToken]))
	status.PodUID, status.StartedAt, status.LastActivityAt, status.LastHeartbeatAt = "", timeOf(state.now), nil, nil
	return nil
}

func (r *AgentSessionReconciler) ensureSecret(ctx context.Context, session *api.AgentSession, attempt int32) (*corev1.Secret, error) {
	value, err := token.New(r.Options.Random)
	if err != nil {
		return nil, fmt.Errorf("make session token: %w", err)
	}
	secret := secretFor(session, attempt, value, r.Options.Gateway.CA())
	err = r.Direct.Create(ctx, secret)
	if err == nil {
		return secret, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return nil, unlessRefused("create session secret", err)
	}
	existing := &corev1.Secret{}
	if err := r.Direct.Get(ctx, client.ObjectKeyFromObject(secret), existing); err != nil {
		return nil, fmt.Errorf("read session secret: %w", err)
	}
	if !isOwnedBy(existing, session.UID) {
		return nil, foreign("Secret", existing.Name)
	}
	return existing, nil
}

func foreign(kind, name string) error {
	return &impossibleError{reason: fmt.Sprintf("a %s %s exists and belongs to somebody else", kind, name)}
}

// checkSecrets refuses Secrets that are not meant for pods: the label is their
// owner's consent. Only metadata is read.
func (r *AgentSessionReconciler) checkSecrets(ctx context.Context, namespace string, names []string) error {
	for _, name := range names {
		meta := &metav1.PartialObjectMetadata{}
		meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		err := r.Direct.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, meta)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("look at secret %s: %w", name, err)
		}
		if err != nil || !api.IsCredential(meta) {
			return &impossibleError{reason: fmt.Sprintf("secret %q does not exist or lacks the label %s=true", name, api.LabelCredential)}
		}
	}
	return nil
}

// modelKeys are the names that the model's Secret gives to variables. Their
// values go unread, and so does a Secret that is not meant for pods.
func (r *AgentSessionReconciler) modelKeys(ctx context.Context, state sessionState) ([]string, error) {
	ref := modelSecret(state)
	if ref == nil {
		return nil, nil
	}
	secret := &corev1.Secret{}
	err := r.Direct.Get(ctx, types.NamespacedName{Namespace: state.session.Namespace, Name: ref.Name}, secret)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("look at secret %s: %w", ref.Name, err)
	}
	if !api.IsCredential(secret) {
		return nil, nil // as checkSecrets tells, also of one that does not exist
	}
	return slices.Sorted(maps.Keys(secret.Data)), nil
}

// createPod makes the network policy before the pod that it guards.
func (r *AgentSessionReconciler) createPod(ctx context.Context, state sessionState) error {
	fresh, err := isFresh(ctx, r.Direct, state.session)
	if err != nil || !fresh {
		return err
	}
	if state.modelKeys, err = r.modelKeys(ctx, state); err != nil {
		return err
	}
	pod, err := agentPod(state, r.Options)
	if err != nil {
		return err
	}
	if err := r.checkSecrets(ctx, pod.Namespace, credentialsOf(pod)); err != nil {
		return err
	}
	if err := r.ensurePolicy(ctx, networkPolicyFor(state, r.Options)); err != nil {
		return err
	}
	if err := r.ensureHome(ctx, state); err != nil {
		return err
	}
	err = r.Direct.Create(ctx, pod)
	if apierrors.IsAlreadyExists(err) {
		return r.takePod(ctx, state.session, pod.Name)
	}
	if err != nil {
		return unlessRefused("create agent pod", err)
	}
	state.session.Status.PodUID = string(pod.UID)
	return nil
}

// takePod goes on with the pod that an earlier life created.
func (r *AgentSessionReconciler) takePod(ctx context.Context, session *api.AgentSession, name string) error {
	pod := &corev1.Pod{}
	if err := r.Direct.Get(ctx, types.NamespacedName{Namespace: session.Namespace, Name: name}, pod); err != nil {
		return fmt.Errorf("read agent pod: %w", err)
	}
	if !isOwnedBy(pod, session.UID) {
		return foreign("Pod", name)
	}
	session.Status.PodUID = string(pod.UID)
	return nil
}

func (r *AgentSessionReconciler) ensurePolicy(ctx context.Context, policy *networkingv1.NetworkPolicy) error {
	err := r.Direct.Create(ctx, policy)
	if err == nil || !apierrors.IsAlreadyExists(err) {
		return unlessRefused("create network policy", err)
	}
	existing := &networkingv1.NetworkPolicy{}
	if err := r.Direct.Get(ctx, client.ObjectKeyFromObject(policy), existing); err != nil {
		return fmt.Errorf("read network policy: %w", err)
	}
	if !isOwnedBy(existing, policy.OwnerReferences[0].UID) {
		return foreign("NetworkPolicy", existing.Name)
	}
	if equalStatus(existing.Spec, policy.Spec) {
		return nil
	}
	existing.Spec = policy.Spec
	return unlessRefused("update network policy", r.Direct.Update(ctx, existing))
}

// endAttempt takes the pod away, then its token, and only then forgets the
// attempt: whoever repeats it finds the same.
func (r *AgentSessionReconciler) endAttempt(ctx context.Context, state sessionState) error {
	session := state.session
	status := &session.Status
	if status.TokenHash == "" {
		return nil
	}
	fresh, err := isFresh(ctx, r.Direct, session)
	if err != nil || !fresh {
		return err
	}
	if err := r.deletePod(ctx, state.pod); err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: attemptName(session), Namespace: session.Namespace}}
	if err := client.IgnoreNotFound(r.Direct.Delete(ctx, secret)); err != nil {
		return fmt.Errorf("delete session secret: %w", err)
	}
	status.FailedStarts = failedStarts(session)
	status.TokenHash, status.PodUID, status.StartedAt = "", "", nil
	if prompt := status.Prompt; prompt != nil && prompt.State == api.PromptDelivered {
		prompt.State = api.PromptLost
	}
	return nil
}

func (r *AgentSessionReconciler) deletePod(ctx context.Context, pod *corev1.Pod) error {
	if pod == nil || !pod.DeletionTimestamp.IsZero() {
		return nil
	}
	err := r.Direct.Delete(ctx, pod, client.Preconditions{UID: &pod.UID})
	return wrap("delete agent pod", client.IgnoreNotFound(err))
}

func secretFor(session *api.AgentSession, attempt int32, value string, ca []byte) *corev1.Secret {
	immutable := true
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name:            fmt.Sprintf("%s-%d", session.Name, attempt),
			Namespace:       session.Namespace,
			Labels:          map[string]string{api.LabelSession: session.Name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(session, api.GroupVersion.WithKind("AgentSession"))},
		},
		Immutable: &immutable,
		Data:      map[string][]byte{secretKeyToken: []byte(value), secretKeyCA: ca},
	}
}

// attemptName is that of the live attempt's pod and Secret.
func attemptName(session *api.AgentSession) string {
	return fmt.Sprintf("%s-%d", session.Name, session.Status.Attempt)
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

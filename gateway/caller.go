package gateway

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/token"
)

const (
	// tokenHeader carries the caller's token.
	tokenHeader = "X-Axiom-Session-Token"

	// sessionSuffix makes the name of a composition's session.
	sessionSuffix = "-agent"

	// fieldTokenHash is the field by which the API server selects sessions.
	fieldTokenHash = "status.tokenHash"
)

// caller is who sent a request: the live pod of a session, or the pod of an
// action attempt.
type caller struct {
	// key names the caller among all callers.
	key string
	// session as it was when the caller was identified; nil for an attempt.
	session *api.AgentSession
	// pod of an attempt; nil for a session.
	pod *corev1.Pod
}

type callerKey struct{}

// callerOf returns the caller that the guard identified.
func callerOf(ctx context.Context) caller {
	return ctx.Value(callerKey{}).(caller)
}

// compositionCaller is the agent of the composition named in the path. Whoever
// else calls learns nothing, not even whether there is such a composition.
func (s *Server) compositionCaller(r *http.Request) (caller, error) {
	name := r.PathValue("name")
	session := &api.AgentSession{}
	key := types.NamespacedName{Namespace: r.PathValue("namespace"), Name: name + sessionSuffix}
	if _, err := s.find(r.Context(), key, session); err != nil {
		return caller{}, fmt.Errorf("read session of composition: %w", err)
	}
	ref := session.Spec.CompositionRef
	if ref == nil || ref.Name != name || !opens(r, session.Status.TokenHash) {
		return caller{}, unauthorized()
	}
	return callerIn(session), nil
}

// sessionCaller is the runner of the session named in the path.
func (s *Server) sessionCaller(r *http.Request) (caller, error) {
	session := &api.AgentSession{}
	key := types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	found, err := s.find(r.Context(), key, session)
	if err != nil {
		return caller{}, fmt.Errorf("read session: %w", err)
	}
	if !found {
		return caller{}, notFound("Session %s not found", key)
	}
	if !opens(r, session.Status.TokenHash) {
		return caller{}, unauthorized()
	}
	return callerIn(session), nil
}

// anySessionCaller is the agent of whatever session the token belongs to.
func (s *Server) anySessionCaller(r *http.Request) (caller, error) {
	presented := r.Header.Get(tokenHeader)
	if presented == "" {
		return caller{}, unauthorized()
	}
	sessions := &api.AgentSessionList{}
	err := s.live.List(r.Context(), sessions, client.MatchingFields{fieldTokenHash: token.Hash(presented)})
	if err != nil {
		return caller{}, fmt.Errorf("find session of token: %w", err)
	}
	for i := range sessions.Items {
		if session := &sessions.Items[i]; opens(r, session.Status.TokenHash) {
			return callerIn(session), nil
		}
	}
	return caller{}, unauthorized()
}

// attemptCaller is the script in the pod named in the path.
func (s *Server) attemptCaller(r *http.Request) (caller, error) {
	pod := &corev1.Pod{}
	key := types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("pod")}
	if _, err := s.find(r.Context(), key, pod); err != nil {
		return caller{}, fmt.Errorf("read pod of attempt: %w", err)
	}
	isAttempt := pod.Labels[api.LabelComponent] == api.ComponentAction
	if !isAttempt || !opens(r, pod.Annotations[api.AnnotationTokenHash]) {
		return caller{}, unauthorized()
	}
	return caller{key: "attempt/" + key.String(), pod: pod}, nil
}

func callerIn(session *api.AgentSession) caller {
	return caller{key: "session/" + client.ObjectKeyFromObject(session).String(), session: session}
}

// opens tells whether the request carries the token with the hash, in the same
// time whether or not there is one.
func opens(r *http.Request, hash string) bool {
	presented := r.Header.Get(tokenHeader)
	if hash == "" {
		// The hash of no token at all: nothing matches it.
		token.Matches(token.Hash(""), presented)
		return false
	}
	return token.Matches(hash, presented)
}

// find reads an object named in a path, if there is one. A path may hold what is
// no name at all, which the API server must not be asked for.
func (s *Server) find(ctx context.Context, key types.NamespacedName, object client.Object) (bool, error) {
	if len(validation.IsDNS1123Label(key.Namespace))+len(validation.IsDNS1123Subdomain(key.Name)) > 0 {
		return false, nil
	}
	err := s.live.Get(ctx, key, object)
	return err == nil, client.IgnoreNotFound(err)
}

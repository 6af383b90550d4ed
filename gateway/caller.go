package gateway

import (
	"context"
	"fmt"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/capability"
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

// caller is who sent a request: the live pod of a session, the pod of an action
// attempt, a person, or a sender of events.
type caller struct {
	// key names the caller among all callers.
	key string
	// namespace that the caller may look around in.
	namespace string
	// session that the request is about, as it was when the caller was
	// identified; nil if it is about none.
	session *api.AgentSession
	// pod of an attempt; nil for all others.
	pod *corev1.Pod
	// person is nil for pods.
	person *authenticationv1.UserInfo
	// wantsStream tells whether the caller asked for server-sent events.
	wantsStream bool
	// delivery of a sender of events; nil for others.
	delivery *delivery
}

type callerKey struct{}

// callerOf returns the caller that the guard identified.
func callerOf(ctx context.Context) caller {
	return ctx.Value(callerKey{}).(caller)
}

// identify finds out who calls, and whether the route is for them at all.
type identify func(*Server, *http.Request) (caller, error)

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

// sessionCaller is the runner of the session named in the path, or its agent.
func (s *Server) sessionCaller(r *http.Request) (caller, error) {
	session, err := s.namedSession(r)
	if err != nil {
		return caller{}, err
	}
	if !opens(r, session.Status.TokenHash) {
		return caller{}, unauthorized()
	}
	return callerIn(session), nil
}

func (s *Server) namedSession(r *http.Request) (*api.AgentSession, error) {
	session := &api.AgentSession{}
	key := types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	found, err := s.find(r.Context(), key, session)
	if err != nil {
		return nil, fmt.Errorf("read session: %w", err)
	}
	if !found {
		return nil, notFound("Session %s not found", key)
	}
	return session, nil
}

// anySessionCaller is the agent of whatever session the token belongs to.
func (s *Server) anySessionCaller(r *http.Request) (caller, error) {
	presented := r.Header.Get(tokenHeader)
	if presented == "" {
		return caller{}, unauthorized()
	}
	for _, namespace := range s.within() {
		sessions := &api.AgentSessionList{}
		hashed := client.MatchingFields{fieldTokenHash: token.Hash(presented)}
		if err := s.live.List(r.Context(), sessions, client.InNamespace(namespace), hashed); err != nil {
			return caller{}, fmt.Errorf("find session of token: %w", err)
		}
		for i := range sessions.Items {
			if session := &sessions.Items[i]; opens(r, session.Status.TokenHash) {
				return callerIn(session), nil
			}
		}
	}
	return caller{}, unauthorized()
}

// within are the namespaces to look for sessions in.
func (s *Server) within() []string {
	if len(s.namespaces) == 0 {
		return []string{metav1.NamespaceAll}
	}
	return s.namespaces
}

// sessionOrPerson is the agent of any session, or a person with the rights.
func sessionOrPerson(rights rightsOf) identify {
	return func(s *Server, r *http.Request) (caller, error) {
		if isPerson(r) {
			return s.personCaller(r, r.URL.Query().Get("namespace"), rights)
		}
		return s.anySessionCaller(r)
	}
}

// sessionReader is a person who may look at the session named in the path.
func (s *Server) sessionReader(r *http.Request) (caller, error) {
	session, err := s.namedSession(r)
	if err != nil {
		return caller{}, err
	}
	who, err := s.personCaller(r, session.Namespace, toReadSession)
	who.session = session
	return who, err
}

// itemsAgent is the agent of the session named in the path, which must be one
// that drafts library objects.
func (s *Server) itemsAgent(r *http.Request) (caller, error) {
	who, err := s.sessionCaller(r)
	if err != nil {
		return caller{}, err
	}
	return who, mayDraft(who.session)
}

// itemsPerson is a person who may look at that session.
func (s *Server) itemsPerson(r *http.Request) (caller, error) {
	who, err := s.sessionReader(r)
	if err != nil {
		return caller{}, err
	}
	return who, mayDraft(who.session)
}

// itemsReader is either of the two.
func (s *Server) itemsReader(r *http.Request) (caller, error) {
	if isPerson(r) {
		return s.itemsPerson(r)
	}
	return s.itemsAgent(r)
}

func mayDraft(session *api.AgentSession) error {
	if !capability.Parse(session.Status.Capabilities).Has(capability.ConfigItems) {
		return invalid(detailNoItems)
	}
	return nil
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
	return caller{key: "attempt/" + key.String(), namespace: pod.Namespace, pod: pod}, nil
}

func callerIn(session *api.AgentSession) caller {
	return caller{key: "session/" + client.ObjectKeyFromObject(session).String(), namespace: session.Namespace, session: session}
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
	if !isNamespace(key.Namespace) || !isName(key.Name) {
		return false, nil
	}
	err := s.live.Get(ctx, key, object)
	return err == nil, client.IgnoreNotFound(err)
}

func isNamespace(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }

func isName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

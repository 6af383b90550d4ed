package gateway

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=localsubjectaccessreviews,verbs=create

const bearerScheme = "Bearer "

// isPerson tells whether the request comes with a bearer token. A session's
// token beside it counts first: a pod has no other.
func isPerson(r *http.Request) bool {
	return r.Header.Get(tokenHeader) == "" && bearerOf(r) != ""
}

func bearerOf(r *http.Request) string {
	value := r.Header.Get("Authorization")
	if len(value) < len(bearerScheme) || !strings.EqualFold(value[:len(bearerScheme)], bearerScheme) {
		return ""
	}
	return strings.TrimSpace(value[len(bearerScheme):])
}

// rightsOf are what a person must be allowed to do in a namespace of the
// cluster for a request.
type rightsOf func(r *http.Request, namespace string) []authorizationv1.ResourceAttributes

// personCaller is a person with the rights. Nothing is remembered of who was
// asked about: a token that is revoked, or a right that is taken away, counts
// with the next request.
func (s *Server) personCaller(r *http.Request, namespace string, rights rightsOf) (caller, error) {
	user, err := s.authenticate(r.Context(), bearerOf(r))
	if err != nil {
		return caller{}, err
	}
	if !isNamespace(namespace) {
		return caller{}, invalid("namespace must name a namespace")
	}
	for _, wanted := range rights(r, namespace) {
		if err := s.authorize(r.Context(), user, wanted); err != nil {
			return caller{}, err
		}
	}
	return caller{key: "person/" + user.Username, namespace: namespace, person: user}, nil
}

// authenticate asks the cluster whose token it is.
func (s *Server) authenticate(ctx context.Context, bearer string) (*authenticationv1.UserInfo, error) {
	if bearer == "" {
		return nil, stranger()
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: bearer}}
	if err := s.live.Create(ctx, review); err != nil {
		return nil, fmt.Errorf("review token: %w", err)
	}
	if !review.Status.Authenticated || review.Status.User.Username == "" {
		return nil, stranger()
	}
	return &review.Status.User, nil
}

// authorize asks the cluster whether somebody may do something.
func (s *Server) authorize(ctx context.Context, user *authenticationv1.UserInfo, wanted authorizationv1.ResourceAttributes) error {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for name, values := range user.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	// The local kind, since a role in the namespace can allow it.
	review := &authorizationv1.LocalSubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: &wanted, User: user.Username, Groups: user.Groups, UID: user.UID, Extra: extra,
	}}
	review.Namespace = wanted.Namespace
	if err := s.live.Create(ctx, review); err != nil {
		return fmt.Errorf("review access: %w", err)
	}
	if !review.Status.Allowed {
		return forbidden("%s may not %s", user.Username, describe(wanted))
	}
	return nil
}

func describe(wanted authorizationv1.ResourceAttributes) string {
	text := wanted.Verb + " " + wanted.Resource
	if wanted.Name != "" {
		text += " " + cut(wanted.Name, maxShownRevision)
	}
	return text + " in namespace " + wanted.Namespace
}

// may is a right over objects of the operator's own kinds, or over the one of a
// name.
func may(verb, namespace, resource, name string) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{
		Verb: verb, Namespace: namespace, Group: api.GroupVersion.Group, Version: api.GroupVersion.Version, Resource: resource, Name: name,
	}
}

func toReadSession(r *http.Request, namespace string) []authorizationv1.ResourceAttributes {
	return []authorizationv1.ResourceAttributes{may("get", namespace, "agentsessions", r.PathValue("name"))}
}

// toWatchComposition needs a look at turns, whose change sets it shows.
func toWatchComposition(r *http.Request, namespace string) []authorizationv1.ResourceAttributes {
	return []authorizationv1.ResourceAttributes{
		may("watch", namespace, "compositions", r.PathValue("name")), may("get", namespace, "turns", ""),
	}
}

func toListEvents(_ *http.Request, namespace string) []authorizationv1.ResourceAttributes {
	return []authorizationv1.ResourceAttributes{may("list", namespace, "streamevents", "")}
}

func toReadEvent(r *http.Request, namespace string) []authorizationv1.ResourceAttributes {
	return []authorizationv1.ResourceAttributes{may("get", namespace, "streamevents", r.PathValue("id"))}
}

// toEvaluate is the right to any event: which one an expression shall see is in
// the body, which nobody reads for somebody who may do nothing.
func toEvaluate(_ *http.Request, namespace string) []authorizationv1.ResourceAttributes {
	return []authorizationv1.ResourceAttributes{may("get", namespace, "streamevents", "")}
}

func toListLibrary(r *http.Request, namespace string) []authorizationv1.ResourceAttributes {
	return libraryRight(r, "list", namespace, "")
}

func toReadLibrary(r *http.Request, namespace string) []authorizationv1.ResourceAttributes {
	return libraryRight(r, "get", namespace, r.PathValue("name"))
}

// libraryRight is none for a sort of things that does not exist: the syntax
// check says so to whoever got as far.
func libraryRight(r *http.Request, verb, namespace, name string) []authorizationv1.ResourceAttributes {
	switch kind := r.PathValue("kind"); kind {
	case "action-types":
		return []authorizationv1.ResourceAttributes{may(verb, namespace, "actiontypes", name)}
	case "tools":
		return []authorizationv1.ResourceAttributes{may(verb, namespace, "tools", name)}
	case "secrets":
		return []authorizationv1.ResourceAttributes{{Verb: verb, Namespace: namespace, Version: "v1", Resource: "secrets", Name: name}}
	}
	return nil
}

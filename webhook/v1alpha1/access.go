package v1alpha1

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// access asks the API server what a caller may do.
type access struct {
	client client.Client
}

// mayUpdate tells whether the caller may update a composition.
func (a access) mayUpdate(ctx context.Context, user authenticationv1.UserInfo, namespace, composition string) (bool, error) {
	return a.allows(ctx, user, authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: "update", Resource: "compositions", Name: composition,
	})
}

// mayRead tells whether the caller may read an object of the API's kinds.
func (a access) mayRead(ctx context.Context, user authenticationv1.UserInfo, namespace string, subject api.Subject) (bool, error) {
	resource, _ := apimeta.UnsafeGuessKindToResource(api.GroupVersion.WithKind(string(subject.Kind)))
	return a.allows(ctx, user, authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: "get", Resource: resource.Resource, Name: subject.Name,
	})
}

func (a access) allows(ctx context.Context, user authenticationv1.UserInfo, what authorizationv1.ResourceAttributes) (bool, error) {
	what.Group, what.Version = api.GroupVersion.Group, api.GroupVersion.Version
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, value := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	// The local kind, since a role in the namespace can allow it.
	review := &authorizationv1.LocalSubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra, ResourceAttributes: &what,
	}}
	review.Namespace = what.Namespace
	if err := a.client.Create(ctx, review); err != nil {
		return false, fault("review access to %s %s: %w", what.Resource, what.Name, err)
	}
	return review.Status.Allowed, nil
}

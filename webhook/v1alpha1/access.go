package v1alpha1

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// access asks the API server what a caller may do.
type access struct {
	client client.Client
}

// mayUpdate tells whether the caller may update a composition.
func (a access) mayUpdate(ctx context.Context, user authenticationv1.UserInfo, namespace, composition string) (bool, error) {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, value := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: "update",
			Group: api.GroupVersion.Group, Version: api.GroupVersion.Version, Resource: "compositions", Name: composition,
		},
	}}
	if err := a.client.Create(ctx, review); err != nil {
		return false, fault("review access to composition %s: %w", composition, err)
	}
	return review.Status.Allowed, nil
}

package v1alpha1

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// +kubebuilder:webhook:path=/validate/agentsessions,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,groups=axiom.apitomy.io,resources=agentsessions,verbs=create;update,versions=v1alpha1,name=agentsession.axiom.apitomy.io,admissionReviewVersions=v1

// sessionDoor is the door of AgentSession.
type sessionDoor struct {
	operator string
}

func (a sessionDoor) validate(_ context.Context, req request[api.AgentSession]) ([]string, error) {
	spec := &req.after.Spec
	if !req.isCreate() && apiequality.Semantic.DeepEqual(req.before.Spec, *spec) {
		return nil, nil
	}
	// Both are immutable by the schema, so what an update carries was admitted.
	if req.isCreate() && req.UserInfo.Username != a.operator {
		if spec.CompositionRef != nil {
			return nil, req.forbidden("spec.compositionRef: only the operator may set it")
		}
		if spec.RunRef != nil {
			return nil, req.forbidden("spec.runRef: only the operator may set it")
		}
	}
	return nil, req.invalid(validateTimeouts(spec.TurnTimeout, spec.IdleTimeout, field.NewPath("spec")))
}

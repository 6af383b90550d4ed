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
	access   access
}

func (a sessionDoor) validate(ctx context.Context, req request[api.AgentSession]) ([]string, error) {
	spec := &req.after.Spec
	if !req.isCreate() && apiequality.Semantic.DeepEqual(req.before.Spec, *spec) {
		return nil, nil
	}
	if req.UserInfo.Username != a.operator {
		if err := a.validateOwn(ctx, req); err != nil {
			return nil, err
		}
	}
	return nil, req.invalid(validateTimeouts(spec.TurnTimeout, spec.IdleTimeout, field.NewPath("spec")))
}

// validateOwn keeps people to sessions that stand by themselves, and to subjects
// that they could read without one.
func (a sessionDoor) validateOwn(ctx context.Context, req request[api.AgentSession]) error {
	spec := &req.after.Spec
	wasSuspended := !req.isCreate() && req.before.Spec.Suspended
	switch {
	case spec.Suspended != wasSuspended:
		return req.forbidden("spec.suspended: only the operator may change it")
	case !req.isCreate():
		return nil // the rest is immutable by the schema, and so was admitted
	case spec.Role != "":
		return req.forbidden("spec.role: only the operator may set it")
	case spec.CompositionRef != nil:
		return req.forbidden("spec.compositionRef: only the operator may set it")
	case spec.RunRef != nil:
		return req.forbidden("spec.runRef: only the operator may set it")
	case spec.Subject == nil:
		return nil
	}
	allowed, err := a.access.mayRead(ctx, req.UserInfo, req.Namespace, *spec.Subject)
	if err != nil || allowed {
		return err
	}
	return req.forbidden("spec.subject: user %q must be allowed to get %s %s", req.UserInfo.Username, spec.Subject.Kind, spec.Subject.Name)
}

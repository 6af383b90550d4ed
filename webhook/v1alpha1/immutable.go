package v1alpha1

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateSpecUnchanged refuses an update that changes a member of the spec,
// but the mutable ones. Rules of a schema cannot be trusted with members that it
// leaves open, such as inputs, payloads and schemas of answers: there `self ==
// oldSelf` holds between {"a":1} and {"b":1}.
func validateSpecUnchanged(req refusals, mutable ...string) error {
	before, err := memberOf(req.OldObject.Raw, "spec")
	if err != nil {
		return fault("decode stored %s: %w", req.Kind.Kind, err)
	}
	after, err := memberOf(req.Object.Raw, "spec")
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return req.invalid(validateUnchanged(before, after, field.NewPath("spec"), mutable...))
}

package v1alpha1

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// +kubebuilder:webhook:path=/validate/streamevents,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,groups=axiom.apitomy.io,resources=streamevents,verbs=create;update,versions=v1alpha1,name=streamevent.axiom.apitomy.io,admissionReviewVersions=v1

const maxPayloadBytes = 256 << 10

func validateEvent(_ context.Context, req request[api.StreamEvent]) ([]string, error) {
	if !req.isCreate() {
		return nil, validateSpecUnchanged(req.refusals)
	}
	if err := validatePayload(req.after.Spec.Payload); err != nil {
		return nil, err
	}
	return nil, req.invalid(validateTimestamp(req.after.Spec.Timestamp, field.NewPath("spec", "timestamp")))
}

// validatePayload is 413 for a payload that is too large.
func validatePayload(payload *runtime.RawExtension) error {
	if payload == nil {
		return nil
	}
	value, err := jsonvalue.Decode(payload.Raw)
	if err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("spec.payload: %v", err))
	}
	if size := jsonvalue.Size(value); size > maxPayloadBytes {
		return apierrors.NewRequestEntityTooLargeError(
			fmt.Sprintf("spec.payload has %d bytes of JSON, the limit is %d", size, maxPayloadBytes))
	}
	return nil
}

func validateTimestamp(text string, path *field.Path) field.ErrorList {
	if text == "" {
		return nil
	}
	if _, err := time.Parse(time.RFC3339, text); err != nil {
		return field.ErrorList{field.Invalid(path, text, "must be a time in the form of RFC 3339, such as 2026-05-04T10:11:12Z")}
	}
	return nil
}

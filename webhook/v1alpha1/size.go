package v1alpha1

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// maxObject is what an object may have in bytes. The store takes little more,
// and what is beyond that it refuses as if the server were at fault.
const maxObject = 1<<20 + 1<<18

// withinSize refuses, with the figure, what is too large to be stored.
func withinSize(raw admission.Request) error {
	if len(raw.Object.Raw) <= maxObject {
		return nil
	}
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the object has %d bytes, at most %d can be stored", len(raw.Object.Raw), maxObject))
}

package v1alpha1

import (
	"errors"
	"maps"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// refused passes the status of err on, with its causes: clients show them field
// by field.
func refused(err error) admission.Response {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(err)
	}
	status := known.Status()
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
}

// patchedAnnotations replaces the annotations as a whole and nothing else.
func patchedAnnotations(sent, wanted map[string]string) admission.Response {
	if maps.Equal(sent, wanted) {
		return admission.Allowed("")
	}
	return admission.Patched("", jsonpatch.NewOperation("add", "/metadata/annotations", wanted))
}

// setOrRemove gives an annotation a value; the empty value removes it.
func setOrRemove(annotations map[string]string, key, value string) {
	if value == "" {
		delete(annotations, key)
		return
	}
	annotations[key] = value
}

// copyAnnotations never returns nil.
func copyAnnotations(annotations map[string]string) map[string]string {
	result := maps.Clone(annotations)
	if result == nil {
		result = map[string]string{}
	}
	return result
}

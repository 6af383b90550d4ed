package v1alpha1

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// +kubebuilder:webhook:path=/validate/workflowruns,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,groups=axiom.apitomy.io,resources=workflowruns,verbs=create;update,versions=v1alpha1,name=workflowrun.axiom.apitomy.io,admissionReviewVersions=v1

// mutableRunMembers of a run's spec; the schema says in which direction.
var mutableRunMembers = []string{"resumeRequests", "cancel", "ttlSecondsAfterFinished"}

func validateRun(_ context.Context, req request[api.WorkflowRun]) ([]string, error) {
	if !req.isCreate() {
		return nil, validateSpecUnchanged(req.refusals, mutableRunMembers...)
	}
	return nil, req.invalid(validateISODuration(req.after.Spec.ActiveDeadline, field.NewPath("spec", "activeDeadline")))
}

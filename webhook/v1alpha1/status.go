package v1alpha1

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// +kubebuilder:webhook:path=/validate/status,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,groups=axiom.apitomy.io,resources=actiontypes/status;agentsessions/status;compositions/status;streamevents/status;tools/status;workflowruns/status,verbs=update,versions=v1alpha1,name=status.axiom.apitomy.io,admissionReviewVersions=v1

// operatorOnly refuses everybody else: these statuses are what the operator
// observed, and it acts on some of them.
func operatorOnly(operator string) admission.Handler {
	return admission.HandlerFunc(func(_ context.Context, raw admission.Request) admission.Response {
		if raw.UserInfo.Username == operator {
			return admission.Allowed("")
		}
		return refused(refusals{Request: raw, name: raw.Name}.forbidden("only the operator writes the status"))
	})
}

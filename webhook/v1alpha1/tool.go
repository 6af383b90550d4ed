package v1alpha1

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	library "github.com/apitomy/axiom-operator/internal/item"
)

// +kubebuilder:webhook:path=/validate/tools,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,groups=axiom.apitomy.io,resources=tools,verbs=create;update,versions=v1alpha1,name=tool.axiom.apitomy.io,admissionReviewVersions=v1

// validateTool tells at once what the status will say, and refuses nothing.
func validateTool(_ context.Context, req request[api.Tool]) ([]string, error) {
	if !req.isCreate() && apiequality.Semantic.DeepEqual(req.before.Spec, req.after.Spec) {
		return nil, nil
	}
	return itemWarnings(library.ToolProblems(api.NamedTool{Name: req.name, ToolSpec: req.after.Spec})), nil
}

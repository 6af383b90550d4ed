package v1alpha1

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/action"
	library "github.com/apitomy/axiom-operator/internal/item"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// +kubebuilder:webhook:path=/validate/actiontypes,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,groups=axiom.apitomy.io,resources=actiontypes,verbs=create;update,versions=v1alpha1,name=actiontype.axiom.apitomy.io,admissionReviewVersions=v1

// actionTypeDoor is the door of ActionType. A library may hold drafts, so it refuses
// none; it tells at once what the status will say of the object itself.
type actionTypeDoor struct {
	checker workflow.ExpressionChecker
}

func (a actionTypeDoor) validate(_ context.Context, req request[api.ActionType]) ([]string, error) {
	if !req.isCreate() && apiequality.Semantic.DeepEqual(req.before.Spec, req.after.Spec) {
		return nil, nil
	}
	named := api.NamedActionType{Name: req.name, ActionTypeSpec: req.after.Spec}
	return itemWarnings(library.ActionTypeProblems(named, action.Surroundings{CheckPrompt: library.PromptCheck(a.checker)})), nil
}

// itemWarnings are the problems of a library object as warnings of the request.
func itemWarnings(problems []api.Problem) []string {
	var warnings []string
	for _, p := range problems[:min(len(problems), maxWarnings)] {
		path := "spec." + p.Path
		if p.Path == "name" {
			path = "metadata.name"
		}
		warnings = append(warnings, fmt.Sprintf("%s: %s: %s", path, p.Code, p.Message))
	}
	if hidden := len(problems) - len(warnings); hidden > 0 {
		warnings = append(warnings, fmt.Sprintf("spec: %d more problems", hidden))
	}
	return warnings
}

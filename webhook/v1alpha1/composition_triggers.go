package v1alpha1

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/event"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/streamevent"
)

// validateTriggers refuses triggers whose expressions do not compile: nobody
// would see them fail before an event comes. Without a cache of expressions
// nothing is said about those.
func validateTriggers(c *api.Composition, expressions *expression.Cache) field.ErrorList {
	var errs field.ErrorList
	for i := range c.Spec.Triggers {
		t := &c.Spec.Triggers[i]
		path := field.NewPath("spec", "triggers").Key(t.Name)
		errs = append(errs, validateISODuration(t.Run.ActiveDeadline, path.Child("run", "activeDeadline"))...)
		inputs, err := streamevent.Inputs(*t)
		if err != nil {
			errs = append(errs, field.Invalid(path.Child("inputs"), field.OmitValueType{}, err.Error()))
			continue
		}
		if expressions == nil {
			continue
		}
		rule := event.Rule{Filter: t.Filter, Inputs: inputs, DedupeKey: t.DedupeKey}
		for _, p := range rule.Problems(expressions) {
			at := path.Child(p.Field)
			if p.Input != "" {
				at = at.Key(p.Input)
			}
			errs = append(errs, field.Invalid(at, field.OmitValueType{}, p.Rule))
		}
	}
	return errs
}

// triggerWarnings tell of required inputs that a trigger does not give: its runs
// would be refused.
func triggerWarnings(triggers []api.Trigger, required []string) []string {
	var warnings []string
	for i := range triggers {
		t := &triggers[i]
		inputs, err := streamevent.Inputs(*t)
		if err != nil {
			continue
		}
		for _, name := range (event.Rule{Inputs: inputs}).Missing(required) {
			path := field.NewPath("spec", "triggers").Key(t.Name).Child("inputs")
			warnings = append(warnings, fmt.Sprintf("%s: %q is required by the workflow; runs without it are refused", path, name))
		}
	}
	return warnings[:min(len(warnings), maxWarnings)]
}

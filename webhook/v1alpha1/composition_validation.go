package v1alpha1

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

const (
	maxCompositionName = 52
	maxItemBytes       = 128 << 10
	maxItemsBytes      = 256 << 10
	// maxWarnings keeps a reply readable; the whole list is in the status.
	maxWarnings = 10
)

// validateComposition refuses what could not be kept or worked with; a draft
// with any other problem may be stored.
func validateComposition(c *api.Composition, v verdict) field.ErrorList {
	spec := field.NewPath("spec")
	return slices.Concat(
		validateName(c.Name, maxCompositionName),
		validateWorkflow(v, spec.Child("workflow")),
		validateItems(c, spec),
		validateTimeouts(c.Spec.Agent.TurnTimeout, c.Spec.Agent.IdleTimeout, spec.Child("agent")),
	)
}

// validateWorkflow leaves the value out: it may be half a megabyte.
func validateWorkflow(v verdict, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, reason := range v.refusals {
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, reason))
	}
	return errs
}

func validateItems(c *api.Composition, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	total := 0
	for _, item := range itemsOf(c) {
		size, err := sizeOf(item.content)
		if err != nil {
			errs = append(errs, field.InternalError(item.path, err))
			continue
		}
		if size > maxItemBytes {
			errs = append(errs, excess(item.path, size, maxItemBytes, "bytes of JSON"))
		}
		total += size
	}
	if total > maxItemsBytes {
		errs = append(errs, excess(spec, total, maxItemsBytes, "bytes of JSON in action types and tools"))
	}
	return errs
}

// sizeOf measures compact JSON; that of the standard library has longer escapes.
func sizeOf(item any) (int, error) {
	text, err := json.Marshal(item)
	if err != nil {
		return 0, err
	}
	value, err := jsonvalue.Decode(text)
	return jsonvalue.Size(value), err
}

package v1alpha1

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

const (
	maxCompositionName = 52
	maxItemBytes       = 128 << 10
	maxItemsBytes      = 256 << 10
	// maxWarnings keeps a reply readable; the whole list is in the status.
	maxWarnings = 10
)

// refusedProblems are the only problems of a workflow that keep a draft from
// being stored.
var refusedProblems = []string{"INVALID_WORKFLOW", "WORKFLOW_TOO_LARGE", "TOO_MANY_NODES", "TOO_MANY_EDGES"}

// validateComposition refuses what could not be kept or worked with; a draft
// with any other problem may be stored.
func validateComposition(c *api.Composition) field.ErrorList {
	spec := field.NewPath("spec")
	return slices.Concat(
		validateName(c.Name, maxCompositionName),
		validateWorkflow(c.Spec.Workflow, spec.Child("workflow")),
		validateItems(c, spec),
		validateTimeouts(c.Spec.Agent.TurnTimeout, c.Spec.Agent.IdleTimeout, spec.Child("agent")),
	)
}

func validateWorkflow(raw *runtime.RawExtension, path *field.Path) field.ErrorList {
	if raw == nil {
		return nil
	}
	doc, err := jsonvalue.Decode(raw.Raw)
	if err != nil {
		return field.ErrorList{refuseWorkflow(path, err.Error())}
	}
	var errs field.ErrorList
	for _, problem := range workflow.Validate(doc, nil) {
		if slices.Contains(refusedProblems, problem.Code) {
			errs = append(errs, refuseWorkflow(path, problem.Message))
		}
	}
	return errs
}

// refuseWorkflow leaves the value out: it may be half a megabyte.
func refuseWorkflow(path *field.Path, reason string) *field.Error {
	return field.Invalid(path, field.OmitValueType{}, reason)
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

// workflowWarnings tells at once what will keep a stored draft from running.
func workflowWarnings(raw *runtime.RawExtension, checker workflow.ExpressionChecker) []string {
	if raw == nil {
		return nil
	}
	doc, err := jsonvalue.Decode(raw.Raw)
	if err != nil {
		return nil
	}
	var warnings []string
	hidden := 0
	for _, problem := range workflow.Validate(doc, checker) {
		switch {
		case !problem.IsError():
		case len(warnings) == maxWarnings:
			hidden++
		default:
			warnings = append(warnings, describe(problem))
		}
	}
	if hidden > 0 {
		warnings = append(warnings, fmt.Sprintf("spec.workflow: %d more errors", hidden))
	}
	return warnings
}

func describe(p workflow.Problem) string {
	path := field.NewPath("spec", "workflow")
	switch {
	case p.NodeID != "":
		path = path.Child("nodes").Key(p.NodeID)
	case p.EdgeID != "":
		path = path.Child("edges").Key(p.EdgeID)
	}
	return fmt.Sprintf("%s: %s: %s", path, p.Code, p.Message)
}

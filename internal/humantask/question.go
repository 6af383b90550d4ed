package humantask

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/form"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// Form is what an answer of the task must be, as admission reads it.
func Form(task *api.HumanTask) (form.Spec, error) {
	var spec form.Spec
	if schema := task.Spec.ResponseSchema; schema != nil {
		value, err := jsonvalue.Decode(schema.Raw)
		if err != nil {
			return spec, fmt.Errorf("decode response schema: %w", err)
		}
		spec.ResponseSchema = value
	}
	if task.Spec.Form == nil {
		return spec, nil
	}
	data, err := json.Marshal(task.Spec.Form.Fields)
	if err != nil {
		return spec, fmt.Errorf("encode form: %w", err)
	}
	value, err := jsonvalue.Decode(data)
	if err != nil {
		return spec, fmt.Errorf("decode form: %w", err)
	}
	fields, _ := value.([]any)
	spec.Fields = form.FieldsOf(fields)
	return spec, nil
}

// IsFor tells whether a person may answer, as far as the task says: without
// assignees it leaves that to the rights of whoever comes, with empty ones nobody may.
func IsFor(task *api.HumanTask, user string, groups []string) bool {
	assignees := task.Spec.Assignees
	if assignees == nil {
		return true
	}
	return slices.Contains(assignees.Users, user) ||
		slices.ContainsFunc(assignees.Groups, func(group string) bool { return slices.Contains(groups, group) })
}

// Expiry is the moment from which the task cannot be answered any more. A duration
// that admission would have refused limits nothing.
func Expiry(task *api.HumanTask) (end time.Time, isLimited bool) {
	if task.Spec.ExpiresAfter == "" {
		return time.Time{}, false
	}
	limit, err := workflow.ParseDuration(task.Spec.ExpiresAfter)
	if err != nil || limit <= 0 {
		return time.Time{}, false
	}
	return task.CreationTimestamp.Add(limit), true
}

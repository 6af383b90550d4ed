package controllers

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/form"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// Bounds of a task's texts and lists, those of its schema in bytes.
const (
	maxTaskTitle       = 4096
	maxTaskDescription = 128 << 10
	maxTaskLines       = 200
	maxTaskLabel       = 1024
	maxTaskValue       = 65536
	maxTaskURL         = 8192

	untitledTask = "Human Task"
)

// runTask is the task that asks a person for an activation of a node.
func runTask(run *api.WorkflowRun, branch *api.ActiveBranch, node workflow.Node, input engine.Values) (*api.HumanTask, error) {
	task := &api.HumanTask{
		ObjectMeta: runChildMeta(run, branch),
		Spec: api.HumanTaskSpec{
			RunRef:       &api.TaskRunRef{Name: run.Name, UID: string(run.UID), Activation: branch.Activation},
			HumanContext: taskContext(branch, node, input),
		},
	}
	config := node.Config()
	if description, ok := config["description"].(string); ok {
		task.Spec.HumanContext.Description = truncate(description, maxTaskDescription)
	}
	if timeout, ok := config["timeout"].(string); ok {
		task.Spec.ExpiresAfter = timeout
	}
	if err := setTaskAssignees(&task.Spec, config["assignees"]); err != nil {
		return nil, err
	}
	if err := setTaskForm(&task.Spec, config); err != nil {
		return nil, err
	}
	return task, nil
}

// runChildMeta is the metadata of the child that an activation names.
func runChildMeta(run *api.WorkflowRun, branch *api.ActiveBranch) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:            branch.Child.Name,
		Namespace:       run.Namespace,
		Labels:          map[string]string{api.LabelRun: string(run.UID)},
		Annotations:     map[string]string{api.AnnotationActivation: branch.Activation},
		OwnerReferences: []metav1.OwnerReference{runReference(run)},
	}
}

func runReference(run *api.WorkflowRun) metav1.OwnerReference {
	return *metav1.NewControllerRef(run, api.GroupVersion.WithKind("WorkflowRun"))
}

// taskContext shows every input as a line, and those that are links as links
// too.
func taskContext(branch *api.ActiveBranch, node workflow.Node, input engine.Values) api.HumanContext {
	shown := api.HumanContext{Title: taskTitle(branch.Title, node.Name())}
	for _, label := range slices.Sorted(maps.Keys(input)) {
		text, err := jsonvalue.StringForm(input[label])
		if err != nil || len(shown.Details) == maxTaskLines {
			continue
		}
		name := truncate(label, maxTaskLabel)
		shown.Details = append(shown.Details, api.LabelledValue{Label: name, Value: truncate(text, maxTaskValue)})
		if isWebAddress(text) {
			shown.References = append(shown.References, api.LabelledURL{Label: name, URL: text})
		}
	}
	return shown
}

func taskTitle(candidates ...string) string {
	for _, title := range candidates {
		if strings.TrimSpace(title) != "" {
			return truncate(title, maxTaskTitle)
		}
	}
	return untitledTask
}

func isWebAddress(text string) bool {
	if len(text) > maxTaskURL {
		return false
	}
	address, err := url.Parse(text)
	return err == nil && (address.Scheme == "http" || address.Scheme == "https") && address.Host != ""
}

func setTaskAssignees(spec *api.HumanTaskSpec, assignees any) error {
	if assignees == nil {
		return nil
	}
	// Present but empty means nobody, which is not the same as absent.
	spec.Assignees = &api.Assignees{}
	if err := runRecode(assignees, spec.Assignees); err != nil {
		return fmt.Errorf("read assignees: %w", err)
	}
	spec.Assignees.Users = taskNames(spec.Assignees.Users)
	spec.Assignees.Groups = taskNames(spec.Assignees.Groups)
	return nil
}

// taskNames are sorted and not repeated, as a set in the schema must be.
func taskNames(names []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

func setTaskForm(spec *api.HumanTaskSpec, config map[string]any) error {
	if schema, ok := config["responseSchema"].(map[string]any); ok {
		raw, err := runRawJSON(schema)
		if err != nil {
			return fmt.Errorf("encode response schema: %w", err)
		}
		spec.ResponseSchema = raw
		return nil
	}
	outputs, _ := config["outputs"].([]any)
	if len(outputs) == 0 {
		return nil
	}
	spec.Form = &api.TaskForm{}
	if err := runRecode(form.FieldsOf(outputs), &spec.Form.Fields); err != nil {
		return fmt.Errorf("write form: %w", err)
	}
	return checkTaskFields(spec.Form.Fields)
}

// checkTaskFields refuses a form that could not be answered, since two of its
// fields have one name. Of all that a workflow may say of a task it is what
// neither its validation nor the schema of tasks refuses.
func checkTaskFields(fields []api.FormField) error {
	seen := make(map[string]bool, len(fields))
	for i := range fields {
		if seen[fields[i].Name] {
			return fmt.Errorf("two fields of the form are named %q", fields[i].Name)
		}
		seen[fields[i].Name] = true
	}
	return nil
}

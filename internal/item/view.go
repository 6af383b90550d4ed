package item

import (
	"cmp"
	"fmt"
	"slices"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/turns"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// maxName is what the API takes of a name, in bytes.
const maxName = 253

// A View is one item and what is wrong with it.
type View struct {
	Type api.ItemType
	// Name is unique among the items of a type.
	Name string
	// Revision names the content.
	Revision string
	// Problems, errors first.
	Problems []api.Problem
}

// IsValid tells whether none of the problems is an error.
func (v View) IsValid() bool { return IsValid(v.Problems) }

// Of looks at every item of a draft: the workflow, then action types, then
// tools, each sort by name.
func Of(comp *api.Composition, checker workflow.ExpressionChecker) ([]View, error) {
	doc, err := turns.Document(comp.Spec.Workflow)
	if err != nil {
		return nil, err
	}
	views := make([]View, 0, 1+len(comp.Spec.ActionTypes)+len(comp.Spec.Tools))
	if doc != nil {
		view, err := OfWorkflow(doc, comp.Name, checker)
		if err != nil {
			return nil, err
		}
		views = append(views, view)
	}
	library, err := Library(comp, checker)
	return append(views, library...), err
}

// OfWorkflow looks at a workflow. One that has no name has the draft's.
func OfWorkflow(doc changeset.Document, draft string, checker workflow.ExpressionChecker) (View, error) {
	revision, err := changeset.Revision(doc)
	if err != nil {
		return View{}, fmt.Errorf("take workflow revision: %w", err)
	}
	return View{
		Type: api.ItemWorkflow, Name: WorkflowName(doc, draft), Revision: revision, Problems: WorkflowProblems(doc, checker),
	}, nil
}

// WorkflowName is the name of the item that a workflow is.
func WorkflowName(doc changeset.Document, draft string) string {
	name, _ := doc["name"].(string)
	return truncate(cmp.Or(name, draft), maxName)
}

// Library looks at the action types and tools of a draft. Without a checker
// nothing is said about expressions.
func Library(comp *api.Composition, checker workflow.ExpressionChecker) ([]View, error) {
	var views []View
	for _, actionType := range byName(comp.Spec.ActionTypes, func(a api.NamedActionType) string { return a.Name }) {
		view, err := viewOf(api.ItemActionType, actionType.Name, actionType, actionTypeProblems(actionType, checker))
		if err != nil {
			return nil, err
		}
		views = append(views, view)
	}
	for _, tool := range byName(comp.Spec.Tools, func(t api.NamedTool) string { return t.Name }) {
		view, err := viewOf(api.ItemTool, tool.Name, tool, ToolProblems(tool))
		if err != nil {
			return nil, err
		}
		views = append(views, view)
	}
	return views, nil
}

func viewOf(kind api.ItemType, name string, value any, problems []api.Problem) (View, error) {
	content, err := turns.ContentOf(kind, value)
	if err != nil {
		return View{}, fmt.Errorf("read %s %s: %w", kind, name, err)
	}
	return View{Type: kind, Name: name, Revision: content.Revision, Problems: problems}, nil
}

func byName[T any](items []T, name func(T) string) []T {
	sorted := slices.Clone(items)
	slices.SortFunc(sorted, func(a, b T) int { return cmp.Compare(name(a), name(b)) })
	return sorted
}

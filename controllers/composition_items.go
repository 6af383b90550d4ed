package controllers

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/turns"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

const (
	// maxProblems over all items of a composition.
	maxProblems = 64
	// maxName is what the API takes of a name, in characters.
	maxName = 253
)

// itemView is one item of a draft and what is wrong with it.
type itemView struct {
	kind     api.ItemType
	name     string
	revision string
	problems []api.Problem
}

// itemsOf looks at every item of the draft: the workflow, then action types,
// then tools, each sort by name.
func itemsOf(comp *api.Composition, expressions *expression.Cache) ([]itemView, error) {
	var views []itemView
	doc, err := turns.Document(comp.Spec.Workflow)
	if err != nil {
		return nil, err
	}
	if doc != nil {
		view, err := workflowView(comp, doc, expressions)
		if err != nil {
			return nil, err
		}
		views = append(views, view)
	}
	for _, actionType := range sortedByName(comp.Spec.ActionTypes, func(a api.NamedActionType) string { return a.Name }) {
		view, err := libraryView(api.ItemActionType, actionType.Name, actionType, actionTypeProblems(actionType))
		if err != nil {
			return nil, err
		}
		views = append(views, view)
	}
	for _, tool := range sortedByName(comp.Spec.Tools, func(t api.NamedTool) string { return t.Name }) {
		view, err := libraryView(api.ItemTool, tool.Name, tool, toolProblems(tool))
		if err != nil {
			return nil, err
		}
		views = append(views, view)
	}
	return views, nil
}

func workflowView(comp *api.Composition, doc changeset.Document, expressions *expression.Cache) (itemView, error) {
	revision, err := changeset.Revision(doc)
	if err != nil {
		return itemView{}, fmt.Errorf("take workflow revision: %w", err)
	}
	name, _ := doc["name"].(string)
	if name == "" {
		name = comp.Name
	}
	view := itemView{kind: api.ItemWorkflow, name: truncate(name, maxName), revision: revision}
	for _, problem := range workflow.Validate(doc, expressions) {
		view.problems = append(view.problems, problemOf(problem))
	}
	return view, nil
}

func libraryView(kind api.ItemType, name string, item any, problems []api.Problem) (itemView, error) {
	data, err := json.Marshal(item)
	if err != nil {
		return itemView{}, fmt.Errorf("encode %s %s: %w", kind, name, err)
	}
	value, err := jsonvalue.Decode(data)
	if err != nil {
		return itemView{}, fmt.Errorf("decode %s %s: %w", kind, name, err)
	}
	revision, err := changeset.ContentRevision(value)
	if err != nil {
		return itemView{}, fmt.Errorf("take revision of %s %s: %w", kind, name, err)
	}
	return itemView{kind: kind, name: name, revision: revision, problems: problems}, nil
}

// problemOf gives a problem of a document the path that its ids name.
func problemOf(problem workflow.Problem) api.Problem {
	path := "content"
	switch {
	case problem.NodeID != "":
		path = "nodes[" + problem.NodeID + "]"
	case problem.EdgeID != "":
		path = "edges[" + problem.EdgeID + "]"
	}
	return api.Problem{
		Severity: api.Severity(problem.Severity), Path: truncate(path, 512), Code: problem.Code, Message: truncate(problem.Message, 2048),
	}
}

func (v itemView) isValid() bool {
	return !slices.ContainsFunc(v.problems, func(p api.Problem) bool { return p.Severity == api.SeverityError })
}

// statuses are the items without history and with all their problems.
func statuses(views []itemView) []api.ItemStatus {
	items := make([]api.ItemStatus, 0, len(views))
	for _, view := range views {
		items = append(items, api.ItemStatus{
			Type: view.kind, Name: view.name, ContentRevision: view.revision, Valid: view.isValid(), Problems: errorsFirst(view.problems),
		})
	}
	return items
}

// capProblems keeps at most maxProblems over all items, errors before
// warnings, and tells whether any were left out.
func capProblems(items []api.ItemStatus) bool {
	total, left := 0, maxProblems
	for _, item := range items {
		total += len(item.Problems)
	}
	for _, severity := range []api.Severity{api.SeverityError, api.SeverityWarning} {
		for i := range items {
			kept := items[i].Problems[:0:0]
			for _, problem := range items[i].Problems {
				if problem.Severity != severity {
					kept = append(kept, problem)
					continue
				}
				if left > 0 {
					kept = append(kept, problem)
					left--
				}
			}
			items[i].Problems = kept
		}
	}
	return total > maxProblems
}

func workflowRevisionOf(views []itemView) string {
	for _, view := range views {
		if view.kind == api.ItemWorkflow {
			return view.revision
		}
	}
	return ""
}

func errorsFirst(problems []api.Problem) []api.Problem {
	sorted := slices.Clone(problems)
	slices.SortStableFunc(sorted, func(a, b api.Problem) int {
		// "error" sorts before "warning".
		return cmp.Compare(a.Severity, b.Severity)
	})
	return sorted
}

func sortedByName[T any](items []T, name func(T) string) []T {
	sorted := slices.Clone(items)
	slices.SortFunc(sorted, func(a, b T) int { return cmp.Compare(name(a), name(b)) })
	return sorted
}

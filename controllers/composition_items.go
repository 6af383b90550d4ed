package controllers

import (
	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/item"
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
	found, err := item.Of(comp, expressions)
	if err != nil {
		return nil, err
	}
	views := make([]itemView, 0, len(found))
	for _, view := range found {
		views = append(views, itemView{kind: view.Type, name: view.Name, revision: view.Revision, problems: view.Problems})
	}
	return views, nil
}

// statuses are the items without history and with all their problems.
func statuses(views []itemView) []api.ItemStatus {
	items := make([]api.ItemStatus, 0, len(views))
	for _, view := range views {
		items = append(items, api.ItemStatus{
			Type: view.kind, Name: view.name, ContentRevision: view.revision, Valid: item.IsValid(view.problems), Problems: view.problems,
		})
	}
	return items
}

// capProblems keeps at most maxProblems over all items, errors before
// warnings, and tells whether any were left out.
func capProblems(items []api.ItemStatus) bool {
	total, left := 0, maxProblems
	for _, counted := range items {
		total += len(counted.Problems)
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

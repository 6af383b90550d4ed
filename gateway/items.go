package gateway

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/internal/action"
	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// maxProblems bounds the problems that are told of one item.
const maxProblems = 64

// wholeItem is the path of problems with no part of an item in particular.
const wholeItem = "content"

// workflowProblems is what is wrong with a workflow document.
func (s *Server) workflowProblems(doc changeset.Document) []openapi.ItemProblem {
	found := workflow.Validate(doc, s.expressions)
	problems := make([]openapi.ItemProblem, 0, len(found))
	for _, problem := range found {
		problems = append(problems, openapi.ItemProblem{
			Severity: openapi.Severity(problem.Severity), Path: pathOf(problem), Code: problem.Code, Message: problem.Message,
		})
	}
	return worstFirst(problems)
}

func pathOf(problem workflow.Problem) string {
	switch {
	case problem.NodeID != "":
		return "nodes[" + problem.NodeID + "]"
	case problem.EdgeID != "":
		return "edges[" + problem.EdgeID + "]"
	}
	return wholeItem
}

// worstFirst puts errors before warnings, and leaves out what is too much.
func worstFirst(problems []openapi.ItemProblem) []openapi.ItemProblem {
	slices.SortStableFunc(problems, func(a, b openapi.ItemProblem) int {
		return cmp.Compare(rankOf(a), rankOf(b))
	})
	return problems[:min(len(problems), maxProblems)]
}

func rankOf(problem openapi.ItemProblem) int {
	if problem.Severity == openapi.SeverityError {
		return 0
	}
	return 1
}

func isValid(problems []openapi.ItemProblem) bool {
	return !slices.ContainsFunc(problems, func(p openapi.ItemProblem) bool { return p.Severity == openapi.SeverityError })
}

// libraryItems are the composition's action types and tools as they are live,
// each sort by name.
func libraryItems(comp *api.Composition) ([]openapi.Item, error) {
	items := make([]openapi.Item, 0, len(comp.Spec.ActionTypes)+len(comp.Spec.Tools))
	for i := range comp.Spec.ActionTypes {
		actionType := &comp.Spec.ActionTypes[i]
		read, err := action.ReadType(actionType.Name, actionType)
		item, err := libraryItem(openapi.ItemTypeActionType, actionType.Name, actionType, problemsOf(read.Problems(action.Surroundings{}), err))
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	for i := range comp.Spec.Tools {
		tool := &comp.Spec.Tools[i]
		read, err := action.ReadTool(tool.Name, tool)
		item, err := libraryItem(openapi.ItemTypeTool, tool.Name, tool, problemsOf(read.Problems(), err))
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	slices.SortStableFunc(items, func(a, b openapi.Item) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name)) // "action-type" is before "tool"
	})
	return items, nil
}

// problemsOf are the problems of an item, or the one that it cannot be read.
func problemsOf(found []action.Problem, err error) []openapi.ItemProblem {
	if err != nil {
		return []openapi.ItemProblem{{Severity: openapi.SeverityError, Path: wholeItem, Code: "UNREADABLE", Message: err.Error()}}
	}
	problems := make([]openapi.ItemProblem, 0, len(found))
	for _, problem := range found {
		problems = append(problems, openapi.ItemProblem{
			Severity: openapi.Severity(problem.Severity), Path: cmp.Or(problem.Path, wholeItem), Code: problem.Code, Message: problem.Message,
		})
	}
	return worstFirst(problems)
}

func libraryItem(kind openapi.ItemType, name string, stored any, problems []openapi.ItemProblem) (openapi.Item, error) {
	revision, err := revisionOf(stored)
	if err != nil {
		return openapi.Item{}, fmt.Errorf("take revision of %s %s: %w", kind, name, err)
	}
	return openapi.Item{Type: kind, Name: name, ContentRevision: revision, Valid: isValid(problems), Problems: problems}, nil
}

// revisionOf names the content of an action type or tool.
func revisionOf(stored any) (string, error) {
	data, err := json.Marshal(stored)
	if err != nil {
		return "", err
	}
	value, err := jsonvalue.Decode(data)
	if err != nil {
		return "", err
	}
	return changeset.ContentRevision(value)
}

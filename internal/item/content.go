package item

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	kjson "sigs.k8s.io/json"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/turns"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// A Content is what somebody wants an item to hold, in the form in which it is
// kept: members that the API does not know are gone.
type Content struct {
	Type api.ItemType
	Name string
	turns.Content
	// Value is the content as a JSON tree.
	Value map[string]any
	// Problems of the content, errors first; members that were left out are
	// among them.
	Problems []api.Problem
}

// IsValid tells whether none of the problems is an error.
func (c Content) IsValid() bool { return IsValid(c.Problems) }

// NameOf is the name that a content gives its item; empty when it gives none.
func NameOf(content map[string]any) string {
	name, _ := content["name"].(string)
	return name
}

// Read judges a content. The error says why the API could not hold it; content
// that is only wrong has problems.
func Read(kind api.ItemType, content map[string]any, checker workflow.ExpressionChecker) (Content, error) {
	switch kind {
	case api.ItemWorkflow:
		kept, err := turns.ContentOf(kind, content)
		if err != nil {
			return Content{}, err
		}
		return Content{
			Type: kind, Name: NameOf(content), Content: kept, Value: content, Problems: WorkflowProblems(content, checker),
		}, nil
	case api.ItemActionType:
		var named api.NamedActionType
		unknown, err := decode(content, &named)
		return keep(kind, named.Name, named, append(actionTypeProblems(named, checker), unknown...), err)
	case api.ItemTool:
		var named api.NamedTool
		unknown, err := decode(content, &named)
		return keep(kind, named.Name, named, append(ToolProblems(named), unknown...), err)
	}
	return Content{}, fmt.Errorf("%q is no type of items", kind)
}

func keep(kind api.ItemType, name string, value any, problems []api.Problem, err error) (Content, error) {
	if err != nil {
		return Content{}, err
	}
	kept, err := turns.ContentOf(kind, value)
	if err != nil {
		return Content{}, err
	}
	tree, err := Tree(kept.Data)
	if err != nil {
		return Content{}, err
	}
	return Content{Type: kind, Name: name, Content: kept, Value: tree, Problems: worstFirst(problems)}, nil
}

// decode reads a content into its API type, as the API server would, and tells
// of the members that this loses.
func decode(content map[string]any, into any) ([]api.Problem, error) {
	data, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encode content: %w", err)
	}
	strict, err := kjson.UnmarshalStrict(data, into, kjson.DisallowUnknownFields)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	problems := make([]api.Problem, 0, len(strict))
	for _, lost := range strict {
		problems = append(problems, problem(string(api.SeverityWarning), unknownPath(lost), CodeUnknownMember, "is no member of this type, and was left out"))
	}
	return problems, nil
}

// unknownPath is the member that a strict error is about.
func unknownPath(lost error) string {
	if found, is := errors.AsType[kjson.FieldError](lost); is {
		return found.FieldPath()
	}
	return ""
}

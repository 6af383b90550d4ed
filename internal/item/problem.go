package item

import (
	"cmp"
	"slices"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/action"
	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// Codes of problems that belong to no rule of workflows, action types or tools.
const (
	// CodeInvalidContent: the content cannot be read.
	CodeInvalidContent = "INVALID_CONTENT"
	// CodeUnknownMember: the content has a member that its type does not have.
	CodeUnknownMember = "UNKNOWN_MEMBER"
)

// whole is the path of problems that are about no part of an item.
const whole = "content"

// What the API takes of a problem, in bytes.
const (
	maxPath    = 512
	maxMessage = 2048
)

// IsValid tells whether none of the problems is an error.
func IsValid(problems []api.Problem) bool {
	return !slices.ContainsFunc(problems, func(p api.Problem) bool { return p.Severity == api.SeverityError })
}

// WorkflowProblems is what is wrong with a workflow, errors first. The checker
// may be nil: expressions are not looked at then.
func WorkflowProblems(doc changeset.Document, checker workflow.ExpressionChecker) []api.Problem {
	var problems []api.Problem
	for _, found := range workflow.Validate(doc, checker) {
		problems = append(problems, problem(found.Severity, pathOf(found), found.Code, found.Message))
	}
	return worstFirst(problems)
}

func pathOf(found workflow.Problem) string {
	switch {
	case found.NodeID != "":
		return "nodes[" + found.NodeID + "]"
	case found.EdgeID != "":
		return "edges[" + found.EdgeID + "]"
	}
	return whole
}

// actionTypeProblems judges an action type by itself; what else exists in the
// cluster is looked at when the action runs.
func actionTypeProblems(named api.NamedActionType, checker workflow.ExpressionChecker) []api.Problem {
	return ActionTypeProblems(named, action.Surroundings{CheckPrompt: PromptCheck(checker)})
}

// ActionTypeProblems is what is wrong with an action type in its surroundings,
// errors first.
func ActionTypeProblems(named api.NamedActionType, around action.Surroundings) []api.Problem {
	parsed, err := action.ReadType(named.Name, named.ActionTypeSpec)
	if err != nil {
		return unreadable(err)
	}
	return libraryProblems(parsed.Problems(around))
}

// PromptCheck compiles the placeholders of prompts; nil without a checker.
func PromptCheck(checker workflow.ExpressionChecker) func(string) error {
	if checker == nil {
		return nil
	}
	return func(text string) error {
		_, err := checker.Check(string(expression.ScopeAgentPrompt), text)
		return err
	}
}

// ToolProblems is what is wrong with a tool, errors first.
func ToolProblems(named api.NamedTool) []api.Problem {
	parsed, err := action.ReadTool(named.Name, named.ToolSpec)
	if err != nil {
		return unreadable(err)
	}
	return libraryProblems(parsed.Problems())
}

func libraryProblems(found []action.Problem) []api.Problem {
	problems := make([]api.Problem, 0, len(found))
	for _, f := range found {
		problems = append(problems, problem(f.Severity, f.Path, f.Code, f.Message))
	}
	return worstFirst(problems)
}

func unreadable(err error) []api.Problem {
	return []api.Problem{problem(action.SeverityError, whole, CodeInvalidContent, err.Error())}
}

func problem(severity, path, code, message string) api.Problem {
	return api.Problem{
		Severity: api.Severity(severity), Path: truncate(cmp.Or(path, whole), maxPath), Code: code, Message: truncate(message, maxMessage),
	}
}

// worstFirst puts errors before warnings and changes no order beside.
func worstFirst(problems []api.Problem) []api.Problem {
	slices.SortStableFunc(problems, func(a, b api.Problem) int {
		return cmp.Compare(a.Severity, b.Severity) // "error" sorts before "warning"
	})
	return problems
}

// truncate cuts a text to at most limit bytes, between characters.
func truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const mark = "…"
	cut := max(0, limit-len(mark))
	for cut > 0 && text[cut]&0xC0 == 0x80 {
		cut--
	}
	return text[:cut] + mark
}

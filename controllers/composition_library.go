package controllers

import (
	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/action"
)

// actionTypeProblems judges an action type of a draft by itself; what else
// exists in the cluster is looked at when the action runs.
func actionTypeProblems(item api.NamedActionType) []api.Problem {
	parsed, err := action.ReadType(item.Name, item.ActionTypeSpec)
	if err != nil {
		return unreadable(err)
	}
	return libraryProblems(parsed.Problems(action.Surroundings{}))
}

func toolProblems(item api.NamedTool) []api.Problem {
	parsed, err := action.ReadTool(item.Name, item.ToolSpec)
	if err != nil {
		return unreadable(err)
	}
	return libraryProblems(parsed.Problems())
}

func libraryProblems(found []action.Problem) []api.Problem {
	problems := make([]api.Problem, 0, len(found))
	for _, problem := range found {
		problems = append(problems, api.Problem{
			Severity: api.Severity(problem.Severity), Path: truncate(problem.Path, 512), Code: problem.Code, Message: truncate(problem.Message, 2048),
		})
	}
	return problems
}

func unreadable(err error) []api.Problem {
	return []api.Problem{{Severity: api.SeverityError, Path: "content", Code: "INVALID_CONTENT", Message: truncate(err.Error(), 2048)}}
}

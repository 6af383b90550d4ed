package openapi

import (
	"fmt"
	"strings"
)

// ProblemLines is a line for each problem, as agents read them, without a line
// break at the end.
func ProblemLines(problems []ItemProblem) string {
	lines := make([]string, 0, len(problems))
	for _, problem := range problems {
		lines = append(lines, fmt.Sprintf("- [%s] %s %s: %s",
			strings.ToUpper(string(problem.Severity)), problem.Path, problem.Code, problem.Message))
	}
	return strings.Join(lines, "\n")
}

package definition

import (
	"errors"
	"strings"

	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// A compiler checks the expressions of one document, until they are too much.
type compiler struct {
	programs *expression.Cache
	effort   int
}

var (
	errBlank  = errors.New("there is no expression")
	errEffort = errors.New("the expressions before it are too much for one document")
)

func (x *compiler) check(scope expression.Scope, text string) error {
	_, err := x.typeOf(scope, text)
	return err
}

// typeOf is the type an expression is known to have, or dyn.
func (x *compiler) typeOf(scope expression.Scope, text string) (string, error) {
	switch {
	case strings.TrimSpace(text) == "":
		return "", errBlank
	case x.effort > workflow.MaxExpressionEffort:
		return "", errEffort
	}
	resultType, effort, err := x.programs.CheckEffort(string(scope), text)
	x.effort += effort
	return resultType, err
}

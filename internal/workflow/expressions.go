package workflow

import "fmt"

// MaxExpressionEffort bounds what checking the different expressions of a document may take altogether, in the unit of an
// EffortChecker. A document at all other limits stays below it when its expressions are such as people write: about
// twenty units each.
const MaxExpressionEffort = 150_000

var errExpressionEffort = fmt.Errorf("the expressions before it are too much for one workflow, the limit is an effort of %d",
	MaxExpressionEffort)

// expressions checks each expression of a document once, and none any more when those before were too much.
type expressions struct {
	checker ExpressionChecker
	checked map[[2]string]checked
	effort  int
}

// checked is what came of a check.
type checked struct {
	resultType string
	err        error
}

// expressionsOf is nil if nobody can check expressions.
func expressionsOf(x ExpressionChecker) *expressions {
	if x == nil {
		return nil
	}
	return &expressions{checker: x, checked: map[[2]string]checked{}}
}

func (x *expressions) check(scope, text string) (resultType string, err error) {
	key := [2]string{scope, text}
	found, ok := x.checked[key]
	if !ok {
		found = x.checkNew(scope, text)
		x.checked[key] = found
	}
	return found.resultType, found.err
}

func (x *expressions) checkNew(scope, text string) (c checked) {
	if x.effort > MaxExpressionEffort {
		return checked{err: errExpressionEffort}
	}
	if measuring, ok := x.checker.(EffortChecker); ok {
		var effort int
		c.resultType, effort, c.err = measuring.CheckEffort(scope, text)
		x.effort += effort
		return c
	}
	c.resultType, c.err = x.checker.Check(scope, text)
	return c
}

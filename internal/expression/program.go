package expression

import (
	"context"
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/interpreter"
)

// maxResult bounds the compact JSON of a result, in bytes.
const maxResult = 256 << 10

// Variables are the values an expression sees. They are read and never changed. A variable that the scope of the
// expression does not have is ignored; a nil one is an empty object.
type Variables struct {
	Context map[string]any
	Event   map[string]any
	Inputs  map[string]any
	Result  map[string]any
	// Item of a list and its Index, from 0.
	Item  any
	Index int64
}

// A Program is a compiled expression. It may be used by several goroutines at once.
type Program struct {
	scope      Scope
	text       string
	resultType string
	// planned is nil for a blank expression.
	planned cel.Program
}

// ResultType is what the expression is known to give before it is evaluated, in the words of CEL: bool, int, string,
// list(dyn) and so on, or dyn if that depends on the variables.
func (p *Program) ResultType() string {
	return p.resultType
}

// Eval returns the value as a JSON tree. The value of a blank condition is true, that of any other blank expression
// null. The error is an [*EvalError], or wraps [ErrInterrupted] if ctx ended.
func (p *Program) Eval(ctx context.Context, v Variables) (any, error) {
	if err := interrupted(ctx); err != nil {
		return nil, err
	}
	if p.planned == nil {
		return blankValue(p.scope), nil
	}
	tree, err := p.evaluate(ctx, v)
	if err == nil {
		return tree, nil
	}
	// An operand that was interrupted can give way to another one that failed, so whatever went wrong under an ended
	// context is not held against the expression.
	if err := interrupted(ctx); err != nil {
		return nil, err
	}
	return nil, p.failure(err)
}

func (p *Program) evaluate(ctx context.Context, v Variables) (any, error) {
	value, _, err := p.planned.Eval(&variables{Variables: v, item: p.scope.item(), meter: &meter{ctx: ctx}})
	if err != nil {
		return nil, err
	}
	// The result is no part of what an evaluation may cost: it has a limit of its own.
	e := exporter{limit: maxResult, meter: &meter{ctx: ctx}}
	return e.value(value)
}

// Selects tells whether a condition or a match holds: only a value that is the boolean true does. An error is never
// false.
func (p *Program) Selects(ctx context.Context, v Variables) (bool, error) {
	value, err := p.Eval(ctx, v)
	if err != nil {
		return false, err
	}
	selected, isBool := value.(bool)
	return isBool && selected, nil
}

func (p *Program) failure(err error) error {
	return &EvalError{
		Scope:      p.scope,
		Expression: oneLine(p.text, maxShownExpression),
		Reason:     oneLine(err.Error(), maxShownReason),
	}
}

func interrupted(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrInterrupted, context.Cause(ctx))
}

func blankValue(scope Scope) any {
	if scope == ScopeEdgeCondition {
		return true
	}
	return nil
}

// variables are what the names of an expression mean while it is evaluated.
type variables struct {
	Variables
	// item is the name of Item, empty if it has none.
	item  string
	meter *meter
}

// ResolveName implements [interpreter.Activation]. Which of the variables an expression may name was settled when it
// was compiled.
func (v *variables) ResolveName(name string) (any, bool) {
	switch name {
	case contextVariable:
		return v.Context, true
	case eventVariable:
		return v.Event, true
	case inputsVariable:
		return v.Inputs, true
	case resultVariable:
		return v.Result, true
	case indexVariable:
		return v.Index, true
	case meterVariable:
		return v.meter, true
	}
	return v.Item, v.item != "" && name == v.item
}

// Parent implements [interpreter.Activation].
func (v *variables) Parent() interpreter.Activation {
	return nil
}

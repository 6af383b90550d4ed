package frames

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/expression"
)

var (
	errNoList   = errors.New("not a list")
	errNoObject = errors.New("not an object")
)

func (s *stepper) evaluate(scope expression.Scope, text string, v expression.Variables) (any, error) {
	program, err := s.def.Expressions.Compile(scope, text)
	if err != nil {
		return nil, err
	}
	return program.Eval(s.ctx, v)
}

// items is the list of a call for each of its items.
func (s *stepper) items(c call) ([]any, *engine.Failure) {
	const field = "forEach.items"
	text := c.ForEach.Items
	value, err := s.evaluate(expression.ScopeActionInput, text, expression.Variables{Context: c.caller.variables()})
	if err != nil {
		return nil, s.valueless(engine.PhaseInputResolution, field, text, err)
	}
	items, isList := value.([]any)
	switch {
	case !isList:
		return nil, &engine.Failure{
			Phase: engine.PhaseInputResolution, Code: CodeInputContract, Field: field, Expression: text, Message: "the items are no list",
		}
	case len(items) > c.ForEach.Max:
		return nil, &engine.Failure{
			Phase: engine.PhaseExecution, Code: CodeForEachLimit, Field: field,
			Message: fmt.Sprintf("the list has %d items, over %d", len(items), c.ForEach.Max),
		}
	}
	return items, nil
}

// inputs are those of one call; the item counts from 1.
func (s *stepper) inputs(c call, item int) (map[string]any, *engine.Failure) {
	scope, v := s.view(c, item)
	inputs := maps.Clone(c.Literals)
	if inputs == nil {
		inputs = map[string]any{}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Inputs)) {
		value, err := s.evaluate(scope, c.Inputs[name], v)
		if err != nil {
			return nil, s.valueless(engine.PhaseInputResolution, name, c.Inputs[name], err)
		}
		inputs[name] = value
	}
	for _, name := range slices.Sorted(maps.Keys(c.Sections)) {
		text, err := c.caller.component.Render(s.ctx, c.Sections[name], v.Context)
		if err != nil {
			return nil, s.unrendered(name, err)
		}
		inputs[name] = text
	}
	return inputs, nil
}

// view is what the inputs of a call see.
func (s *stepper) view(c call, item int) (expression.Scope, expression.Variables) {
	v := expression.Variables{Context: c.caller.variables()}
	at := s.state.callAt(c.activation())
	if c.ForEach == nil || at < 0 {
		return expression.ScopeActionInput, v
	}
	scope, _ := expression.ForEachInput(c.ForEach.As) // a scope of no name compiles nothing
	v.Item, v.Index = s.state.Calls[at].Items[item-1], int64(item-1)
	return scope, v
}

// isEnough tells whether a result ends a repeat.
func (s *stepper) isEnough(c call, result map[string]any) (bool, *engine.Failure) {
	text := c.Repeat.Until
	program, err := s.def.Expressions.Compile(expression.ScopeRepeatUntil, text)
	enough := false
	if err == nil {
		enough, err = program.Selects(s.ctx, expression.Variables{Context: c.caller.variables(), Result: result})
	}
	if err != nil {
		return false, s.valueless(engine.PhaseOutputMapping, "repeat.until", text, err)
	}
	return enough, nil
}

// mapped is what of a result enters the caller's context.
func (s *stepper) mapped(c call, result map[string]any) (map[string]any, *engine.Failure) {
	if c.Outputs == nil {
		return result, nil
	}
	values := make(map[string]any, len(c.Outputs))
	for _, key := range slices.Sorted(maps.Keys(c.Outputs)) {
		value, err := s.evaluate(expression.ScopeCallOutput, c.Outputs[key], expression.Variables{Result: result})
		if err != nil {
			return nil, s.valueless(engine.PhaseOutputMapping, key, c.Outputs[key], err)
		}
		values[key] = value
	}
	return values, nil
}

// valueless is the failure of an expression; there is none if the step was interrupted. The reasons of CEL quote values of
// the run, which no message may have.
func (s *stepper) valueless(phase engine.Phase, field, text string, err error) *engine.Failure {
	if s.isInterrupted(err) {
		return nil
	}
	return &engine.Failure{
		Phase: phase, Code: engine.CodeExpressionError, Field: field, Expression: text, Message: fmt.Sprintf("%q has no value", field),
	}
}

func (s *stepper) unrendered(field string, err error) *engine.Failure {
	if s.isInterrupted(err) {
		return nil
	}
	return &engine.Failure{Phase: engine.PhaseExecution, Code: CodeRenderFailed, Field: field, Message: err.Error()}
}

func isExpressionError(err error) bool {
	var compiling *expression.CompileError
	var evaluating *expression.EvalError
	return errors.As(err, &compiling) || errors.As(err, &evaluating)
}

// normalObject copies a result in the spelling that survives JSON, which results of expressions have anyhow. No result is
// an empty one.
func normalObject(v map[string]any) (map[string]any, error) {
	normal, err := engine.Normal(v)
	if err != nil {
		return nil, err
	}
	object, ok := normal.(map[string]any)
	if !ok {
		return nil, errNoObject
	}
	return object, nil
}

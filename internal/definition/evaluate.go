package definition

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/placeholder"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// Codes of failures, beside those of the engine.
const (
	CodeInputContract  = "INPUT_CONTRACT"
	CodeOutputContract = "OUTPUT_CONTRACT"
	CodeRenderFailed   = "RENDER_FAILED"
)

// A Failure is one of a node or of a frame. Its message holds no value of a run.
//
//nolint:errname // what the engine is told, and an error where it ends an evaluation
type Failure struct {
	engine.Failure
}

// Error is code and message.
func (f *Failure) Error() string { return f.Code + ": " + f.Message }

func fail(phase engine.Phase, code, field, format string, args ...any) *Failure {
	return &Failure{engine.Failure{Phase: phase, Code: code, Field: field, Message: fmt.Sprintf(format, args...)}}
}

// Start is the context a frame of the document starts with: exactly its inputs, and the defaults of those that are absent
// or null. The error is a [*Failure].
func (c *Component) Start(inputs map[string]any) (engine.Values, error) {
	if name, rule := checkInputs(c.doc.inputs, inputs); rule != "" {
		return nil, fail(engine.PhaseInputResolution, CodeInputContract, name, "input %q: %s", name, rule)
	}
	return startValues(c.doc.inputs, inputs), nil
}

// variables are what expressions see of a context: every key that is declared.
func (c *Component) variables(values map[string]any) map[string]any {
	seeded := make(map[string]any, len(values)+len(c.declared))
	for _, key := range c.declared {
		seeded[key] = nil
	}
	maps.Copy(seeded, values)
	return seeded
}

// Render gives the text that a reference names, its placeholders filled in from the context, or a text that is no
// reference as it is. The error is a [*Failure], or that of a context that ended.
func (c *Component) Render(ctx context.Context, text string, values map[string]any) (string, error) {
	return c.render(ctx, text, c.variables(values))
}

func (c *Component) render(ctx context.Context, text string, variables map[string]any) (string, error) {
	if !IsReference(text) {
		return text, nil
	}
	found, ok := c.doc.sections.find(text)
	if !ok {
		return "", fail(engine.PhaseExecution, CodeRenderFailed, "", "there is no section of this name")
	}
	rendered, err := placeholder.Render(found.text, MaxRendered, func(text string) (any, error) {
		return c.evaluate(ctx, expression.ScopeActionInput, text, expression.Variables{Context: variables})
	})
	var wrong *placeholder.Error
	switch {
	case err == nil:
		return rendered, nil
	case errors.Is(err, expression.ErrInterrupted) || !errors.As(err, &wrong):
		return "", err
	case errors.Is(err, placeholder.ErrTooLong):
		return "", fail(engine.PhaseExecution, CodeRenderFailed, "",
			"line %d: the section would have more than %d bytes", found.line+max(wrong.Line, 1)-1, MaxRendered)
	}
	return "", fail(engine.PhaseExecution, CodeRenderFailed, "", "line %d: the placeholder has no value", found.line+wrong.Line-1)
}

func (c *Component) evaluate(ctx context.Context, scope expression.Scope, text string, v expression.Variables) (any, error) {
	program, err := c.programs.Compile(scope, text)
	if err != nil {
		return nil, err
	}
	return program.Eval(ctx, v)
}

// value is what a value of inputs stands for: a section, an expression, or itself. What an expression cannot give is a
// failure in the phase, which names the field.
func (c *Component) value(ctx context.Context, p spot, written any, v expression.Variables) (any, error) {
	text, isString := written.(string)
	switch {
	case !isString:
		return jsonvalue.Clone(written), nil
	case IsReference(text):
		return c.render(ctx, text, v.Context)
	case strings.TrimSpace(text) == "":
		return nil, nil
	}
	value, err := c.evaluate(ctx, p.scope, text, v)
	if err == nil || errors.Is(err, expression.ErrInterrupted) {
		return value, err
	}
	f := fail(p.phase, p.code, p.field, "%s %q has no value", p.what, p.field)
	f.Expression = text
	return nil, f
}

// A spot is where an expression stands, and what its failure is.
type spot struct {
	scope       expression.Scope
	phase       engine.Phase
	code        string
	what, field string
}

func inputSpot(scope expression.Scope, name string) spot {
	return spot{scope: scope, phase: engine.PhaseInputResolution, code: engine.CodeExpressionError, what: "input", field: name}
}

// inputs evaluates what is written, in the order of names. What is null is absent.
func (c *Component) inputs(ctx context.Context, scope expression.Scope, written map[string]any, v expression.Variables) (engine.Values, error) {
	resolved := engine.Values{}
	for _, name := range slices.Sorted(maps.Keys(written)) {
		value, err := c.value(ctx, inputSpot(scope, name), written[name], v)
		if err != nil {
			return nil, err
		}
		if value != nil {
			resolved[name] = value
		}
	}
	return resolved, nil
}

// ResolveInputs evaluates the inputs of an action or a human task over the context. Those of an action fit its contract:
// what it opened is given by its name, and an input that is null is absent. The error is a [*Failure], or that of a
// context that ended.
func (c *Component) ResolveInputs(ctx context.Context, node string, values map[string]any) (engine.Values, error) {
	declared, ok := c.node(node)
	if !ok || declared.Kind() != workflow.KindAction && declared.Kind() != workflow.KindHumanTask {
		return engine.Values{}, nil
	}
	resolved, err := c.inputs(ctx, expression.ScopeActionInput, declared.Inputs(), expression.Variables{Context: c.variables(values)})
	if err != nil || declared.Kind() == workflow.KindHumanTask {
		return resolved, err
	}
	contract, _ := ContractOf(c.actions[node].Action)
	return contract.take(resolved)
}

// node finds a node as the document has it.
func (c *Component) node(id string) (workflow.Node, bool) {
	raw, _ := c.doc.graph.raw.(map[string]any)
	return workflow.Read(raw).Node(id)
}

// take checks inputs that are not null.
func (c Contract) take(inputs engine.Values) (engine.Values, error) {
	taken := engine.Values{}
	for _, p := range c.Inputs {
		value, isThere := inputs[p.Name]
		if !isThere {
			if p.Required {
				return nil, fail(engine.PhaseInputResolution, CodeInputContract, p.Name, "input %q: %s", p.Name, RuleRequired)
			}
			continue
		}
		var ok bool
		if taken[p.Name], ok = p.take(value); !ok {
			return nil, fail(engine.PhaseInputResolution, CodeInputContract, p.Name, "input %q: %s", p.Name, RuleType)
		}
	}
	return taken, nil
}

// An Item is one of the list of a call for each item.
type Item struct {
	Value any
	// Index from 0.
	Index int
}

// CallInputs evaluates the inputs of a call over the context and, in a call for each item, the item. They are what
// [Component.Start] of the component takes. The error is a [*Failure], or that of a context that ended.
func (c *Component) CallInputs(ctx context.Context, node string, values map[string]any, item Item) (engine.Values, error) {
	call := c.doc.calls[node]
	return c.inputs(ctx, call.scope, call.Inputs, expression.Variables{
		Context: c.variables(values), Item: item.Value, Index: int64(item.Index),
	})
}

// CallItems evaluates the list of a call for each item. The error is a [*Failure], or that of a context that ended.
func (c *Component) CallItems(ctx context.Context, node string, values map[string]any) ([]any, error) {
	call := c.doc.calls[node]
	if call.ForEach == nil {
		return nil, nil
	}
	value, err := c.value(ctx, inputSpot(expression.ScopeActionInput, "items"), call.ForEach.Items, expression.Variables{Context: c.variables(values)})
	if err != nil {
		return nil, err
	}
	items, isList := value.([]any)
	if !isList {
		return nil, fail(engine.PhaseInputResolution, CodeInputContract, "items", "input %q: %s", "items", RuleType)
	}
	return items, nil
}

// CallUntil tells whether a repeated call is to end, given the context before its outputs are merged and its result. The
// error is a [*Failure], or that of a context that ended.
func (c *Component) CallUntil(ctx context.Context, node string, values, result map[string]any) (bool, error) {
	call := c.doc.calls[node]
	if call.Repeat == nil {
		return true, nil
	}
	at := outputSpot(expression.ScopeRepeatUntil, engine.CodeExpressionError, "condition", "until")
	value, err := c.value(ctx, at, call.Repeat.Until, expression.Variables{Context: c.variables(values), Result: result})
	holds, isBool := value.(bool)
	return isBool && holds, err
}

func outputSpot(scope expression.Scope, code, what, field string) spot {
	return spot{scope: scope, phase: engine.PhaseOutputMapping, code: code, what: what, field: field}
}

// CallOutputs are what a call leaves in the context, by key. The error is a [*Failure], or that of a context that ended.
func (c *Component) CallOutputs(ctx context.Context, node string, result map[string]any) (engine.Values, error) {
	call := c.doc.calls[node]
	if call.Outputs == nil {
		return maps.Clone(result), nil
	}
	merged := engine.Values{}
	for _, key := range slices.Sorted(maps.Keys(call.Outputs)) {
		at := outputSpot(expression.ScopeCallOutput, engine.CodeExpressionError, "output", key)
		value, err := c.value(ctx, at, call.Outputs[key], expression.Variables{Result: result})
		if err != nil {
			return nil, err
		}
		merged[key] = value
	}
	return merged, nil
}

// EvaluateOutputs gives what a call of the document returns, from the context at its end. Null fits every type. The error
// is a [*Failure], or that of a context that ended.
func (c *Component) EvaluateOutputs(ctx context.Context, values map[string]any) (engine.Values, error) {
	v := expression.Variables{Context: c.variables(values)}
	result := engine.Values{}
	for _, output := range c.doc.outputs {
		at := spot{
			scope: expression.ScopeActionInput, phase: engine.PhaseOutputValidation, code: CodeOutputContract, what: "output", field: output.Name,
		}
		value, err := c.value(ctx, at, output.Expression, v)
		if err != nil {
			return nil, err
		}
		if value != nil && !hasType(value, output.Type) {
			return nil, fail(engine.PhaseOutputValidation, CodeOutputContract, output.Name, "output %q: %s", output.Name, RuleType)
		}
		result[output.Name] = value
	}
	return result, nil
}

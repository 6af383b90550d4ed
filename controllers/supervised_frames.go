package controllers

import (
	"context"
	"errors"

	"github.com/apitomy/axiom-operator/internal/definition"
	"github.com/apitomy/axiom-operator/internal/frames"
	"github.com/apitomy/axiom-operator/internal/secretscan"
)

// definitionGate shows the scanner to the admission of definitions.
type definitionGate struct{ scanner *secretscan.Scanner }

// Text finds the first secret.
func (g definitionGate) Text(text string) *definition.Hit {
	hit := g.scanner.Text(text)
	if hit == nil {
		return nil
	}
	return &definition.Hit{Rule: hit.Rule, Line: hit.Line, Column: hit.Column}
}

// framedComponent shows a component to the engine of calls.
type framedComponent struct{ *definition.Component }

// Name of the component.
func (c framedComponent) Name() string { return c.Component.Name }

// SourcePath is that of its document in the commit.
func (c framedComponent) SourcePath() string { return c.Path }

// SourceHash is the document's Git blob id.
func (c framedComponent) SourceHash() string { return c.Blob }

// Start is the context of a frame.
func (c framedComponent) Start(inputs map[string]any) (map[string]any, error) {
	values, err := c.Component.Start(inputs)
	return values, wordOf(err)
}

// EvaluateOutputs is the result of a frame.
func (c framedComponent) EvaluateOutputs(ctx context.Context, values map[string]any) (map[string]any, error) {
	result, err := c.Component.EvaluateOutputs(ctx, values)
	return result, wordOf(err)
}

// wordOf is what a failure says: the engine of calls knows its code.
func wordOf(err error) error {
	if failure, isFailure := errors.AsType[*definition.Failure](err); isFailure {
		return errors.New(failure.Message)
	}
	return err
}

// Call is what a component node calls.
func (c framedComponent) Call(node string) (frames.Call, bool) {
	call, isCall := c.Component.Call(node)
	if !isCall {
		return frames.Call{}, false
	}
	framed := frames.Call{
		Component: call.Component, Outputs: call.Outputs,
		Inputs: map[string]string{}, Literals: map[string]any{}, Sections: map[string]string{},
	}
	for name, value := range call.Inputs {
		text, isText := value.(string)
		switch {
		case !isText:
			framed.Literals[name] = value
		case definition.IsReference(text):
			framed.Sections[name] = text
		default:
			framed.Inputs[name] = text
		}
	}
	if call.Repeat != nil {
		framed.Repeat = &frames.Repeat{Max: call.Repeat.Max, Until: call.Repeat.Until}
	}
	if call.ForEach != nil {
		framed.ForEach = &frames.ForEach{Items: call.ForEach.Items, As: call.ForEach.As, Max: call.ForEach.Max}
	}
	return framed, true
}

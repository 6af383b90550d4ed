package action

import (
	"errors"
	"fmt"

	"github.com/apitomy/axiom-operator/internal/placeholder"
)

// MaxPrompt bounds a rendered prompt, in bytes.
const MaxPrompt = 128 << 10

// A RenderError says where a prompt could not be rendered.
type RenderError struct {
	// Line of the template, from 1; 0: all of it.
	Line int
	// Reason in words, with no value.
	Reason string
}

// Error implements error.
func (e *RenderError) Error() string {
	if e.Line == 0 {
		return e.Reason
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Reason)
}

// RenderPrompt replaces each placeholder of a template by the string form of
// what its expression gives, in one pass: what a value holds is never rendered
// again. The error is a [*RenderError], or what eval could not help.
func RenderPrompt(template string, eval func(expression string) (any, error)) (string, error) {
	var unhelped error
	text, err := placeholder.Render(template, MaxPrompt, func(expression string) (any, error) {
		value, err := eval(expression)
		unhelped = err
		return value, err
	})
	var wrong *placeholder.Error
	switch {
	case unhelped != nil || !errors.As(err, &wrong):
		return text, err
	case errors.Is(err, placeholder.ErrTooLong):
		return "", &RenderError{Line: wrong.Line, Reason: fmt.Sprintf("the prompt has more than %d bytes", MaxPrompt)}
	}
	return "", &RenderError{Line: wrong.Line, Reason: wrong.Cause.Error()}
}

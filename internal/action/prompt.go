package action

import (
	"fmt"
	"strings"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
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
	var text strings.Builder
	rest := 0
	for _, p := range placeholders(template) {
		if reason := p.judge(nil); reason != "" {
			return "", &RenderError{Line: p.line, Reason: "the placeholder " + reason}
		}
		value, err := eval(p.expression)
		if err != nil {
			return "", fmt.Errorf("line %d: %w", p.line, err)
		}
		form, err := jsonvalue.StringForm(value)
		if err != nil {
			return "", &RenderError{Line: p.line, Reason: err.Error()}
		}
		text.WriteString(unescaped(template[rest:p.start]))
		text.WriteString(form)
		rest = p.end
		if text.Len() > MaxPrompt {
			return "", &RenderError{Line: p.line, Reason: tooLong}
		}
	}
	text.WriteString(unescaped(template[rest:]))
	if text.Len() > MaxPrompt {
		return "", &RenderError{Reason: tooLong}
	}
	return text.String(), nil
}

var tooLong = fmt.Sprintf("the prompt has more than %d bytes", MaxPrompt)

// unescaped takes the dollar away that makes an opening literal.
func unescaped(text string) string {
	return strings.ReplaceAll(text, "$"+placeholderOpen, placeholderOpen)
}

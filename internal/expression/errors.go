package expression

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ErrInterrupted reports an evaluation that its context ended. It says nothing about the expression, which may be
// evaluated again.
var ErrInterrupted = errors.New("evaluation interrupted")

const (
	// maxShownExpression bounds how much of its text an error repeats, in bytes.
	maxShownExpression = 200
	// maxShownReason bounds what an error says beyond that, in bytes: the reasons of CEL may quote whole values.
	maxShownReason = 500
	// maxShownIssues bounds the number of compile issues an error lists.
	maxShownIssues = 3
)

// A CompileError reports a text that is no expression of its scope.
type CompileError struct {
	Scope Scope
	// Expression is the text, cut if it is long.
	Expression string
	// Reason lists the first issues, each with line and column.
	Reason string
}

// Error implements error.
func (e *CompileError) Error() string {
	return fmt.Sprintf("compile expression %q: %s", e.Expression, e.Reason)
}

// An EvalError reports an expression that has no value, or none that JSON can hold, or that asked for too much work.
type EvalError struct {
	Scope Scope
	// Expression is the text, cut if it is long.
	Expression string
	// Reason says in one line what went wrong.
	Reason string
}

// Error implements error.
func (e *EvalError) Error() string {
	return fmt.Sprintf("evaluate expression %q: %s", e.Expression, e.Reason)
}

// oneLine makes a text fit for a message: no line breaks, valid, at most limit bytes and a mark where it was cut.
func oneLine(text string, limit int) string {
	if len(text) > limit {
		cut := limit
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	return strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
}

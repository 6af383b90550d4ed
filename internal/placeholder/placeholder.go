// Package placeholder finds the expressions in a text, and puts their values in.
//
// A placeholder is `${{ expression }}`. It ends at the first closing that is not in a string of the expression; a dollar
// before the opening makes it literal. A text is rendered in one pass: what a value holds is never rendered again.
//
// The package knows nothing of what expressions mean or of what a text is for.
package placeholder

import (
	"errors"
	"fmt"
	"strings"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

const (
	opening = "${{"
	closing = "}}"
)

// A Placeholder is one expression of a text.
type Placeholder struct {
	Expression string
	// Line it begins in, from 1.
	Line int
	// isClosed is false when the text ends before the placeholder does.
	isClosed bool
	// start and end of it in the text, in bytes.
	start, end int
}

var (
	errUnclosed = errors.New("is not closed by }}")
	errBlank    = errors.New("is blank")
)

// Check tells why there is nothing to evaluate.
func (p Placeholder) Check() error {
	switch {
	case !p.isClosed:
		return errUnclosed
	case strings.TrimSpace(p.Expression) == "":
		return errBlank
	}
	return nil
}

// Find returns the placeholders of a text. Whatever stands behind one that is not closed is part of it.
func Find(text string) []Placeholder {
	var found []Placeholder
	at, line, counted := 0, 1, 0
	for {
		open := strings.Index(text[at:], opening)
		if open < 0 {
			return found
		}
		open += at
		at = open + len(opening)
		if open > 0 && text[open-1] == '$' {
			continue
		}
		line, counted = line+strings.Count(text[counted:open], "\n"), open
		end := endOfExpression(text[at:])
		if end < 0 {
			return append(found, Placeholder{Line: line, start: open, end: len(text)})
		}
		p := Placeholder{Expression: text[at : at+end], Line: line, isClosed: true, start: open}
		at += end + len(closing)
		p.end = at
		found = append(found, p)
	}
}

// An Error says where a text could not be rendered.
type Error struct {
	// Line of the text, from 1; 0: all of it.
	Line int
	// Cause, which holds no value unless that of an evaluator does.
	Cause error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Cause.Error()
	}
	return fmt.Sprintf("line %d: %v", e.Line, e.Cause)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// ErrTooLong reports a text that would be longer than it may be.
var ErrTooLong = errors.New("the text is too long")

// Render replaces each placeholder of a text by the string form of what eval gives for its expression. The result has at
// most limit bytes. The error is an [*Error].
func Render(text string, limit int, eval func(expression string) (any, error)) (string, error) {
	var rendered strings.Builder
	rest := 0
	for _, p := range Find(text) {
		form, err := p.render(eval)
		if err != nil {
			return "", &Error{Line: p.Line, Cause: err}
		}
		rendered.WriteString(unescaped(text[rest:p.start]))
		rendered.WriteString(form)
		rest = p.end
		if rendered.Len() > limit {
			return "", &Error{Line: p.Line, Cause: ErrTooLong}
		}
	}
	rendered.WriteString(unescaped(text[rest:]))
	if rendered.Len() > limit {
		return "", &Error{Cause: ErrTooLong}
	}
	return rendered.String(), nil
}

func (p Placeholder) render(eval func(expression string) (any, error)) (string, error) {
	if err := p.Check(); err != nil {
		return "", fmt.Errorf("the placeholder %w", err)
	}
	value, err := eval(p.Expression)
	if err != nil {
		return "", err
	}
	return jsonvalue.StringForm(value)
}

// unescaped takes the dollar away that makes an opening literal.
func unescaped(text string) string {
	return strings.ReplaceAll(text, "$"+opening, opening)
}

// endOfExpression returns the index of the first closing outside a CEL string,
// or -1. A quote in a comment, which ends with its line, opens no string.
func endOfExpression(text string) int {
	isComment := false
	for i := 0; i < len(text); {
		switch rest := text[i:]; {
		case strings.HasPrefix(rest, closing):
			return i
		case !isComment && (rest[0] == '"' || rest[0] == '\''):
			end := endOfLiteral(text, i)
			if end < 0 {
				return -1
			}
			i = end
		default:
			isComment = rest[0] != '\n' && (isComment || strings.HasPrefix(rest, "//"))
			i++
		}
	}
	return -1
}

// endOfLiteral returns the index behind the CEL string whose quote is at
// start, or -1 when it is not closed.
func endOfLiteral(text string, start int) int {
	quote := text[start : start+1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(text[start:], triple) {
		quote = triple
	}
	raw := isRaw(text, start)
	for i := start + len(quote); i < len(text); i++ {
		if strings.HasPrefix(text[i:], quote) {
			return i + len(quote)
		}
		if text[i] == '\\' && !raw {
			i++
		}
	}
	return -1
}

// isRaw tells whether the string whose quote is at start has an r before it,
// alone or with the b of bytes, so that a backslash escapes nothing.
func isRaw(text string, start int) bool {
	prefix := start
	for prefix > 0 && strings.ContainsRune("rRbB", rune(text[prefix-1])) && start-prefix < 2 {
		prefix--
	}
	if prefix > 0 && isWord(text[prefix-1]) {
		return false
	}
	return strings.ContainsAny(text[prefix:start], "rR")
}

func isWord(b byte) bool {
	return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

package expression

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
)

var (
	errUTF8    = errors.New("it is not valid UTF-8")
	errControl = errors.New("it has too many different control characters")
)

// parse makes the syntax tree of a text.
//
// The lexer of the library takes a thousand times longer for each character beyond ASCII. The language has them only in
// literals and comments, so it is shown another character in their place, and the literals get theirs back afterwards.
func parse(env *cel.Env, text string) (*cel.Ast, error) {
	if !utf8.ValidString(text) {
		return nil, errUTF8
	}
	shown, standIn, err := ascii(text)
	if err != nil {
		return nil, err
	}
	parsed, issues := env.ParseSource(source{common.NewTextSource(shown)})
	if err := firstIssues(issues); err != nil {
		return nil, errors.New(strings.ReplaceAll(err.Error(), string(standIn), string(utf8.RuneError)))
	}
	if len(shown) < len(text) {
		restore(parsed.NativeRep(), []rune(text), standIn)
	}
	return parsed, nil
}

// A source is a text that no message quotes: the library takes time by the square of the length of a line to do so.
type source struct {
	common.Source
}

// Snippet implements [common.Source].
func (source) Snippet(int) (string, bool) { return "", false }

// ascii replaces each character beyond ASCII by the same stand-in, so that positions stay.
func ascii(text string) (shown string, standIn rune, err error) {
	if !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return text, utf8.RuneError, nil
	}
	if standIn, err = standInFor(text); err != nil {
		return "", 0, err
	}
	shown = strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf {
			return standIn
		}
		return r
	}, text)
	return shown, standIn, nil
}

// standInFor finds a control character that no literal in the text can have, neither as it is nor by an escape.
func standInFor(text string) (rune, error) {
	lower := strings.ToLower(text)
	for r := rune(0x01); r < 0x20; r++ {
		if r >= '\a' && r <= '\r' {
			continue // those that have a letter of their own
		}
		if !strings.ContainsRune(text, r) && !hasEscape(lower, r) {
			return r, nil
		}
	}
	return 0, errControl
}

// hasEscape looks for the digits of the escapes of a control character. It may find them in something else.
func hasEscape(lower string, r rune) bool {
	const digits = "0123456789abcdef"
	hex := string([]byte{digits[r>>4], digits[r&15]})
	octal := string([]byte{'\\', '0', digits[r>>3], digits[r&7]})
	return strings.Contains(lower, "x"+hex) || strings.Contains(lower, "00"+hex) || strings.Contains(lower, octal)
}

// restore gives the literals of an expression the characters that had a stand-in.
func restore(parsed *ast.AST, text []rune, standIn rune) {
	factory := ast.NewExprFactory()
	ast.PostOrderVisit(parsed.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.LiteralKind {
			return
		}
		at, _ := parsed.SourceInfo().GetOffsetRange(e.ID())
		switch value := e.AsLiteral().(type) {
		case types.String:
			e.SetKindCase(factory.NewLiteral(e.ID(), types.String(restored(string(value), text[at.Start:at.Stop], standIn))))
		case types.Bytes:
			e.SetKindCase(factory.NewLiteral(e.ID(), types.Bytes(restored(string(value), text[at.Start:at.Stop], standIn))))
		}
	}))
}

// restored puts the characters beyond ASCII of a literal, as it is spelt, in the places of the stand-in in its value.
func restored(value string, literal []rune, standIn rune) string {
	wide := slices.DeleteFunc(slices.Clone(literal), func(r rune) bool { return r < utf8.RuneSelf })
	parts := strings.Split(value, string(standIn))
	var b strings.Builder
	b.WriteString(parts[0])
	for i, part := range parts[1:] {
		b.WriteRune(wide[i])
		b.WriteString(part)
	}
	return b.String()
}

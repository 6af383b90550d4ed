package jsonvalue

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

// ErrType reports a Go value that stands for no JSON value.
var ErrType = errors.New("not a JSON value")

// Canonical writes v by RFC 8785: UTF-8 without white space, members sorted
// by the UTF-16 code units of their names, strings with as few escapes as
// possible, numbers as ECMAScript prints the nearest double. It is an error
// if a number is not finite, text is not Unicode, or nesting passes MaxDepth.
func Canonical(v any) ([]byte, error) {
	var e encoder
	if err := e.value(v, 0); err != nil {
		return nil, fmt.Errorf("encode canonical JSON: %w", err)
	}
	return e.buf, nil
}

// StringForm returns a string as it is, nothing for nil, and for every other
// value its canonical JSON.
func StringForm(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	}
	text, err := Canonical(v)
	return string(text), err
}

// encoder appends to one buffer. The names of all objects that are open lie
// on one stack, so that only its growth allocates.
type encoder struct {
	buf   []byte
	names []string
}

func (e *encoder) value(v any, depth int) error {
	switch v := v.(type) {
	case nil:
		e.buf = append(e.buf, "null"...)
	case bool:
		e.bool(v)
	case string:
		return e.string(v)
	case []any:
		return e.list(v, depth+1)
	case map[string]any:
		return e.object(v, depth+1)
	default:
		return e.number(v)
	}
	return nil
}

func (e *encoder) bool(v bool) {
	if v {
		e.buf = append(e.buf, "true"...)
	} else {
		e.buf = append(e.buf, "false"...)
	}
}

func (e *encoder) number(v any) error {
	switch n := v.(type) {
	case int64:
		e.buf = appendInteger(e.buf, n)
	case int:
		e.buf = appendInteger(e.buf, int64(n))
	case int32:
		e.buf = appendInteger(e.buf, int64(n))
	case float64:
		if math.IsNaN(n) || math.IsInf(n, 0) {
			return ErrNumber
		}
		e.buf = appendDouble(e.buf, n)
	case json.Number:
		f, err := parseDouble(string(n))
		if err != nil {
			return err
		}
		e.buf = appendDouble(e.buf, f)
	default:
		return fmt.Errorf("%T: %w", v, ErrType)
	}
	return nil
}

func (e *encoder) list(list []any, depth int) error {
	if depth > MaxDepth {
		return ErrDepth
	}
	e.buf = append(e.buf, '[')
	for i, element := range list {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		if err := e.value(element, depth); err != nil {
			return err
		}
	}
	e.buf = append(e.buf, ']')
	return nil
}

func (e *encoder) object(object map[string]any, depth int) error {
	if depth > MaxDepth {
		return ErrDepth
	}
	base := len(e.names)
	for name := range object {
		e.names = append(e.names, name)
	}
	// Objects within push behind these names and never write to them, even
	// when the stack moves.
	names := e.names[base:]
	slices.SortFunc(names, compareUTF16)

	e.buf = append(e.buf, '{')
	for i, name := range names {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		if err := e.string(name); err != nil {
			return err
		}
		e.buf = append(e.buf, ':')
		if err := e.value(object[name], depth); err != nil {
			return err
		}
	}
	e.buf = append(e.buf, '}')
	e.names = e.names[:base]
	return nil
}

func (e *encoder) string(s string) error {
	if !utf8.ValidString(s) {
		return ErrText
	}
	e.buf = append(e.buf, '"')
	written := 0
	for i := range len(s) {
		escape := escapes[s[i]]
		if escape == "" {
			continue
		}
		e.buf = append(e.buf, s[written:i]...)
		e.buf = append(e.buf, escape...)
		written = i + 1
	}
	e.buf = append(e.buf, s[written:]...)
	e.buf = append(e.buf, '"')
	return nil
}

// escapes holds, by byte, what stands in a string instead of it.
var escapes = func() (table [256]string) {
	for c := range 0x20 {
		table[c] = fmt.Sprintf(`\u%04x`, c)
	}
	for c, escape := range map[byte]string{
		'"': `\"`, '\\': `\\`, '\b': `\b`, '\t': `\t`, '\n': `\n`, '\f': `\f`, '\r': `\r`,
	} {
		table[c] = escape
	}
	return table
}()

// compareUTF16 orders valid UTF-8 by UTF-16 code units. Bytes give the same
// order but for one pair of ranges: the surrogates of what lies beyond U+FFFF
// come before U+E000 to U+FFFF.
func compareUTF16(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return cmp.Compare(rankUTF16(a[i]), rankUTF16(b[i]))
		}
	}
	return cmp.Compare(len(a), len(b))
}

// rankUTF16 puts the lead bytes of U+E000 to U+FFFF, 0xEE and 0xEF, behind
// those of longer sequences, 0xF0 to 0xF4.
func rankUTF16(c byte) byte {
	if c == 0xEE || c == 0xEF {
		return c + 0x10
	}
	return c
}

package jsonvalue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

var (
	// ErrText reports text that is not Unicode: bytes that are no UTF-8, or
	// half of a surrogate pair.
	ErrText = errors.New("text is not valid Unicode")
	// ErrDepth reports a value nested deeper than MaxDepth.
	ErrDepth = errors.New("value is nested too deep")
	// ErrValues reports a value with more than MaxValues parts.
	ErrValues = errors.New("value has too many parts")
	// ErrTrailing reports data behind the value.
	ErrTrailing = errors.New("data after the value")
)

const (
	// MaxDepth is how deep lists and objects may nest.
	MaxDepth = 10_000
	// MaxValues is how many values there may be in one. Each takes hundreds of
	// bytes of memory, though it can be two bytes of text: 512 KiB, the largest
	// document there is, cannot have as many.
	MaxValues = 300_000
)

// Decode reads exactly one JSON value. A number whose value is integral and
// fits becomes an int64 however it is spelt, any other a float64; one beyond
// the doubles is an error, as are text that is not Unicode, nesting beyond
// MaxDepth and more than MaxValues parts. Of members of the same name the last
// one counts.
func Decode(data []byte) (any, error) {
	if !utf8.Valid(data) || !pairsSurrogates(data) {
		return nil, fmt.Errorf("decode value: %w", ErrText)
	}
	depth, values := measure(data)
	switch {
	case depth > MaxDepth: // where encoding/json stops too, but it names that only in prose
		return nil, fmt.Errorf("decode value: %w", ErrDepth)
	case values > MaxValues:
		return nil, fmt.Errorf("decode value: %w", ErrValues)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return nil, fmt.Errorf("decode value: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("decode value: %w", ErrTrailing)
	}
	v, err := convertNumbers(v)
	if err != nil {
		return nil, fmt.Errorf("decode value: %w", err)
	}
	return v, nil
}

// convertNumbers replaces the number texts of a tree in place.
func convertNumbers(v any) (any, error) {
	var err error
	switch v := v.(type) {
	case json.Number:
		return parseNumber(string(v))
	case []any:
		for i := range v {
			if v[i], err = convertNumbers(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for name, member := range v {
			if v[name], err = convertNumbers(member); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// pairsSurrogates tells whether every escaped surrogate in data is half of a
// pair. encoding/json would put U+FFFD for a lone one, and two different
// documents would become the same.
func pairsSurrogates(data []byte) bool {
	for {
		at := bytes.IndexByte(data, '\\')
		if at < 0 || at+1 == len(data) {
			return true
		}
		unit, escaped := codeUnit(data[at:])
		if !escaped || unit < 0xD800 || unit > 0xDFFF {
			data = data[at+2:]
			continue
		}
		low, _ := codeUnit(data[at+escapeLength:])
		if unit >= 0xDC00 || low < 0xDC00 || low > 0xDFFF {
			return false
		}
		data = data[at+2*escapeLength:]
	}
}

// escapeLength is the length of an escape \uXXXX.
const escapeLength = 6

// codeUnit reads an escape \uXXXX at the beginning of data.
func codeUnit(data []byte) (unit uint64, ok bool) {
	if len(data) < escapeLength || data[0] != '\\' || data[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(data[2:escapeLength]), 16, 16)
	return unit, err == nil
}

// measure counts how deep the brackets of data nest, outside of strings, and
// how many values there can be at most.
func measure(data []byte) (deepest, values int) {
	depth := 0
	values = 1
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '[', '{':
			depth++
			deepest = max(deepest, depth)
			values++
		case ']', '}':
			depth--
		case ',':
			values++
		case '"':
			i = endOfString(data, i+1)
		}
	}
	return deepest, values
}

// endOfString returns the index of the quote that closes the string whose
// text begins at i, or the length of data.
func endOfString(data []byte, i int) int {
	for ; i < len(data) && data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return i
}

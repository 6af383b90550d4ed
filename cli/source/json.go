package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// A syntaxError is an error of data that is no JSON at all, and may be YAML.
type syntaxError struct{ cause *Error }

func (e syntaxError) Error() string { return e.cause.Error() }

func (e syntaxError) Unwrap() error { return e.cause }

// A jsonReader reads token by token, so that every value and key has a place.
type jsonReader struct {
	name    string
	data    []byte
	decoder *json.Decoder
	values  int
	// at is the position of the byte at offset; it only moves on.
	at     Position
	offset int
}

func parseJSON(name string, data []byte) (*Document, error) {
	r := &jsonReader{name: name, data: data, decoder: json.NewDecoder(bytes.NewReader(data)), at: Position{1, 1}}
	r.decoder.UseNumber()
	token, err := r.next()
	if err != nil {
		return nil, err
	}
	value, where, err := r.value(token, 0)
	if err != nil {
		return nil, err
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	return &Document{Name: name, Value: value, place: where}, nil
}

// end makes sure that there is nothing more.
func (r *jsonReader) end() error {
	r.moveToToken()
	if _, err := r.decoder.Token(); !errors.Is(err, io.EOF) {
		return syntaxError{r.fail("there is more data after the value")}
	}
	return nil
}

// next reads a token and moves to where it begins.
func (r *jsonReader) next() (json.Token, error) {
	r.moveToToken()
	token, err := r.decoder.Token()
	if err == nil {
		return token, nil
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		// Between tokens the offset is that of the character, within one it counts
		// the character too.
		where := positionOf(r.data, max(int(syntax.Offset)-1, r.offset))
		return nil, syntaxError{&Error{Name: r.name, Position: where, Reason: syntax.Error()}}
	}
	return nil, syntaxError{&Error{Name: r.name, Position: positionOf(r.data, len(r.data)), Reason: "the data ends too early"}}
}

// moveToToken passes over what stands between tokens.
func (r *jsonReader) moveToToken() {
	end := int(r.decoder.InputOffset())
	for end < len(r.data) && strings.IndexByte(" \t\r\n,:", r.data[end]) >= 0 {
		end++
	}
	passed := r.data[r.offset:end]
	r.offset = end
	if newline := bytes.LastIndexByte(passed, '\n'); newline >= 0 {
		r.at.Line += bytes.Count(passed, []byte("\n"))
		r.at.Column = 1
		passed = passed[newline+1:]
	}
	r.at.Column += utf8.RuneCount(passed)
}

func (r *jsonReader) fail(format string, args ...any) *Error {
	return &Error{Name: r.name, Position: r.at, Reason: fmt.Sprintf(format, args...)}
}

func (r *jsonReader) value(token json.Token, depth int) (any, place, error) {
	where := place{Position: r.at}
	if r.values++; r.values > MaxValues {
		return nil, where, r.fail("there are over %d values", MaxValues)
	}
	delimiter, ok := token.(json.Delim)
	if !ok {
		value, err := r.scalar(token)
		return value, where, err
	}
	if depth == MaxDepth {
		return nil, where, r.fail("lists and objects nest deeper than %d", MaxDepth)
	}
	if delimiter == '[' {
		value, err := r.list(&where, depth+1)
		return value, where, err
	}
	value, err := r.object(&where, depth+1)
	return value, where, err
}

func (r *jsonReader) list(where *place, depth int) (any, error) {
	list := []any{}
	for {
		token, err := r.next()
		if err != nil {
			return nil, err
		}
		if token == json.Delim(']') {
			return list, nil
		}
		value, at, err := r.value(token, depth)
		if err != nil {
			return nil, err
		}
		list, where.items = append(list, value), append(where.items, at)
	}
}

func (r *jsonReader) object(where *place, depth int) (any, error) {
	object := map[string]any{}
	for {
		token, err := r.next()
		if err != nil {
			return nil, err
		}
		if token == json.Delim('}') {
			return object, nil
		}
		key, err := r.key(token, object)
		if err != nil {
			return nil, err
		}
		if token, err = r.next(); err != nil {
			return nil, err
		}
		value, at, err := r.value(token, depth)
		if err != nil {
			return nil, err
		}
		object[key], where.members = value, append(where.members, member{key, at})
	}
}

func (r *jsonReader) key(token json.Token, object map[string]any) (string, error) {
	name, err := r.scalar(token)
	if err != nil {
		return "", err
	}
	key := name.(string) // the decoder lets nothing else stand here
	if _, taken := object[key]; taken {
		return "", r.fail("the key %s stands twice in this object", quote(key))
	}
	return key, nil
}

// scalar is the value of a token that is no bracket.
func (r *jsonReader) scalar(token json.Token) (any, error) {
	switch token := token.(type) {
	case json.Number:
		return r.number(string(token))
	case string:
		return token, r.checkEscapes()
	}
	return token, nil
}

func (r *jsonReader) number(text string) (any, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	value, err := jsonvalue.Decode([]byte(text))
	if err != nil {
		return nil, r.fail("the number %s is beyond all doubles", quote(text))
	}
	return value, nil
}

// checkEscapes refuses half a surrogate pair, for which the decoder puts another
// character.
func (r *jsonReader) checkEscapes() error {
	raw := r.data[r.offset:r.decoder.InputOffset()]
	if !bytes.Contains(raw, []byte(`\u`)) {
		return nil
	}
	if _, err := jsonvalue.Decode(raw); err != nil {
		return r.fail("the text %s is not valid Unicode", quote(string(raw)))
	}
	return nil
}

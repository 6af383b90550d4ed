package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// Values is a JSON object. Numbers that are integral and fit are int64, as package jsonvalue decodes them.
type Values map[string]any

var errNoObject = errors.New("not a JSON object")

// UnmarshalJSON keeps integers exact, which the decoder of the standard library would make doubles.
func (v *Values) UnmarshalJSON(data []byte) error {
	decoded, err := jsonvalue.Decode(data)
	if err != nil {
		return err
	}
	if decoded == nil {
		*v = nil
		return nil
	}
	object, ok := decoded.(map[string]any)
	if !ok {
		return errNoObject
	}
	*v = object
	return nil
}

// maxDepth bounds how deep values may nest. Every encoder that an instance passes can hold that much.
const maxDepth = 1000

var (
	errDepth = fmt.Errorf("nested deeper than %d", maxDepth)
	errJSON  = errors.New("no value of JSON")
)

// normalObject copies an object in the one spelling that survives JSON. A nil object is not an object.
func normalObject(v Values) (Values, error) {
	if v == nil {
		return nil, errNoObject
	}
	normal, err := normalize(map[string]any(v), 0)
	if err != nil {
		return nil, err
	}
	return normal.(map[string]any), nil
}

func normalize(v any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errDepth
	}
	switch v := v.(type) {
	case nil, bool, int64:
		return v, nil
	case string:
		if !utf8.ValidString(v) {
			return nil, errJSON
		}
		return v, nil
	case []any:
		return normalizeList(v, depth+1)
	case map[string]any:
		return normalizeMap(v, depth+1)
	case Values:
		return normalizeMap(v, depth+1)
	}
	return normalizeNumber(v)
}

func normalizeList(list []any, depth int) (any, error) {
	normal := make([]any, len(list))
	for i, entry := range list {
		var err error
		if normal[i], err = normalize(entry, depth); err != nil {
			return nil, err
		}
	}
	return normal, nil
}

func normalizeMap(object map[string]any, depth int) (any, error) {
	normal := make(map[string]any, len(object))
	for name, member := range object {
		if !utf8.ValidString(name) {
			return nil, errJSON
		}
		var err error
		if normal[name], err = normalize(member, depth); err != nil {
			return nil, err
		}
	}
	return normal, nil
}

func normalizeNumber(v any) (any, error) {
	switch n := v.(type) {
	case int:
		return int64(n), nil
	case int32:
		return int64(n), nil
	case json.Number:
		return jsonvalue.Decode([]byte(n))
	}
	f, ok := v.(float64)
	switch {
	case !ok || math.IsNaN(f) || math.IsInf(f, 0):
		return nil, errJSON
	case f == math.Trunc(f) && f >= math.MinInt64 && f < math.MaxInt64:
		return int64(f), nil
	}
	return f, nil
}

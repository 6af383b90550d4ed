package workflow

import (
	"encoding/json"
	"math"
	"strings"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// text is v if it is a string, else empty.
func text(v any) string {
	s, _ := v.(string)
	return s
}

// object is v if it is an object, else nil, which reads like an empty one.
func object(v any) map[string]any {
	o, _ := v.(map[string]any)
	return o
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

func flag(v any) bool {
	b, _ := v.(bool)
	return b
}

// blank tells whether v is anything but a string with a character that is no white space.
func blank(v any) bool {
	return strings.TrimSpace(text(v)) == ""
}

// integer is the value of a number that is integral and fits int64, whatever Go type holds it.
func integer(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case int:
		return int64(n), true
	case int32:
		return int64(n), true
	case json.Number:
		if i, err := n.Int64(); err == nil {
			return i, true
		}
	}
	f, ok := jsonvalue.Number(v)
	// The bounds are exact doubles; the upper one itself is beyond int64.
	if !ok || f != math.Trunc(f) || f < math.MinInt64 || f >= math.MaxInt64 {
		return 0, false
	}
	return int64(f), true
}

// strings of a list, passing over everything else.
func texts(v any) []string {
	var found []string
	for _, entry := range list(v) {
		if s, ok := entry.(string); ok {
			found = append(found, s)
		}
	}
	return found
}

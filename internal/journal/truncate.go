package journal

import (
	"fmt"
	"unicode/utf8"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// Truncate returns a copy of a JSON value in which every string has at most
// maxString characters and every list at most maxItems entries, each followed
// by a note of how much is missing. The copy shares nothing with the value.
func Truncate(value any, maxString, maxItems int) any {
	switch v := value.(type) {
	case string:
		return truncateString(v, maxString)
	case []any:
		return truncateList(v, maxString, maxItems)
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, member := range v {
			object[name] = Truncate(member, maxString, maxItems)
		}
		return object
	}
	return jsonvalue.Clone(value)
}

func truncateString(s string, limit int) string {
	if len(s) <= limit { // no string has more characters than bytes
		return s
	}
	count := utf8.RuneCountInString(s)
	if count <= limit {
		return s
	}
	return fmt.Sprintf("%s…[truncated %d chars]", prefix(s, limit), count-limit)
}

func truncateList(list []any, maxString, maxItems int) []any {
	kept := list[:min(len(list), maxItems)]
	copied := make([]any, 0, len(kept)+1)
	for _, item := range kept {
		copied = append(copied, Truncate(item, maxString, maxItems))
	}
	if missing := len(list) - len(kept); missing > 0 {
		copied = append(copied, fmt.Sprintf("…[%d more items]", missing))
	}
	return copied
}

// prefix returns the first n characters of s.
func prefix(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

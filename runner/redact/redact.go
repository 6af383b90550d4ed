// Package redact decides what of a text may leave the pod: every known secret
// value of [MinLength] or more characters is replaced by [Mark], also where
// values overlap, where one is part of another, and where the text holds the
// value as it stands inside a JSON string.
//
// Text that arrives in pieces is held back only as far as it could be the
// beginning of a secret, so that a value cut in two does not slip through.
//
// The package knows nothing of where secrets come from or where text goes.
package redact

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// Mark stands where a secret was.
const Mark = "[redacted]"

// MinLength is the shortest value, in characters, that counts as a secret:
// shorter ones would blank out ordinary words.
const MinLength = 8

// Redactor replaces a fixed set of secret values. The zero value replaces
// nothing. A Redactor may be used by several goroutines at once.
type Redactor struct {
	needles []string
}

// New returns a Redactor for the given values. Values shorter than
// [MinLength] characters are ignored.
func New(secrets []string) *Redactor {
	var needles []string
	for _, secret := range secrets {
		if utf8.RuneCountInString(secret) < MinLength {
			continue
		}
		needles = append(needles, secret, insideJSON(secret))
	}
	slices.SortFunc(needles, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
	})
	return &Redactor{needles: slices.Compact(needles)}
}

// insideJSON returns the secret as it is spelt between the quotes of a JSON
// string; line breaks and quotes make the two differ.
func insideJSON(secret string) string {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(secret); err != nil {
		return secret
	}
	return strings.TrimSuffix(strings.TrimPrefix(text.String(), `"`), "\"\n")
}

// String returns s without secrets.
func (r *Redactor) String(s string) string {
	spans := r.spans(s)
	if len(spans) == 0 {
		return s
	}
	var clean strings.Builder
	rest := 0
	for _, found := range spans {
		clean.WriteString(s[rest:found.start])
		clean.WriteString(Mark)
		rest = found.end
	}
	clean.WriteString(s[rest:])
	return clean.String()
}

type span struct{ start, end int }

// spans returns where secrets stand in s, in order, overlapping ones merged:
// replacing them one by one would leave the tail of the second in the open.
func (r *Redactor) spans(s string) []span {
	if r == nil {
		return nil
	}
	var found []span
	for _, needle := range r.needles {
		for at := 0; ; {
			i := strings.Index(s[at:], needle)
			if i < 0 {
				break
			}
			found = append(found, span{at + i, at + i + len(needle)})
			at += i + 1
		}
	}
	return merge(found)
}

func merge(found []span) []span {
	slices.SortFunc(found, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end))
	})
	merged := found[:0]
	for _, next := range found {
		if last := len(merged) - 1; last >= 0 && next.start < merged[last].end {
			merged[last].end = max(merged[last].end, next.end)
			continue
		}
		merged = append(merged, next)
	}
	return merged
}

// Value returns a copy of a JSON tree whose strings and member names hold no
// secret. Values other than strings, lists and objects are returned as they
// are.
func (r *Redactor) Value(v any) any {
	switch v := v.(type) {
	case string:
		return r.String(v)
	case []any:
		clean := make([]any, len(v))
		for i, element := range v {
			clean[i] = r.Value(element)
		}
		return clean
	case map[string]any:
		clean := make(map[string]any, len(v))
		for name, member := range v {
			clean[r.String(name)] = r.Value(member)
		}
		return clean
	default:
		return v
	}
}

// Safe returns how many bytes of s may be released before more text arrives:
// what follows could be the beginning of a secret. Secrets that are complete
// count as released text; pass the released part through [Redactor.String].
func (r *Redactor) Safe(s string) int {
	if r == nil {
		return len(s)
	}
	safe := len(s)
	for _, needle := range r.needles {
		safe = min(safe, len(s)-openPrefix(s, needle))
	}
	return r.beforeSpan(s, safe)
}

// openPrefix returns the length of the longest proper prefix of needle that s
// ends with.
func openPrefix(s, needle string) int {
	for n := min(len(needle)-1, len(s)); n > 0; n-- {
		if strings.HasSuffix(s, needle[:n]) {
			return n
		}
	}
	return 0
}

// beforeSpan moves a cut that falls inside a complete secret to its start.
func (r *Redactor) beforeSpan(s string, cut int) int {
	for _, found := range r.spans(s) {
		if found.start < cut && cut < found.end {
			return found.start
		}
	}
	return cut
}

package secretscan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Scanner finds secrets. It is safe for concurrent use and meant to be shared. The zero Scanner has no rules, so it
// cannot tell, and finds a secret in everything.
type Scanner struct {
	library []libraryRule
}

// New reads the rules.
func New() (*Scanner, error) {
	rules, err := readLibrary()
	if err != nil {
		return nil, fmt.Errorf("read secret rules: %w", err)
	}
	return &Scanner{library: rules}, nil
}

// Text returns the first secret of a text, or nil.
func (s *Scanner) Text(text string) (hit *Hit) {
	defer denyPanic(&hit)
	if s.isBroken() {
		return &Hit{Rule: RuleError, Line: 1, Column: 1}
	}
	first, found := s.first(text)
	if !found {
		return nil
	}
	before := text[:first.offset]
	lineStart := strings.LastIndexByte(before, '\n') + 1
	return &Hit{
		Rule:   first.rule,
		Line:   1 + strings.Count(before, "\n"),
		Column: 1 + utf8.RuneCountInString(before[lineStart:]),
	}
}

// denyPanic turns a panic into a hit: what made it is not told, for it may be the text.
func denyPanic(hit **Hit) {
	if recover() != nil {
		*hit = &Hit{Rule: RuleError, Line: 1, Column: 1}
	}
}

// A match is where a rule was met, in bytes.
type match struct {
	rule   string
	offset int
}

// first is the match that comes first in the text, and of those at one place the one whose rule does.
func (s *Scanner) first(text string) (match, bool) {
	lower := strings.ToLower(text)
	var found []match
	for _, rule := range s.library {
		if offset := rule.find(text, lower); offset >= 0 {
			found = append(found, match{rule.id, offset})
		}
	}
	if offset := findBearer(text); offset >= 0 {
		found = append(found, match{RuleBearer, offset})
	}
	if offset := findField(text); offset >= 0 {
		found = append(found, match{RuleField, offset})
	}
	if len(found) == 0 {
		return match{}, false
	}
	return slices.MinFunc(found, func(a, b match) int {
		return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(a.rule, b.rule))
	}), true
}

// Value returns the first secret of a JSON tree, or nil: of its strings, of the names of its members and of what the
// names say about the strings. Members come in the order of their names. What is no JSON tree cannot be told.
func (s *Scanner) Value(v any) (hit *Hit) {
	defer denyPanic(&hit)
	if s.isBroken() {
		return &Hit{Rule: RuleError, Line: 1, Column: 1}
	}
	return s.value(v, "")
}

func (s *Scanner) value(v any, pointer string) *Hit {
	switch v := v.(type) {
	case string:
		return at(pointer, s.Text(v))
	case []any:
		for i, item := range v {
			if hit := s.value(item, pointer+"/"+strconv.Itoa(i)); hit != nil {
				return hit
			}
		}
		return nil
	case map[string]any:
		return s.object(v, pointer)
	case nil, bool, int64, float64:
		return nil
	}
	return &Hit{Rule: RuleError, Pointer: pointer, Line: 1, Column: 1}
}

// isBroken tells whether there are no rules to tell by.
func (s *Scanner) isBroken() bool {
	return s == nil || len(s.library) == 0
}

func (s *Scanner) object(object map[string]any, pointer string) *Hit {
	for i, name := range slices.Sorted(maps.Keys(object)) {
		if hit := s.Text(name); hit != nil {
			return at(pointer+"/#"+strconv.Itoa(i), hit) // the name itself must not be told
		}
		member := pointer + "/" + pointerToken.Replace(name)
		if text, isText := object[name].(string); isText && isSecretField(name, text) {
			return &Hit{Rule: RuleField, Pointer: member, Line: 1, Column: 1}
		}
		if hit := s.value(object[name], member); hit != nil {
			return hit
		}
	}
	return nil
}

var pointerToken = strings.NewReplacer("~", "~0", "/", "~1")

func at(pointer string, hit *Hit) *Hit {
	if hit != nil {
		hit.Pointer = pointer
	}
	return hit
}

// CheckText is Text as an error: nil or a [*Hit].
func (s *Scanner) CheckText(text string) error {
	if hit := s.Text(text); hit != nil {
		return hit
	}
	return nil
}

// CheckValue is Value as an error: nil or a [*Hit].
func (s *Scanner) CheckValue(v any) error {
	if hit := s.Value(v); hit != nil {
		return hit
	}
	return nil
}

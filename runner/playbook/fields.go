package playbook

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// reader reads fields out of a JSON tree and collects what is wrong, each with
// its place.
type reader struct{ problems []error }

func (r *reader) problem(path, format string, args ...any) {
	r.problems = append(r.problems, fmt.Errorf("%s: %s", path, fmt.Sprintf(format, args...)))
}

func (r *reader) err() error { return errors.Join(r.problems...) }

// object returns v as an object that has no other members than those listed.
func (r *reader) object(path string, v any, members ...string) map[string]any {
	object, ok := v.(map[string]any)
	if !ok {
		r.problem(path, "must be an object")
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(members, name) {
			r.problem(join(path, name), "is unknown; known are %s", strings.Join(members, ", "))
		}
	}
	return object
}

func (r *reader) list(path string, v any) []any {
	list, ok := v.([]any)
	if !ok {
		r.problem(path, "must be a list")
	}
	return list
}

// text returns a text that is not blank.
func (r *reader) text(path string, v any) string {
	text, ok := v.(string)
	if !ok || strings.TrimSpace(text) == "" {
		r.problem(path, "must be a text that is not blank")
	}
	return text
}

// optionalText returns an absent text as empty.
func (r *reader) optionalText(path string, object map[string]any, name string) string {
	v, ok := object[name]
	if !ok {
		return ""
	}
	return r.text(join(path, name), v)
}

// pattern returns an absent regular expression as nil.
func (r *reader) pattern(path string, object map[string]any, name string) *regexp.Regexp {
	v, ok := object[name]
	if !ok {
		return nil
	}
	text, ok := v.(string)
	if !ok {
		r.problem(join(path, name), "must be a regular expression")
		return nil
	}
	pattern, err := regexp.Compile(text)
	if err != nil {
		r.problem(join(path, name), "must be a regular expression: %s", err)
	}
	return pattern
}

// choice returns one of the choices, the first if the member is absent.
func (r *reader) choice(path string, object map[string]any, name string, choices ...string) string {
	v, ok := object[name]
	if !ok {
		return choices[0]
	}
	text, _ := v.(string)
	if text == "" || !slices.Contains(choices, text) {
		given := slices.DeleteFunc(slices.Clone(choices), func(choice string) bool { return choice == "" })
		r.problem(join(path, name), "must be one of %s", strings.Join(given, ", "))
	}
	return text
}

func (r *reader) integer(path string, v any, low, high int64) int {
	n, ok := v.(int64)
	if !ok || n < low || n > high {
		r.problem(path, "must be an integer from %d to %d", low, high)
		return 0
	}
	return int(n)
}

func (r *reader) duration(path string, v any) time.Duration {
	text, _ := v.(string)
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		r.problem(path, "must be a duration such as 2s or 1m30s")
	}
	return d
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// variable checks the name under which a value is kept.
func (r *reader) variable(path, name string) {
	if !identifier.MatchString(name) {
		r.problem(path, "%q is no name: letters, digits and underscores, not beginning with a digit", name)
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

package playbook

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// Variables are the values that calls saved, by name: JSON trees.
type Variables map[string]any

// reference is ${name.member[0]}, or the same behind a second dollar sign.
var reference = regexp.MustCompile(`\$?\$\{([A-Za-z_][A-Za-z0-9_]*)((?:\.[A-Za-z0-9_-]+|\[[0-9]{1,9}\])*)\}`)

// pathPart is one step of the path in a reference.
var pathPart = regexp.MustCompile(`\.([A-Za-z0-9_-]+)|\[([0-9]+)\]`)

const escape = "$$"

// Expand returns a copy of a JSON tree with every reference in its texts, but
// not in the names of members, replaced.
func (v Variables) Expand(tree any) (any, error) {
	switch tree := tree.(type) {
	case string:
		return v.expandString(tree)
	case []any:
		list := make([]any, len(tree))
		for i, element := range tree {
			expanded, err := v.Expand(element)
			if err != nil {
				return nil, err
			}
			list[i] = expanded
		}
		return list, nil
	case map[string]any:
		object := make(map[string]any, len(tree))
		for _, name := range slices.Sorted(maps.Keys(tree)) {
			expanded, err := v.Expand(tree[name])
			if err != nil {
				return nil, err
			}
			object[name] = expanded
		}
		return object, nil
	default:
		return tree, nil
	}
}

// expandString gives a text that is one reference the value's own type.
func (v Variables) expandString(text string) (any, error) {
	found := reference.FindString(text)
	if found != "" && found == text && !strings.HasPrefix(text, escape) {
		value, err := v.lookup(text)
		if err != nil {
			return nil, err
		}
		return jsonvalue.Clone(value), nil
	}
	return v.ExpandText(text)
}

// ExpandText replaces every reference in a text by the value's text: a text
// itself, nothing for null, JSON for all else.
func (v Variables) ExpandText(text string) (string, error) {
	var failed error
	expanded := reference.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasPrefix(found, escape) {
			return found[1:]
		}
		value, err := v.lookup(found)
		if err == nil {
			var form string
			if form, err = jsonvalue.StringForm(value); err == nil {
				return form
			}
		}
		if failed == nil {
			failed = err
		}
		return ""
	})
	if failed != nil {
		return "", failed
	}
	return expanded, nil
}

func (v Variables) lookup(found string) (any, error) {
	parts := reference.FindStringSubmatch(found)
	value, ok := v[parts[1]]
	if !ok {
		return nil, fmt.Errorf("%s: nothing is saved as %s", found, parts[1])
	}
	for _, part := range pathPart.FindAllStringSubmatch(parts[2], -1) {
		if value, ok = child(value, part[1], part[2]); !ok {
			return nil, fmt.Errorf("%s: there is no %s", found, strings.TrimPrefix(part[0], "."))
		}
	}
	return value, nil
}

func child(value any, member, index string) (any, bool) {
	if index == "" {
		object, _ := value.(map[string]any)
		v, ok := object[member]
		return v, ok
	}
	list, _ := value.([]any)
	i, err := strconv.Atoi(index)
	if err != nil || i >= len(list) {
		return nil, false
	}
	return list[i], true
}

// references reports every reference to a value that no call of the playbook
// saves.
func (r *reader) references(book *Playbook) {
	saved := make(map[string]bool)
	for _, turn := range book.Turns {
		for _, step := range turn.Steps {
			for _, name := range saves(step) {
				saved[name] = true
			}
		}
	}
	for i, turn := range book.Turns {
		for j, step := range turn.Steps {
			for _, name := range uses(texts(step)) {
				if !saved[name] {
					r.problem(fmt.Sprintf("turns[%d].steps[%d]", i, j), "${%s} is saved by no call", name)
				}
			}
		}
	}
}

func saves(step Step) []string {
	call, ok := step.(Call)
	if !ok {
		return nil
	}
	names := slices.Collect(maps.Keys(call.Capture))
	if call.Save != "" {
		names = append(names, call.Save)
	}
	return names
}

// texts returns the part of a step that may hold references.
func texts(step Step) any {
	switch step := step.(type) {
	case Call:
		return step.Args
	case Say:
		return step.Text
	case Think:
		return step.Text
	case Permission:
		return []any{step.Title, step.Input}
	default:
		return nil
	}
}

// uses returns the names that a JSON tree refers to, sorted.
func uses(tree any) []string {
	var names []string
	switch tree := tree.(type) {
	case string:
		for _, found := range reference.FindAllStringSubmatch(tree, -1) {
			if !strings.HasPrefix(found[0], escape) {
				names = append(names, found[1])
			}
		}
	case []any:
		for _, element := range tree {
			names = append(names, uses(element)...)
		}
	case map[string]any:
		for _, member := range tree {
			names = append(names, uses(member)...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

package changeset

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// shape judges the form of one operation and keeps the first fault it meets.
type shape struct {
	fault string
}

// part is an object within an operation, and the path that leads to it. After
// a fault its methods return zero values, so a parser reads straight through
// and the fault is looked at once.
type part struct {
	shape   *shape
	path    string
	members map[string]any
}

func (p part) fail(name, rule string) {
	if p.shape.fault == "" {
		p.shape.fault = p.path + name + " " + rule
	}
}

func (p part) has(name string) bool {
	_, ok := p.members[name]
	return ok
}

// text reads a string of at least one character.
func (p part) text(name string) string {
	s, _ := p.members[name].(string)
	if s == "" {
		p.fail(name, "must be a string that is not empty")
	}
	return s
}

// textIfAny tests what text reads, unless it is absent.
func (p part) textIfAny(name string) {
	if p.has(name) {
		p.text(name)
	}
}

func (p part) stringIfAny(name string) {
	if _, ok := p.members[name].(string); !ok && p.has(name) {
		p.fail(name, "must be a string")
	}
}

func (p part) number(name string) {
	if _, ok := jsonvalue.Number(p.members[name]); !ok {
		p.fail(name, "must be a number")
	}
}

func (p part) numberIfAny(name string) {
	if p.has(name) {
		p.number(name)
	}
}

func (p part) boolean(name string) {
	if _, ok := p.members[name].(bool); !ok {
		p.fail(name, "must be a boolean")
	}
}

func (p part) booleanIfAny(name string) {
	if p.has(name) {
		p.boolean(name)
	}
}

func (p part) object(name string) part {
	members, ok := p.members[name].(map[string]any)
	if !ok {
		p.fail(name, "must be an object")
	}
	return part{shape: p.shape, path: p.path + name + ".", members: members}
}

// objectIfAny reads an object, or one without members if it is absent.
func (p part) objectIfAny(name string) part {
	if p.has(name) {
		return p.object(name)
	}
	return part{shape: p.shape, path: p.path + name + "."}
}

func (p part) list(name string) []any {
	values, ok := p.members[name].([]any)
	if !ok {
		p.fail(name, "must be a list")
	}
	return values
}

// textsIfAny reads a list of strings that are not empty, or none if it is
// absent.
func (p part) textsIfAny(name string) []string {
	if !p.has(name) {
		return nil
	}
	values := p.list(name)
	texts := make([]string, 0, len(values))
	for i, value := range values {
		s, _ := value.(string)
		if s == "" {
			p.fail(fmt.Sprintf("%s[%d]", name, i), "must be a string that is not empty")
		}
		texts = append(texts, s)
	}
	return texts
}

// index reads an integer from 0. One beyond every list is cut to what can
// still be added to another.
func (p part) index(name string) int {
	const limit = 1 << 30
	f, ok := jsonvalue.Number(p.members[name])
	if !ok || f < 0 || f != math.Trunc(f) {
		p.fail(name, "must be an integer from 0")
		return 0
	}
	return int(min(f, limit))
}

// oneOf reads one of a few strings.
func (p part) oneOf(name string, choices ...string) string {
	s, _ := p.members[name].(string)
	if !slices.Contains(choices, s) {
		p.fail(name, "must be one of "+strings.Join(choices, ", "))
	}
	return s
}

// only refuses members of any other name.
func (p part) only(names ...string) {
	for _, name := range sortedNames(p.members) {
		if !slices.Contains(names, name) {
			p.fail(fmt.Sprintf("%.80q", name), "cannot be changed: only "+strings.Join(names, ", "))
		}
	}
}

// without refuses members of these names.
func (p part) without(names ...string) {
	for _, name := range names {
		if p.has(name) {
			p.fail(name, "is not allowed here")
		}
	}
}

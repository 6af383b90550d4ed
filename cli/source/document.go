package source

import (
	"fmt"
	"strconv"
	"strings"
)

// Limits of a file. Nothing the API server would store comes near them.
const (
	// MaxBytes bounds the file, and its text with all aliases written out.
	MaxBytes = 8 << 20
	// MaxValues bounds how many values there are, keys not counted.
	MaxValues = 1_000_000
	// MaxDepth bounds how deep lists and objects nest.
	MaxDepth = 1_000
)

// A Position is a place in a file. Both numbers count from 1, columns in
// characters; the zero Position is no place.
type Position struct {
	Line, Column int
}

// String is line:column.
func (p Position) String() string {
	if p.Column == 0 {
		return strconv.Itoa(p.Line)
	}
	return fmt.Sprintf("%d:%d", p.Line, p.Column)
}

// An Error says why a file cannot be read as a document, and where.
type Error struct {
	// Name is that of the file.
	Name     string
	Position Position
	Reason   string
}

// Error gives name, place and reason in one line, in the form that editors
// make a link of.
func (e *Error) Error() string {
	if e.Position == (Position{}) {
		return e.Name + ": " + e.Reason
	}
	return fmt.Sprintf("%s:%s: %s", e.Name, e.Position, e.Reason)
}

// A Document is one value read from a file.
type Document struct {
	// Name is that of the file, or Stdin.
	Name string
	// Value is the JSON tree.
	Value any
	// Warnings are what a reader should know though the file is readable, one
	// line each.
	Warnings []string

	place place
}

// Position is where the value at a path begins; a path has the names of members
// and, as int, the indices of list entries. Where there is no such value it is
// the position of the nearest one around it.
func (d *Document) Position(path ...any) Position {
	at := &d.place
	for _, step := range path {
		next := at.child(step)
		if next == nil {
			break
		}
		at = next
	}
	return at.Position
}

// Part is the document at a path, false if there is none. It shares the tree.
func (d *Document) Part(path ...any) (*Document, bool) {
	value, at := d.Value, &d.place
	for _, step := range path {
		if at = at.child(step); at == nil {
			return nil, false
		}
		switch step := step.(type) {
		case string:
			value = value.(map[string]any)[step]
		case int:
			value = value.([]any)[step]
		}
	}
	return &Document{Name: d.Name, Value: value, place: *at}, true
}

// Object is the value as an object; the error says where another one stands.
func (d *Document) Object() (map[string]any, error) {
	object, ok := d.Value.(map[string]any)
	if !ok {
		return nil, d.Errorf(nil, "an object is expected, this is %s", Describe(d.Value))
	}
	return object, nil
}

// Errorf is an *Error about the value at a path.
func (d *Document) Errorf(path []any, format string, args ...any) error {
	return &Error{Name: d.Name, Position: d.Position(path...), Reason: fmt.Sprintf(format, args...)}
}

// Describe names the type of a JSON value for people: "a list", "null" and so on.
func Describe(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "text"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return "a number"
}

// A place is the position of a value with those of its parts.
type place struct {
	Position
	items   []place
	members []member
}

type member struct {
	name  string
	place place
}

// child finds the place of a part, nil if there is none.
func (p *place) child(step any) *place {
	switch step := step.(type) {
	case int:
		if step >= 0 && step < len(p.items) {
			return &p.items[step]
		}
	case string:
		for i := range p.members {
			if p.members[i].name == step {
				return &p.members[i].place
			}
		}
	}
	return nil
}

// quote shows a text from a file in a message, cut if it is long.
func quote(text string) string {
	const limit = 40
	if runes := []rune(text); len(runes) > limit {
		text = string(runes[:limit]) + "…"
	}
	return fmt.Sprintf("%q", strings.ToValidUTF8(text, "�"))
}

// Package capability says what a session may do beyond talking. Code asks for
// a capability, never for the name of a template.
//
// Sets are read leniently, since they come from other versions of this program
// and from what people stored: what is not known is left out, and what is no
// list of names grants nothing.
package capability

import "slices"

const (
	// Composition opens the routes of the one composition that the session is
	// bound to.
	Composition = "composition"
	// ConfigItems lets the agent draft action types and tools of the library.
	ConfigItems = "config-items"
	// ValidationFeedback sends the problems of those drafts back to the agent
	// before its turn ends.
	ValidationFeedback = "validation-feedback"
)

// known capabilities, sorted.
var known = []string{Composition, ConfigItems, ValidationFeedback}

// Known lists all capabilities, sorted.
func Known() []string { return slices.Clone(known) }

// Set is what a session may do. The zero value grants nothing.
type Set struct{ names []string }

// Parse reads a set from a list of names, decoded from JSON or typed.
func Parse(value any) Set {
	var given []string
	switch list := value.(type) {
	case []string:
		given = list
	case []any:
		for _, element := range list {
			if name, isText := element.(string); isText {
				given = append(given, name)
			}
		}
	}
	return Set{}.With(given...)
}

// With is the set with more capabilities; unknown ones add nothing.
func (s Set) With(names ...string) Set {
	var granted []string
	for _, name := range known {
		if s.Has(name) || slices.Contains(names, name) {
			granted = append(granted, name)
		}
	}
	return Set{names: granted}
}

// Has tells whether the set grants a capability.
func (s Set) Has(name string) bool { return slices.Contains(s.names, name) }

// Names of the set, sorted and never nil: they are always shown.
func (s Set) Names() []string { return append([]string{}, s.names...) }

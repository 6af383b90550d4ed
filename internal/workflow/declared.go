package workflow

import (
	"maps"
	"slices"
)

// Context keys that the engine itself writes.
const (
	// EventKey takes the event of a receive-event node without mappings.
	EventKey = "event"
	// ErrorKey takes the failure that an error edge leads away from.
	ErrorKey = "error"
)

// DeclaredKeys are the context keys that the document says a run may have, sorted. Expressions see those that are not
// there yet as null, so that only a key nobody writes is an error.
func (w *Workflow) DeclaredKeys() []string {
	declared := map[string]bool{}
	for _, n := range w.nodes {
		for _, key := range n.declaredKeys() {
			if !blank(key) {
				declared[key] = true
			}
		}
	}
	if slices.ContainsFunc(w.edges, func(e Edge) bool { return e.Class() == ClassError }) {
		declared[ErrorKey] = true
	}
	return slices.Sorted(maps.Keys(declared))
}

func (n Node) declaredKeys() []string {
	var keys []string
	switch n.Kind() {
	case KindStart:
		for _, f := range n.InputFields() {
			keys = append(keys, f.Name())
		}
	case KindAction, KindHumanTask:
		for _, f := range n.OutputFields() {
			keys = append(keys, f.EffectiveContextKey())
		}
	case KindReceiveEvent:
		keys = n.eventKeys()
	case KindComponent:
		keys = slices.Collect(maps.Keys(object(n.Config()["outputs"])))
	case KindEnd, KindWait:
	}
	return keys
}

func (n Node) eventKeys() []string {
	mappings := n.Mappings()
	if len(mappings) == 0 {
		return []string{EventKey}
	}
	var keys []string
	for _, m := range mappings {
		keys = append(keys, m.ContextKey)
	}
	return keys
}

package review

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/terminal"
	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// A Difference tells two documents apart for a reviewer: node by node and edge by
// edge, every member with its old and its new value. As JSON it has the ids.
type Difference struct {
	Summary       string   `json:"summary"`
	AddedNodes    []string `json:"addedNodes"`
	RemovedNodes  []string `json:"removedNodes"`
	ChangedNodes  []string `json:"changedNodes"`
	AddedEdges    []string `json:"addedEdges"`
	RemovedEdges  []string `json:"removedEdges"`
	ChangedEdges  []string `json:"changedEdges"`
	EdgesChanged  bool     `json:"edgesChanged"`
	FieldsChanged []string `json:"fieldsChanged"`
	OrderChanged  bool     `json:"orderChanged"`

	before, after changeset.Document
}

// Compare tells what leads from one document to another.
func Compare(before, after changeset.Document) Difference {
	summary := changeset.Diff(before, after)
	return Difference{
		Summary:       summary.String(),
		AddedNodes:    command.OrEmpty(summary.AddedNodes),
		RemovedNodes:  command.OrEmpty(summary.RemovedNodes),
		ChangedNodes:  command.OrEmpty(summary.ChangedNodes),
		AddedEdges:    command.OrEmpty(summary.AddedEdges),
		RemovedEdges:  command.OrEmpty(summary.RemovedEdges),
		ChangedEdges:  command.OrEmpty(summary.ChangedEdges),
		EdgesChanged:  summary.EdgesChanged,
		FieldsChanged: command.OrEmpty(summary.FieldsChanged),
		OrderChanged:  summary.OrderChanged,
		before:        before,
		after:         after,
	}
}

// IsZero tells whether there is no difference in content.
func (d Difference) IsZero() bool {
	return d.Summary == "" && len(d.FieldsChanged) == 0 && !d.OrderChanged
}

// Tell implements [command.Answer].
func (d Difference) Tell(p *command.Page) {
	if d.IsZero() {
		p.Line("no difference in content")
		return
	}
	for _, name := range d.FieldsChanged {
		tellChanges(p, "", compare(nil, name, member(d.before, name), member(d.after, name)))
	}
	d.tellEntries(p, entries{"node", "nodes", d.RemovedNodes, d.ChangedNodes, d.AddedNodes})
	d.tellEntries(p, entries{"edge", "edges", d.RemovedEdges, d.ChangedEdges, d.AddedEdges})
	if d.OrderChanged {
		p.Line("%s order of nodes or edges, or entries without an id", p.Paint(terminal.Yellow, "~"))
	}
}

// entries are the ids of what differs in a list.
type entries struct {
	what, list              string
	removed, changed, added []string
}

func (d Difference) tellEntries(p *command.Page, e entries) {
	before, after := EntriesByID(d.before[e.list]), EntriesByID(d.after[e.list])
	for _, id := range e.removed {
		p.Line("%s", p.Paint(terminal.Red, "- "+e.what+" "+Describe(e.what, id, before[id])))
	}
	for _, id := range e.changed {
		p.Line("%s %s", p.Paint(terminal.Yellow, "~ "+e.what), describeMove(e.what, id, before[id], after[id]))
		tellChanges(p, "    ", compareEntries(e.what, before[id], after[id]))
	}
	for _, id := range e.added {
		p.Line("%s", p.Paint(terminal.Green, "+ "+e.what+" "+Describe(e.what, id, after[id])))
		tellChanges(p, "    ", compareEntries(e.what, nil, after[id]))
	}
}

// EntriesByID are the first entries of each id.
func EntriesByID(v any) map[string]map[string]any {
	list, _ := v.([]any)
	entries := make(map[string]map[string]any, len(list))
	for _, entry := range list {
		object, _ := entry.(map[string]any)
		id, ok := object["id"].(string)
		if _, taken := entries[id]; ok && !taken {
			entries[id] = object
		}
	}
	return entries
}

// Describe names a node or an edge, with what a reader knows it by.
func Describe(what, id string, entry map[string]any) string {
	if what == "edge" {
		return command.Clean(fmt.Sprintf("%s  %s → %s", id, orUnknown(entry["source"]), orUnknown(entry["target"])))
	}
	text := id
	if name := strings.TrimSpace(command.TextOf(entry["name"])); name != "" {
		text += "  " + name
	}
	if kind := command.TextOf(entry["type"]); kind != "" {
		text += " (" + kind + ")"
	}
	return command.Clean(text)
}

// orUnknown is the id of a node that an edge names.
func orUnknown(v any) string {
	if id := command.TextOf(v); id != "" {
		return id
	}
	return "?"
}

// describeMove shows where an edge led before, if it was laid elsewhere.
func describeMove(what, id string, before, after map[string]any) string {
	text := Describe(what, id, after)
	if what == "edge" && (before["source"] != after["source"] || before["target"] != after["target"]) {
		text += command.Clean(fmt.Sprintf(", before: %s → %s", orUnknown(before["source"]), orUnknown(before["target"])))
	}
	return text
}

// told are the members that the line of an entry shows already, or that are no
// content.
var told = map[string][]string{
	"node": {"id", "position"},
	"edge": {"id", "source", "target"},
	"item": {"name"},
}

// compareEntries lists the members of an entry that differ. What the line of a
// new entry shows is left out.
func compareEntries(what string, before, after map[string]any) []change {
	hidden := told[what]
	if before == nil && what == "node" {
		hidden = append([]string{"name", "type"}, hidden...)
	}
	isHidden := func(name string, _ any) bool { return slices.Contains(hidden, name) }
	before, after = maps.Clone(before), maps.Clone(after)
	maps.DeleteFunc(before, isHidden)
	maps.DeleteFunc(after, isHidden)
	return compareObjects(nil, "", before, after)
}

// absent stands for a value that is not there, which null is not.
type absent struct{}

func member(object map[string]any, name string) any {
	if v, ok := object[name]; ok {
		return v
	}
	return absent{}
}

// A change is one value that differs.
type change struct {
	path     string
	old, new any
}

// compare appends the changes between two values, as deep down as both go.
func compare(changes []change, path string, before, after any) []change {
	switch was := before.(type) {
	case map[string]any:
		if is, ok := after.(map[string]any); ok {
			return compareObjects(changes, path, was, is)
		}
	case []any:
		if is, ok := after.([]any); ok {
			return compareLists(changes, path, was, is)
		}
	case absent:
		// The members of a new object one by one are easier to read than in a line.
		if is, ok := after.(map[string]any); ok && len(is) > 0 {
			return compareObjects(changes, path, nil, is)
		}
	}
	if before != any(absent{}) && after != any(absent{}) && jsonvalue.Equal(before, after) {
		return changes
	}
	return append(changes, change{path, before, after})
}

func compareObjects(changes []change, path string, before, after map[string]any) []change {
	names := maps.Clone(after)
	if names == nil {
		names = map[string]any{}
	}
	maps.Copy(names, before)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		inner := name
		if path != "" {
			inner = path + "." + name
		}
		changes = compare(changes, inner, member(before, name), member(after, name))
	}
	return changes
}

// compareLists compares entries that have names by name, others by place.
func compareLists(changes []change, path string, before, after []any) []change {
	was, namesBefore, ok := byName(before)
	is, namesAfter, okAfter := byName(after)
	if !ok || !okAfter {
		return compareByPlace(changes, path, before, after)
	}
	for _, name := range namesBefore {
		changes = compare(changes, path+"["+name+"]", was[name], member(is, name))
	}
	for _, name := range namesAfter {
		if _, isOld := was[name]; !isOld {
			changes = append(changes, change{path + "[" + name + "]", absent{}, is[name]})
		}
	}
	if len(changes) == 0 && !slices.Equal(namesBefore, namesAfter) {
		changes = append(changes, change{path + " (order)", before, after})
	}
	return changes
}

// byName are the entries of a list of objects that all have another name.
func byName(list []any) (entries map[string]any, names []string, ok bool) {
	entries = make(map[string]any, len(list))
	for _, entry := range list {
		object, _ := entry.(map[string]any)
		name, isText := object["name"].(string)
		if _, taken := entries[name]; taken || !isText {
			return nil, nil, false
		}
		entries[name] = entry
		names = append(names, name)
	}
	return entries, names, true
}

func compareByPlace(changes []change, path string, before, after []any) []change {
	for i := range max(len(before), len(after)) {
		was, is := any(absent{}), any(absent{})
		if i < len(before) {
			was = before[i]
		}
		if i < len(after) {
			is = after[i]
		}
		changes = compare(changes, fmt.Sprintf("%s[%d]", path, i), was, is)
	}
	return changes
}

func tellChanges(p *command.Page, indent string, changes []change) {
	for _, c := range changes {
		path := command.Clean(strings.TrimPrefix(c.path, "."))
		switch {
		case c.old == any(absent{}):
			p.Line("%s%s %s: %s", indent, p.Paint(terminal.Green, "+"), path, p.Paint(terminal.Green, command.ValueText(c.new)))
		case c.new == any(absent{}):
			p.Line("%s%s %s: %s", indent, p.Paint(terminal.Red, "-"), path, p.Paint(terminal.Red, command.ValueText(c.old)))
		default:
			was, is := command.Contrast(c.old, c.new)
			p.Line("%s%s %s: %s → %s", indent, p.Paint(terminal.Yellow, "~"), path,
				p.Paint(terminal.Red, was), p.Paint(terminal.Green, is))
		}
	}
}

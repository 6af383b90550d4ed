package changeset

import (
	"maps"
	"slices"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// Members of documents, nodes and edges that have a meaning here.
const (
	membersNodes   = "nodes"
	membersEdges   = "edges"
	memberID       = "id"
	memberName     = "name"
	memberType     = "type"
	memberConfig   = "config"
	memberPosition = "position"
	memberSource   = "source"
	memberTarget   = "target"
	memberPriority = "priority"
	memberDefault  = "isDefault"
)

// state is a document between two operations. An operation writes to the
// lists and the fields, which are the state's own, and never to an entry or a
// value, which are shared with the arguments and with other states: instead
// it puts a changed copy in the place of what it changes.
type state struct {
	// fields are the top-level members other than the two lists. Like the
	// elements of those they are entries, to be known again without a look
	// at what may be large.
	fields       map[string]*entry
	nodes, edges list
}

func stateOf(doc Document) *state {
	fields := make(map[string]*entry, len(doc))
	for name, value := range doc {
		if !isListName(name) {
			fields[name] = entryOf(value)
		}
	}
	return &state{fields: fields, nodes: listOf(doc, membersNodes), edges: listOf(doc, membersEdges)}
}

// clone returns a state that can be written to while s stays as it is.
func (s *state) clone() *state {
	return &state{fields: maps.Clone(s.fields), nodes: s.nodes.clone(), edges: s.edges.clone()}
}

// view returns the document of a state for reading only.
func (s *state) view() Document {
	doc := s.fieldValues()
	s.nodes.putInto(doc, membersNodes)
	s.edges.putInto(doc, membersEdges)
	return doc
}

func (s *state) fieldValues() map[string]any {
	values := make(map[string]any, len(s.fields))
	for name, field := range s.fields {
		values[name] = field.value
	}
	return values
}

// document returns the document of a state as a deep copy.
func (s *state) document() Document {
	return jsonvalue.Clone(s.view()).(Document)
}

// list returns the named list, nodes or edges.
func (s *state) list(name string) *list {
	if name == membersNodes {
		return &s.nodes
	}
	return &s.edges
}

// hasEndpoints tells whether both ends of an edge are nodes of s.
func (s *state) hasEndpoints(edge *entry) bool {
	return s.nodes.holds(edge.source) && s.nodes.holds(edge.target)
}

// sameAs tells whether two states have the same canonical JSON, positions
// included.
func (s *state) sameAs(other *state) bool {
	return s.nodes.sameAs(&other.nodes) && s.edges.sameAs(&other.edges) &&
		maps.EqualFunc(s.fields, other.fields, (*entry).sameAs)
}

// presence tells an empty list from none at all: they are different content.
type presence int

const (
	listAbsent presence = iota
	listNull
	listPresent
)

// list is one of the two lists of a document in its order.
type list struct {
	presence presence
	entries  []*entry
}

func listOf(doc Document, name string) list {
	value, ok := doc[name]
	if !ok {
		return list{presence: listAbsent}
	}
	return listOfValue(value)
}

// listOfValue takes a list or null.
func listOfValue(value any) list {
	values, ok := value.([]any)
	if !ok {
		return list{presence: listNull}
	}
	return list{presence: listPresent, entries: entriesOf(values)}
}

func (l *list) putInto(doc Document, name string) {
	switch l.presence {
	case listNull:
		doc[name] = nil
	case listPresent:
		doc[name] = valuesOf(l.entries)
	case listAbsent:
	}
}

// find returns the index of the first entry with an id, or -1. It looks
// through the list: that takes microseconds for some thousand entries, and no
// index has to follow every removal.
func (l *list) find(id string) int {
	return slices.IndexFunc(l.entries, textOf(id).names)
}

// holds tells whether an entry has id, which must be a string to be one.
func (l *list) holds(id text) bool {
	return id.isString && slices.ContainsFunc(l.entries, id.names)
}

// splice puts entries in the place of some others.
func (l *list) splice(i, remove int, insert ...*entry) {
	l.presence = listPresent
	l.entries = slices.Replace(l.entries, i, i+remove, insert...)
}

func (l *list) add(e *entry) {
	l.splice(len(l.entries), 0, e)
}

func (l *list) clone() list {
	return list{presence: l.presence, entries: slices.Clone(l.entries)}
}

func (l *list) sameAs(other *list) bool {
	return l.presence == other.presence && slices.EqualFunc(l.entries, other.entries, (*entry).sameAs)
}

// entry is a value in a document, with the members by which elements of lists
// are looked up.
type entry struct {
	value              any
	object             map[string]any // nil if the value is none
	id, source, target text
}

func entryOf(value any) *entry {
	e := newEntry(value)
	return &e
}

func valuesOf(entries []*entry) []any {
	values := make([]any, len(entries))
	for i, e := range entries {
		values[i] = e.value
	}
	return values
}

func entriesOf(values []any) []*entry {
	block := make([]entry, len(values)) // one allocation, and neighbours in memory
	entries := make([]*entry, len(values))
	for i, value := range values {
		block[i] = newEntry(value)
		entries[i] = &block[i]
	}
	return entries
}

func newEntry(value any) entry {
	object, ok := value.(map[string]any)
	if !ok {
		return entry{value: value}
	}
	return entry{
		value:  value,
		object: object,
		id:     textOf(object[memberID]),
		source: textOf(object[memberSource]),
		target: textOf(object[memberTarget]),
	}
}

func (e *entry) sameAs(other *entry) bool {
	return e == other || jsonvalue.Equal(e.value, other.value)
}

func (e *entry) isNoObject() bool { return e.object == nil }

// touching tells edges that begin or end at a node from others.
func touching(nodeID string) func(edge *entry) bool {
	node := textOf(nodeID)
	return func(edge *entry) bool {
		return edge.source.sum == node.sum && edge.source == node || edge.target.sum == node.sum && edge.target == node
	}
}

// text is a JSON value where a string is looked for. Whatever is none is the
// zero text, which no string equals, not even the empty one.
type text struct {
	// sum stands first: it tells nearly all texts apart, and looking through
	// thousands of them takes most of the time of an operation.
	sum      uint32
	isString bool
	value    string
}

func textOf(v any) text {
	s, ok := v.(string)
	return text{sum: sumOf(s), isString: ok, value: s}
}

// sumOf is the FNV-1a hash of s.
func sumOf(s string) uint32 {
	const basis, prime = 2166136261, 16777619
	sum := uint32(basis)
	for i := range len(s) {
		sum = (sum ^ uint32(s[i])) * prime
	}
	return sum
}

// names tells whether t is the id of an entry.
func (t text) names(e *entry) bool { return e.id.sum == t.sum && e.id == t }

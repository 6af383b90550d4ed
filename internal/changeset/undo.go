package changeset

import (
	"maps"
	"slices"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// Kind is a kind of item in a document.
type Kind string

const (
	// KindNode is a node, named by its id.
	KindNode Kind = "node"
	// KindEdge is an edge, named by its id.
	KindEdge Kind = "edge"
	// KindField is a top-level member other than the two lists, named by its
	// name.
	KindField Kind = "field"
)

// Item is what a conflict is about.
type Item struct {
	Kind Kind   `json:"kind"`
	ID   string `json:"id"`
}

// Conflict says what stands in the way of an undo: nodes first, then edges,
// then fields. Without items the documents themselves cannot be compared,
// because an id is missing or repeated, or because one has no revision.
type Conflict struct {
	Items []Item `json:"items,omitempty"`
}

// Undo takes back, in live, what led from before to after. If nothing but the
// layout changed since after the result is before, in the layout of live.
// Else edits to other items survive, and an edit to one of the same items, or
// one that leaves an edge without its node, is a conflict.
//
// With before and after exchanged it does again what was undone.
func Undo(before, after, live Document) (Document, *Conflict) {
	unchanged, ok := sameRevision(before, after, live)
	if !ok {
		return nil, &Conflict{}
	}
	if unchanged {
		return layOut(before, live), nil
	}
	base, baseOK := inventoryOf(before)
	done, doneOK := inventoryOf(after)
	now, nowOK := inventoryOf(live)
	if !baseOK || !doneOK || !nowOK {
		return nil, &Conflict{}
	}
	if items := base.overwritten(done, now); len(items) > 0 {
		return nil, &Conflict{Items: items}
	}
	result := base.bringBack(done, now)
	if items := result.dangling(); len(items) > 0 {
		return nil, &Conflict{Items: items}
	}
	return result.document(live), nil
}

// sameRevision tells whether live has the content of after; it is not ok if
// one of the three documents has no revision.
func sameRevision(before, after, live Document) (same, ok bool) {
	_, errBefore := Revision(before)
	revisionAfter, errAfter := Revision(after)
	revisionLive, errLive := Revision(live)
	if errBefore != nil || errAfter != nil || errLive != nil {
		return false, false
	}
	return revisionAfter == revisionLive, true
}

// layOut returns a copy of doc with each node that live has too standing where
// it stands in live.
func layOut(doc, live Document) Document {
	doc = maps.Clone(doc)
	nodes, isList := doc[membersNodes].([]any)
	standing, _ := live[membersNodes].([]any)
	if isList {
		doc[membersNodes] = valuesOf(keepPositions(entriesOf(nodes), entriesOf(standing)))
	}
	return jsonvalue.Clone(doc).(Document)
}

// inventory holds the items of a document by kind.
type inventory struct {
	nodes, edges, fields collection
}

// collection holds items of one kind in order.
type collection struct {
	kind   Kind
	ids    []string
	values map[string]any
}

// inventoryOf fails if a node or an edge has no id or shares it.
func inventoryOf(doc Document) (inventory, bool) {
	nodes, nodesOK := collectionOf(KindNode, doc[membersNodes])
	edges, edgesOK := collectionOf(KindEdge, doc[membersEdges])
	fields := maps.Clone(doc)
	delete(fields, membersNodes)
	delete(fields, membersEdges)
	return inventory{
		nodes:  nodes,
		edges:  edges,
		fields: collection{kind: KindField, ids: sortedNames(fields), values: fields},
	}, nodesOK && edgesOK
}

func collectionOf(kind Kind, list any) (collection, bool) {
	values, _ := list.([]any)
	c := collection{kind: kind, values: make(map[string]any, len(values))}
	for _, value := range values {
		object, _ := value.(map[string]any)
		id, ok := object[memberID].(string)
		if !ok || c.has(id) {
			return collection{}, false
		}
		c.ids = append(c.ids, id)
		c.values[id] = value
	}
	return c, isListOrNull(list)
}

func (c collection) has(id string) bool {
	_, ok := c.values[id]
	return ok
}

// touched returns what differs between c and after, in the order of c and
// then of after.
func (c collection) touched(after collection) []string {
	var ids []string
	for _, id := range c.ids {
		if !c.agrees(after, id) {
			ids = append(ids, id)
		}
	}
	for _, id := range after.ids {
		if !c.has(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// agrees tells whether an item is the same in both, or in neither. Where a
// node stands is of no account.
func (c collection) agrees(other collection, id string) bool {
	if c.has(id) != other.has(id) {
		return false
	}
	a, b := c.values[id], other.values[id]
	if c.kind == KindNode {
		a, b = withoutPosition(a), withoutPosition(b)
	}
	return jsonvalue.Equal(a, b)
}

// overwritten returns the items that were touched on the way from i to after,
// and again on the way from there to live.
func (i inventory) overwritten(after, live inventory) []Item {
	return slices.Concat(
		i.nodes.overwritten(after.nodes, live.nodes),
		i.edges.overwritten(after.edges, live.edges),
		i.fields.overwritten(after.fields, live.fields),
	)
}

func (c collection) overwritten(after, live collection) []Item {
	var items []Item
	for _, id := range c.touched(after) {
		if !after.agrees(live, id) {
			items = append(items, Item{Kind: c.kind, ID: id})
		}
	}
	return items
}

// bringBack returns live with every item that was touched on the way from i
// to after as it is in i.
func (i inventory) bringBack(after, live inventory) inventory {
	return inventory{
		nodes:  i.nodes.bringBack(after.nodes, live.nodes),
		edges:  i.edges.bringBack(after.edges, live.edges),
		fields: i.fields.bringBack(after.fields, live.fields),
	}
}

func (c collection) bringBack(after, live collection) collection {
	result := collection{kind: c.kind, ids: slices.Clone(live.ids), values: maps.Clone(live.values)}
	for _, id := range c.touched(after) {
		switch {
		case !c.has(id):
			result = result.without(id)
		case !after.has(id):
			result = result.with(id, c)
		case c.kind == KindNode:
			result.values[id] = placedLike(c.values[id].(map[string]any), live.values[id].(map[string]any))
		default:
			result.values[id] = c.values[id]
		}
	}
	return result
}

// without takes an item out of a collection of its own.
func (c collection) without(id string) collection {
	delete(c.values, id)
	c.ids = slices.DeleteFunc(c.ids, func(other string) bool { return other == id })
	return c
}

// with puts an item of base into a collection of its own, right behind the
// nearest of those before it in base that are there, or at the front if none
// is.
func (c collection) with(id string, base collection) collection {
	at := 0
	for i := slices.Index(base.ids, id) - 1; i >= 0; i-- {
		if c.has(base.ids[i]) {
			at = slices.Index(c.ids, base.ids[i]) + 1
			break
		}
	}
	c.ids = slices.Insert(c.ids, at, id)
	c.values[id] = base.values[id]
	return c
}

// dangling returns the edges that miss one of their nodes.
func (i inventory) dangling() []Item {
	var items []Item
	for _, id := range i.edges.ids {
		edge := i.edges.values[id].(map[string]any)
		source, sourceOK := edge[memberSource].(string)
		target, targetOK := edge[memberTarget].(string)
		if !sourceOK || !targetOK || !i.nodes.has(source) || !i.nodes.has(target) {
			items = append(items, Item{Kind: KindEdge, ID: id})
		}
	}
	return items
}

// document returns the items as a document of their own. A list without any
// stays absent or null as it is in live.
func (i inventory) document(live Document) Document {
	doc := maps.Clone(i.fields.values)
	i.nodes.putInto(doc, live, membersNodes)
	i.edges.putInto(doc, live, membersEdges)
	return jsonvalue.Clone(doc).(Document)
}

func (c collection) putInto(doc, live Document, name string) {
	if old, ok := live[name]; old == nil && len(c.ids) == 0 {
		if ok {
			doc[name] = nil
		}
		return
	}
	values := make([]any, len(c.ids))
	for i, id := range c.ids {
		values[i] = c.values[id]
	}
	doc[name] = values
}

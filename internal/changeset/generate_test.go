package changeset_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// seeds runs a property once for each of n reproducible sources.
func seeds(t *testing.T, n int, property func(t *testing.T, g *generator)) {
	t.Helper()
	for seed := range n {
		g := &generator{Rand: rand.New(rand.NewPCG(uint64(seed), 2026))}
		property(t, g)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// generator draws documents and operations from pools so small that they
// often meet.
type generator struct {
	*rand.Rand
	// drafts lets documents be invalid in every way.
	drafts bool
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func pick[T any](g *generator, choices ...T) T { return choices[g.IntN(len(choices))] }

func (g *generator) nodeID() string { return pick(g, "a", "b", "c", "d", "e", "f") }
func (g *generator) edgeID() string { return pick(g, "k", "l", "m", "n", "o", "a") }

// value returns any JSON value.
func (g *generator) value(depth int) any {
	switch g.IntN(6 + 2*min(depth, 1)) {
	case 0:
		return nil
	case 1:
		return g.chance(50)
	case 2:
		return int64(g.IntN(4))
	case 3:
		return pick(g, 0.5, 1.0, 1e21, -0.25)
	case 4, 5:
		return pick(g, "", "a", "b", "k", "nodes", "removeNode", "é😀")
	case 6:
		list := make([]any, g.IntN(3))
		for i := range list {
			list[i] = g.value(depth - 1)
		}
		return list
	default:
		object := map[string]any{}
		for range g.IntN(4) {
			object[pick(g, "id", "op", "node", "config", "name", "x", "position", "source")] = g.value(depth - 1)
		}
		return object
	}
}

func (g *generator) config() map[string]any {
	config := map[string]any{}
	for range g.IntN(4) {
		config[pick(g, "p", "q", "r", "s")] = g.value(2)
	}
	return config
}

func (g *generator) node(id string) map[string]any {
	node := map[string]any{"id": id, "type": pick(g, "start", "end", "action", "wait"), "name": pick(g, "A", "B", " "), "config": g.config()}
	if g.chance(50) {
		node["position"] = g.position()
	}
	if g.chance(20) {
		node["x-own"] = g.value(1)
	}
	return node
}

func (g *generator) position() any {
	if g.chance(10) {
		return nil
	}
	return map[string]any{"x": int64(g.IntN(1000)), "y": g.Float64()}
}

func (g *generator) edge(id string) map[string]any {
	edge := map[string]any{"id": id, "source": g.nodeID(), "target": g.nodeID(), "priority": int64(g.IntN(3)), "isDefault": g.chance(50)}
	if g.chance(40) {
		edge[pick(g, "condition", "label", "x-own")] = g.value(1)
	}
	return edge
}

// document returns a document with unique ids whose edges have their nodes,
// or, with drafts, any that can be worked on.
func (g *generator) document() changeset.Document {
	doc := changeset.Document{"id": "w", "name": "W", "nodes": g.nodes(), "edges": []any{}}
	doc["edges"] = g.edges(doc["nodes"].([]any))
	for _, name := range []string{"version", "description", "x-own"} {
		if g.chance(50) {
			doc[name] = g.value(1)
		}
	}
	if g.drafts {
		g.spoil(doc)
	}
	return doc
}

func (g *generator) nodes() []any {
	nodes := []any{}
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		if g.chance(60) {
			nodes = append(nodes, g.node(id))
		}
	}
	g.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	return nodes
}

func (g *generator) edges(nodes []any) []any {
	edges := []any{}
	for _, id := range []string{"k", "l", "m", "n", "o", "a"} {
		if len(nodes) > 0 && g.chance(60) {
			edge := g.edge(id)
			edge["source"] = pick(g, nodes...).(map[string]any)["id"]
			edge["target"] = pick(g, nodes...).(map[string]any)["id"]
			edges = append(edges, edge)
		}
	}
	g.Shuffle(len(edges), func(i, j int) { edges[i], edges[j] = edges[j], edges[i] })
	return edges
}

// spoil makes a document invalid here and there.
func (g *generator) spoil(doc changeset.Document) {
	for _, name := range []string{"nodes", "edges"} {
		list := doc[name].([]any)
		for range g.IntN(3) {
			list = g.spoilList(list, name)
		}
		doc[name] = list
		switch g.IntN(10) {
		case 0:
			delete(doc, name)
		case 1:
			doc[name] = nil
		}
	}
	if g.chance(20) {
		delete(doc, pick(g, "id", "name"))
	}
}

func (g *generator) spoilList(list []any, name string) []any {
	at := g.IntN(len(list) + 1)
	switch g.IntN(4) {
	case 0:
		return slices.Insert(list, at, g.value(2))
	case 1:
		if name == "nodes" {
			return slices.Insert(list, at, any(g.node(g.nodeID())))
		}
		return slices.Insert(list, at, any(g.edge(g.edgeID())))
	}
	if at == len(list) {
		return list
	}
	if object, ok := list[at].(map[string]any); ok {
		member := pick(g, "id", "name", "config", "source", "target", "priority", "isDefault")
		if g.chance(50) {
			delete(object, member)
		} else {
			object[member] = g.value(1)
		}
	}
	return list
}

func (g *generator) unset(names ...string) []any {
	var unset []any
	for range g.IntN(3) {
		unset = append(unset, pick(g, names...))
	}
	return unset
}

// op returns an operation of good shape, which need not fit.
func (g *generator) op() map[string]any {
	switch g.IntN(9) {
	case 0, 1:
		return map[string]any{"op": "addNode", "node": g.node(g.nodeID())}
	case 2:
		return g.updateNode()
	case 3:
		return map[string]any{"op": "renameNode", "id": g.nodeID(), "newId": g.nodeID()}
	case 4:
		return map[string]any{"op": "removeNode", "id": g.nodeID()}
	case 5:
		return map[string]any{"op": "addEdge", "edge": g.edge(g.edgeID())}
	case 6:
		return g.updateEdge()
	case 7:
		return map[string]any{"op": "removeEdge", "id": g.edgeID()}
	default:
		return g.metadata()
	}
}

func (g *generator) updateNode() map[string]any {
	op := map[string]any{"op": "updateNode", "id": g.nodeID()}
	if g.chance(80) {
		patch := map[string]any{}
		if g.chance(50) {
			patch["name"] = pick(g, "A", "B", "C")
		}
		if g.chance(70) {
			patch["config"] = g.config()
		}
		op["patch"] = patch
	}
	if g.chance(50) {
		op["unset"] = g.without(op, "patch", "config")
	}
	return op
}

// without returns an unset list that names nothing the object at path sets.
func (g *generator) without(op map[string]any, path ...string) []any {
	for _, name := range path {
		op, _ = op[name].(map[string]any)
	}
	unset := g.unset("p", "q", "r", "s", "condition", "label", "x-own")
	unset = slices.DeleteFunc(unset, func(name any) bool { _, set := op[name.(string)]; return set })
	if unset == nil {
		return []any{}
	}
	return unset
}

func (g *generator) updateEdge() map[string]any {
	op := map[string]any{"op": "updateEdge", "id": g.edgeID()}
	if g.chance(80) {
		patch := map[string]any{}
		for range g.IntN(3) {
			switch g.IntN(4) {
			case 0:
				patch[pick(g, "source", "target")] = g.nodeID()
			case 1:
				patch["priority"] = int64(g.IntN(3))
			case 2:
				patch["isDefault"] = g.chance(50)
			default:
				patch[pick(g, "condition", "label", "x-own")] = g.value(1)
			}
		}
		op["patch"] = patch
	}
	if g.chance(50) {
		op["unset"] = g.without(op, "patch")
	}
	return op
}

func (g *generator) metadata() map[string]any {
	patch := map[string]any{}
	if g.chance(50) {
		patch["name"] = pick(g, "W", "V")
	}
	if g.chance(50) {
		patch["description"] = pick(g, "", "some")
	}
	if g.chance(50) {
		patch["version"] = pick[any](g, int64(1), 2.5)
	}
	return map[string]any{"op": "metadata", "patch": patch}
}

// restore returns a restore of good shape, of any kind.
func (g *generator) restore() map[string]any {
	if g.chance(30) {
		op := map[string]any{"op": "restore", "member": pick(g, "version", "x-own", "name", "position")}
		if g.chance(70) {
			op["value"] = g.value(2)
		}
		return op
	}
	if g.chance(20) {
		other := &generator{Rand: g.Rand, drafts: true}
		name := pick(g, "nodes", "edges")
		op := map[string]any{"op": "restore", "member": name}
		if value, ok := other.document()[name]; ok {
			op["value"] = value
		}
		return op
	}
	name, insert := pick(g, "nodes", "edges"), []any{}
	for range g.IntN(3) {
		if name == "nodes" {
			insert = append(insert, g.node(g.nodeID()))
		} else {
			insert = append(insert, g.edge(g.edgeID()))
		}
	}
	return map[string]any{"op": "restore", "list": name, "index": int64(g.IntN(4)), "remove": int64(g.IntN(3)), "insert": insert}
}

// accepted returns up to n operations that apply to doc one after the other,
// and the result. With restores some of them are no plain ones.
func (g *generator) accepted(t testing.TB, doc changeset.Document, n int, restores bool) ([]any, changeset.Document) {
	t.Helper()
	ops := []any{}
	for range 3 * n {
		op := g.op()
		if restores && g.chance(25) {
			op = g.restore()
		}
		next, rejection := changeset.Apply(doc, []any{op})
		if rejection == nil {
			ops, doc = append(ops, op), next
		} else if rejection.Code == changeset.CodeMalformed {
			t.Fatalf("generated a malformed op: %s\n%s", rejection, canonical(t, op))
		}
		if len(ops) == n {
			break
		}
	}
	return ops, doc
}

// layout returns a copy of doc with other positions.
func (g *generator) layout(doc changeset.Document) changeset.Document {
	doc = jsonvalue.Clone(doc).(changeset.Document)
	nodes, _ := doc["nodes"].([]any)
	for _, raw := range nodes {
		node, ok := raw.(map[string]any)
		if !ok || g.chance(30) {
			continue
		}
		if g.chance(20) {
			delete(node, "position")
		} else {
			node["position"] = g.position()
		}
	}
	return doc
}

// spelling returns doc as other text may give it: integral numbers as doubles
// and the other way round, and, being Go maps, members in any order.
func (g *generator) spelling(v any) any {
	switch v := v.(type) {
	case int64:
		if g.chance(50) {
			return float64(v)
		}
	case float64:
		if integer := int64(v); float64(integer) == v && v < 1e15 && g.chance(50) {
			return integer
		}
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = g.spelling(v[i])
		}
		return list
	case map[string]any:
		object := map[string]any{}
		for name, member := range v {
			object[name] = g.spelling(member)
		}
		return object
	}
	return v
}

// edit changes one thing in v, which must be a list or an object, and says
// what; positions of nodes it leaves alone.
func (g *generator) edit(v any, path string) string {
	switch v := v.(type) {
	case []any:
		if at := g.IntN(len(v) + 1); at < len(v) {
			return g.editAt(v[at], fmt.Sprintf("%s[%d]", path, at), func(value any) { v[at] = value })
		}
	case map[string]any:
		names := slices.DeleteFunc(sortedKeys(v), func(name string) bool { return name == "position" && isNodePath(path) })
		if at := g.IntN(len(names) + 1); at < len(names) {
			if g.chance(20) {
				delete(v, names[at])
				return "removed " + path + "." + names[at]
			}
			return g.editAt(v[names[at]], path+"."+names[at], func(value any) { v[names[at]] = value })
		}
		v["x-new"] = "new"
		return "added " + path + ".x-new"
	}
	return ""
}

func (g *generator) editAt(value any, path string, set func(any)) string {
	if g.chance(70) {
		if what := g.edit(value, path); what != "" {
			return what
		}
	}
	set("edited")
	return "set " + path
}

func isNodePath(path string) bool {
	var index int
	n, err := fmt.Sscanf(path, "$.nodes[%d]", &index)
	return n == 1 && err == nil && path == fmt.Sprintf("$.nodes[%d]", index)
}

func sortedKeys(object map[string]any) []string {
	names := make([]string, 0, len(object))
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

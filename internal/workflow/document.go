package workflow

import (
	"cmp"
	"slices"
)

// A Document is a workflow as JSON.
type Document = map[string]any

// A Workflow is a view of a document with its graph looked up. It is made by Read and must not outlive a change of the
// document.
type Workflow struct {
	raw      Document
	nodes    []Node
	edges    []Edge
	first    map[string]int
	outgoing map[string][]Edge
	incoming map[string][]Edge
}

// Read views a document, valid or not: entries that are no objects are passed over.
func Read(doc Document) *Workflow {
	w := &Workflow{raw: doc, first: map[string]int{}, outgoing: map[string][]Edge{}, incoming: map[string][]Edge{}}
	for _, entry := range list(doc["nodes"]) {
		if raw, ok := entry.(map[string]any); ok {
			w.addNode(Node{raw})
		}
	}
	for _, entry := range list(doc["edges"]) {
		if raw, ok := entry.(map[string]any); ok {
			w.addEdge(Edge{raw})
		}
	}
	for _, edges := range w.outgoing {
		slices.SortStableFunc(edges, func(a, b Edge) int { return cmp.Compare(a.Priority(), b.Priority()) })
	}
	return w
}

func (w *Workflow) addNode(n Node) {
	if _, taken := w.first[n.ID()]; !taken {
		w.first[n.ID()] = len(w.nodes)
	}
	w.nodes = append(w.nodes, n)
}

func (w *Workflow) addEdge(e Edge) {
	w.edges = append(w.edges, e)
	w.outgoing[e.Source()] = append(w.outgoing[e.Source()], e)
	w.incoming[e.Target()] = append(w.incoming[e.Target()], e)
}

// ID identifies the workflow.
func (w *Workflow) ID() string { return text(w.raw["id"]) }

// Name is for people.
func (w *Workflow) Name() string { return text(w.raw["name"]) }

// Description is for people.
func (w *Workflow) Description() string { return text(w.raw["description"]) }

// Nodes are all nodes as declared.
func (w *Workflow) Nodes() []Node { return w.nodes }

// Edges are all edges as declared.
func (w *Workflow) Edges() []Edge { return w.edges }

// Node finds the first declared node of the id.
func (w *Workflow) Node(id string) (Node, bool) {
	i, ok := w.first[id]
	if !ok {
		return Node{}, false
	}
	return w.nodes[i], true
}

// Start finds the first declared start node.
func (w *Workflow) Start() (Node, bool) {
	i := slices.IndexFunc(w.nodes, func(n Node) bool { return n.Kind() == KindStart })
	if i < 0 {
		return Node{}, false
	}
	return w.nodes[i], true
}

// Outgoing are the edges that leave a node, by ascending priority, ties as declared.
func (w *Workflow) Outgoing(id string) []Edge { return w.outgoing[id] }

// Incoming are the edges that enter a node, as declared.
func (w *Workflow) Incoming(id string) []Edge { return w.incoming[id] }

// Normal are the outgoing edges of the node that are followed when it completes, in the order of Outgoing.
func (w *Workflow) Normal(id string) []Edge {
	return slices.DeleteFunc(slices.Clone(w.outgoing[id]), func(e Edge) bool { return !e.isNormal() })
}

// EdgeOf finds the first outgoing edge of the node that has the class.
func (w *Workflow) EdgeOf(id string, class Class) (Edge, bool) {
	i := slices.IndexFunc(w.outgoing[id], func(e Edge) bool { return e.Class() == class })
	if i < 0 {
		return Edge{}, false
	}
	return w.outgoing[id][i], true
}

// IsFork tells whether a run splits when it leaves the node.
func (w *Workflow) IsFork(id string) bool {
	return isFork(w.Normal(id))
}

// isFork decides by the normal edges of a node.
func isFork(normal []Edge) bool {
	return len(normal) > 1 && !slices.ContainsFunc(normal, func(e Edge) bool { return !e.IsPlain() })
}

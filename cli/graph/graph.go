package graph

import (
	"slices"
	"strings"

	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// A Change says what became of a node or an edge, between two documents or in a run.
type Change string

const (
	// Unchanged is in both documents alike, or there is only one.
	Unchanged Change = ""
	// Added is in the later document only.
	Added Change = "added"
	// Changed is in both, with another content.
	Changed Change = "changed"
	// Removed is in the earlier document only.
	Removed Change = "removed"
	// Done was passed by the run.
	Done Change = "done"
	// Open is where the run is.
	Open Change = "open"
	// Failed is where the run failed, the last time that it came there.
	Failed Change = "failed"
)

// A Graph is a workflow to be drawn.
type Graph struct {
	// ID and Name are those of the workflow.
	ID, Name string
	Nodes    []Node
	Edges    []Edge
	// Compares tells whether what is marked differs between two documents.
	Compares bool
	// Runs tells whether what is marked is how a run stands.
	Runs bool
}

// marks that the graph may have, in the order of a legend.
func (g *Graph) marks() []Change {
	switch {
	case g.Compares:
		return []Change{Added, Changed, Removed}
	case g.Runs:
		return []Change{Done, Open, Failed}
	}
	return nil
}

// A Node is one step.
type Node struct {
	ID, Name string
	Kind     workflow.Kind
	// Detail is what the kind alone does not tell: the action type, the
	// duration, the event type or the component.
	Detail string
	Change Change
	// IsMissing tells that the node stands in for one that edges name and the
	// document does not have.
	IsMissing bool
}

// Title is what a reader calls the node.
func (n Node) Title() string {
	if n.Name != "" {
		return n.Name
	}
	return n.ID
}

// An Edge leads from one node to another.
type Edge struct {
	ID string
	// Source and Target are indices into the nodes.
	Source, Target int
	Class          workflow.Class
	Priority       int32
	IsDefault      bool
	Condition      string
	// Label is the one of the document.
	Label  string
	Change Change
}

// Caption is what stands beside the edge: its label, or else when it is taken.
func (e Edge) Caption() string {
	switch {
	case e.Label != "":
		return e.Label
	case e.Class == workflow.ClassTimeout:
		return "on timeout"
	case e.Class == workflow.ClassError:
		return "on error"
	case e.IsDefault:
		return "otherwise"
	}
	return e.Condition
}

// Of is the graph of one document.
func Of(doc workflow.Document) *Graph {
	w := workflow.Read(doc)
	b := newBuilder(w)
	b.addWorkflow(w, marks{})
	return b.graph
}

// InRun is the graph of a workflow with how a run of it stands, by node and by edge.
// What the run did not touch is [Unchanged].
func InRun(w *workflow.Workflow, nodes, edges map[string]Change) *Graph {
	b := newBuilder(w)
	b.graph.Runs = true
	b.addWorkflow(w, marks{nodes: nodes, edges: edges})
	return b.graph
}

// Compare is the graph of the later of two documents with what the earlier one
// had besides. An edge that was laid to other nodes is drawn in both places.
func Compare(before, after workflow.Document) *Graph {
	summary := changeset.Diff(before, after)
	w := workflow.Read(after)
	b := newBuilder(w)
	b.graph.Compares = true
	b.addWorkflow(w, marks{
		nodes: marksOf(summary.AddedNodes, summary.ChangedNodes),
		edges: marksOf(summary.AddedEdges, summary.ChangedEdges),
	})
	b.addRemoved(before, summary)
	return b.graph
}

// marks are the changes of what is in the later document, by id.
type marks struct {
	nodes, edges map[string]Change
}

func marksOf(added, changed []string) map[string]Change {
	marks := make(map[string]Change, len(added)+len(changed))
	for _, id := range changed {
		marks[id] = Changed
	}
	for _, id := range added {
		marks[id] = Added
	}
	return marks
}

// A builder collects the nodes before the edges that need their indices.
type builder struct {
	graph *Graph
	// first is the index of the first node of an id.
	first map[string]int
	// ends are where the edges of the document lead, by edge id.
	ends map[string][2]string
}

func newBuilder(w *workflow.Workflow) *builder {
	return &builder{
		graph: &Graph{ID: w.ID(), Name: w.Name()},
		first: map[string]int{},
		ends:  map[string][2]string{},
	}
}

func (b *builder) addWorkflow(w *workflow.Workflow, changes marks) {
	for _, n := range w.Nodes() {
		b.addNode(nodeOf(n, changes.nodes[n.ID()]))
	}
	for _, e := range w.Edges() {
		b.ends[e.ID()] = [2]string{e.Source(), e.Target()}
		b.addEdge(e, changes.edges[e.ID()])
	}
}

// addRemoved adds what only the earlier document has.
func (b *builder) addRemoved(before workflow.Document, summary changeset.Summary) {
	w := workflow.Read(before)
	for _, n := range w.Nodes() {
		if slices.Contains(summary.RemovedNodes, n.ID()) {
			b.addNode(nodeOf(n, Removed))
		}
	}
	for _, e := range w.Edges() {
		ends, isThere := b.ends[e.ID()]
		if !isThere || ends != [2]string{e.Source(), e.Target()} {
			b.addEdge(e, Removed)
		}
	}
}

func (b *builder) addNode(n Node) int {
	index := len(b.graph.Nodes)
	if _, taken := b.first[n.ID]; !taken {
		b.first[n.ID] = index
	}
	b.graph.Nodes = append(b.graph.Nodes, n)
	return index
}

func (b *builder) addEdge(e workflow.Edge, change Change) {
	b.graph.Edges = append(b.graph.Edges, Edge{
		ID:        e.ID(),
		Source:    b.node(e.Source()),
		Target:    b.node(e.Target()),
		Class:     e.Class(),
		Priority:  e.Priority(),
		IsDefault: e.IsDefault(),
		Condition: strings.TrimSpace(e.Condition()),
		Label:     strings.TrimSpace(e.Label()),
		Change:    change,
	})
}

// node is the index of the node that an edge names, or of its stand-in.
func (b *builder) node(id string) int {
	if index, ok := b.first[id]; ok {
		return index
	}
	return b.addNode(Node{ID: id, IsMissing: true})
}

func nodeOf(n workflow.Node, change Change) Node {
	return Node{ID: n.ID(), Name: strings.TrimSpace(n.Name()), Kind: n.Kind(), Detail: detailOf(n), Change: change}
}

// details are the members of config that tell what a node of a kind is about.
var details = map[workflow.Kind]string{
	workflow.KindEnd:          "outcome",
	workflow.KindAction:       "actionType",
	workflow.KindReceiveEvent: "eventType",
	workflow.KindWait:         "duration",
	workflow.KindComponent:    "component",
}

func detailOf(n workflow.Node) string {
	detail, _ := n.Config()[details[n.Kind()]].(string)
	return strings.TrimSpace(detail)
}

// describe tells all of the edge in one line.
func (e Edge) describe() string {
	parts := []string{e.ID}
	if e.Class != workflow.ClassNormal {
		parts = append(parts, "on "+string(e.Class))
	}
	if e.IsDefault {
		parts = append(parts, "otherwise")
	}
	if e.Condition != "" {
		parts = append(parts, "if "+e.Condition)
	}
	if e.Label != "" {
		parts = append(parts, "“"+e.Label+"”")
	}
	return strings.Join(parts, " · ")
}

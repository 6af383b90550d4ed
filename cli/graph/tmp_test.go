package graph_test

import (
	"os"
	"testing"

	"github.com/apitomy/axiom-operator/cli/graph"
	"github.com/apitomy/axiom-operator/cli/source"
	"github.com/apitomy/axiom-operator/cli/terminal"
	"github.com/apitomy/axiom-operator/internal/changeset"
)

func TestTmp(t *testing.T) {
	l := &source.Loader{}
	d, err := l.Load("/tmp/rel.yaml")
	if err != nil {
		t.Fatal(err)
	}
	doc := d.Value.(map[string]any)
	g := graph.Of(doc)
	os.WriteFile("/tmp/rel.svg", []byte(graph.SVG(g)), 0o644)
	os.WriteFile("/tmp/rel.dot", []byte(graph.DOT(g)), 0o644)
	t.Log("\n" + graph.Terminal(g, terminal.Palette{}))
	os.WriteFile("/tmp/rel.mmd", []byte(graph.Mermaid(g)), 0o644)
	ops, err := source.Parse("x", []byte(`
- {op: addNode, node: {id: check, type: human-task, name: "Check <again> & \"well\"", config: {}}}
- {op: addEdge, edge: {id: e12, source: merged, target: assess, label: try again, priority: 4, isDefault: false}}
- {op: addEdge, edge: {id: e13, source: check, target: check, label: still unclear, priority: 4, isDefault: false}}
- {op: updateEdge, id: e11, patch: {target: check}}
- {op: addEdge, edge: {id: e14, source: check, target: done, priority: 4, isDefault: false}}
- {op: removeNode, id: refused}
- {op: updateNode, id: cool-down, patch: {name: Rest}}
`))
	if err != nil {
		t.Fatal(err)
	}
	after, rej := changeset.Apply(doc, ops.Value)
	if rej != nil {
		t.Fatal(rej)
	}
	g = graph.Compare(doc, after)
	os.WriteFile("/tmp/cmp.svg", []byte(graph.SVG(g)), 0o644)
	os.WriteFile("/tmp/cmp.dot", []byte(graph.DOT(g)), 0o644)
	t.Log("\n" + graph.Terminal(g, terminal.Palette{}))
	os.WriteFile("/tmp/cmp.mmd", []byte(graph.Mermaid(g)), 0o644)
}

package graph

import (
	"fmt"
	"strings"

	"github.com/apitomy/axiom-operator/internal/workflow"
)

// DOT is the graph in the language of Graphviz.
func DOT(g *Graph) string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n", quoteDOT(g.ID))
	fmt.Fprintf(&b, "  graph [label=%s, labelloc=t, fontname=\"Helvetica\", ranksep=0.5];\n", quoteDOT(shorten(g.title(), maxTitle)))
	fmt.Fprintf(&b, "  node [shape=box, style=\"rounded,filled\", fillcolor=\"#ffffff\", color=\"%s\", fontname=\"Helvetica\"];\n", colourOf(Unchanged))
	fmt.Fprintf(&b, "  edge [color=\"%s\", fontname=\"Helvetica\", fontsize=10];\n", colourOf(Unchanged))
	for i, n := range g.Nodes {
		fmt.Fprintf(&b, "  n%d [label=%s, tooltip=%s%s];\n", i, quoteDOT(n.caption()), quoteDOT(n.ID), dotNodeStyle(n))
	}
	for _, e := range g.Edges {
		fmt.Fprintf(&b, "  n%d -> n%d [id=%s%s];\n", e.Source, e.Target, quoteDOT(e.ID), dotEdgeStyle(e))
	}
	writeDOTLegend(&b, g.marks())
	b.WriteString("}\n")
	return b.String()
}

// dotShapes are those of the kinds that differ from a box with round corners.
var dotShapes = map[workflow.Kind]string{
	workflow.KindStart:        ", shape=oval, style=filled",
	workflow.KindEnd:          ", shape=oval, style=filled, peripheries=2",
	workflow.KindHumanTask:    ", shape=parallelogram, style=filled",
	workflow.KindReceiveEvent: ", shape=cds, style=filled",
	workflow.KindWait:         ", shape=hexagon, style=filled",
	workflow.KindComponent:    ", shape=box, style=filled, peripheries=2",
}

func dotNodeStyle(n Node) string {
	style := dotShapes[n.Kind]
	if n.IsMissing {
		return ", style=dashed, " + dotColours(Removed)
	}
	if n.Change != Unchanged {
		style += fmt.Sprintf(", class=%q, penwidth=2, fillcolor=%q, %s", n.Change, tintOf(n.Change), dotColours(n.Change))
	}
	return style
}

func dotEdgeStyle(e Edge) string {
	style := ""
	if caption := e.Caption(); caption != "" {
		style = ", label=" + quoteDOT(shorten(caption, maxCaption))
	}
	if e.Class != workflow.ClassNormal || e.Change == Removed {
		style += ", style=dashed"
	}
	if e.Change != Unchanged {
		style += fmt.Sprintf(", class=%q, penwidth=2, %s", e.Change, dotColours(e.Change))
	}
	return style
}

func dotColours(c Change) string {
	return fmt.Sprintf("color=%q, fontcolor=%q", colourOf(c), colourOf(c))
}

func writeDOTLegend(b *strings.Builder, marks []Change) {
	if len(marks) == 0 {
		return
	}
	b.WriteString("  subgraph cluster_legend {\n    label=\"Legend\";\n    color=\"#d0d7de\";\n")
	for _, change := range marks {
		fmt.Fprintf(b, "    legend_%s [label=%q, penwidth=2, fillcolor=%q, %s];\n", change, change, tintOf(change), dotColours(change))
	}
	b.WriteString("  }\n")
}

// quoteDOT writes a text in one line as a quoted ID, whose only escapes are those
// of the quote and of the backslash.
func quoteDOT(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(shorten(text, len(text)+1)) + `"`
}

package graph

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/apitomy/axiom-operator/internal/workflow"
)

// Mermaid is the graph as a Mermaid flowchart.
func Mermaid(g *Graph) string {
	var b strings.Builder
	if title := g.title(); title != "" {
		fmt.Fprintf(&b, "---\ntitle: %q\n---\n", shorten(title, maxTitle))
	}
	b.WriteString("flowchart TD\n")
	for i, n := range g.Nodes {
		shape := mermaidShape(n)
		fmt.Fprintf(&b, "  n%d%s\"%s\"%s\n", i, shape[0], escapeMermaid(n.caption()), shape[1])
	}
	for _, e := range g.Edges {
		fmt.Fprintf(&b, "  n%d %s", e.Source, mermaidArrow(e))
		if caption := e.Caption(); caption != "" {
			fmt.Fprintf(&b, "|\"%s\"|", escapeMermaid(shorten(caption, maxCaption)))
		}
		fmt.Fprintf(&b, " n%d\n", e.Target)
	}
	writeMermaidStyles(&b, g)
	return b.String()
}

// mermaidShapes are the brackets of the kinds that differ from a box.
var mermaidShapes = map[workflow.Kind][2]string{
	workflow.KindStart:        {"([", "])"},
	workflow.KindEnd:          {"([", "])"},
	workflow.KindHumanTask:    {"[/", "/]"},
	workflow.KindReceiveEvent: {">", "]"},
	workflow.KindWait:         {"{{", "}}"},
	workflow.KindComponent:    {"[[", "]]"},
}

func mermaidShape(n Node) [2]string {
	if shape, ok := mermaidShapes[n.Kind]; ok {
		return shape
	}
	return [2]string{"[", "]"}
}

func mermaidArrow(e Edge) string {
	if e.Class == workflow.ClassNormal {
		return "-->"
	}
	return "-.->"
}

func writeMermaidStyles(b *strings.Builder, g *Graph) {
	if missing := g.nodesWhere(func(n Node) bool { return n.IsMissing }); len(missing) > 0 {
		fmt.Fprintf(b, "  classDef missing stroke-dasharray:4,color:%s,stroke:%s\n", colourOf(Removed), colourOf(Removed))
		writeMermaidClass(b, "missing", missing)
	}
	marks := g.marks()
	if len(marks) == 0 {
		return
	}
	for _, change := range marks {
		fmt.Fprintf(b, "  classDef %s fill:%s,stroke:%s,stroke-width:2px,color:#1f2328\n", change, tintOf(change), colourOf(change))
		writeMermaidClass(b, string(change), g.nodesWhere(func(n Node) bool { return n.Change == change && !n.IsMissing }))
		writeMermaidLinks(b, g, change)
	}
	b.WriteString("  subgraph legend [\"Legend\"]\n    direction LR\n")
	for _, change := range marks {
		fmt.Fprintf(b, "    legend_%s[\"%s\"]:::%s\n", change, change, change)
	}
	b.WriteString("  end\n")
}

func writeMermaidClass(b *strings.Builder, class string, nodes []int) {
	if len(nodes) == 0 {
		return
	}
	names := make([]string, len(nodes))
	for i, node := range nodes {
		names[i] = fmt.Sprintf("n%d", node)
	}
	fmt.Fprintf(b, "  class %s %s\n", strings.Join(names, ","), class)
}

func writeMermaidLinks(b *strings.Builder, g *Graph, change Change) {
	var links []string
	for i, e := range g.Edges {
		if e.Change == change {
			links = append(links, strconv.Itoa(i))
		}
	}
	if len(links) > 0 {
		fmt.Fprintf(b, "  linkStyle %s stroke:%s,stroke-width:2px,color:%s\n", strings.Join(links, ","), colourOf(change), colourOf(change))
	}
}

// escapeMermaid writes what could end a text or be taken for mark-up as the
// number of the character. A blank text would be no text at all.
func escapeMermaid(text string) string {
	if text == "" {
		return " "
	}
	var b strings.Builder
	begins := true // only digits so far: what follows could make a list of it
	for _, r := range text {
		if strings.ContainsRune("\"#<>&`\\|%", r) || begins && strings.ContainsRune("-+*.)", r) {
			fmt.Fprintf(&b, "#%d;", r)
		} else {
			b.WriteRune(r)
		}
		begins = begins && unicode.IsDigit(r)
	}
	return b.String()
}

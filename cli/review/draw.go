package review

import (
	"fmt"
	"strings"

	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/graph"
	"github.com/apitomy/axiom-operator/cli/terminal"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// Formats of drawings, besides text and JSON.
const (
	Mermaid = "mermaid"
	DOT     = "dot"
	SVG     = "svg"
)

// Draw prints a drawing in the format that the caller asked for: without one, as
// text in a terminal and as Mermaid everywhere else.
func Draw(a *command.App, g *graph.Graph) error {
	// Both halves of a comparison keep to the budget of a document.
	if len(g.Nodes) > 2*workflow.MaxNodes || len(g.Edges) > 2*workflow.MaxEdges {
		return fmt.Errorf("draw workflow: %d nodes and %d edges are too many", len(g.Nodes), len(g.Edges))
	}
	switch format := drawingFormat(a); format {
	case DOT:
		return a.Print(graph.DOT(g))
	case SVG:
		return a.Print(graph.SVG(g))
	case command.Text:
		return a.Print(legend(a.Palette, g) + graph.Terminal(g, a.Palette))
	case command.JSON:
		return a.ShowJSON(drawingOf(g))
	default:
		return a.Print(graph.Mermaid(g))
	}
}

func drawingFormat(a *command.App) string {
	if a.Format() == "" && terminal.IsTerminal(a.Stdout) {
		return command.Text
	}
	return a.Format()
}

func legend(p terminal.Palette, g *graph.Graph) string {
	if g.Runs {
		return strings.Join([]string{p.Paint(terminal.Green, "✓ done"), p.Paint(terminal.Yellow, "▸ open"), p.Paint(terminal.Red, "✗ failed")}, "  ") + "\n\n"
	}
	if !g.Compares {
		return ""
	}
	return strings.Join([]string{
		p.Paint(terminal.Green, "+ added"),
		p.Paint(terminal.Yellow, "~ changed"),
		p.Paint(terminal.Red, "- removed"),
	}, "  ") + "\n\n"
}

type drawing struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Nodes []node `json:"nodes"`
	Edges []edge `json:"edges"`
}

type node struct {
	ID      string        `json:"id"`
	Name    string        `json:"name"`
	Type    workflow.Kind `json:"type"`
	Missing bool          `json:"missing,omitempty"`
	Change  graph.Change  `json:"change,omitempty"`
	State   graph.Change  `json:"state,omitempty"`
}

type edge struct {
	ID        string         `json:"id"`
	Source    string         `json:"source"`
	Target    string         `json:"target"`
	Class     workflow.Class `json:"class"`
	IsDefault bool           `json:"isDefault"`
	Condition string         `json:"condition,omitempty"`
	Label     string         `json:"label,omitempty"`
	Change    graph.Change   `json:"change,omitempty"`
	State     graph.Change   `json:"state,omitempty"`
}

func drawingOf(g *graph.Graph) drawing {
	d := drawing{ID: g.ID, Name: g.Name, Nodes: []node{}, Edges: []edge{}}
	for _, n := range g.Nodes {
		d.Nodes = append(d.Nodes, node{
			ID: n.ID, Name: n.Name, Type: n.Kind, Missing: n.IsMissing, Change: n.Change,
		})
	}
	for _, e := range g.Edges {
		d.Edges = append(d.Edges, edge{
			ID: e.ID, Source: g.Nodes[e.Source].ID, Target: g.Nodes[e.Target].ID, Class: e.Class,
			IsDefault: e.IsDefault, Condition: e.Condition, Label: e.Label, Change: e.Change,
		})
	}
	if g.Runs {
		d.tellStates()
	}
	return d
}

// tellStates has marks be called what they are in the drawing of a run.
func (d *drawing) tellStates() {
	for i := range d.Nodes {
		d.Nodes[i].State, d.Nodes[i].Change = d.Nodes[i].Change, ""
	}
	for i := range d.Edges {
		d.Edges[i].State, d.Edges[i].Change = d.Edges[i].Change, ""
	}
}

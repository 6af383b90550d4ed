package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/apitomy/axiom-operator/cli/graph"
	"github.com/apitomy/axiom-operator/cli/terminal"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// Formats of graphs.
const (
	formatMermaid = "mermaid"
	formatDOT     = "dot"
	formatSVG     = "svg"
)

func (a *app) graph() *cobra.Command {
	cmd := leaf("graph -f FILE [--changeset FILE [--unchecked]] [-o mermaid|dot|svg|text|json]", "Draw a workflow", `
Draws the nodes and edges of a workflow, valid or not, as a Mermaid flowchart, in
the language of Graphviz, as an SVG picture that needs nothing besides itself, as
text, or lists them as JSON. Without -o it is text in a terminal and Mermaid
everywhere else.

With --changeset it draws the result of a change set, with what it adds, changes
and removes marked.`, `
  axiom workflow graph -f release.yaml
  axiom workflow graph -f release.yaml -o svg > release.svg
  axiom workflow graph -f release.yaml --changeset fix.yaml -o svg > review.svg
  axiom workflow graph -f release.yaml -o dot | dot -Tpdf > release.pdf`)
	var path, changes string
	var unchecked bool
	filenameFlag(cmd, &path, "the workflow")
	fileFlag(cmd, &changes, "changeset", "a change set to draw the result of")
	uncheckedFlag(cmd, &unchecked)
	a.addOutput(cmd, formatMermaid, formatDOT, formatSVG, formatText, formatJSON)
	cmd.RunE = func(*cobra.Command, []string) error {
		if changes == "" {
			doc, err := a.loadObject(path)
			if err != nil {
				return err
			}
			return a.draw(graph.Of(doc))
		}
		before, set, err := a.loadChange(path, changes)
		if err != nil {
			return err
		}
		after, _, rejection := applyTo(before, set, unchecked)
		if rejection != nil {
			return a.rejectDrawing(rejectedAnswer{Error: rejection})
		}
		return a.draw(graph.Compare(before, after))
	}
	return cmd
}

// rejectDrawing keeps words out of what should be a picture.
func (a *app) rejectDrawing(x rejectedAnswer) error {
	if a.format.name == formatJSON {
		return a.reject(x.Error)
	}
	p := &page{}
	x.tell(p)
	a.complain(p.String())
	return errVerdict
}

func (a *app) draw(g *graph.Graph) error {
	// Both halves of a comparison keep to the budget of a document.
	if len(g.Nodes) > 2*workflow.MaxNodes || len(g.Edges) > 2*workflow.MaxEdges {
		return fmt.Errorf("draw workflow: %d nodes and %d edges are too many", len(g.Nodes), len(g.Edges))
	}
	switch format := a.drawingFormat(); format {
	case formatDOT:
		return a.print(graph.DOT(g))
	case formatSVG:
		return a.print(graph.SVG(g))
	case formatText:
		return a.print(a.legend(g) + graph.Terminal(g, a.palette))
	case formatJSON:
		return a.showJSON(graphAnswerOf(g))
	default:
		return a.print(graph.Mermaid(g))
	}
}

func (a *app) drawingFormat() string {
	if a.format.name == "" && terminal.IsTerminal(a.env.Stdout) {
		return formatText
	}
	return a.format.name
}

func (a *app) legend(g *graph.Graph) string {
	if !g.Compares {
		return ""
	}
	return strings.Join([]string{
		a.palette.Paint(terminal.Green, "+ added"),
		a.palette.Paint(terminal.Yellow, "~ changed"),
		a.palette.Paint(terminal.Red, "- removed"),
	}, "  ") + "\n\n"
}

type graphAnswer struct {
	ID    string      `json:"id"`
	Name  string      `json:"name"`
	Nodes []graphNode `json:"nodes"`
	Edges []graphEdge `json:"edges"`
}

type graphNode struct {
	ID      string        `json:"id"`
	Name    string        `json:"name"`
	Type    workflow.Kind `json:"type"`
	Missing bool          `json:"missing,omitempty"`
	Change  graph.Change  `json:"change,omitempty"`
}

type graphEdge struct {
	ID        string         `json:"id"`
	Source    string         `json:"source"`
	Target    string         `json:"target"`
	Class     workflow.Class `json:"class"`
	IsDefault bool           `json:"isDefault"`
	Condition string         `json:"condition,omitempty"`
	Label     string         `json:"label,omitempty"`
	Change    graph.Change   `json:"change,omitempty"`
}

func graphAnswerOf(g *graph.Graph) graphAnswer {
	answer := graphAnswer{ID: g.ID, Name: g.Name, Nodes: []graphNode{}, Edges: []graphEdge{}}
	for _, n := range g.Nodes {
		answer.Nodes = append(answer.Nodes, graphNode{
			ID: n.ID, Name: n.Name, Type: n.Kind, Missing: n.IsMissing, Change: n.Change,
		})
	}
	for _, e := range g.Edges {
		answer.Edges = append(answer.Edges, graphEdge{
			ID: e.ID, Source: g.Nodes[e.Source].ID, Target: g.Nodes[e.Target].ID, Class: e.Class,
			IsDefault: e.IsDefault, Condition: e.Condition, Label: e.Label, Change: e.Change,
		})
	}
	return answer
}

package graph

import "github.com/apitomy/axiom-operator/internal/workflow"

// A Picture is a graph that was laid out, for somebody who draws it: where
// everything stands, in pixels from the upper left, and what it says. Its texts
// are as long as there is room for.
type Picture struct {
	Name     string        `json:"name"`
	Width    float64       `json:"width"`
	Height   float64       `json:"height"`
	Compares bool          `json:"compares"`
	Nodes    []PictureNode `json:"nodes"`
	Edges    []PictureEdge `json:"edges"`
}

// A PictureNode is the box of a node, by its centre.
type PictureNode struct {
	ID string `json:"id"`
	// Kind is empty if the document names none that there is.
	Kind    workflow.Kind `json:"kind"`
	Caption string        `json:"caption"`
	Detail  string        `json:"detail"`
	Change  Change        `json:"change,omitempty"`
	Missing bool          `json:"missing,omitempty"`
	X       float64       `json:"x"`
	Y       float64       `json:"y"`
	Width   float64       `json:"width"`
	Height  float64       `json:"height"`
}

// A PictureEdge is the line of an edge and the head of its arrow, as paths of SVG.
type PictureEdge struct {
	ID string `json:"id"`
	// Source and Target are indices into the nodes.
	Source  int            `json:"source"`
	Target  int            `json:"target"`
	Class   workflow.Class `json:"class"`
	Change  Change         `json:"change,omitempty"`
	Line    string         `json:"line"`
	Head    string         `json:"head"`
	Caption string         `json:"caption,omitempty"`
	// Says is all there is to say about the edge.
	Says string `json:"says"`
	// X and Y are the middle of the caption, which is Room wide.
	X    float64 `json:"x"`
	Y    float64 `json:"y"`
	Room float64 `json:"room"`
}

// Place lays a graph out as [SVG] does.
func Place(g *Graph) Picture {
	p := &painter{graph: g, layout: lay(g)}
	picture := Picture{
		Name: g.title(), Width: p.layout.width, Height: p.layout.height, Compares: g.Compares,
		Nodes: []PictureNode{}, Edges: []PictureEdge{},
	}
	for i, n := range g.Nodes {
		v := p.layout.vertices[i]
		picture.Nodes = append(picture.Nodes, PictureNode{
			ID: n.ID, Kind: n.knownKind(), Caption: n.caption(), Detail: n.subtitle(), Change: n.Change, Missing: n.IsMissing,
			X: v.x, Y: v.y, Width: v.width, Height: v.height,
		})
	}
	for i := range g.Edges {
		picture.Edges = append(picture.Edges, p.placedEdge(i))
	}
	return picture
}

func (p *painter) placedEdge(i int) PictureEdge {
	e := p.graph.Edges[i]
	placed := PictureEdge{
		ID: e.ID, Source: e.Source, Target: e.Target, Class: e.Class, Change: e.Change, Caption: e.shortCaption(), Says: e.describe(),
	}
	placed.Line, placed.Head = p.line(i)
	if placed.Caption != "" {
		at := p.captionPoint(i)
		placed.X, placed.Y, placed.Room = at.x, at.y, captionWidth(placed.Caption)
	}
	return placed
}

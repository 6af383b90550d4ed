package graph

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/apitomy/axiom-operator/internal/workflow"
)

// Margins and heights of an SVG in pixels.
const (
	margin       = 24
	titleHeight  = 34
	legendHeight = 40
	legendWidth  = 300
)

// SVG is the graph as a picture that needs nothing besides itself.
func SVG(g *Graph) string {
	p := &painter{graph: g, layout: lay(g)}
	p.open()
	for i := range g.Edges {
		p.edge(i)
	}
	for i := range g.Edges {
		p.caption(i)
	}
	for i := range g.Nodes {
		p.node(i)
	}
	p.close()
	return p.String()
}

// A painter writes SVG. Edges are drawn before nodes, and captions before those
// and over all edges.
type painter struct {
	strings.Builder
	graph  *Graph
	layout *layout
	ports  map[port]float64
}

func (p *painter) printf(format string, args ...any) {
	fmt.Fprintf(&p.Builder, format, args...)
}

const stylesheet = `
    text { font-family: Helvetica, Arial, "Liberation Sans", sans-serif; fill: #1f2328 }
    .title { font-size: 17px; font-weight: bold }
    .name { font-size: 13px; font-weight: bold; text-anchor: middle }
    .detail { font-size: 11px; fill: #57606a; text-anchor: middle }
    .caption { font-size: 11px; fill: #424a53; text-anchor: middle }
    .back { fill: #ffffff }
    .edge path { fill: none; stroke: #6e7781; stroke-width: 1.4 }
    .edge .head { fill: #6e7781; stroke: none }
    .timeout path, .error path { stroke-dasharray: 6 4 }
    .box { fill: #f6f8fa; stroke: #6e7781; stroke-width: 1.4 }
    .start .box { fill: #ddf4ff; stroke: #0969da }
    .end .box { fill: #ddf4ff; stroke: #0969da; stroke-width: 3 }
    .human-task .box { fill: #fbefff; stroke: #8250df }
    .receive-event .box { fill: #fff1e5; stroke: #bc4c00 }
    .wait .box { fill: #eaeef2; stroke: #57606a }
    .missing .box { fill: #ffffff; stroke: #cf222e; stroke-dasharray: 4 3 }
`

func (p *painter) open() {
	width, height := p.size()
	p.printf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n",
		width, height, width, height)
	p.printf("  <title>%s</title>\n", escapeXML(p.graph.title()))
	p.printf("  <style>%s", stylesheet)
	for _, c := range p.graph.marks() {
		p.printf("    .%s .box { fill: %s; stroke: %s; stroke-width: 2.5 }\n", c, tintOf(c), colourOf(c))
		p.printf("    .%s path { stroke: %s; stroke-width: 2.2 } .%s .head { fill: %s } .caption.%s { fill: %s }\n",
			c, colourOf(c), c, colourOf(c), c, colourOf(c))
	}
	if p.graph.Compares {
		p.printf("    .removed path, .removed .box { stroke-dasharray: 2 3 }\n")
	}
	p.printf("  </style>\n  <rect class=\"back\" width=\"%.0f\" height=\"%.0f\"/>\n", width, height)
	p.printf("  <text class=\"title\" x=\"%d\" y=\"%d\">%s</text>\n", margin, margin+12, escapeXML(shorten(p.graph.title(), maxTitle)))
	p.printf("  <g transform=\"translate(%d %d)\">\n", margin, margin+titleHeight)
}

// size of the whole picture.
func (p *painter) size() (width, height float64) {
	width = max(p.layout.width, widthOf(shorten(p.graph.title(), maxTitle))*17)
	height = p.layout.height + titleHeight
	if len(p.graph.marks()) > 0 {
		width, height = max(width, legendWidth), height+legendHeight
	}
	return width + 2*margin, height + 2*margin
}

func (p *painter) close() {
	p.printf("  </g>\n")
	if len(p.graph.marks()) > 0 {
		p.legend()
	}
	p.printf("</svg>\n")
}

func (p *painter) legend() {
	p.printf("  <g transform=\"translate(%d %.0f)\">\n", margin, margin+titleHeight+p.layout.height+legendHeight/2)
	for i, c := range p.graph.marks() {
		p.printf("    <g class=\"%s\"><rect class=\"box\" x=\"%d\" width=\"22\" height=\"14\" rx=\"3\"/></g>\n", c, 100*i)
		p.printf("    <text class=\"caption\" style=\"text-anchor: start\" x=\"%d\" y=\"11\">%s</text>\n", 100*i+30, c)
	}
	p.printf("  </g>\n")
}

func (p *painter) node(i int) {
	n, v := p.graph.Nodes[i], p.layout.vertices[i]
	p.printf("    <g class=\"%s\"><title>%s</title>\n", classesOf(n), escapeXML(n.ID))
	radius := 6.0
	if n.Kind == workflow.KindStart || n.Kind == workflow.KindEnd {
		radius = v.height / 2
	}
	p.printf("      <rect class=\"box\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"%.0f\"/>\n",
		v.x-v.width/2, v.y-v.height/2, v.width, v.height, radius)
	p.printf("      <text class=\"name\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", v.x, v.y-2, escapeXML(n.caption()))
	p.printf("      <text class=\"detail\" x=\"%.1f\" y=\"%.1f\">%s</text>\n    </g>\n", v.x, v.y+14, escapeXML(n.subtitle()))
}

// classesOf names the kind of a node only if there is one of the name: what a
// document says could end the attribute.
func classesOf(n Node) string {
	kind := string(n.knownKind())
	if n.IsMissing {
		kind = "missing"
	}
	return classes("node", kind, string(n.Change))
}

// knownKind is the kind of the node, empty if it is none.
func (n Node) knownKind() workflow.Kind {
	if slices.Contains(workflow.Kinds(), n.Kind) {
		return n.Kind
	}
	return ""
}

func classes(names ...string) string {
	return strings.Join(slices.DeleteFunc(names, func(name string) bool { return name == "" }), " ")
}

func (p *painter) edge(i int) {
	e := p.graph.Edges[i]
	line, head := p.line(i)
	p.printf("    <g class=\"%s\"><title>%s</title><path d=\"%s\"/><path class=\"head\" d=\"%s\"/></g>\n",
		classes("edge", string(e.Class), string(e.Change)), escapeXML(e.describe()), line, head)
}

// line is the path of an edge, and that of its head.
func (p *painter) line(i int) (line, head string) {
	if e := p.graph.Edges[i]; e.Source == e.Target {
		return p.loop(e.Source)
	}
	return p.way(i)
}

// loop is an edge from a node to itself, on its right side.
func (p *painter) loop(node int) (line, head string) {
	v := p.layout.vertices[node]
	x := v.x + v.width/2
	line = fmt.Sprintf("M%.1f %.1f C%.1f %.1f %.1f %.1f %.1f %.1f", x, v.y-10, x+loopWidth, v.y-14, x+loopWidth, v.y+14, x+headLength, v.y+10)
	return line, fmt.Sprintf("M%.1f %.1f l%d %d v%d Z", x, v.y+10, headLength, -headWidth/2, headWidth)
}

// Size of the head of an arrow.
const (
	headLength = 8
	headWidth  = 8
)

// way is an edge through its slots, from the upper node to the lower one or the
// other way round.
func (p *painter) way(i int) (line, head string) {
	var path strings.Builder
	points := p.pointsOf(i)
	if p.layout.isReversed[i] {
		slices.Reverse(points)
	}
	direction := 1.0
	if p.layout.isReversed[i] {
		direction = -1
	}
	last := len(points) - 1
	tip := points[last]
	points[last].y -= direction * headLength
	fmt.Fprintf(&path, "M%.1f %.1f", points[0].x, points[0].y)
	for n := 1; n <= last; n++ {
		a, b := points[n-1], points[n]
		if math.Abs(a.x-b.x) < 0.5 {
			fmt.Fprintf(&path, " V%.1f", b.y)
			continue
		}
		bend := (b.y - a.y) / 2
		fmt.Fprintf(&path, " C%.1f %.1f %.1f %.1f %.1f %.1f", a.x, a.y+bend, b.x, b.y-bend, b.x, b.y)
	}
	return path.String(), fmt.Sprintf("M%.1f %.1f l%d %.0f h%d Z", tip.x, tip.y, -headWidth/2, -direction*headLength, headWidth)
}

type point struct{ x, y float64 }

// pointsOf are where an edge leaves its upper node, where it goes through its
// slots, straight behind its caption, and where it reaches the lower node.
func (p *painter) pointsOf(i int) []point {
	way := p.layout.ways[i]
	top, bottom := p.layout.vertices[way[0]], p.layout.vertices[way[len(way)-1]]
	points := []point{{p.port(i, false), top.y + top.height/2}}
	for n, v := range way[1 : len(way)-1] {
		slot := p.layout.vertices[v]
		if n == 0 && p.graph.Edges[i].Caption() != "" {
			points = append(points, point{slot.x, slot.y - slot.height/2}, point{slot.x, slot.y + slot.height/2})
			continue
		}
		points = append(points, point{slot.x, slot.y})
	}
	return append(points, point{p.port(i, true), bottom.y - bottom.height/2})
}

// A port is where an edge touches one of its nodes.
type port struct {
	edge    int
	isLower bool
}

// port is the horizontal place of a port. Those on one side of a node are
// spread, in the order in which the edges come, so that lines do not cross.
func (p *painter) port(edge int, isLower bool) float64 {
	if p.ports == nil {
		p.ports = map[port]float64{}
		for _, isLower := range []bool{false, true} {
			p.spreadPorts(isLower)
		}
	}
	return p.ports[port{edge, isLower}]
}

func (p *painter) spreadPorts(isLower bool) {
	sides := make([][]int, len(p.graph.Nodes))
	for i, way := range p.layout.ways {
		if way == nil {
			continue
		}
		node := way[0]
		if isLower {
			node = way[len(way)-1]
		}
		sides[node] = append(sides[node], i)
	}
	for node, edges := range sides {
		slices.SortStableFunc(edges, func(a, b int) int {
			return cmp.Compare(p.next(a, isLower), p.next(b, isLower))
		})
		v := p.layout.vertices[node]
		step := min(22, (v.width-24)/float64(len(edges)))
		for i, edge := range edges {
			p.ports[port{edge, isLower}] = v.x + step*(float64(i)-float64(len(edges)-1)/2)
		}
	}
}

// next is the horizontal place an edge comes from, or goes to, at a port.
func (p *painter) next(edge int, isLower bool) float64 {
	way := p.layout.ways[edge]
	if isLower {
		return p.layout.vertices[way[len(way)-2]].x
	}
	return p.layout.vertices[way[1]].x
}

func (p *painter) caption(i int) {
	e := p.graph.Edges[i]
	caption := e.shortCaption()
	if caption == "" {
		return
	}
	at := p.captionPoint(i)
	width := captionWidth(caption)
	p.printf("    <g><title>%s</title><rect class=\"back\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"14\" fill-opacity=\"0.9\"/>",
		escapeXML(e.describe()), at.x-width/2, at.y-7, width)
	p.printf("<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">%s</text></g>\n",
		classes("caption", string(e.Change)), at.x, at.y+4, escapeXML(caption))
}

// captionPoint is the middle of a caption: in the first slot of an edge, or
// where there is none halfway.
func (p *painter) captionPoint(i int) point {
	e := p.graph.Edges[i]
	if e.Source == e.Target {
		v := p.layout.vertices[e.Source]
		return point{v.x + v.width/2 + loopWidth + captionWidth(e.shortCaption())/2, v.y}
	}
	way := p.layout.ways[i]
	first := p.layout.vertices[way[1]]
	if first.isSlot {
		return point{first.x, first.y}
	}
	top := p.layout.vertices[way[0]]
	return point{(top.x + first.x) / 2, (top.y + first.y) / 2}
}

func escapeXML(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a strings.Builder takes everything
	return b.String()
}

package graph

import (
	"slices"
	"strings"

	"github.com/apitomy/axiom-operator/cli/terminal"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// Terminal is the graph as text: a line for each node, the start first, and rails
// on the left that lead from a node to those it leads to. Beneath a node stand
// its edges; where one leads up again it names the node.
func Terminal(g *Graph, palette terminal.Palette) string {
	d := &drawing{graph: g, palette: palette, outgoing: outgoing(g), line: make([]int, len(g.Nodes))}
	order := slices.Concat(walkThrough(g).trees...)
	for line, node := range order {
		d.line[node] = line
	}
	for _, node := range order {
		d.node(node)
	}
	return d.String()
}

// A drawing goes from line to line. Each of its rails leads to the node that the
// rail is reserved for.
type drawing struct {
	strings.Builder
	graph    *Graph
	palette  terminal.Palette
	outgoing [][]int
	line     []int // of each node
	rails    []int // the node each rail leads to, or free
}

const free = -1

func (d *drawing) node(node int) {
	column := slices.Index(d.rails, node)
	if column < 0 {
		column = d.reserve(node, free)
	}
	n := d.graph.Nodes[node]
	cells := d.cells()
	cells[column].glyph = symbolOf(n)
	d.write(n.Change, cells, d.describe(n))

	edges := d.outgoing[node]
	d.rails[column] = node // the stem that its edges leave from
	for i, edge := range edges {
		d.edge(edge, column, i == len(edges)-1)
	}
	if d.rails[column] == node {
		d.rails[column] = free
	}
	for len(d.rails) > 0 && d.rails[len(d.rails)-1] == free {
		d.rails = d.rails[:len(d.rails)-1]
	}
}

// reserve takes a free rail for a target; not the one that must be kept.
func (d *drawing) reserve(target, keep int) int {
	for i, rail := range d.rails {
		if rail == free && i != keep {
			d.rails[i] = target
			return i
		}
	}
	d.rails = append(d.rails, target)
	return len(d.rails) - 1
}

// edge draws the line of an edge, from the stem to the rail of its target. The
// last edge goes straight on if it can.
func (d *drawing) edge(edge, stem int, isLast bool) {
	e := d.graph.Edges[edge]
	text := d.describeEdge(e)
	if d.line[e.Target] <= d.line[e.Source] {
		cells := d.cells()
		cells[stem].glyph = stemGlyph(isLast, true)
		d.write(e.Change, cells, "↑ "+text)
		return
	}
	rail := slices.Index(d.rails, e.Target)
	isNew := rail < 0
	if isNew && isLast {
		d.rails[stem] = e.Target
		d.straight(e, text)
		return
	}
	if isNew {
		rail = d.reserve(e.Target, stem)
	}
	cells := d.cells()
	connect(cells, stem, rail)
	cells[stem].glyph = stemGlyph(isLast, rail > stem)
	cells[rail].glyph = railGlyph(isNew, rail > stem)
	d.write(e.Change, cells, "→ "+text)
}

// straight says nothing of an edge that leads to the very next line, unless there
// is something to say.
func (d *drawing) straight(e Edge, text string) {
	if e.Caption() == "" && e.Condition == "" && e.Change == Unchanged && d.line[e.Target] == d.line[e.Source]+1 {
		d.write(Unchanged, d.cells(), "")
		return
	}
	d.write(e.Change, d.cells(), "→ "+text)
}

func stemGlyph(isLast, isRight bool) string {
	switch {
	case isLast && isRight:
		return "╰"
	case isLast:
		return "╯"
	case isRight:
		return "├"
	}
	return "┤"
}

func railGlyph(isNew, isRight bool) string {
	switch {
	case isNew && isRight:
		return "╮"
	case isNew:
		return "╭"
	case isRight:
		return "┤"
	}
	return "├"
}

// A cell is a place of a line, with the way to the cell on its right.
type cell struct {
	glyph    string
	isJoined bool
}

// connect draws a line between two cells, across the rails in between.
func connect(cells []cell, a, b int) {
	from, to := min(a, b), max(a, b)
	for i := from; i < to; i++ {
		cells[i].isJoined = true
		switch cells[i].glyph {
		case " ":
			cells[i].glyph = "─"
		case "│":
			cells[i].glyph = "┼"
		}
	}
}

// cells are the rails as they stand.
func (d *drawing) cells() []cell {
	cells := make([]cell, len(d.rails))
	for i, rail := range d.rails {
		cells[i].glyph = "│"
		if rail == free {
			cells[i].glyph = " "
		}
	}
	return cells
}

func (d *drawing) write(change Change, cells []cell, text string) {
	if len(d.graph.marks()) > 0 {
		d.WriteString(d.paint(change, markOf(change)) + " ")
	}
	var rails strings.Builder
	for _, c := range cells {
		rails.WriteString(c.glyph)
		if c.isJoined {
			rails.WriteString("─")
		} else {
			rails.WriteString(" ")
		}
	}
	d.WriteString(strings.TrimRight(rails.String()+" "+text, " ") + "\n")
}

// describe tells of a node: its name, and for those who look for it in the file
// its id.
func (d *drawing) describe(n Node) string {
	if n.IsMissing {
		return d.palette.Paint(terminal.Red, terminal.Clean(n.caption()))
	}
	text := d.paint(n.Change, terminal.Clean(n.caption()))
	if n.Change == Unchanged {
		text = d.palette.Paint(terminal.Bold, terminal.Clean(n.caption()))
	}
	about := n.subtitle()
	if n.Name != "" && n.Name != n.ID {
		about = shorten(n.ID, maxName) + " · " + about
	}
	return text + "  " + d.palette.Paint(terminal.Dim, terminal.Clean(about))
}

func (d *drawing) describeEdge(e Edge) string {
	text := d.paint(e.Change, terminal.Clean(d.graph.Nodes[e.Target].caption()))
	var when []string
	if e.Label != "" {
		when = append(when, e.Label)
	}
	switch {
	case e.Class != workflow.ClassNormal:
		when = append(when, "on "+string(e.Class))
	case e.IsDefault:
		when = append(when, "otherwise")
	case e.Condition != "":
		when = append(when, "if "+shorten(e.Condition, maxCondition))
	}
	return text + "  " + d.palette.Paint(terminal.Dim, terminal.Clean(strings.Join(when, ", ")))
}

func (d *drawing) paint(c Change, text string) string {
	styles := map[Change]terminal.Style{
		Added: terminal.Green, Changed: terminal.Yellow, Removed: terminal.Red,
		Done: terminal.Green, Open: terminal.Yellow, Failed: terminal.Red,
	}
	if style, ok := styles[c]; ok {
		return d.palette.Paint(style, text)
	}
	return text
}

func markOf(c Change) string {
	switch c {
	case Added:
		return "+"
	case Changed:
		return "~"
	case Removed:
		return "-"
	case Done:
		return "✓"
	case Open:
		return "▸"
	case Failed:
		return "✗"
	default:
		return " "
	}
}

func symbolOf(n Node) string {
	switch {
	case n.IsMissing:
		return "?"
	case n.Kind == workflow.KindStart:
		return "○"
	case n.Kind == workflow.KindEnd:
		return "◎"
	case n.Kind == workflow.KindHumanTask:
		return "◆"
	case n.Kind == workflow.KindReceiveEvent, n.Kind == workflow.KindWait:
		return "◇"
	}
	return "●"
}

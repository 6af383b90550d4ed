package graph

import "slices"

// Sizes in pixels.
const (
	nodeHeight = 46
	slotWidth  = 12 // of an edge without caption that passes a layer
	slotHeight = 18
	layerGap   = 18
	columnGap  = 22
	loopWidth  = 30 // beside a node that leads to itself
)

// A layout is where everything stands. The way of an edge goes through the
// slots that it has in the layers between its nodes.
type layout struct {
	vertices []vertex
	// layers are the vertices from top to bottom, each from left to right. Nodes
	// are in the even ones.
	layers [][]int
	// ways are the vertices of each edge from source to target; nil for an edge
	// from a node to itself.
	ways [][]int
	// isReversed tells of each edge whether it leads upwards.
	isReversed    []bool
	width, height float64
}

// A vertex is a node, or a slot of an edge.
type vertex struct {
	layer int
	// x and y are the centre.
	x, y          float64
	width, height float64
	// beside is the room kept free on the right, for an edge to itself.
	beside   float64
	up, down []int
	isSlot   bool
}

// lay lays a graph out.
func lay(g *Graph) *layout {
	w := walkThrough(g)
	l := &layout{isReversed: w.isReversed}
	l.addNodes(g, w.layers())
	l.addWays(g)
	l.fill(slices.Concat(w.trees...))
	l.untangle()
	l.spread()
	l.settle()
	return l
}

func (l *layout) addNodes(g *Graph, layers []int) {
	for i, n := range g.Nodes {
		l.vertices = append(l.vertices, vertex{layer: 2 * layers[i], width: n.width(), height: nodeHeight})
	}
	for _, e := range g.Edges {
		if e.Source == e.Target {
			beside := loopWidth + captionWidth(e.shortCaption())
			l.vertices[e.Source].beside = max(l.vertices[e.Source].beside, beside)
		}
	}
}

// maxSlots bounds the slots of all edges. An edge that finds none left is drawn
// straight.
const maxSlots = 20_000

func (l *layout) addWays(g *Graph) {
	l.ways = make([][]int, len(g.Edges))
	for i, e := range g.Edges {
		if e.Source == e.Target {
			continue
		}
		top, bottom := e.Source, e.Target
		if l.isReversed[i] {
			top, bottom = bottom, top
		}
		l.ways[i] = l.addWay(top, bottom, captionWidth(e.shortCaption()))
	}
}

// addWay links two nodes, the caption standing right below the upper one.
func (l *layout) addWay(top, bottom int, caption float64) []int {
	way := []int{top}
	from, to := l.vertices[top].layer+1, l.vertices[bottom].layer
	if len(l.vertices)+to-from > maxSlots {
		from = to
	}
	for layer := from; layer < to; layer++ {
		slot := vertex{layer: layer, width: slotWidth, height: slotHeight, isSlot: true}
		if layer == from {
			slot.width = max(slotWidth, caption)
		}
		l.vertices = append(l.vertices, slot)
		way = append(way, len(l.vertices)-1)
	}
	way = append(way, bottom)
	for i := 1; i < len(way); i++ {
		l.link(way[i-1], way[i])
	}
	return way
}

func (l *layout) link(upper, lower int) {
	l.vertices[upper].down = append(l.vertices[upper].down, lower)
	l.vertices[lower].up = append(l.vertices[lower].up, upper)
}

// fill puts the vertices into their layers, in the order in which a walk from
// the start comes upon them.
func (l *layout) fill(nodes []int) {
	seen := make([]bool, len(l.vertices))
	var visit func(v int)
	visit = func(v int) {
		seen[v] = true
		layer := l.vertices[v].layer
		for len(l.layers) <= layer {
			l.layers = append(l.layers, nil)
		}
		l.layers[layer] = append(l.layers[layer], v)
		for _, next := range l.vertices[v].down {
			if l.vertices[next].isSlot && !seen[next] {
				visit(next)
			}
		}
	}
	for _, node := range nodes {
		visit(node)
	}
}

// settle gives layers their heights and moves everything into the picture.
func (l *layout) settle() {
	left, right := 0.0, 0.0
	for i, v := range l.vertices {
		if i == 0 || v.x-v.width/2 < left {
			left = v.x - v.width/2
		}
		right = max(right, v.x+v.width/2+v.beside)
	}
	y := 0.0
	for _, layer := range l.layers {
		height := 0.0
		for _, v := range layer {
			height = max(height, l.vertices[v].height)
		}
		for _, v := range layer {
			l.vertices[v].x -= left
			l.vertices[v].y = y + height/2
		}
		y += height + layerGap
	}
	l.width, l.height = right-left, max(y-layerGap, 0)
}

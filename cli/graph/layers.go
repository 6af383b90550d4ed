package graph

import (
	"cmp"
	"slices"

	"github.com/apitomy/axiom-operator/internal/workflow"
)

// A walk goes through a graph depth first, from its start node, so what leads
// back is what a reader would call so.
type walk struct {
	graph    *Graph
	outgoing [][]int
	state    []walkState
	// trees are the nodes that the walk came upon from each root; but for the
	// edges that lead back, every edge within one leads onward.
	trees [][]int
	// isReversed tells of each edge whether it closes a loop.
	isReversed []bool
}

type walkState int

const (
	isNew walkState = iota
	isOpen
	isFinished
)

func walkThrough(g *Graph) *walk {
	w := &walk{
		graph:      g,
		outgoing:   outgoing(g),
		state:      make([]walkState, len(g.Nodes)),
		isReversed: make([]bool, len(g.Edges)),
	}
	for _, root := range roots(g) {
		if w.state[root] != isNew {
			continue
		}
		w.trees = append(w.trees, nil)
		w.visit(root)
		slices.Reverse(w.trees[len(w.trees)-1])
	}
	return w
}

// visit begins with the last edge, so that read backwards the first one is first.
func (w *walk) visit(node int) {
	w.state[node] = isOpen
	for _, edge := range slices.Backward(w.outgoing[node]) {
		target := w.graph.Edges[edge].Target
		switch w.state[target] {
		case isNew:
			w.visit(target)
		case isOpen:
			w.isReversed[edge] = target != node
		case isFinished:
		}
	}
	w.state[node] = isFinished
	last := len(w.trees) - 1
	w.trees[last] = append(w.trees[last], node)
}

// outgoing are the edges of each node in the order in which a run looks at them.
func outgoing(g *Graph) [][]int {
	edges := make([][]int, len(g.Nodes))
	for i, e := range g.Edges {
		edges[e.Source] = append(edges[e.Source], i)
	}
	for _, list := range edges {
		slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(g.Edges[a].Priority, g.Edges[b].Priority) })
	}
	return edges
}

// roots are all nodes: start nodes, then those nothing leads to, then the rest.
func roots(g *Graph) []int {
	isTarget := targets(g)
	rank := func(node int) int {
		switch {
		case g.Nodes[node].Kind == workflow.KindStart:
			return 0
		case !isTarget[node]:
			return 1
		}
		return 2
	}
	nodes := make([]int, len(g.Nodes))
	for i := range nodes {
		nodes[i] = i
	}
	slices.SortStableFunc(nodes, func(a, b int) int { return rank(a) - rank(b) })
	return nodes
}

// targets tells of each node whether another one leads to it.
func targets(g *Graph) []bool {
	isTarget := make([]bool, len(g.Nodes))
	for _, e := range g.Edges {
		isTarget[e.Target] = isTarget[e.Target] || e.Source != e.Target
	}
	return isTarget
}

// layers puts every node below the last one that leads to it, and what nothing
// leads to, but the start, right above the first one that it leads to.
func (w *walk) layers() []int {
	layers := make([]int, len(w.graph.Nodes))
	for _, tree := range slices.Backward(w.trees) {
		for _, node := range tree {
			w.eachOnward(node, func(target int) { layers[target] = max(layers[target], layers[node]+1) })
		}
	}
	isTarget := targets(w.graph)
	for node := range layers {
		if isTarget[node] || w.graph.Nodes[node].Kind == workflow.KindStart {
			continue
		}
		nearest := 0
		w.eachOnward(node, func(target int) {
			if nearest == 0 || layers[target] < nearest {
				nearest = layers[target]
			}
		})
		layers[node] = max(nearest-1, 0)
	}
	return layers
}

// eachOnward calls with the targets of the edges of a node that close no loop.
func (w *walk) eachOnward(node int, call func(target int)) {
	for _, edge := range w.outgoing[node] {
		if target := w.graph.Edges[edge].Target; target != node && !w.isReversed[edge] {
			call(target)
		}
	}
}

package workflow

import "math"

// An arc is an edge between nodes that are there, by their index in a graph.
type arc struct {
	from, to int
	// branch is whether the arc starts a branch if its source is a fork.
	branch bool
}

// A graph has the nodes of a workflow by index. Edges from or to nowhere are not in it.
type graph struct {
	arcs []arc
	// out and in hold indices of arcs; out is in the order of priority, in as declared.
	out, in [][]int
	isEnd   []bool
	isFork  []bool
}

// newGraph uses the index of the first declared node of each id. A repeat has an index too, but no arcs.
func newGraph(w *Workflow) *graph {
	n := len(w.nodes)
	g := &graph{out: make([][]int, n), in: make([][]int, n), isEnd: make([]bool, n), isFork: make([]bool, n)}
	for i, node := range w.nodes {
		if w.first[node.ID()] != i {
			continue
		}
		g.isEnd[i] = node.Kind() == KindEnd
		g.isFork[i] = w.IsFork(node.ID())
		for _, e := range w.Outgoing(node.ID()) {
			if to, ok := w.first[e.Target()]; ok {
				g.add(arc{from: i, to: to, branch: e.isNormal()})
			}
		}
	}
	return g
}

func (g *graph) add(a arc) {
	g.out[a.from] = append(g.out[a.from], len(g.arcs))
	g.in[a.to] = append(g.in[a.to], len(g.arcs))
	g.arcs = append(g.arcs, a)
}

// branches are the arcs of a fork that start its branches, in the order of priority.
func (g *graph) branches(fork int) []int {
	var branches []int
	for _, id := range g.out[fork] {
		if g.arcs[id].branch {
			branches = append(branches, id)
		}
	}
	return branches
}

// loops finds the strongly connected sets among the chosen nodes that have more than one node or an arc to itself, by
// Tarjan's algorithm.
func (g *graph) loops(chosen []bool) [][]int {
	s := &components{graph: g, chosen: chosen, number: make([]int, len(chosen)), low: make([]int, len(chosen))}
	for v := range chosen {
		if chosen[v] && s.number[v] == 0 {
			s.visit(v)
		}
	}
	return s.found
}

type components struct {
	*graph
	chosen []bool
	// number is 0 for a node not visited, and done for one whose set is complete.
	number, low []int
	last        int
	stack       []int
	found       [][]int
}

const done = math.MaxInt

// visit recurses as deep as the graph has nodes, which a budget bounds.
func (s *components) visit(v int) {
	s.last++
	s.number[v], s.low[v] = s.last, s.last
	at := len(s.stack)
	s.stack = append(s.stack, v)
	hasSelf := false
	for _, id := range s.out[v] {
		to := s.arcs[id].to
		if !s.chosen[to] {
			continue
		}
		hasSelf = hasSelf || to == v
		if s.number[to] == 0 {
			s.visit(to)
		}
		if s.number[to] != done {
			s.low[v] = min(s.low[v], s.low[to])
		}
	}
	if s.low[v] == s.number[v] {
		s.complete(at, hasSelf)
	}
}

// complete takes the set that begins at a place of the stack off it.
func (s *components) complete(at int, hasSelf bool) {
	set := append([]int(nil), s.stack[at:]...)
	s.stack = s.stack[:at]
	for _, v := range set {
		s.number[v] = done
	}
	if len(set) > 1 || hasSelf {
		s.found = append(s.found, set)
	}
}

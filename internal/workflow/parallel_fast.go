package workflow

import "slices"

// postOrder lists what roots reach, each node behind all it reaches that were not listed before.
func (r *regions) postOrder(roots []int, arcs func(v int) []int, next func(a arc) int) []int {
	type step struct{ node, at int }
	var order []int
	var open []step
	seen := make([]bool, len(r.out))
	push := func(v int) {
		if !seen[v] {
			seen[v] = true
			open = append(open, step{node: v})
		}
	}
	for _, root := range roots {
		push(root)
		for len(open) > 0 {
			top := &open[len(open)-1]
			if outgoing := arcs(top.node); top.at < len(outgoing) {
				r.work++
				id := outgoing[top.at]
				top.at++
				push(next(r.arcs[id]))
				continue
			}
			order = append(order, top.node)
			open = open[:len(open)-1]
		}
	}
	return order
}

// A dominatorTree holds for each node the nearest one that every path from it to an end passes. Behind all ends lies one
// more node, the exit.
type dominatorTree struct {
	parent []int
	// height grows towards the exit; it is noNode where no end can be reached.
	height []int
	exit   int
}

// postDominators follows Cooper, Harvey and Kennedy, A Simple, Fast Dominance Algorithm, on the reversed graph.
func (r *regions) postDominators() *dominatorTree {
	n := len(r.out)
	t := &dominatorTree{parent: make([]int, n+1), height: make([]int, n+1), exit: n}
	for v := range n + 1 {
		t.parent[v], t.height[v] = noNode, noNode
	}
	var ends []int
	for v, isEnd := range r.isEnd {
		if isEnd {
			ends = append(ends, v)
		}
	}
	order := r.postOrder(ends, func(v int) []int { return r.in[v] }, func(a arc) int { return a.from })
	for height, v := range order {
		t.height[v] = height
	}
	t.height[t.exit], t.parent[t.exit] = len(order), t.exit
	for changed := true; changed; {
		changed = false
		for _, v := range slices.Backward(order) {
			if parent := r.commonOfSuccessors(t, v); parent != t.parent[v] {
				t.parent[v] = parent
				changed = true
			}
		}
	}
	return t
}

func (r *regions) commonOfSuccessors(t *dominatorTree, v int) int {
	common := noNode
	if r.isEnd[v] {
		common = t.exit
	}
	for _, id := range r.out[v] {
		r.work++
		if to := r.arcs[id].to; t.parent[to] != noNode {
			common = r.meet(t, common, to)
		}
	}
	return common
}

// meet finds the nearest node above both, either of which may be noNode.
func (r *regions) meet(t *dominatorTree, a, b int) int {
	if a == noNode {
		return b
	}
	for a != b {
		r.work++
		if t.height[a] < t.height[b] {
			a = t.parent[a]
		} else {
			b = t.parent[b]
		}
	}
	return a
}

// nearestCommon is the nearest node that no branch of the fork can avoid, the candidate for its join.
func (r *regions) nearestCommon(t *dominatorTree, fork int) int {
	common := noNode
	for _, id := range r.branches(fork) {
		r.work++
		to := r.arcs[id].to
		if t.parent[to] == noNode {
			return noNode
		}
		common = r.meet(t, common, to)
	}
	if common == t.exit {
		return noNode
	}
	return common
}

// accepts walks over the region between fork and join once. If it returns true, judging by walking finds no fault and
// the same join; false says nothing. What lies between the fork and the join of a region accepted before is known to be
// closed, so it is stepped over.
func (r *regions) accepts(fork, join int) bool {
	if fork == join {
		return false
	}
	branches := r.branches(fork)
	if len(r.in[join]) != len(branches) {
		return false
	}
	before := r.stamp
	var region []int
	for _, id := range branches {
		r.stamp++
		nodes, ok := r.walkBranch(id, join, before)
		if !ok {
			return false
		}
		region = append(region, nodes...)
	}
	for _, v := range region {
		if !r.isClosed(fork, v) {
			return false
		}
	}
	return true
}

// walkBranch marks the nodes of a branch and refuses it unless exactly one arc of its own leads into the join and none
// to the fork, to an end or to a node of a branch walked before. Stamps of the other branches are those after before.
func (r *regions) walkBranch(branch, join, before int) (nodes []int, ok bool) {
	fork := r.arcs[branch].from
	arrivals := 0
	visit := func(v int) bool {
		switch {
		case v == join:
			arrivals++
			return true
		case v == fork || r.isEnd[v]:
			return false
		case r.mark[v] == r.stamp:
			return true
		case r.mark[v] > before:
			return false
		}
		r.mark[v] = r.stamp
		nodes = append(nodes, v)
		return true
	}
	if !visit(r.arcs[branch].to) {
		return nil, false
	}
	for i := 0; i < len(nodes); i++ { //nolint:intrange // the slice grows while it is walked
		if !r.visitNext(nodes[i], visit) {
			return nil, false
		}
	}
	return nodes, arrivals == 1
}

// visitNext visits what follows a node, for the fork of an accepted region its join instead of its branches.
func (r *regions) visitNext(v int, visit func(int) bool) bool {
	inner := r.join[v]
	if inner != noNode && !visit(inner) {
		return false
	}
	for _, id := range r.out[v] {
		r.work++
		if a := r.arcs[id]; (inner == noNode || !a.branch) && !visit(a.to) {
			return false
		}
	}
	return true
}

// isClosed tells whether all arcs into a node of the region come from its own branch or start it. Into the join of an
// accepted region lead only arcs from within that, and not even two branches that began in there could get out of it
// other than by its join, so it was stepped over and belongs here as a whole.
func (r *regions) isClosed(fork, v int) bool {
	if r.fork[v] != noNode {
		return true
	}
	for _, id := range r.in[v] {
		r.work++
		a := r.arcs[id]
		isBranch := a.from == fork && a.branch
		if !isBranch && r.mark[a.from] != r.mark[v] {
			return false
		}
	}
	return true
}

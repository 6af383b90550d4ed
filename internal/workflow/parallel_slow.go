package workflow

// judgeByWalking is the definition of a parallel region, at the cost of a walk over the whole graph for each branch.
func (r *regions) judgeByWalking(fork int) verdict {
	branches := r.branches(fork)
	join, reachesEnd := r.firstCommon(branches)
	switch {
	case join == noNode && reachesEnd:
		return verdict{join: noNode, faults: []fault{faultEnd}}
	case join == noNode:
		return verdict{join: noNode, faults: []fault{faultNoJoin}}
	}
	walks := make([]walk, 0, len(branches))
	for _, id := range branches {
		w := r.walkTo(id, join)
		if w.reachesEnd {
			return verdict{join: noNode, faults: []fault{faultEnd}}
		}
		walks = append(walks, w)
	}
	return verdict{join: join, faults: r.regionFaults(fork, join, walks)}
}

// A walk is what one branch reaches without passing its fork, nor the join if that is known.
type walk struct {
	branch int
	// nodes are in breadth-first order.
	nodes []int
	// arrivals are the arcs of the branch into the join.
	arrivals              []int
	reachesEnd, meetsFork bool
}

// walkTo follows a branch and marks its nodes with a new stamp.
func (r *regions) walkTo(branch, join int) walk {
	r.stamp++
	w := walk{branch: branch}
	r.follow(&w, branch, join)
	for i := 0; i < len(w.nodes); i++ { //nolint:intrange // the slice grows while it is walked
		for _, id := range r.out[w.nodes[i]] {
			r.follow(&w, id, join)
		}
	}
	return w
}

func (r *regions) follow(w *walk, id, join int) {
	r.work++
	switch v := r.arcs[id].to; {
	case v == join:
		w.arrivals = append(w.arrivals, id)
	case v == r.arcs[w.branch].from:
		w.meetsFork = true
	case r.mark[v] != r.stamp:
		r.mark[v] = r.stamp
		w.nodes = append(w.nodes, v)
		w.reachesEnd = w.reachesEnd || r.isEnd[v]
	}
}

// firstCommon finds the first node in the order of the first branch that every branch reaches.
func (r *regions) firstCommon(branches []int) (join int, reachesEnd bool) {
	var first []int
	reachedBy := make([]int, len(r.out))
	for i, id := range branches {
		w := r.walkTo(id, noNode)
		reachesEnd = reachesEnd || w.reachesEnd
		if i == 0 {
			first = w.nodes
		}
		for _, v := range w.nodes {
			reachedBy[v]++
		}
	}
	for _, v := range first {
		if reachedBy[v] == len(branches) {
			return v, reachesEnd
		}
	}
	return noNode, reachesEnd
}

// regionFaults judges the walks of all branches up to the join. Each fault counts once.
func (r *regions) regionFaults(fork, join int, walks []walk) []fault {
	owner := make([]int, len(r.out)) // of nodes, by branch
	for v := range owner {
		owner[v] = noNode
	}
	arrived := map[int]bool{}
	var cycle, unbalanced, crossing bool
	for _, w := range walks {
		cycle = cycle || w.meetsFork
		unbalanced = unbalanced || len(w.arrivals) != 1
		for _, id := range w.arrivals {
			unbalanced = unbalanced || arrived[id]
			arrived[id] = true
		}
		for _, v := range w.nodes {
			crossing = crossing || owner[v] != noNode
			owner[v] = w.branch
		}
	}
	crossing = crossing || len(arrived) != len(r.in[join]) || r.isEntered(fork, owner)
	return faultsOf(cycle, unbalanced, crossing)
}

func faultsOf(cycle, unbalanced, crossing bool) []fault {
	var faults []fault
	if cycle {
		faults = append(faults, faultCycle)
	}
	if unbalanced {
		faults = append(faults, faultUnbalanced)
	}
	if crossing {
		faults = append(faults, faultCrossing)
	}
	return faults
}

// isEntered tells whether an arc leads into a branch from outside, other than those by which the fork starts branches.
func (r *regions) isEntered(fork int, owner []int) bool {
	for _, a := range r.arcs {
		r.work++
		isBranch := a.from == fork && a.branch
		if owner[a.to] != noNode && owner[a.from] != owner[a.to] && !isBranch {
			return true
		}
	}
	return false
}

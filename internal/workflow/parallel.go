package workflow

import (
	"cmp"
	"slices"
)

var parallelRules = errorRules("MIXED_FORK_EDGES", "PARALLEL_BRANCH_REACHES_END", "FORK_WITHOUT_JOIN",
	"PARALLEL_REGION_CYCLE", "UNBALANCED_PARALLEL", "CROSSING_PARALLEL_REGIONS")

// A fault is what is wrong with a parallel region.
type fault struct {
	code    string
	message string
}

var (
	faultEnd = fault{
		"PARALLEL_BRANCH_REACHES_END",
		"a branch of the fork reaches an end without the join of its branches",
	}
	faultNoJoin     = fault{"FORK_WITHOUT_JOIN", "the branches of the fork never come together"}
	faultCycle      = fault{"PARALLEL_REGION_CYCLE", "a branch of the fork leads back to it before the join"}
	faultUnbalanced = fault{
		"UNBALANCED_PARALLEL",
		"every branch of the fork must have exactly one edge of its own into the join; let its paths merge in a node before",
	}
	faultCrossing = fault{
		"CROSSING_PARALLEL_REGIONS",
		"the branches of the fork must not share nodes, nor be entered from outside the fork",
	}
)

// A verdict is what came of judging one fork. Without a fault it has a join.
type verdict struct {
	join   int
	faults []fault
}

// noNode stands for the index of a node that is not there.
const noNode = -1

func (c *checker) checkParallel() {
	if c.dangling {
		return
	}
	for i, n := range c.w.nodes {
		if c.isFirst(i) && isMixed(c.w.Normal(n.ID())) {
			c.nodeProblem(i, "MIXED_FORK_EDGES",
				"either all edges of the node must be without condition and not the default, or none of them")
		}
	}
	for fork, v := range newRegions(newGraph(c.w)).judge() {
		for _, f := range v.faults {
			c.nodeProblem(fork, f.code, f.message)
		}
	}
}

func isMixed(normal []Edge) bool {
	return len(normal) > 1 && !isFork(normal) && slices.ContainsFunc(normal, Edge.IsPlain)
}

// Joins are the nodes that wait for all their incoming edges, with the fork each of them ends. In a workflow that has
// errors some forks may have none.
func (w *Workflow) Joins() map[string]string {
	joins := map[string]string{}
	for fork, v := range newRegions(newGraph(w)).judge() {
		if v.join != noNode && len(v.faults) == 0 {
			joins[w.nodes[v.join].ID()] = w.nodes[fork].ID()
		}
	}
	return joins
}

// regions judges the forks of a graph.
type regions struct {
	*graph
	// join and fork are those of the accepted regions, by the index of the other one.
	join, fork []int
	// mark tells by whom a node was seen last: every walk has a stamp of its own.
	mark  []int
	stamp int
	// work counts the arcs looked at, so that tests can tell how it grows.
	work int
}

func newRegions(g *graph) *regions {
	n := len(g.out)
	r := &regions{graph: g, join: make([]int, n), fork: make([]int, n), mark: make([]int, n)}
	for i := range n {
		r.join[i], r.fork[i] = noNode, noNode
	}
	return r
}

// judge gives the verdict on every fork, by its index.
func (r *regions) judge() map[int]verdict {
	verdicts := map[int]verdict{}
	if !slices.Contains(r.isFork, true) {
		return verdicts
	}
	dominators := r.postDominators()
	for _, fork := range r.innerFirst() {
		join := r.nearestCommon(dominators, fork)
		if join != noNode && r.accepts(fork, join) {
			r.join[fork], r.fork[join] = join, fork
			verdicts[fork] = verdict{join: join}
			continue
		}
		v := r.judgeByWalking(fork)
		if len(v.faults) == 0 {
			r.join[fork], r.fork[v.join] = v.join, fork
		}
		verdicts[fork] = v
	}
	return verdicts
}

// innerFirst lists the forks so that those in a region come before its fork, loops around regions apart.
func (r *regions) innerFirst() []int {
	order := r.postOrder(r.entries(), func(v int) []int { return r.out[v] }, func(a arc) int { return a.to })
	return slices.DeleteFunc(order, func(v int) bool { return !r.isFork[v] })
}

// entries are all nodes, those without incoming arcs first.
func (r *regions) entries() []int {
	nodes := make([]int, len(r.out))
	for i := range nodes {
		nodes[i] = i
	}
	slices.SortStableFunc(nodes, func(a, b int) int { return cmp.Compare(min(len(r.in[a]), 1), min(len(r.in[b]), 1)) })
	return nodes
}

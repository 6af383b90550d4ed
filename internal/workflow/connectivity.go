package workflow

import "slices"

var connectivityRules = slices.Concat(
	errorRules("DISCONNECTED_NODE", "NO_OUTGOING_EDGES"),
	warningRules("NO_INCOMING_EDGES", "UNREACHABLE_NODE", "NO_PATH_TO_END"),
)

func (c *checker) checkConnectivity() {
	reached := c.reach(KindStart, c.w.outgoing, Edge.Target)
	ending := c.reach(KindEnd, c.w.incoming, Edge.Source)
	for i, n := range c.w.nodes {
		if !c.isFirst(i) {
			continue
		}
		c.checkNodeEdges(i, n)
		switch {
		case !reached[n.ID()]:
			c.nodeProblem(i, "UNREACHABLE_NODE", "no path leads from the start to the node")
		case !ending[n.ID()]:
			c.nodeProblem(i, "NO_PATH_TO_END", "no path leads from the node to an end")
		}
	}
}

func (c *checker) checkNodeEdges(i int, n Node) {
	hasIn, hasOut := len(c.w.Incoming(n.ID())) > 0, len(c.w.Outgoing(n.ID())) > 0
	isStart, isEnd := n.Kind() == KindStart, n.Kind() == KindEnd
	if !isStart && !hasIn && !hasOut {
		c.nodeProblem(i, "DISCONNECTED_NODE", "the node has no edges")
		return
	}
	if !isEnd && !hasOut {
		c.nodeProblem(i, "NO_OUTGOING_EDGES", "no edge leads from the node")
	}
	if !isStart && !hasIn {
		c.nodeProblem(i, "NO_INCOMING_EDGES", "no edge leads to the node")
	}
}

// reach finds the nodes that edges of every sort connect with the nodes of a kind, themselves included.
func (c *checker) reach(from Kind, edges map[string][]Edge, next func(Edge) string) map[string]bool {
	reached := map[string]bool{}
	var open []string
	for i, n := range c.w.nodes {
		if n.Kind() == from && c.isFirst(i) {
			reached[n.ID()] = true
			open = append(open, n.ID())
		}
	}
	for len(open) > 0 {
		id := open[len(open)-1]
		open = open[:len(open)-1]
		for _, e := range edges[id] {
			if to := next(e); !reached[to] {
				reached[to] = true
				open = append(open, to)
			}
		}
	}
	return reached
}

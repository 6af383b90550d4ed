package workflow

import (
	"fmt"
	"slices"
)

var edgeRules = slices.Concat(
	warningRules("SINGLE_CONDITIONAL_EDGE", "MULTIPLE_DEFAULT_EDGES", "NO_DEFAULT_EDGE", "DUPLICATE_EDGE_PRIORITY"),
	errorRules("INVALID_CONDITION"),
	warningRules("NON_BOOLEAN_CONDITION"),
	errorRules("INVALID_TIMEOUT_EDGE", "INVALID_ERROR_EDGE"),
	warningRules("DEFAULT_EDGE_WITH_CONDITION", "TIMEOUT_EDGE_WITH_CONDITION", "ERROR_EDGE_WITH_CONDITION"),
	errorRules("MULTIPLE_TIMEOUT_EDGES", "MULTIPLE_ERROR_EDGES"),
)

func (c *checker) checkEdges() {
	for i, n := range c.w.nodes {
		if c.isFirst(i) {
			c.checkChoice(i, c.w.Normal(n.ID()))
			c.checkHandlers(i, c.w.Outgoing(n.ID()))
		}
	}
	for i, e := range c.w.edges {
		c.checkCondition(i, e)
		c.checkOccasion(i, e)
		c.checkIgnored(i, e)
	}
}

// checkChoice judges the edges one of which is taken when the node completes.
func (c *checker) checkChoice(i int, normal []Edge) {
	if len(normal) == 1 && normal[0].HasCondition() && !normal[0].IsDefault() {
		c.nodeProblem(i, "SINGLE_CONDITIONAL_EDGE", "the run fails at the node if the condition of its only edge is false")
	}
	if len(normal) < 2 {
		return
	}
	defaults, conditions := count(normal, Edge.IsDefault), count(normal, Edge.HasCondition)
	if defaults > 1 {
		c.nodeProblem(i, "MULTIPLE_DEFAULT_EDGES", fmt.Sprintf("%d edges are the default, the last one counts", defaults))
	}
	if conditions > 0 && defaults == 0 {
		c.nodeProblem(i, "NO_DEFAULT_EDGE", "the run fails at the node if no condition is true")
	}
	if priority, shared := sharedPriority(normal); shared && !isFork(normal) {
		c.nodeProblem(i, "DUPLICATE_EDGE_PRIORITY", fmt.Sprintf("several edges have priority %d", priority))
	}
}

func count(edges []Edge, has func(Edge) bool) int {
	n := 0
	for _, e := range edges {
		if has(e) {
			n++
		}
	}
	return n
}

// sharedPriority finds a priority that two edges have which are not the default. The edges are in ascending order.
func sharedPriority(edges []Edge) (priority int32, shared bool) {
	var last *Edge
	for _, e := range edges {
		if e.IsDefault() {
			continue
		}
		if last != nil && last.Priority() == e.Priority() {
			return e.Priority(), true
		}
		last = &e
	}
	return 0, false
}

// checkHandlers judges the edges that are followed instead of a choice.
func (c *checker) checkHandlers(i int, outgoing []Edge) {
	timeouts, errors := 0, 0
	for _, e := range outgoing {
		if e.isTimeout() {
			timeouts++
		}
		if e.isError() {
			errors++
		}
	}
	if timeouts > 1 {
		c.nodeProblem(i, "MULTIPLE_TIMEOUT_EDGES", fmt.Sprintf("the node has %d timeout edges, one is allowed", timeouts))
	}
	if errors > 1 {
		c.nodeProblem(i, "MULTIPLE_ERROR_EDGES", fmt.Sprintf("the node has %d error edges, one is allowed", errors))
	}
}

func (c *checker) checkCondition(i int, e Edge) {
	resultType, err := c.check(scopeCondition, e.Condition())
	switch {
	case err != nil:
		c.edgeProblem(i, "INVALID_CONDITION", fmt.Sprintf("condition: %v", err))
	case !maybeBoolean(resultType):
		c.edgeProblem(i, "NON_BOOLEAN_CONDITION", fmt.Sprintf("condition is of type %s and never true", resultType))
	}
}

// checkOccasion judges whether what an edge waits for can happen at its source.
func (c *checker) checkOccasion(i int, e Edge) {
	source, _ := c.w.Node(e.Source())
	if e.isTimeout() && !source.mayTimeOut() {
		c.edgeProblem(i, "INVALID_TIMEOUT_EDGE", "a timeout edge must leave a receive-event or human-task node with a timeout")
	}
	if e.isError() && !source.mayFail() {
		c.edgeProblem(i, "INVALID_ERROR_EDGE", "an error edge must leave an action, human-task, receive-event or component node")
	} else if e.isError() && e.isTimeout() {
		c.edgeProblem(i, "INVALID_ERROR_EDGE", "an edge cannot be both an error edge and a timeout edge")
	}
}

func (n Node) mayTimeOut() bool {
	return (n.Kind() == KindReceiveEvent || n.Kind() == KindHumanTask) && n.Config()["timeout"] != nil
}

func (n Node) mayFail() bool {
	return slices.Contains([]Kind{KindAction, KindHumanTask, KindReceiveEvent, KindComponent}, n.Kind())
}

// checkIgnored reports what an edge says in vain.
func (c *checker) checkIgnored(i int, e Edge) {
	if e.IsDefault() && e.HasCondition() {
		c.edgeProblem(i, "DEFAULT_EDGE_WITH_CONDITION", "the condition of a default edge is ignored")
	}
	chooses := e.HasCondition() || e.IsDefault()
	if e.isTimeout() && chooses {
		c.edgeProblem(i, "TIMEOUT_EDGE_WITH_CONDITION", "condition and isDefault of a timeout edge are ignored")
	}
	if e.isError() && chooses {
		c.edgeProblem(i, "ERROR_EDGE_WITH_CONDITION", "condition and isDefault of an error edge are ignored")
	}
}

package workflow

import (
	"fmt"
	"maps"
	"slices"
)

var structureRules = slices.Concat(
	errorRules("MISSING_WORKFLOW_ID", "MISSING_WORKFLOW_NAME", "EMPTY_WORKFLOW",
		"NO_START_NODE", "MULTIPLE_START_NODES", "NO_END_NODE", "DUPLICATE_NODE_ID", "DUPLICATE_EDGE_ID"),
	warningRules("MISSING_NODE_NAME"),
	errorRules("START_HAS_INCOMING", "END_HAS_OUTGOING",
		"MISSING_ACTION_TYPE", "MISSING_COMPONENT", "INVALID_ACTION_TYPE_VALUE"),
	warningRules("MISSING_ACTION_INPUTS", "MISSING_ACTION_OUTPUTS", "EMPTY_ACTION_INPUT_EXPRESSION", "DUPLICATE_OUTPUT_NAME"),
	errorRules("INVALID_EDGE_SOURCE", "INVALID_EDGE_TARGET"),
	warningRules("SELF_LOOP_EDGE", "DUPLICATE_EDGE"),
)

func (c *checker) checkStructure() {
	if blank(c.w.raw["id"]) {
		c.document("MISSING_WORKFLOW_ID", "id of a workflow must be a string and not blank")
	}
	if blank(c.w.raw["name"]) {
		c.document("MISSING_WORKFLOW_NAME", "name of a workflow must be a string and not blank")
	}
	if len(c.w.nodes) == 0 {
		c.document("EMPTY_WORKFLOW", "the workflow has no nodes")
		return
	}
	c.checkEnds()
	for i, n := range c.w.nodes {
		c.checkNodeStructure(i, n)
	}
	c.checkEdgeStructure()
}

func (c *checker) checkEnds() {
	count := map[Kind]int{}
	for _, n := range c.w.nodes {
		count[n.Kind()]++
	}
	if count[KindStart] == 0 {
		c.document("NO_START_NODE", "the workflow has no start node")
	}
	if count[KindStart] > 1 {
		c.document("MULTIPLE_START_NODES", "the workflow has %d start nodes, it must have one", count[KindStart])
	}
	if count[KindEnd] == 0 {
		c.document("NO_END_NODE", "the workflow has no end node")
	}
}

func (c *checker) checkNodeStructure(i int, n Node) {
	if !c.isFirst(i) {
		c.nodeProblem(i, "DUPLICATE_NODE_ID", "another node before it has the id "+show(n.ID()))
	}
	if blank(n.raw["name"]) {
		c.nodeProblem(i, "MISSING_NODE_NAME", "the node has no name")
	}
	if c.isFirst(i) && n.Kind() == KindStart && len(c.w.Incoming(n.ID())) > 0 {
		c.nodeProblem(i, "START_HAS_INCOMING", "no edge may lead to a start node")
	}
	if c.isFirst(i) && n.Kind() == KindEnd && len(c.w.Outgoing(n.ID())) > 0 {
		c.nodeProblem(i, "END_HAS_OUTGOING", "no edge may lead from an end node")
	}
	switch n.Kind() {
	case KindAction:
		c.checkActionStructure(i, n)
		c.checkInputValues(i, n, "EMPTY_ACTION_INPUT_EXPRESSION")
	case KindComponent:
		if blank(n.Config()["component"]) {
			c.nodeProblem(i, "MISSING_COMPONENT", "component must name the definition to call")
		}
		c.checkInputValues(i, n, "EMPTY_ACTION_INPUT_EXPRESSION")
	default:
	}
	c.checkOutputNames(i, n)
}

func (c *checker) checkActionStructure(i int, n Node) {
	switch actionType := n.Config()["actionType"]; {
	case actionType == nil:
		c.nodeProblem(i, "MISSING_ACTION_TYPE", "actionType is missing")
	case blank(actionType):
		c.nodeProblem(i, "INVALID_ACTION_TYPE_VALUE", "actionType must not be blank")
	}
	if n.Config()["inputs"] == nil {
		c.nodeProblem(i, "MISSING_ACTION_INPUTS", "inputs are missing; {} says that there are none")
	}
	if n.Config()["outputs"] == nil {
		c.nodeProblem(i, "MISSING_ACTION_OUTPUTS", "outputs are missing; [] says that there are none")
	}
}

// checkInputValues reports inputs that are null or a blank text, in the order of their names.
func (c *checker) checkInputValues(i int, n Node, code string) {
	inputs := n.Inputs()
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		v := inputs[name]
		if v == nil || isString(v) && blank(v) {
			c.nodeProblem(i, code, fmt.Sprintf("input %s has no expression", show(name)))
		}
	}
}

func (c *checker) checkOutputNames(i int, n Node) {
	seen := map[string]bool{}
	for _, f := range n.OutputFields() {
		key := f.EffectiveContextKey()
		if seen[key] {
			c.nodeProblem(i, "DUPLICATE_OUTPUT_NAME", "another output before it goes to the context key "+show(key))
		}
		seen[key] = true
	}
}

func (c *checker) checkEdgeStructure() {
	ids := map[string]bool{}
	pairs := map[[2]string]bool{}
	for i, e := range c.w.edges {
		if ids[e.ID()] {
			c.edgeProblem(i, "DUPLICATE_EDGE_ID", "another edge before it has the id "+show(e.ID()))
		}
		ids[e.ID()] = true
		c.checkEndpoints(i, e)
		pair := [2]string{e.Source(), e.Target()}
		if pairs[pair] {
			c.edgeProblem(i, "DUPLICATE_EDGE",
				fmt.Sprintf("another edge before it leads from %s to %s", show(pair[0]), show(pair[1])))
		}
		pairs[pair] = true
	}
}

func (c *checker) checkEndpoints(i int, e Edge) {
	if _, ok := c.w.Node(e.Source()); !ok {
		c.dangling = true
		c.edgeProblem(i, "INVALID_EDGE_SOURCE", fmt.Sprintf("there is no node %s to lead from", show(e.Source())))
	}
	if _, ok := c.w.Node(e.Target()); !ok {
		c.dangling = true
		c.edgeProblem(i, "INVALID_EDGE_TARGET", fmt.Sprintf("there is no node %s to lead to", show(e.Target())))
	}
	if e.Source() == e.Target() {
		c.edgeProblem(i, "SELF_LOOP_EDGE", "the edge leads back to the node it leaves")
	}
}

package workflow

import "slices"

// An ExpressionChecker compiles expressions. Check returns the type of the result, bool and dyn among others, or an
// error that says why the text is no expression of the scope.
type ExpressionChecker interface {
	Check(scope, text string) (resultType string, err error)
}

// An EffortChecker is an ExpressionChecker that tells besides what a check takes, with that of one token as the unit, no
// matter whether it had to be made. An expression can be short and yet take long.
type EffortChecker interface {
	ExpressionChecker
	CheckEffort(scope, text string) (resultType string, effort int, err error)
}

// Scopes of expressions, in the words of an ExpressionChecker.
const (
	scopeCondition       = "edge-condition"
	scopeInput           = "action-input"
	scopeTitle           = "human-task-title"
	scopeSubscriptionKey = "correlation-subscription-key"
	scopeEventKey        = "correlation-event-key"
	scopeMatch           = "receive-event-match"
	scopeOutput          = "receive-event-output"
)

// Validate tells everything that is wrong with a document, which may be any JSON value, in an order that depends on the
// document alone. Without x nothing is said about expressions. The document is not changed.
func Validate(doc any, x ExpressionChecker) []Problem {
	if problems := checkBudgets(doc); len(problems) > 0 {
		return problems
	}
	raw := object(doc)
	if problems := checkShape(raw); len(problems) > 0 {
		return problems
	}
	c := &checker{w: Read(raw), x: expressionsOf(x)}
	return slices.Concat(
		c.phase(structureRules, c.checkStructure),
		c.phase(connectivityRules, c.checkConnectivity),
		c.phase(edgeRules, c.checkEdges),
		c.phase(semanticRules, c.checkSemantics),
		c.phase(parallelRules, c.checkParallel),
	)
}

// A checker runs the phases that need a graph, on a document whose shape is right.
type checker struct {
	w *Workflow
	x *expressions
	report
	// dangling is whether an edge leads from or to a node that is not there.
	dangling bool
}

func (c *checker) phase(rules []rule, check func()) []Problem {
	c.report = report{rules: rules}
	check()
	return c.problems()
}

// nodeProblem reports on the node with the index.
func (c *checker) nodeProblem(index int, code, message string) {
	c.node(index, c.w.nodes[index].ID(), code, message)
}

// edgeProblem reports on the edge with the index.
func (c *checker) edgeProblem(index int, code, message string) {
	c.edge(index, c.w.edges[index].ID(), code, message)
}

// isFirst tells whether the node is the one its id finds. Edges belong to that one, so a repeat is judged without any.
func (c *checker) isFirst(index int) bool {
	return c.w.first[c.w.nodes[index].ID()] == index
}

// check compiles an expression unless it is blank or nobody can. A type that cannot be told is given as dyn.
func (c *checker) check(scope, expression string) (resultType string, err error) {
	if c.x == nil || blank(expression) {
		return dynType, nil
	}
	return c.x.check(scope, expression)
}

const (
	dynType  = "dyn"
	boolType = "bool"
)

// maybeBoolean tells whether a condition of the type can hold.
func maybeBoolean(resultType string) bool {
	return resultType == boolType || resultType == dynType
}

package expression

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// What the steps of a plan cost besides the calls in them; keyCost is for putting the keys of a map in order.
const (
	stepCost = 1
	listCost = 10
	mapCost  = 30
	keyCost  = 2
	// freeNodesPerUnit is how many nodes that cost nothing are evaluated for one unit.
	freeNodesPerUnit = 32
)

// A planner makes the nodes of a plan pay before they work.
//
// The cost tracker of the library cannot be used: it searches a stack that grows with every iteration, so the time of
// a comprehension is quadratic in its length, and it charges for a call when the call has returned. A planner therefore
// replaces the nodes that cost something by nodes of its own. The prices are those of the library, except that text
// costs the same whether or not its type is known when the expression is compiled, that the elements of a literal cost
// one each, that equality costs by what it compares, and that a loop pays for what is free in its body if that is a lot.
type planner struct {
	// implementations are those of the environment, by overload and by function name.
	implementations map[string]*functions.Overload
	// ranges are the nodes that macros go through, in the plan at hand, and conditions those that are evaluated once in
	// each round, with what the round costs besides.
	ranges     map[int64]bool
	conditions map[int64]int
}

// forExpression is the planner of one checked expression.
func (p *planner) forExpression(checked *ast.AST) *planner {
	own := &planner{implementations: p.implementations, ranges: map[int64]bool{}, conditions: map[int64]int{}}
	ast.PostOrderVisit(checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.ComprehensionKind {
			c := e.AsComprehension()
			own.ranges[c.IterRange().ID()] = true
			own.conditions[c.LoopCondition().ID()] = (freeNodes(c.LoopCondition()) + freeNodes(c.LoopStep())) / freeNodesPerUnit
		}
	}))
	return own
}

// freeNodes counts what costs nothing of an expression, rounds of loops in it apart: constants and logical operators.
func freeNodes(expr ast.Expr) int {
	free := 0
	switch expr.Kind() {
	case ast.LiteralKind:
		return 1
	case ast.CallKind:
		if name := expr.AsCall().FunctionName(); name == operators.LogicalAnd || name == operators.LogicalOr || name == operators.Conditional {
			free++
		}
	case ast.ComprehensionKind:
		c := expr.AsComprehension()
		return freeNodes(c.IterRange()) + freeNodes(c.AccuInit()) + freeNodes(c.Result())
	default: // only its parts count
	}
	for _, part := range ast.NavigateExpr(nil, expr).Children() {
		free += freeNodes(part)
	}
	return free
}

func newPlanner(env *cel.Env) (*planner, error) {
	p := &planner{implementations: map[string]*functions.Overload{}}
	for name, function := range env.Functions() {
		bindings, err := function.Bindings()
		if err != nil {
			return nil, fmt.Errorf("bind function %s: %w", name, err)
		}
		for _, binding := range bindings {
			p.implementations[binding.Operator] = binding
		}
	}
	return p, nil
}

// decorate is called for each node of a plan, operands first.
func (p *planner) decorate(node interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	priced := p.price(node)
	if p.ranges[node.ID()] {
		priced = &rangeNode{priced}
	}
	if price := p.conditions[node.ID()]; price > 0 {
		priced = &pricedNode{InterpretableV2: priced, price: price}
	}
	return priced, nil
}

func (p *planner) price(node interpreter.InterpretableV2) interpreter.InterpretableV2 {
	switch node := node.(type) {
	case interpreter.InterpretableAttribute:
		return planAttribute(node)
	case interpreter.InterpretableConstructor:
		return planConstructor(node)
	case interpreter.InterpretableCall:
		return p.planCall(node)
	}
	return node
}

// A rangeNode is what a macro goes through. A map costs by its size at once, because its keys are put in order however
// soon the macro ends.
type rangeNode struct {
	interpreter.InterpretableV2
}

// Exec implements [interpreter.InterpretableV2].
func (n *rangeNode) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	value := n.InterpretableV2.Exec(frame)
	if object, ok := value.(traits.Mapper); ok {
		meterOf(frame).charge(keyCost * sizeOf(object))
	}
	return value
}

// Eval implements [interpreter.Interpretable].
func (n *rangeNode) Eval(vars interpreter.Activation) ref.Val {
	return n.Exec(interpreter.AsFrame(vars))
}

// A mapNode is a map literal.
type mapNode struct {
	pricedNode
}

// Exec implements [interpreter.InterpretableV2].
func (n *mapNode) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return orderMap(n.pricedNode.Exec(frame))
}

// Eval implements [interpreter.Interpretable].
func (n *mapNode) Eval(vars interpreter.Activation) ref.Val {
	return n.Exec(interpreter.AsFrame(vars))
}

// A pricedNode costs the same each time.
type pricedNode struct {
	interpreter.InterpretableV2
	price int
}

func planConstructor(node interpreter.InterpretableConstructor) interpreter.InterpretableV2 {
	parts := len(node.InitVals())
	if node.Type() == types.ListType {
		return &pricedNode{InterpretableV2: node, price: listCost + parts}
	}
	return &mapNode{pricedNode{InterpretableV2: node, price: mapCost + parts}}
}

// Exec implements [interpreter.InterpretableV2].
func (n *pricedNode) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	meterOf(frame).charge(n.price)
	return n.InterpretableV2.Exec(frame)
}

// Eval implements [interpreter.Interpretable].
func (n *pricedNode) Eval(vars interpreter.Activation) ref.Val {
	return n.Exec(interpreter.AsFrame(vars))
}

// An operation is the work of a call on arguments that are no errors.
type operation func(m *meter, args []ref.Val) ref.Val

// A callNode evaluates its arguments from left to right up to the first error, then does its operation.
type callNode struct {
	interpreter.InterpretableCall
	args      []interpreter.InterpretableV2
	operation operation
}

func (p *planner) planCall(call interpreter.InterpretableCall) interpreter.InterpretableV2 {
	implementation := p.implementations[call.OverloadID()]
	if implementation == nil {
		implementation = p.implementations[call.Function()]
	}
	if implementation != nil && implementation.NonStrict {
		return &pricedNode{InterpretableV2: call, price: stepCost}
	}
	args := call.Args()
	operation := ordinary(library(call, implementation))
	if override, ok := overrides[call.Function()]; ok {
		operation = override(library(call, implementation), args)
	}
	return &callNode{InterpretableCall: call, args: args, operation: operation}
}

// library is what the call does by itself.
func library(call interpreter.InterpretableCall, implementation *functions.Overload) operation {
	return func(_ *meter, args []ref.Val) ref.Val {
		if implementation != nil && hasOperand(implementation, args) {
			if result, ok := invoke(implementation, args); ok {
				return result
			}
		}
		if len(args) > 0 && args[0].Type().HasTrait(traits.ReceiverType) {
			return args[0].(traits.Receiver).Receive(call.Function(), call.OverloadID(), args[1:])
		}
		return types.NewErr("no such overload: %s", call.Function())
	}
}

func hasOperand(implementation *functions.Overload, args []ref.Val) bool {
	return implementation.OperandTrait == 0 || len(args) > 0 && args[0].Type().HasTrait(implementation.OperandTrait)
}

func invoke(implementation *functions.Overload, args []ref.Val) (ref.Val, bool) {
	switch {
	case len(args) == 1 && implementation.Unary != nil:
		return implementation.Unary(args[0]), true
	case len(args) == 2 && implementation.Binary != nil:
		return implementation.Binary(args[0], args[1]), true
	case implementation.Function != nil:
		return implementation.Function(args...), true
	}
	return nil, false
}

// Exec implements [interpreter.InterpretableV2].
func (n *callNode) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	values := make([]ref.Val, len(n.args))
	for i, arg := range n.args {
		value := arg.Exec(frame)
		if types.IsUnknownOrError(value) {
			return value
		}
		values[i] = value
	}
	return types.LabelErrNode(n.ID(), n.operation(meterOf(frame), values))
}

// Eval implements [interpreter.Interpretable].
func (n *callNode) Eval(vars interpreter.Activation) ref.Val {
	return n.Exec(interpreter.AsFrame(vars))
}

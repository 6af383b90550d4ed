package expression

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// An attribute is a variable or a computed value with the selections behind it. Each time it is resolved it costs one
// unit and one more for each selection.
//
// The price hangs on the attribute rather than on its node because the arms of a conditional are resolved without
// their nodes.
type attribute struct {
	interpreter.Attribute
	price int
}

// AddQualifier implements [interpreter.Attribute].
func (a *attribute) AddQualifier(q interpreter.Qualifier) (interpreter.Attribute, error) {
	qualified, err := a.Attribute.AddQualifier(q)
	if err != nil {
		return nil, err
	}
	a.Attribute = qualified
	a.price += stepCost
	return a, nil
}

// Resolve implements [interpreter.Attribute].
func (a *attribute) Resolve(vars interpreter.Activation) (any, error) {
	meterOf(vars).charge(a.price)
	return a.Attribute.Resolve(vars)
}

// Qualify implements [interpreter.Qualifier]: the attribute is the index into something else.
func (a *attribute) Qualify(vars interpreter.Activation, object any) (any, error) {
	meterOf(vars).charge(a.price)
	return a.Attribute.Qualify(vars, object)
}

// QualifyIfPresent implements [interpreter.Qualifier].
func (a *attribute) QualifyIfPresent(vars interpreter.Activation, object any, presenceOnly bool) (any, bool, error) {
	meterOf(vars).charge(a.price)
	return a.Attribute.QualifyIfPresent(vars, object, presenceOnly)
}

// An attributeNode is the place of an attribute in a plan.
type attributeNode struct {
	*attribute
	adapter  types.Adapter
	optional bool
}

// planAttribute leaves nodes alone that stand for a priced attribute already: the planner shows a node again after each
// selection it adds, and tests for presence wrap it.
func planAttribute(node interpreter.InterpretableAttribute) interpreter.InterpretableV2 {
	if _, priced := node.Attr().(*attribute); priced {
		return node
	}
	return &attributeNode{
		attribute: &attribute{Attribute: node.Attr(), price: stepCost},
		adapter:   node.Adapter(),
		optional:  node.IsOptional(),
	}
}

// Attr implements [interpreter.InterpretableAttribute].
func (n *attributeNode) Attr() interpreter.Attribute {
	return n.attribute
}

// Adapter implements [interpreter.InterpretableAttribute].
func (n *attributeNode) Adapter() types.Adapter {
	return n.adapter
}

// IsOptional implements [interpreter.InterpretableAttribute].
func (n *attributeNode) IsOptional() bool {
	return n.optional
}

// Exec implements [interpreter.InterpretableV2].
func (n *attributeNode) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	value, err := n.Resolve(frame)
	if err != nil {
		return types.LabelErrNode(n.ID(), types.WrapErr(err))
	}
	return n.adapter.NativeToValue(value)
}

// Eval implements [interpreter.Interpretable].
func (n *attributeNode) Eval(vars interpreter.Activation) ref.Val {
	return n.Exec(interpreter.AsFrame(vars))
}

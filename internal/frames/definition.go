package frames

import (
	"context"

	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/expression"
)

// A Definition is the workflow that a run begins with and the components that may be called.
type Definition struct {
	Root Component
	// Components by the name under which all of them call each other.
	Components map[string]Component
	// Expressions compiles those of calls.
	Expressions *expression.Cache
}

// A Component is a workflow with inputs and outputs. It may be used by several goroutines at once.
type Component interface {
	Name() string
	// SourcePath and SourceHash say where the component was read.
	SourcePath() string
	SourceHash() string
	// Engine is the workflow. Nodes that call components declare no inputs in it: those are in Call.
	Engine() *engine.Definition
	// Start checks the inputs of a call, of which nulls count as absent, and adds defaults. Any error is a breach of the
	// declaration, told without values.
	Start(inputs map[string]any) (map[string]any, error)
	// EvaluateOutputs is the result of a frame whose context has these values at its end. An error that wraps
	// expression.ErrInterrupted says that ctx ended, one that is of an expression that it has no value, any other that a
	// value breaks the declaration.
	EvaluateOutputs(ctx context.Context, values map[string]any) (map[string]any, error)
	// Render is the text of a section over the values of a context. An error that does not wrap expression.ErrInterrupted
	// is told without values, like those of Start and EvaluateOutputs.
	Render(ctx context.Context, section string, values map[string]any) (string, error)
	// Call is what a component node says of its call; false if there is no such node.
	Call(node string) (Call, bool)
}

// A Call is what a component node says of the component it calls.
type Call struct {
	Component string
	// Inputs are expressions over the context and, for each item of a list, over the item and its index, by name.
	Inputs map[string]string
	// Literals are inputs that stand for themselves, Sections those that are the rendered section of this name.
	Literals map[string]any
	Sections map[string]string
	// Outputs are expressions over the result, by context key. If nil, the members of the result go by their names.
	Outputs map[string]string
	// Repeat and ForEach are nil where the node has none. It has at most one of them.
	Repeat  *Repeat
	ForEach *ForEach
}

// A Repeat calls again until the result is good enough.
type Repeat struct {
	// Max is how often at most, from 1.
	Max int
	// Until is a condition over context and result.
	Until string
}

// A ForEach calls once for each item of a list.
type ForEach struct {
	// Items is an expression over the context.
	Items string
	// As is the name of the item in inputs.
	As string
	// Max is how many items there may be.
	Max int
}

package engine

import (
	"fmt"
	"slices"

	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// A Definition is a workflow ready to run. It may be used by several goroutines at once. It is made by New.
type Definition struct {
	flow     *workflow.Workflow
	programs *expression.Cache
	// joins holds the nodes that wait for all of their incoming edges.
	joins map[string]string
	// declared are the context keys that are null while nobody wrote them.
	declared []string
	problems []workflow.Problem
	// isDiscreet keeps values out of failures.
	isDiscreet bool
}

// New prepares a copy of a document and tells what is wrong with it. With errors among the problems, Start refuses the
// definition. A nil cache is one of its own.
func New(doc workflow.Document, x *expression.Cache) (*Definition, []workflow.Problem) {
	if x == nil {
		x = expression.NewCache()
	}
	var tree any
	if doc != nil {
		tree = jsonvalue.Clone(doc)
	}
	d := &Definition{programs: x, problems: workflow.Validate(tree, x)}
	own, _ := tree.(workflow.Document)
	d.flow = workflow.Read(own)
	d.declared = d.flow.DeclaredKeys()
	if !workflow.HasErrors(d.problems) {
		d.joins = d.flow.Joins()
	}
	return d, slices.Clone(d.problems)
}

// Discreet is the definition with failures that say where an expression has no value, and nothing of the values it was
// about, which the reasons of expressions quote.
func (d *Definition) Discreet() *Definition {
	discreet := *d
	discreet.isDiscreet = true
	return &discreet
}

// Workflow is the view of the definition's document, which must not be changed.
func (d *Definition) Workflow() *workflow.Workflow { return d.flow }

// Describe returns the entries with the names and kinds of their nodes filled in where they are missing.
func (d *Definition) Describe(entries []Entry) []Entry {
	described := slices.Clone(entries)
	for i, e := range described {
		if node, ok := d.flow.Node(e.Node); ok && e.Type == "" {
			described[i].Name, described[i].Type = node.Name(), node.Kind()
		}
	}
	return described
}

// Outcome is the word that the end node left which a step reached; empty if it reached none or the node has none.
func (d *Definition) Outcome(s Step) string {
	for _, e := range s.Closed {
		if node, ok := d.flow.Node(e.Node); ok && node.Kind() == workflow.KindEnd {
			return node.Outcome()
		}
	}
	return ""
}

// A ProblemsError refuses to start a definition.
type ProblemsError struct {
	// Problems are the errors and warnings of the definition.
	Problems []workflow.Problem
}

// Error names the first error and how many there are.
func (e *ProblemsError) Error() string {
	errors := slices.DeleteFunc(slices.Clone(e.Problems), func(p workflow.Problem) bool { return !p.IsError() })
	if len(errors) == 0 {
		return "definition is not valid"
	}
	return fmt.Sprintf("definition has %d errors, the first is %s: %s", len(errors), errors[0].Code, errors[0].Message)
}

// An InputError refuses to start a run with its inputs.
type InputError struct {
	// Name is the input at fault, empty if it is all of them.
	Name string
	// Rule is the one that is broken: RuleRequired or RuleJSON.
	Rule string
}

// Rules of inputs.
const (
	// RuleRequired: the input must be there and not null.
	RuleRequired = "required"
	// RuleJSON: the inputs must be values of JSON.
	RuleJSON = "json"
)

// Error names input and rule.
func (e *InputError) Error() string {
	return fmt.Sprintf("input %q: %s", e.Name, e.Rule)
}

package definition

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// Admit reads a definition from a tree and checks all of it. The root is a path relative to the repository. A gate that
// is nil lets nothing pass. The error is a [*Refusal], or one of the tree or of a context that ended.
func Admit(ctx context.Context, tree Tree, root string, gate Gate, programs *expression.Cache) (*Bundle, error) {
	if programs == nil {
		programs = expression.NewCache()
	}
	a := &admission{ctx: ctx, tree: tree, gate: gate, programs: programs}
	for _, step := range []func() error{
		func() error { return a.readRoot(root) },
		a.readComponents,
		a.parseComponents,
		a.checkGraphs,
		a.checkActions,
		a.checkCalls,
	} {
		if err := step(); err != nil {
			return nil, a.located(err, root)
		}
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("admit definition: %w", context.Cause(ctx))
		}
	}
	return a.bundle, nil
}

type admission struct {
	ctx      context.Context // that of the call of Admit
	tree     Tree
	gate     Gate
	programs *expression.Cache
	bundle   *Bundle
}

// located has a refusal know its document: that of the component at fault, or the root, which names the components.
func (a *admission) located(err error, root string) error {
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		return err
	}
	refusal.Path = root
	if a.bundle != nil {
		if c, found := a.bundle.Component(refusal.Subject); found {
			refusal.Path = c.Path
		}
	}
	return err
}

// documents are the root and the components, in the order in which they are checked.
func (a *admission) documents() []*Component {
	return slices.Insert(slices.Clone(a.bundle.components), 0, a.bundle.root)
}

func (c *Component) subject() string {
	if c.Name == "" {
		return c.Path
	}
	return c.Name
}

func (a *admission) readRoot(path string) error {
	entry, found, err := a.tree.Entry(a.ctx, path)
	if err != nil {
		return fmt.Errorf("read root: %w", err)
	}
	refuse := func(code, rule string) error { return &Refusal{Code: code, Subject: path, Rule: rule} }
	switch {
	case !found:
		return refuse(CodeRootMissing, "")
	case entry.Mode != File && entry.Mode != Executable:
		return refuse(CodeRootNotAFile, string(entry.Mode))
	}
	if rule := unreadable(entry); rule != "" {
		return refuse(CodeRootUnreadable, rule)
	}
	c := a.component("", path, entry)
	if refusal := a.scan(c); refusal != nil {
		return refusal
	}
	a.bundle = &Bundle{root: c}
	return refusalOf(c, c.parseRoot())
}

func (a *admission) component(name, path string, entry Entry) *Component {
	return &Component{
		Name: name, Path: path, Blob: entry.Blob, source: Source{Path: path, Blob: entry.Blob, Content: entry.Content}, programs: a.programs,
	}
}

// readHead reads the head of a source.
func (c *Component) readHead(code string) (f *fault) {
	c.doc, f = readHead(c.source.Content, code)
	if f == nil {
		c.doc.compiler = compiler{programs: c.programs}
	}
	return f
}

// refusalOf makes an error of a fault, if there is one.
func refusalOf(c *Component, f *fault) error {
	if f == nil {
		return nil
	}
	return f.of(c.subject())
}

// ruleNoGate is that of a gate that cannot be asked.
const ruleNoGate = "no-gate"

func (a *admission) scan(c *Component) *Refusal {
	hit := &Hit{Rule: ruleNoGate, Line: 1, Column: 1}
	if a.gate != nil {
		hit = a.gate.Text(string(c.source.Content))
	}
	if hit == nil {
		return nil
	}
	return &Refusal{Code: CodeSecretDetected, Subject: c.subject(), Rule: hit.Rule, Line: hit.Line, Column: hit.Column}
}

func (c *Component) parseRoot() *fault {
	if f := c.readHead(CodeFrontmatterInvalid); f != nil {
		return f
	}
	return c.doc.readDeclarations(CodeFrontmatterInvalid)
}

// readComponents reads what the bundle names.
func (a *admission) readComponents() error {
	members, f := a.bundle.root.doc.readBundle()
	if f != nil {
		return refusalOf(a.bundle.root, f)
	}
	if refusal := checkNames(members, a.bundle.root.Path); refusal != nil {
		return refusal
	}
	paths := make([]string, len(members))
	for i, m := range members {
		path, word := componentPath(treeOf(m.value))
		if paths[i] = sibling(a.bundle.root.Path, path); word == "" && len(paths[i]) > maxPath {
			word = wordTooLong
		}
		if word != "" {
			return m.fault(CodePathInvalid, word).of(m.name)
		}
	}
	return a.readEntries(members, paths)
}

// readEntries reads all components, then refuses them rule by rule.
func (a *admission) readEntries(members []member, paths []string) error {
	entries, found := make([]Entry, len(members)), make([]bool, len(members))
	for i, path := range paths {
		var err error
		if entries[i], found[i], err = a.tree.Entry(a.ctx, path); err != nil {
			return fmt.Errorf("read component %s: %w", members[i].name, err)
		}
	}
	for _, rule := range []struct {
		code  string
		check func(i int) (rule string, isBroken bool)
	}{
		{CodeComponentMissing, func(i int) (string, bool) { return "", !found[i] }},
		{CodeComponentNotAFile, func(i int) (string, bool) {
			return string(entries[i].Mode), entries[i].Mode != File && entries[i].Mode != Executable
		}},
		{CodeComponentUnreadable, func(i int) (string, bool) { word := unreadable(entries[i]); return word, word != "" }},
	} {
		for i, m := range members {
			if word, isBroken := rule.check(i); isBroken {
				return &Refusal{Code: rule.code, Subject: m.name, Rule: word}
			}
		}
	}
	for i, m := range members {
		a.bundle.components = append(a.bundle.components, a.component(m.name, paths[i], entries[i]))
	}
	for _, c := range a.bundle.components {
		if refusal := a.scan(c); refusal != nil {
			return refusal
		}
	}
	return nil
}

// parseComponents reads the heads of all components, then what they declare.
func (a *admission) parseComponents() error {
	for _, c := range a.bundle.components {
		if f := c.readHead(CodeComponentMalformed); f != nil {
			return refusalOf(c, f)
		}
		if bundle := memberOf(c.doc.head, memberWorkflow); bundle != nil {
			return refusalOf(c, c.doc.headText.fault(ruleBundle, bundle.Line))
		}
		if f := c.doc.readGraph(CodeComponentMalformed); f != nil {
			return refusalOf(c, f)
		}
	}
	for _, c := range a.bundle.components {
		if f := c.doc.readDeclarations(CodeComponentSchemaInvalid); f != nil {
			return refusalOf(c, f)
		}
	}
	return nil
}

func (a *admission) checkGraphs() error {
	root := a.bundle.root
	if f := root.doc.readGraph(CodeGraphInvalid); f != nil {
		return refusalOf(root, f)
	}
	for _, c := range a.documents() {
		if f := c.doc.checkGraph(); f != nil {
			return refusalOf(c, f)
		}
		if problems := c.prepare(); len(problems) > 0 {
			return &Refusal{Code: CodeGraphInvalid, Subject: c.subject(), Rule: problems[0].Code}
		}
	}
	return nil
}

// prepare makes what a run needs of a graph that was checked. There are no problems.
func (c *Component) prepare() []workflow.Problem {
	flow, problems := engine.New(c.doc.workflow(withoutInputs), c.programs)
	c.engine = flow.Discreet()
	c.declared = c.engine.Workflow().DeclaredKeys()
	return slices.DeleteFunc(problems, func(p workflow.Problem) bool { return !p.IsError() })
}

// checkActions holds the actions of all documents against their contracts.
func (a *admission) checkActions() error {
	for _, c := range a.documents() {
		c.actions = map[string]ActionConfig{}
		for _, node := range c.nodes(workflow.KindAction) {
			config, rule := readAction(node)
			if rule != "" {
				return refusalOf(c, c.doc.graph.fault(CodeActionContract, rule, node.ID()))
			}
			c.actions[node.ID()] = config
		}
	}
	return nil
}

// nodes are those of a kind, as the document has them.
func (c *Component) nodes(kind workflow.Kind) []workflow.Node {
	raw, _ := c.doc.graph.raw.(map[string]any)
	return slices.DeleteFunc(workflow.Read(raw).Nodes(), func(n workflow.Node) bool { return n.Kind() != kind })
}

// checkCalls holds the calls of all documents against the bundle.
func (a *admission) checkCalls() error {
	callees := map[string][]string{}
	for _, c := range a.documents() {
		for _, node := range c.nodes(workflow.KindComponent) {
			callee := c.doc.calls[node.ID()].Component
			if _, ok := a.bundle.Component(callee); !ok {
				return refusalOf(c, c.doc.graph.fault(CodeComponentUndeclared, "", node.ID()))
			}
			callees[c.Name] = append(callees[c.Name], callee)
		}
	}
	for _, c := range a.bundle.components {
		if reaches(callees, c.Name, c.Name, map[string]bool{}) {
			return &Refusal{Code: CodeComponentCycle, Subject: c.Name}
		}
	}
	for _, c := range a.documents() {
		for _, node := range c.nodes(workflow.KindComponent) {
			if rule := a.incompatible(c.doc.calls[node.ID()]); rule != "" {
				return refusalOf(c, c.doc.graph.fault(CodeComponentIncompatible, rule, node.ID()))
			}
		}
	}
	return nil
}

// reaches tells whether a component calls another, by way of others too.
func reaches(callees map[string][]string, from, to string, seen map[string]bool) bool {
	for _, callee := range callees[from] {
		if callee == to {
			return true
		}
		if seen[callee] {
			continue
		}
		seen[callee] = true
		if reaches(callees, callee, to, seen) {
			return true
		}
	}
	return false
}

// Rules of calls.
const (
	ruleUndeclaredInput = "undeclared-input"
	ruleTwoLoops        = "repeat-and-for-each"
)

// incompatible names what a call and its component do not agree on.
func (a *admission) incompatible(call Call) (rule string) {
	callee, _ := a.bundle.Component(call.Component)
	if call.Repeat != nil && call.ForEach != nil {
		return ruleTwoLoops
	}
	declared := map[string]bool{}
	for _, f := range callee.doc.inputs {
		declared[f.Name] = true
		if f.Required && call.Inputs[f.Name] == nil {
			return ruleNoInput
		}
	}
	for name := range call.Inputs {
		if !declared[name] {
			return ruleUndeclaredInput
		}
	}
	return ""
}

package definition

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// A Bundle is a definition that was admitted: a root and its components. It may be used by several goroutines at once.
type Bundle struct {
	root *Component
	// components by ascending name.
	components []*Component
}

// Root is the document that a run begins with.
func (b *Bundle) Root() *Component { return b.root }

// Components are the members of the bundle, by ascending name.
func (b *Bundle) Components() []*Component { return slices.Clone(b.components) }

// Component finds a member of the bundle.
func (b *Bundle) Component(name string) (*Component, bool) {
	at, found := slices.BinarySearchFunc(b.components, name, func(c *Component, name string) int { return cmp.Compare(c.Name, name) })
	if !found {
		return nil, false
	}
	return b.components[at], true
}

// Sources are the documents of the bundle, the root first, then those of the components by ascending path, each once.
func (b *Bundle) Sources() []Source {
	var sources []Source
	for _, c := range b.components {
		sources = append(sources, c.source)
	}
	slices.SortFunc(sources, func(x, y Source) int { return cmp.Compare(x.Path, y.Path) })
	sources = slices.CompactFunc(sources, func(x, y Source) bool { return x.Path == y.Path })
	return slices.Insert(sources, 0, b.root.source)
}

// CheckInputs refuses inputs that the root does not take as they are.
func (b *Bundle) CheckInputs(inputs map[string]any) *Refusal {
	name, rule := checkInputs(b.root.doc.inputs, inputs)
	if rule == "" {
		return nil
	}
	return &Refusal{Code: CodeInputsInvalid, Subject: fmt.Sprintf("%.*q", maxName, name), Rule: rule}
}

// A Descriptor is the identity of a definition in Git, but for the inputs.
type Descriptor struct {
	Version      int                   `json:"version"`
	Kind         string                `json:"kind"`
	ObjectFormat string                `json:"objectFormat"`
	Commit       string                `json:"commit"`
	Path         string                `json:"path"`
	Components   []ComponentDescriptor `json:"components,omitempty"`
}

// A ComponentDescriptor is the identity of one member of a bundle.
type ComponentDescriptor struct {
	Name string `json:"name"`
	// Path relative to the repository.
	Path string `json:"path"`
	// SourceHash is the Git blob id.
	SourceHash string `json:"sourceHash"`
}

// Descriptor is the identity of the definition, given the commit it was admitted from.
func (b *Bundle) Descriptor(commit string) Descriptor {
	d := Descriptor{Version: 1, Kind: "git", ObjectFormat: "sha1", Commit: commit, Path: b.root.Path}
	for _, c := range b.components {
		d.Components = append(d.Components, ComponentDescriptor{Name: c.Name, Path: c.Path, SourceHash: c.Blob})
	}
	return d
}

// Digest is `sha256:` and the hex digits of the canonical JSON's hash.
func (d Descriptor) Digest() string {
	canonical, _ := jsonvalue.Canonical(d.tree()) // of strings that are all Unicode
	sum := sha256.Sum256(canonical)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// tree is the descriptor as a JSON tree.
func (d Descriptor) tree() map[string]any {
	tree := map[string]any{
		"version": int64(d.Version), "kind": d.Kind, "objectFormat": d.ObjectFormat, "commit": d.Commit, "path": d.Path,
	}
	var components []any
	for _, c := range d.Components {
		components = append(components, map[string]any{"name": c.Name, "path": c.Path, "sourceHash": c.SourceHash})
	}
	if components != nil {
		tree["components"] = components
	}
	return tree
}

// A Component is a document that was admitted: the root, or a member of the bundle.
type Component struct {
	// Name in the bundle; empty: it is the root.
	Name string
	// Path relative to the repository, and Blob, the Git id of the source.
	Path, Blob string

	source   Source
	doc      *document
	engine   *engine.Definition
	programs *expression.Cache
	actions  map[string]ActionConfig
	declared []string
}

// Engine is the graph as the engine runs it. It has no inputs of nodes, which [Component.ResolveInputs] and
// [Component.CallInputs] evaluate, and no timeouts of actions.
func (c *Component) Engine() *engine.Definition { return c.engine }

// Title is what the document calls itself.
func (c *Component) Title() string { return c.doc.name }

// Description is what the document says of itself.
func (c *Component) Description() string { return c.doc.description }

// Inputs are those that the document declares, as written.
func (c *Component) Inputs() []Field { return slices.Clone(c.doc.inputs) }

// Outputs are what a call of the document returns, as written.
func (c *Component) Outputs() []Output { return slices.Clone(c.doc.outputs) }

// Call is what a component node says of its call.
func (c *Component) Call(node string) (Call, bool) {
	call, ok := c.doc.calls[node]
	return call, ok
}

// ActionConfig is what an action node says of its action.
func (c *Component) ActionConfig(node string) (ActionConfig, bool) {
	config, ok := c.actions[node]
	return config, ok
}

package changeset

import (
	"maps"
	"slices"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// The names of the operations.
const (
	opAddNode    = "addNode"
	opUpdateNode = "updateNode"
	opRenameNode = "renameNode"
	opRemoveNode = "removeNode"
	opAddEdge    = "addEdge"
	opUpdateEdge = "updateEdge"
	opRemoveEdge = "removeEdge"
	opMetadata   = "metadata"
	opRestore    = "restore"
)

// operation is an operation of good shape.
type operation interface {
	// apply writes to s, or says why not.
	apply(s *state) *Rejection
	// invert returns operations that lead back to before, the state this one
	// was applied to, if plain ones can; whoever asks has to try them.
	invert(before *state) []any
}

// parse judges the shape of a raw operation before anything is looked up.
func parse(raw any) (operation, *Rejection) {
	members, ok := raw.(map[string]any)
	if !ok {
		return nil, reject(CodeMalformed, "the op is not an object")
	}
	// What is no JSON would be found only when the result gets its revision,
	// with no operation to name.
	if _, err := jsonvalue.Canonical(members); err != nil {
		return nil, reject(CodeMalformed, "the op is not a JSON value: %v", err)
	}
	root := part{shape: &shape{}, members: members}
	op := parseNamed(root)
	if root.shape.fault != "" {
		return nil, reject(CodeMalformed, "%s", root.shape.fault)
	}
	return op, nil
}

func parseNamed(root part) operation {
	switch root.members["op"] {
	case opAddNode:
		return parseAddNode(root)
	case opUpdateNode:
		return parseUpdateNode(root)
	case opRenameNode:
		return renameNode{id: root.text(memberID), newID: root.text("newId")}
	case opRemoveNode:
		return removeNode{id: root.text(memberID)}
	case opAddEdge:
		return parseAddEdge(root)
	case opUpdateEdge:
		return parseUpdateEdge(root)
	case opRemoveEdge:
		return removeEdge{id: root.text(memberID)}
	case opMetadata:
		return parseMetadata(root)
	case opRestore:
		return parseRestore(root)
	}
	root.oneOf("op", opAddNode, opUpdateNode, opRenameNode, opRemoveNode,
		opAddEdge, opUpdateEdge, opRemoveEdge, opMetadata, opRestore)
	return nil
}

// change is what an update does to an object: members set, then others
// removed.
type change struct {
	set   map[string]any
	unset []string
}

// parseChange reads the unset list of an update beside the members it sets,
// and refuses a name that is in both.
func parseChange(root, set part) change {
	unset := root.textsIfAny("unset")
	for _, name := range unset {
		if set.has(name) {
			set.fail(name, "is in unset too")
		}
	}
	return change{set: set.members, unset: unset}
}

// applyTo writes to object.
func (c change) applyTo(object map[string]any) {
	maps.Copy(object, c.set)
	for _, name := range c.unset {
		delete(object, name)
	}
}

// invert returns the change that gives the members c touches their values in
// object again.
func (c change) invert(object map[string]any) change {
	back := change{set: map[string]any{}}
	for _, name := range slices.Concat(sortedNames(c.set), c.unset) {
		if old, ok := object[name]; ok {
			back.set[name] = old
		} else if !slices.Contains(back.unset, name) {
			back.unset = append(back.unset, name)
		}
	}
	return back
}

// putUnset adds the unset list to a raw operation if there is one.
func (c change) putUnset(op map[string]any) {
	if len(c.unset) == 0 {
		return
	}
	unset := make([]any, len(c.unset))
	for i, name := range c.unset {
		unset[i] = name
	}
	op["unset"] = unset
}

func sortedNames(object map[string]any) []string {
	return slices.Sorted(maps.Keys(object))
}

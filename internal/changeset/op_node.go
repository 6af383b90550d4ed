package changeset

import (
	"maps"
	"slices"
)

// addNode appends a node.
type addNode struct {
	id   string
	node map[string]any
}

func parseAddNode(root part) operation {
	node := root.object("node")
	id := node.text(memberID)
	node.text(memberName)
	node.oneOf(memberType, "start", "end", "action", "human-task", "receive-event", "wait", "component")
	node.object(memberConfig)
	return addNode{id: id, node: node.members}
}

func (o addNode) apply(s *state) *Rejection {
	if s.nodes.find(o.id) >= 0 {
		return reject(CodeDuplicateID, "a node has the id %.80q already", o.id)
	}
	s.nodes.add(entryOf(o.node))
	return nil
}

func (o addNode) invert(*state) []any {
	return []any{map[string]any{"op": opRemoveNode, "id": o.id}}
}

// updateNode changes the name and the config of a node.
type updateNode struct {
	id     string
	name   any // a string, or nil to leave it
	config change
}

func parseUpdateNode(root part) operation {
	id := root.text(memberID)
	patch := root.objectIfAny("patch")
	patch.only(memberName, memberConfig)
	patch.textIfAny(memberName)
	config := parseChange(root, patch.objectIfAny(memberConfig))
	return updateNode{id: id, name: patch.members[memberName], config: config}
}

func (o updateNode) apply(s *state) *Rejection {
	i := s.nodes.find(o.id)
	if i < 0 {
		return missingNode(o.id)
	}
	node := maps.Clone(s.nodes.entries[i].object)
	if o.name != nil {
		node[memberName] = o.name
	}
	config := map[string]any{}
	if old, ok := node[memberConfig].(map[string]any); ok {
		maps.Copy(config, old)
	}
	o.config.applyTo(config)
	node[memberConfig] = config
	s.nodes.entries[i] = entryOf(node)
	return nil
}

func (o updateNode) invert(before *state) []any {
	node := before.nodes.entries[before.nodes.find(o.id)].object
	config, _ := node[memberConfig].(map[string]any)
	back := o.config.invert(config)

	patch := map[string]any{}
	if old, ok := node[memberName]; ok && o.name != nil {
		patch[memberName] = old
	}
	if len(back.set) > 0 {
		patch[memberConfig] = back.set
	}
	return []any{rawUpdate(opUpdateNode, o.id, patch, back)}
}

// rawUpdate writes an update without a patch or an unset list that says
// nothing.
func rawUpdate(name, id string, patch map[string]any, c change) map[string]any {
	op := map[string]any{"op": name, "id": id}
	if len(patch) > 0 {
		op["patch"] = patch
	}
	c.putUnset(op)
	return op
}

// renameNode gives a node another id and lets its edges follow.
type renameNode struct {
	id, newID string
}

func (o renameNode) apply(s *state) *Rejection {
	i := s.nodes.find(o.id)
	if i < 0 {
		return missingNode(o.id)
	}
	if s.hasOtherNode(i, o.newID) {
		return reject(CodeDuplicateID, "another node has the id %.80q", o.newID)
	}
	if o.id == o.newID {
		return nil
	}
	node := maps.Clone(s.nodes.entries[i].object)
	node[memberID] = o.newID
	s.nodes.entries[i] = entryOf(node)
	o.redirect(s.edges)
	return nil
}

// hasOtherNode tells whether a node other than that at index i has an id.
func (s *state) hasOtherNode(i int, id string) bool {
	found := s.nodes.find(id)
	if found == i {
		return slices.ContainsFunc(s.nodes.entries[i+1:], textOf(id).names)
	}
	return found >= 0
}

func (o renameNode) redirect(edges list) {
	atNode := touching(o.id)
	for i, edge := range edges.entries {
		if atNode(edge) {
			edges.entries[i] = entryOf(o.redirectEdge(edge))
		}
	}
}

func (o renameNode) redirectEdge(e *entry) map[string]any {
	edge := maps.Clone(e.object)
	for _, end := range []string{memberSource, memberTarget} {
		if edge[end] == o.id {
			edge[end] = o.newID
		}
	}
	return edge
}

func (o renameNode) invert(*state) []any {
	return []any{map[string]any{"op": opRenameNode, "id": o.newID, "newId": o.id}}
}

// removeNode removes a node and the edges at it.
type removeNode struct {
	id string
}

func (o removeNode) apply(s *state) *Rejection {
	i := s.nodes.find(o.id)
	if i < 0 {
		return missingNode(o.id)
	}
	s.nodes.splice(i, 1)
	s.edges.entries = slices.DeleteFunc(s.edges.entries, touching(o.id))
	return nil
}

func (o removeNode) invert(before *state) []any {
	node := before.nodes.entries[before.nodes.find(o.id)]
	ops := []any{map[string]any{"op": opAddNode, "node": node.value}}
	atNode := touching(o.id)
	for _, edge := range before.edges.entries {
		if atNode(edge) {
			ops = append(ops, map[string]any{"op": opAddEdge, "edge": edge.value})
		}
	}
	return ops
}

func missingNode(id string) *Rejection {
	return reject(CodeTargetMissing, "no node has the id %.80q", id)
}

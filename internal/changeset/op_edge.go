package changeset

import "maps"

// addEdge appends an edge.
type addEdge struct {
	id   string
	edge map[string]any
}

func parseAddEdge(root part) operation {
	edge := root.object("edge")
	id := edge.text(memberID)
	edge.text(memberSource)
	edge.text(memberTarget)
	edge.number(memberPriority)
	edge.boolean(memberDefault)
	return addEdge{id: id, edge: edge.members}
}

func (o addEdge) apply(s *state) *Rejection {
	if s.edges.find(o.id) >= 0 {
		return reject(CodeDuplicateID, "an edge has the id %.80q already", o.id)
	}
	edge := entryOf(o.edge)
	if !s.hasEndpoints(edge) {
		return missingEndpoint(edge)
	}
	s.edges.add(edge)
	return nil
}

func (o addEdge) invert(*state) []any {
	return []any{map[string]any{"op": opRemoveEdge, "id": o.id}}
}

// updateEdge changes members of an edge.
type updateEdge struct {
	id string
	change
}

func parseUpdateEdge(root part) operation {
	id := root.text(memberID)
	patch := root.objectIfAny("patch")
	patch.without(memberID)
	patch.textIfAny(memberSource)
	patch.textIfAny(memberTarget)
	patch.numberIfAny(memberPriority)
	patch.booleanIfAny(memberDefault)
	c := parseChange(root, patch)
	for _, name := range c.unset {
		switch name {
		case memberID, memberSource, memberTarget, memberPriority, memberDefault:
			root.fail("unset", "cannot take away "+name)
		}
	}
	return updateEdge{id: id, change: c}
}

func (o updateEdge) apply(s *state) *Rejection {
	i := s.edges.find(o.id)
	if i < 0 {
		return missingEdge(o.id)
	}
	object := maps.Clone(s.edges.entries[i].object)
	o.applyTo(object)
	edge := entryOf(object)
	if !s.hasEndpoints(edge) {
		return missingEndpoint(edge)
	}
	s.edges.entries[i] = edge
	return nil
}

func (o updateEdge) invert(before *state) []any {
	edge := before.edges.entries[before.edges.find(o.id)].object
	back := o.change.invert(edge)
	return []any{rawUpdate(opUpdateEdge, o.id, back.set, back)}
}

// removeEdge removes an edge.
type removeEdge struct {
	id string
}

func (o removeEdge) apply(s *state) *Rejection {
	i := s.edges.find(o.id)
	if i < 0 {
		return missingEdge(o.id)
	}
	s.edges.splice(i, 1)
	return nil
}

func (o removeEdge) invert(before *state) []any {
	edge := before.edges.entries[before.edges.find(o.id)]
	return []any{map[string]any{"op": opAddEdge, "edge": edge.value}}
}

func missingEdge(id string) *Rejection {
	return reject(CodeTargetMissing, "no edge has the id %.80q", id)
}

func missingEndpoint(edge *entry) *Rejection {
	return reject(CodeEdgeEndpointMissing, "edge %.80q from %.80q to %.80q needs a node at both ends",
		edge.object[memberID], edge.object[memberSource], edge.object[memberTarget])
}

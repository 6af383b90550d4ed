package changeset

import "slices"

// parseRestore reads either form of a restore. It stays unchecked against the
// document but for bounds, since it must be able to lead back to any draft.
func parseRestore(root part) operation {
	if root.has("member") {
		return parseRestoreMember(root)
	}
	o := restoreEntries{
		list:   root.oneOf("list", membersNodes, membersEdges),
		index:  root.index("index"),
		remove: root.index("remove"),
	}
	values := root.list("insert")
	for _, value := range values {
		if _, ok := value.(map[string]any); !ok {
			root.fail("insert", "must be a list of objects")
		}
	}
	o.insert = entriesOf(values)
	return o
}

// restoreEntries replaces a stretch of a list.
type restoreEntries struct {
	list          string
	index, remove int
	insert        []*entry
}

func (o restoreEntries) apply(s *state) *Rejection {
	l := s.list(o.list)
	if o.index+o.remove > len(l.entries) {
		return reject(CodeTargetMissing, "%s has %d entries", o.list, len(l.entries))
	}
	if o.remove == 0 && len(o.insert) == 0 {
		return nil
	}
	insert := o.insert
	if o.list == membersNodes {
		insert = keepPositions(insert, l.entries[o.index:o.index+o.remove])
	}
	l.splice(o.index, o.remove, insert...)
	return nil
}

// invert has no plain operation to offer.
func (o restoreEntries) invert(*state) []any { return nil }

func parseRestoreMember(root part) operation {
	name := root.text("member")
	if name == memberID {
		root.fail("member", "cannot be id")
	}
	root.without("list", "index", "remove", "insert")
	value, present := root.members["value"]
	// A document whose lists are none could not be changed any more, not even
	// by the inverse of what made it so.
	if isListName(name) && !isListOrNull(value) {
		root.fail("value", "must be a list or null")
	}
	return restoreMember{name: name, value: value, present: present}
}

// restoreMember sets or removes a top-level member.
type restoreMember struct {
	name    string
	value   any
	present bool
}

func (o restoreMember) apply(s *state) *Rejection {
	switch {
	case isListName(o.name):
		o.applyToList(s.list(o.name))
	case o.present:
		s.fields[o.name] = entryOf(o.value)
	default:
		delete(s.fields, o.name)
	}
	return nil
}

func (o restoreMember) applyToList(l *list) {
	restored := list{presence: listAbsent}
	if o.present {
		restored = listOfValue(o.value)
	}
	if o.name == membersNodes {
		restored.entries = keepPositions(restored.entries, l.entries)
	}
	*l = restored
}

// invert has no plain operation to offer.
func (o restoreMember) invert(*state) []any { return nil }

func isListName(member string) bool {
	return member == membersNodes || member == membersEdges
}

// keepPositions returns the nodes of insert, each standing where the removed
// node of the same id stood. Of repeated ids the first takes after the first,
// the second after the second, and what is left over stays as it is.
func keepPositions(insert, removed []*entry) []*entry {
	standing := map[text][]*entry{}
	for _, node := range removed {
		if node.id.isString {
			standing[node.id] = append(standing[node.id], node)
		}
	}
	kept := slices.Clone(insert)
	for i, node := range kept {
		if queue := standing[node.id]; len(queue) > 0 {
			kept[i] = entryOf(placedLike(node.object, queue[0].object))
			standing[node.id] = queue[1:]
		}
	}
	return kept
}

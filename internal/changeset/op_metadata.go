package changeset

// metadata sets what a document says of itself.
type metadata struct {
	patch map[string]any
}

func parseMetadata(root part) operation {
	patch := root.object("patch")
	patch.only(memberName, "description", "version")
	patch.textIfAny(memberName)
	patch.stringIfAny("description")
	patch.numberIfAny("version")
	return metadata{patch: patch.members}
}

func (o metadata) apply(s *state) *Rejection {
	for name, value := range o.patch {
		s.fields[name] = entryOf(value)
	}
	return nil
}

func (o metadata) invert(before *state) []any {
	old := change{set: o.patch}.invert(before.fieldValues())
	return []any{map[string]any{"op": opMetadata, "patch": old.set}}
}

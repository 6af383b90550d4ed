package changeset

import (
	"maps"
	"slices"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// Inverse returns the change set that leads from the result of cs back to
// before: to its revision exactly, with every node that stands in the result
// staying where it stands when the inverse is applied. It is rejected as cs
// is; a cs without base revision is taken as written for before.
func Inverse(before Document, cs ChangeSet) (ChangeSet, *Rejection) {
	list, rejection := opsToInvert(before, cs)
	if rejection != nil {
		return ChangeSet{}, rejection
	}
	ops, result, rejection := invert(stateOf(before), list)
	if rejection != nil {
		return ChangeSet{}, rejection
	}
	revision, rejection := revisionOf(result.view())
	if rejection != nil {
		return ChangeSet{}, rejection
	}
	return ChangeSet{
		ID:           cs.ID + "-inverse",
		BaseRevision: revision,
		Author:       AuthorHost,
		Summary:      "Undo: " + cs.Summary,
		Ops:          jsonvalue.Clone(ops).([]any),
	}, nil
}

func opsToInvert(before Document, cs ChangeSet) ([]any, *Rejection) {
	if cs.BaseRevision == "" {
		revision, rejection := revisionOf(before)
		if rejection != nil {
			return nil, rejection
		}
		cs.BaseRevision = revision
	}
	return cs.proposal().check(before)
}

// invert runs ops on before and returns those that lead back from the result:
// each operation inverted by itself, last to first, unless that would bring
// back more than everything, or move what has its place.
func invert(before *state, ops []any) (back []any, result *state, rejection *Rejection) {
	var steps [][]any
	budget := max(len(before.nodes.entries)+len(before.edges.entries), minRestored)
	result = before
	for i, raw := range ops {
		next := result.clone()
		op, rejection := applyRaw(next, raw)
		if rejection != nil {
			return nil, nil, rejection.at(i)
		}
		if budget >= 0 {
			step := invertStep(op, result, next)
			steps, budget = append(steps, step), budget-restored(step)
		}
		result = next
	}
	slices.Reverse(steps)
	back = slices.Concat(steps...)
	if budget < 0 || !keepsLayout(result, back) {
		back = restore(before, result)
	}
	return back, result, nil
}

// minRestored is how many entries an inverse may bring back, however small the
// document. A removal from the middle of a list may bring back most of it, so
// that some hundred of them would make an inverse of many times its size.
const minRestored = 1000

// restored counts the entries that operations bring back in restores.
func restored(ops []any) int {
	n := 0
	for _, raw := range ops {
		op := raw.(map[string]any)
		insert, _ := op["insert"].([]any)
		value, _ := op["value"].([]any)
		n += len(insert) + len(value)
	}
	return n
}

// invertStep returns what leads from after, the state op gave, to before, the
// state it met: nothing if they are the same, plain operations if those
// really do, and else what restores it.
func invertStep(op operation, before, after *state) []any {
	if before.sameAs(after) {
		return nil
	}
	plain, trial := op.invert(before), after.clone()
	if rejection := run(trial, plain); rejection == nil && trial.sameAs(before) {
		return plain
	}
	return restore(before, after)
}

// restore returns the restore operations that lead from after to before, one
// for each top-level member and each list that differ, by name.
func restore(before, after *state) []any {
	names := slices.AppendSeq([]string{membersEdges, membersNodes}, maps.Keys(before.fields))
	names = slices.AppendSeq(names, maps.Keys(after.fields))
	slices.Sort(names)
	var ops []any
	for _, name := range slices.Compact(names) {
		if isListName(name) {
			ops = append(ops, restoreList(name, before.list(name), after.list(name))...)
		} else {
			ops = append(ops, restoreField(name, before.fields[name], after.fields[name])...)
		}
	}
	return ops
}

// restoreField takes nil for a member that is absent.
func restoreField(name string, before, after *entry) []any {
	switch {
	case before == nil && after == nil:
		return nil
	case before == nil:
		return []any{rawRestoreMember(name, nil, false)}
	case after != nil && before.sameAs(after):
		return nil
	}
	return []any{rawRestoreMember(name, before.value, true)}
}

func rawRestoreMember(name string, value any, present bool) map[string]any {
	op := map[string]any{"op": opRestore, "member": name}
	if present {
		op["value"] = value
	}
	return op
}

// restoreList replaces the stretch between the entries that both lists begin
// with and those that both end with. The whole member is set instead where a
// list is missing on one side, or where an entry to come back is no object.
func restoreList(name string, before, after *list) []any {
	if before.sameAs(after) {
		return nil
	}
	head, tail := commonEnds(before.entries, after.entries)
	insert := before.entries[head : len(before.entries)-tail]
	bothPresent := before.presence == listPresent && after.presence == listPresent
	if !bothPresent || slices.ContainsFunc(insert, (*entry).isNoObject) {
		value := Document{}
		before.putInto(value, name)
		return []any{rawRestoreMember(name, value[name], before.presence != listAbsent)}
	}
	return []any{map[string]any{
		"op":     opRestore,
		"list":   name,
		"index":  int64(head),
		"remove": int64(len(after.entries) - tail - head),
		"insert": valuesOf(insert),
	}}
}

// commonEnds counts the entries that a and b both begin with, and those that
// both end with behind them.
func commonEnds(a, b []*entry) (head, tail int) {
	shorter := min(len(a), len(b))
	for head < shorter && a[head].sameAs(b[head]) {
		head++
	}
	for tail < shorter-head && a[len(a)-1-tail].sameAs(b[len(b)-1-tail]) {
		tail++
	}
	return head, tail
}

// keepsLayout tells whether ops leave every node that stands before and after
// them where it stands. They do not where a node was removed and another took
// its id: inverted one by one, the operations would remove that one together
// with the place somebody may have given it. To find out, each node is put
// somewhere no other is.
func keepsLayout(s *state, ops []any) bool {
	s = s.clone()
	s.nodes.entries = probeLayout(s.nodes.entries)
	places := layoutOf(s.nodes.entries)
	if run(s, ops) != nil {
		return false
	}
	standing := layoutOf(s.nodes.entries)
	for id, place := range places {
		if now, ok := standing[id]; ok && !jsonvalue.Equal(now, place) {
			return false
		}
	}
	return true
}

func probeLayout(nodes []*entry) []*entry {
	probed := slices.Clone(nodes)
	for i, node := range probed {
		if node.object != nil {
			place := map[string]any{memberPosition: int64(i)}
			probed[i] = entryOf(placedLike(node.object, place))
		}
	}
	return probed
}

// layoutOf returns the positions of nodes by id. Nodes that share an id with
// others are left out: which is which cannot be told once one is gone.
func layoutOf(nodes []*entry) map[text]any {
	layout, seen := map[text]any{}, map[text]bool{}
	for _, node := range nodes {
		switch {
		case !node.id.isString:
		case seen[node.id]:
			delete(layout, node.id)
		default:
			seen[node.id] = true
			layout[node.id] = node.object[memberPosition]
		}
	}
	return layout
}

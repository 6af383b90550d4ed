package changeset_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gowebpki/jcs"

	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

func TestRevisionNamesContentOnly(t *testing.T) {
	seeds(t, 2000, func(t *testing.T, g *generator) {
		g.drafts = g.chance(50)
		doc := g.document()
		want := revision(t, doc)

		if got := revision(t, g.layout(doc)); got != want {
			t.Errorf("another layout changed the revision of %s", canonical(t, doc))
		}
		if got := revision(t, g.spelling(doc).(changeset.Document)); got != want {
			t.Errorf("another spelling changed the revision of %s", canonical(t, doc))
		}
		stored, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		if got := revision(t, decode(t, string(stored)).(changeset.Document)); got != want {
			t.Errorf("storing changed the revision of %s", stored)
		}
		edited := jsonvalue.Clone(doc).(changeset.Document)
		what := g.edit(edited, "$")
		if got := revision(t, edited); got == want {
			t.Errorf("%s, but not the revision of %s", what, canonical(t, doc))
		}
	})
}

// The second implementation gets the document as encoding/json writes it, and
// positions are left out here by other means.
func TestRevisionAgreesWithSecondImplementation(t *testing.T) {
	seeds(t, 1000, func(t *testing.T, g *generator) {
		g.drafts = true
		doc := g.document()
		bare := jsonvalue.Clone(doc).(changeset.Document)
		nodes, _ := bare["nodes"].([]any)
		for _, node := range nodes {
			if object, ok := node.(map[string]any); ok {
				delete(object, "position")
			}
		}
		text, err := json.Marshal(bare)
		if err != nil {
			t.Fatal(err)
		}
		if text, err = jcs.Transform(text); err != nil {
			t.Fatal(err)
		}
		digest := sha256.Sum256(text)
		if got, want := revision(t, doc), "sha256:"+hex.EncodeToString(digest[:]); got != want {
			t.Errorf("Revision() = %s, second implementation %s for %s", got, want, text)
		}
	})
}

func TestApplyIsPure(t *testing.T) {
	applied := 0
	seeds(t, 2000, func(t *testing.T, g *generator) {
		g.drafts = g.chance(50)
		doc, ops := g.document(), []any{}
		for range g.IntN(4) {
			ops = append(ops, g.rawOp())
		}
		docBefore, opsBefore := canonical(t, doc), canonical(t, ops)

		result, rejection := changeset.Apply(doc, ops)
		again, rejectionAgain := changeset.Apply(doc, ops)
		if diff := cmp.Diff(rejection, rejectionAgain); diff != "" {
			t.Errorf("another rejection the second time (-first +second)\n%s", diff)
		}
		if rejection == nil {
			applied++
			assertSame(t, "the second time", result, again)
			scramble(result)
			assertSame(t, "the other result once one is changed", again, apply(t, doc, ops))
		} else if result != nil {
			t.Errorf("a result beside rejection %s", rejection)
		}
		if canonical(t, doc) != docBefore || canonical(t, ops) != opsBefore {
			t.Errorf("arguments changed\n%s\n%s", docBefore, opsBefore)
		}
	})
	if applied < 250 {
		t.Errorf("only %d sets applied: too few to say anything", applied)
	}
}

// rawOp returns an operation, one with a member changed, or anything.
func (g *generator) rawOp() any {
	op := any(g.op())
	if g.chance(30) {
		op = g.restore()
	}
	switch g.IntN(10) {
	case 0:
		return g.value(3)
	case 1, 2:
		g.edit(op, "")
	}
	return op
}

func TestInverseAndUndoArePure(t *testing.T) {
	seeds(t, 300, func(t *testing.T, g *generator) {
		g.drafts = g.chance(50)
		before := g.document()
		ops, after := g.accepted(t, before, 5, true)
		_, live := g.accepted(t, g.layout(after), g.IntN(2), true)
		texts := []string{canonical(t, before), canonical(t, ops), canonical(t, after), canonical(t, live)}

		inverse, rejection := changeset.Inverse(before, changeSetOf(t, before, ops))
		if rejection != nil {
			t.Fatal(rejection)
		}
		again, _ := changeset.Inverse(before, changeSetOf(t, before, ops))
		if diff := cmp.Diff(inverse, again); diff != "" {
			t.Errorf("another inverse the second time\n%s", diff)
		}
		undone, conflict := changeset.Undo(before, after, live)
		undoneAgain, conflictAgain := changeset.Undo(before, after, live)
		if diff := cmp.Diff(conflict, conflictAgain); diff != "" {
			t.Errorf("another conflict the second time\n%s", diff)
		}
		assertSame(t, "undone the second time", undone, undoneAgain)
		changeset.Diff(before, live)

		scramble(inverse.Ops)
		if conflict == nil {
			scramble(undone)
		}
		if now := []string{canonical(t, before), canonical(t, ops), canonical(t, after), canonical(t, live)}; !slices.Equal(texts, now) {
			t.Errorf("arguments changed\n%s", cmp.Diff(texts, now))
		}
	})
}

func TestApplySplits(t *testing.T) {
	seeds(t, 2000, func(t *testing.T, g *generator) {
		g.drafts = g.chance(50)
		doc := g.document()
		first, middle := g.accepted(t, doc, 4, true)
		second := []any{}
		for range g.IntN(4) {
			second = append(second, g.rawOp())
		}
		whole, rejection := changeset.Apply(doc, slices.Concat(first, second))
		parts, rejectionOfParts := changeset.Apply(middle, second)
		if rejectionOfParts != nil {
			*rejectionOfParts.OpIndex += len(first)
		}
		if diff := cmp.Diff(rejectionOfParts, rejection); diff != "" {
			t.Errorf("rejection of parts and whole (-parts +whole)\n%s", diff)
		}
		assertSame(t, "parts and whole", parts, whole)
	})
}

// A turn whose sets are sometimes stale, sometimes refused, and sometimes
// claim a revision that nothing gives.
func TestTurnsAddUp(t *testing.T) {
	seeds(t, 300, func(t *testing.T, g *generator) {
		doc := g.document()
		start := revision(t, doc)
		working, workingRevision := doc, start
		var sets []changeset.ChangeSet
		for range 6 {
			ops, _ := g.accepted(t, working, 1+g.IntN(3), false)
			if g.chance(20) {
				ops = append(ops, g.rawOp())
			}
			set := changeset.ChangeSet{BaseRevision: pick(g, workingRevision, workingRevision, start, "sha256:00"), Author: "agent:a", Ops: ops}
			next, revised, rejection := changeset.ApplyChecked(working, set)
			if stale := set.BaseRevision != workingRevision; stale != (rejection != nil && rejection.Code == changeset.CodeStale) {
				t.Fatalf("base %s on %s: %v", set.BaseRevision, workingRevision, rejection)
			}
			if rejection != nil {
				continue
			}
			if want := revision(t, apply(t, working, ops)); revised != want {
				t.Fatalf("working revision %s, but the operations give %s", revised, want)
			}
			sets, working, workingRevision = append(sets, set), next, revised
		}
		combined, ok := changeset.Combine("turn", start, "agent:axiom-workbench", sets)
		if !ok {
			if workingRevision != start {
				t.Errorf("no operation, but another revision")
			}
			return
		}
		result, revised, rejection := changeset.ApplyChecked(doc, combined)
		if rejection != nil || revised != workingRevision {
			t.Fatalf("combined: %s, %v, want %s", revised, rejection, workingRevision)
		}
		assertSame(t, "combined", working, result)
	})
}

func TestOperationsKeepDocumentsInOrder(t *testing.T) {
	seeds(t, 300, func(t *testing.T, g *generator) {
		doc := g.document()
		doc["x-keep"] = g.value(3)
		for range 20 {
			op := g.op()
			next, rejection := changeset.Apply(doc, []any{op})
			if rejection != nil {
				continue
			}
			assertUnique(t, next)
			assertTouchesLittle(t, op, doc, next)
			doc = next
		}
	})
}

func assertUnique(t *testing.T, doc changeset.Document) {
	t.Helper()
	for _, list := range []string{"nodes", "edges"} {
		seen := map[any]bool{}
		for _, raw := range doc[list].([]any) {
			id := raw.(map[string]any)["id"]
			if seen[id] {
				t.Errorf("%s has %v twice: %s", list, id, canonical(t, doc))
			}
			seen[id] = true
		}
	}
	for _, raw := range doc["edges"].([]any) {
		edge := raw.(map[string]any)
		places := positions(doc)
		for _, end := range []string{"source", "target"} {
			if _, ok := places[edge[end].(string)]; !ok {
				t.Errorf("edge %v has no %s: %s", edge["id"], end, canonical(t, doc))
			}
		}
	}
}

// assertTouchesLittle tests that op left alone what it has no name for.
func assertTouchesLittle(t *testing.T, op map[string]any, before, after changeset.Document) {
	t.Helper()
	for _, name := range []string{"id", "x-keep", "x-own"} {
		if !jsonvalue.Equal(before[name], after[name]) {
			t.Errorf("%v changed %s", op["op"], name)
		}
	}
	nodes, edges := byID(before["nodes"]), byID(before["edges"])
	for id, node := range byID(after["nodes"]) {
		was := nodes[id]
		if op["op"] == "renameNode" && id == op["newId"] {
			was = nodes[op["id"].(string)]
		}
		assertMembersKept(t, op, was, node, "type", "position", "x-own")
	}
	for id, edge := range byID(after["edges"]) {
		if patch, _ := op["patch"].(map[string]any); op["op"] != "updateEdge" || patch == nil && op["unset"] == nil {
			assertMembersKept(t, op, edges[id], edge, "condition", "label", "priority", "isDefault", "x-own")
		}
	}
}

func assertMembersKept(t *testing.T, op, was, now map[string]any, names ...string) {
	t.Helper()
	if was == nil {
		return // added by op
	}
	for _, name := range names {
		if !jsonvalue.Equal(was[name], now[name]) {
			t.Errorf("%v changed %s of %v", op["op"], name, now["id"])
		}
	}
}

func byID(list any) map[string]map[string]any {
	objects := map[string]map[string]any{}
	values, _ := list.([]any)
	for _, raw := range values {
		if object, ok := raw.(map[string]any); ok {
			if id, ok := object["id"].(string); ok {
				objects[id] = object
			}
		}
	}
	return objects
}

// A member that no shape allows makes an operation malformed, however little
// it fits otherwise.
func TestMalformedComesFirst(t *testing.T) {
	members := map[string][]string{
		"addNode": {"node"}, "updateNode": {"id", "patch", "unset"}, "renameNode": {"id", "newId"}, "removeNode": {"id"},
		"addEdge": {"edge"}, "updateEdge": {"id", "patch", "unset"}, "removeEdge": {"id"}, "metadata": {"patch"},
	}
	seeds(t, 2000, func(t *testing.T, g *generator) {
		op := g.op()
		names := members[op["op"].(string)]
		op[pick(g, names...)] = pick[any](g, nil, int64(1), true, "")
		_, rejection := changeset.Apply(g.document(), []any{op})
		if rejection == nil || rejection.Code != changeset.CodeMalformed {
			t.Errorf("%s: %v", canonical(t, op), rejection)
		}
	})
}

func TestThereAndBack(t *testing.T) {
	seeds(t, 1000, func(t *testing.T, g *generator) {
		doc := g.document()
		want := revision(t, doc)
		node, edge := g.node("new"), g.edge("new")
		edge["source"], edge["target"] = "new", "new"
		ops := []any{
			map[string]any{"op": "addNode", "node": node},
			map[string]any{"op": "addEdge", "edge": edge},
			map[string]any{"op": "removeEdge", "id": "new"},
			map[string]any{"op": "removeNode", "id": "new"},
		}
		if got := revision(t, apply(t, doc, ops)); got != want {
			t.Errorf("added and removed: %s, want %s", got, want)
		}
		for id := range byID(doc["nodes"]) {
			ops := []any{
				map[string]any{"op": "renameNode", "id": id, "newId": "new"},
				map[string]any{"op": "renameNode", "id": "new", "newId": id},
			}
			if got := revision(t, apply(t, doc, ops)); got != want {
				t.Errorf("renamed there and back: %s, want %s", got, want)
			}
		}
	})
}

func TestDiffIsZeroForEqualRevisions(t *testing.T) {
	zero := 0
	seeds(t, 1500, func(t *testing.T, g *generator) {
		before := g.document()
		ops, after := g.accepted(t, before, g.IntN(3), false)
		if g.chance(30) {
			after = g.shuffled(after)
		}
		if g.chance(30) {
			after = g.layout(after)
		}
		got := changeset.Diff(before, after)
		isZero := cmp.Equal(changeset.Summary{}, got)
		if same := revision(t, before) == revision(t, after); isZero != same {
			t.Errorf("same revision %v, but %+v after %s", same, got, canonical(t, ops))
		}
		if isZero {
			zero++
		}
		back := changeset.Diff(after, before)
		assertMirrored(t, got, back)
		assertTold(t, got)
	})
	if zero < 150 {
		t.Errorf("only %d pairs were equal: too few to say anything", zero)
	}
}

// Of drafts too, as long as their lists are present.
func TestDiffIsZeroForEqualDrafts(t *testing.T) {
	seeds(t, 1500, func(t *testing.T, g *generator) {
		g.drafts = true
		before := g.document()
		before["nodes"], before["edges"] = listOrEmpty(before["nodes"]), listOrEmpty(before["edges"])
		_, after := g.accepted(t, before, g.IntN(2), false)
		if g.chance(50) {
			after = g.shuffled(after)
		}
		got := changeset.Diff(before, after)
		if same := revision(t, before) == revision(t, after); cmp.Equal(changeset.Summary{}, got) != same {
			t.Errorf("same revision %v, but %+v\n%s\n%s", same, got, canonical(t, before), canonical(t, after))
		}
	})
}

func listOrEmpty(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{}
}

// shuffled returns doc with two neighbours of a list swapped.
func (g *generator) shuffled(doc changeset.Document) changeset.Document {
	doc = jsonvalue.Clone(doc).(changeset.Document)
	if list := doc[pick(g, "nodes", "edges")].([]any); len(list) > 1 {
		at := g.IntN(len(list) - 1)
		list[at], list[at+1] = list[at+1], list[at]
	}
	return doc
}

func assertMirrored(t *testing.T, there, back changeset.Summary) {
	t.Helper()
	sorted := func(ids []string) []string { return slices.Sorted(slices.Values(ids)) }
	want := changeset.Summary{
		AddedNodes: there.RemovedNodes, RemovedNodes: there.AddedNodes, ChangedNodes: sorted(there.ChangedNodes),
		AddedEdges: there.RemovedEdges, RemovedEdges: there.AddedEdges, ChangedEdges: sorted(there.ChangedEdges),
		EdgesChanged: there.EdgesChanged, FieldsChanged: there.FieldsChanged, OrderChanged: there.OrderChanged,
	}
	back.ChangedNodes, back.ChangedEdges = sorted(back.ChangedNodes), sorted(back.ChangedEdges)
	if diff := cmp.Diff(want, back); diff != "" {
		t.Errorf("the other way round (-want +got)\n%s", diff)
	}
}

// assertTold tests that text and value of a summary say the same.
func assertTold(t *testing.T, s changeset.Summary) {
	t.Helper()
	silent := len(s.AddedNodes)+len(s.RemovedNodes)+len(s.ChangedNodes) == 0 && !s.EdgesChanged
	if (s.String() == "") != silent {
		t.Errorf("%+v reads %q", s, s.String())
	}
	if s.EdgesChanged != (len(s.AddedEdges)+len(s.RemovedEdges)+len(s.ChangedEdges) > 0) {
		t.Errorf("edgesChanged and the ids of edges disagree: %+v", s)
	}
}

func TestInverseLeadsBack(t *testing.T) {
	restores := 0
	seeds(t, 800, func(t *testing.T, g *generator) {
		g.drafts = g.chance(60)
		before := g.document()
		ops, after := g.accepted(t, before, g.IntN(8), g.drafts)
		set := changeSetOf(t, before, ops)
		inverse, rejection := changeset.Inverse(before, set)
		if rejection != nil {
			t.Fatalf("no inverse of %s: %s", canonical(t, ops), rejection)
		}
		if hasRestore(inverse.Ops) {
			restores++
		}
		live := g.layout(after)
		back, revised, rejection := changeset.ApplyChecked(live, inverse)
		if rejection != nil || revised != set.BaseRevision {
			t.Fatalf("back: %s, %v, want %s\nbefore  %s\nops     %s\ninverse %s", revised, rejection, set.BaseRevision,
				canonical(t, before), canonical(t, ops), canonical(t, inverse.Ops))
		}
		assertStanding(t, live, back)

		forward, rejection := changeset.Inverse(live, inverse)
		if rejection != nil {
			t.Fatalf("no inverse of the inverse: %s", rejection)
		}
		_, revised, rejection = changeset.ApplyChecked(back, forward)
		if want := revision(t, after); rejection != nil || revised != want {
			t.Fatalf("forward again: %s, %v, want %s", revised, rejection, want)
		}
		assertClosedToAgents(t, live, inverse)
	})
	if restores < 100 {
		t.Errorf("only %d inverses restored: too few to say anything", restores)
	}
}

// assertStanding tests that nodes known by their ids in both documents stand
// where they stood.
func assertStanding(t *testing.T, live, back changeset.Document) {
	t.Helper()
	now := uniquePositions(back)
	for id, place := range uniquePositions(live) {
		if got, ok := now[id]; ok && !jsonvalue.Equal(place, got) {
			t.Errorf("node %s stands at %v, want %v", id, got, place)
		}
	}
}

func uniquePositions(doc changeset.Document) map[string]any {
	places, seen := positions(doc), map[string]int{}
	for _, raw := range listOrEmpty(doc["nodes"]) {
		if node, ok := raw.(map[string]any); ok {
			if id, ok := node["id"].(string); ok {
				seen[id]++
			}
		}
	}
	maps.DeleteFunc(places, func(id string, _ any) bool { return seen[id] > 1 })
	return places
}

func hasRestore(ops []any) bool {
	return slices.ContainsFunc(ops, func(op any) bool { return op.(map[string]any)["op"] == "restore" })
}

func assertClosedToAgents(t *testing.T, doc changeset.Document, set changeset.ChangeSet) {
	t.Helper()
	set.Author = "agent:axiom-workbench"
	_, _, rejection := changeset.ApplyChecked(doc, set)
	if refused := rejection != nil && rejection.Code == changeset.CodeMalformed; refused != hasRestore(set.Ops) {
		t.Errorf("by an agent: %v for %s", rejection, canonical(t, set.Ops))
	}
}

// Without a change of layout in between, the inverse of a plain operation
// leads back to the very same document, positions included.
func TestInverseOfOneOperationIsExact(t *testing.T) {
	seeds(t, 1000, func(t *testing.T, g *generator) {
		g.drafts = g.chance(60)
		before := g.document()
		ops, after := g.accepted(t, before, 1, false)
		inverse, rejection := changeset.Inverse(before, changeSetOf(t, before, ops))
		if rejection != nil {
			t.Fatal(rejection)
		}
		assertSame(t, fmt.Sprintf("back from %s by %s", canonical(t, ops), canonical(t, inverse.Ops)), before, apply(t, after, inverse.Ops))
	})
}

func TestUndoWithNothingSince(t *testing.T) {
	seeds(t, 2000, func(t *testing.T, g *generator) {
		g.drafts = g.chance(50)
		before := g.document()
		_, after := g.accepted(t, before, g.IntN(6), g.drafts)
		live := g.layout(after)
		got, conflict := changeset.Undo(before, after, live)
		if conflict != nil {
			t.Fatalf("conflict %v", conflict)
		}
		if revised, want := revision(t, got), revision(t, before); revised != want {
			t.Errorf("revision %s, want %s", revised, want)
		}
		assertStanding(t, live, got)
		for id, place := range uniquePositions(got) {
			if _, lives := positions(live)[id]; !lives && !jsonvalue.Equal(place, positions(before)[id]) {
				t.Errorf("node %s came back to %v", id, place)
			}
		}
	})
}

func TestUndoBeneathLaterEdits(t *testing.T) {
	undone, refused := 0, 0
	seeds(t, 1500, func(t *testing.T, g *generator) {
		before := g.document()
		_, after := g.accepted(t, before, 1+g.IntN(3), false)
		_, live := g.accepted(t, g.layout(after), 1+g.IntN(2), false)
		got, conflict := changeset.Undo(before, after, live)
		if conflict != nil {
			refused++
			assertConflicting(t, before, after, live, conflict)
			return
		}
		undone++
		assertMerged(t, before, after, live, got)
		assertUnique(t, got)

		redone, conflict := changeset.Undo(after, before, got)
		if conflict != nil {
			t.Fatalf("redo: conflict %v", conflict)
		}
		for kind, items := range itemsOf(live) {
			assertSame(t, "redone "+kind, items, itemsOf(redone)[kind])
		}
	})
	if undone < 300 || refused < 150 {
		t.Errorf("%d undone, %d refused: too few to say anything", undone, refused)
	}
}

// itemsOf returns the items of a document by kind and id, nodes bare of their
// positions.
func itemsOf(doc changeset.Document) map[string]map[string]any {
	items := map[string]map[string]any{"node": {}, "edge": {}, "field": {}}
	for id, node := range byID(doc["nodes"]) {
		node = maps.Clone(node)
		delete(node, "position")
		items["node"][id] = node
	}
	for id, edge := range byID(doc["edges"]) {
		items["edge"][id] = edge
	}
	for name, value := range doc {
		if name != "nodes" && name != "edges" {
			items["field"][name] = value
		}
	}
	return items
}

func agree(a, b map[string]any, id string) bool {
	x, inA := a[id]
	y, inB := b[id]
	return inA == inB && jsonvalue.Equal(x, y)
}

// assertMerged tests every item of an undone document: as in before if the
// turn touched it, else as it is live.
func assertMerged(t *testing.T, before, after, live, got changeset.Document) {
	t.Helper()
	was, then, now, merged := itemsOf(before), itemsOf(after), itemsOf(live), itemsOf(got)
	for kind := range was {
		for _, id := range slices.Concat(sortedKeys(was[kind]), sortedKeys(then[kind]), sortedKeys(now[kind]), sortedKeys(merged[kind])) {
			want := now
			if !agree(was[kind], then[kind], id) {
				want = was
			}
			if !agree(want[kind], merged[kind], id) {
				t.Errorf("%s %s is %v, want %v", kind, id, merged[kind][id], want[kind][id])
			}
		}
	}
	assertStanding(t, live, got)
}

// assertConflicting tests that a conflict names what is in the way, and only
// that: items touched twice, or else edges that would dangle.
func assertConflicting(t *testing.T, before, after, live changeset.Document, conflict *changeset.Conflict) {
	t.Helper()
	was, then, now := itemsOf(before), itemsOf(after), itemsOf(live)
	var want []string
	for _, kind := range []string{"node", "edge", "field"} {
		ids := slices.Concat(sortedKeys(was[kind]), sortedKeys(then[kind]))
		slices.Sort(ids)
		for _, id := range slices.Compact(ids) {
			if !agree(was[kind], then[kind], id) && !agree(then[kind], now[kind], id) {
				want = append(want, kind+" "+id)
			}
		}
	}
	var got []string
	for _, item := range conflict.Items {
		got = append(got, string(item.Kind)+" "+item.ID)
	}
	if len(want) == 0 {
		if len(got) == 0 || slices.ContainsFunc(conflict.Items, func(i changeset.Item) bool { return i.Kind != changeset.KindEdge }) {
			t.Errorf("conflict %v, but nothing was touched twice", got)
		}
		return
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conflict (-want +got)\n%s", diff)
	}
}

// Edits to items that the turn left alone give the same whether they are made
// on top of the turn and it is undone, or without it.
func TestUndoEqualsEditsWithoutTheTurn(t *testing.T) {
	compared := 0
	seeds(t, 1500, func(t *testing.T, g *generator) {
		before := g.document()
		_, after := g.accepted(t, before, 1+g.IntN(2), false)
		edits, live := g.accepted(t, after, 1, false)
		want, rejection := changeset.Apply(before, edits)
		got, conflict := changeset.Undo(before, after, live)
		if conflict != nil || rejection != nil || !g.untouched(before, after, live, want) {
			return
		}
		compared++
		for kind, items := range itemsOf(want) {
			assertSame(t, kind, items, itemsOf(got)[kind])
		}
	})
	if compared < 150 {
		t.Errorf("only %d compared: too few to say anything", compared)
	}
}

// untouched tells whether no item was changed both by the turn and by the
// edits, wherever those were made.
func (g *generator) untouched(before, after, live, edited changeset.Document) bool {
	was, then, now, other := itemsOf(before), itemsOf(after), itemsOf(live), itemsOf(edited)
	for kind := range was {
		for _, id := range slices.Concat(sortedKeys(was[kind]), sortedKeys(then[kind])) {
			touched := !agree(was[kind], then[kind], id)
			if touched && (!agree(then[kind], now[kind], id) || !agree(was[kind], other[kind], id)) {
				return false
			}
		}
	}
	return true
}

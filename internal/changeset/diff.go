package changeset

import (
	"maps"
	"slices"
	"strings"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// Summary tells two documents apart by the ids of what differs. It is zero
// exactly when the documents have the same revision, a list that is absent or
// null taken as empty.
type Summary struct {
	// AddedNodes are in the order of the later document.
	AddedNodes []string `json:"addedNodes,omitempty"`
	// RemovedNodes and ChangedNodes are in the order of the earlier one.
	RemovedNodes []string `json:"removedNodes,omitempty"`
	ChangedNodes []string `json:"changedNodes,omitempty"`
	// EdgesChanged is true if the edges differ in more than their order.
	EdgesChanged bool `json:"edgesChanged,omitempty"`
	// AddedEdges, RemovedEdges and ChangedEdges are ordered like the nodes.
	AddedEdges   []string `json:"addedEdges,omitempty"`
	RemovedEdges []string `json:"removedEdges,omitempty"`
	ChangedEdges []string `json:"changedEdges,omitempty"`
	// FieldsChanged are the names, sorted, of other top-level members.
	FieldsChanged []string `json:"fieldsChanged,omitempty"`
	// OrderChanged is true if nodes or edges of both documents stand in
	// another order, or if nodes without an id differ.
	OrderChanged bool `json:"orderChanged,omitempty"`
}

// Diff compares the content of two documents: nodes by id and without their
// positions, edges by id and as a set of values.
func Diff(before, after Document) Summary {
	nodesBefore, nodesAfter := rowsOf(before[membersNodes], withoutPosition), rowsOf(after[membersNodes], withoutPosition)
	edgesBefore, edgesAfter := rowsOf(before[membersEdges], nil), rowsOf(after[membersEdges], nil)

	var s Summary
	s.AddedNodes, s.RemovedNodes, s.ChangedNodes = compareByID(nodesBefore, nodesAfter)
	s.AddedEdges, s.RemovedEdges, s.ChangedEdges = compareByID(edgesBefore, edgesAfter)
	s.EdgesChanged = !maps.Equal(countRows(edgesBefore), countRows(edgesAfter))
	s.FieldsChanged = compareFields(before, after)
	s.OrderChanged = !sameOrder(nodesBefore, nodesAfter) || !sameOrder(edgesBefore, edgesAfter) ||
		!maps.Equal(countRows(withoutIDs(nodesBefore)), countRows(withoutIDs(nodesAfter)))
	return s
}

// String gives one line for each thing worth telling a reader: nodes added,
// removed and changed, and whether edges changed.
func (s Summary) String() string {
	var lines []string
	tell := func(what string, ids []string) {
		if len(ids) > 0 {
			lines = append(lines, what+strings.Join(ids, ", "))
		}
	}
	tell("added nodes: ", s.AddedNodes)
	tell("removed nodes: ", s.RemovedNodes)
	tell("changed nodes: ", s.ChangedNodes)
	if s.EdgesChanged {
		lines = append(lines, "edges changed")
	}
	return strings.Join(lines, "\n")
}

// row is an element of a list as its canonical JSON.
type row struct {
	id    text
	value string
}

// rowsOf returns the elements of a list, each passed through prepare first.
// Anything but a list or null counts as its only element.
func rowsOf(list any, prepare func(any) any) []row {
	values, ok := list.([]any)
	if !ok && list != nil {
		values = []any{list}
	}
	rows := make([]row, len(values))
	for i, value := range values {
		if prepare != nil {
			value = prepare(value)
		}
		// What has no canonical JSON has no revision either: its text stays
		// empty and the comparison goes by ids.
		canonical, _ := jsonvalue.Canonical(value)
		object, _ := value.(map[string]any)
		rows[i] = row{id: textOf(object[memberID]), value: string(canonical)}
	}
	return rows
}

func withoutIDs(rows []row) []row {
	return slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.id.isString })
}

func countRows(rows []row) map[row]int {
	counts := make(map[row]int, len(rows))
	for _, r := range rows {
		counts[r]++
	}
	return counts
}

// valuesByID returns the ids of rows in order of appearance, and the values
// that each has, sorted.
func valuesByID(rows []row) (ids []string, values map[string][]string) {
	values = make(map[string][]string, len(rows))
	for _, r := range rows {
		if !r.id.isString {
			continue
		}
		id := r.id.value
		if values[id] == nil {
			ids = append(ids, id)
		}
		values[id] = append(values[id], r.value)
	}
	for _, list := range values {
		slices.Sort(list)
	}
	return ids, values
}

func compareByID(before, after []row) (added, removed, changed []string) {
	idsBefore, valuesBefore := valuesByID(before)
	idsAfter, valuesAfter := valuesByID(after)
	for _, id := range idsAfter {
		if valuesBefore[id] == nil {
			added = append(added, id)
		}
	}
	for _, id := range idsBefore {
		switch now := valuesAfter[id]; {
		case now == nil:
			removed = append(removed, id)
		case !slices.Equal(now, valuesBefore[id]):
			changed = append(changed, id)
		}
	}
	return added, removed, changed
}

// compareFields returns the sorted names of the top-level members that differ
// in value or presence, the two lists aside.
func compareFields(before, after Document) []string {
	var changed []string
	for _, name := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(sortedNames(before), sortedNames(after))))) {
		if !isListName(name) && !sameMember(before, after, name) {
			changed = append(changed, name)
		}
	}
	return changed
}

// sameMember tells whether a member has equal values in two objects, or is
// absent from both.
func sameMember(a, b map[string]any, name string) bool {
	x, inA := a[name]
	y, inB := b[name]
	return inA == inB && jsonvalue.Equal(x, y)
}

// sameOrder tells whether what both lists have comes in the same order. A row
// is known again by its id if no other has that, else by its value.
func sameOrder(before, after []row) bool {
	_, valuesBefore := valuesByID(before)
	_, valuesAfter := valuesByID(after)
	key := func(r row) row {
		if r.id.isString && len(valuesBefore[r.id.value]) == 1 && len(valuesAfter[r.id.value]) == 1 {
			r.value = ""
		}
		return r
	}
	a, b := mapRows(before, key), mapRows(after, key)
	return slices.Equal(inBoth(a, b), inBoth(b, a))
}

func mapRows(rows []row, f func(row) row) []row {
	mapped := make([]row, len(rows))
	for i, r := range rows {
		mapped[i] = f(r)
	}
	return mapped
}

// inBoth returns the rows that other has too, each as often at most as other.
func inBoth(rows, other []row) []row {
	left := countRows(other)
	var both []row
	for _, r := range rows {
		if left[r] > 0 {
			left[r]--
			both = append(both, r)
		}
	}
	return both
}

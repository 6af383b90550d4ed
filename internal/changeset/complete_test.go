package changeset_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/apitomy/axiom-operator/internal/changeset"
)

// refusals are, for each operation, an example of every code it can be rejected with, in the order of the tests. Behind
// the first of them each example is wrong in the way of those that follow as well, as far as one operation can be.
func refusals() map[string]map[string]string {
	return map[string]map[string]string{
		"addNode": {
			changeset.CodeMalformed:   `{"op":"addNode","node":{"id":"read","type":"end","name":"E","config":null}}`,
			changeset.CodeDuplicateID: `{"op":"addNode","node":{"id":"read","type":"end","name":"E","config":{}}}`,
		},
		"updateNode": {
			changeset.CodeMalformed:     `{"op":"updateNode","id":"ghost","patch":{"type":"end"}}`,
			changeset.CodeTargetMissing: `{"op":"updateNode","id":"ghost","patch":{"name":"E"}}`,
		},
		"renameNode": {
			changeset.CodeMalformed:     `{"op":"renameNode","id":"ghost","newId":""}`,
			changeset.CodeTargetMissing: `{"op":"renameNode","id":"ghost","newId":"sign"}`,
			changeset.CodeDuplicateID:   `{"op":"renameNode","id":"read","newId":"sign"}`,
		},
		"removeNode": {
			changeset.CodeMalformed:     `{"op":"removeNode","id":7}`,
			changeset.CodeTargetMissing: `{"op":"removeNode","id":"ghost"}`,
		},
		"addEdge": {
			changeset.CodeMalformed:           `{"op":"addEdge","edge":{"id":"e1","source":"ghost","target":"read","priority":0}}`,
			changeset.CodeDuplicateID:         `{"op":"addEdge","edge":{"id":"e1","source":"ghost","target":"read","priority":0,"isDefault":false}}`,
			changeset.CodeEdgeEndpointMissing: `{"op":"addEdge","edge":{"id":"e9","source":"ghost","target":"read","priority":0,"isDefault":false}}`,
		},
		"updateEdge": {
			changeset.CodeMalformed:           `{"op":"updateEdge","id":"e9","patch":{"target":"ghost"},"unset":["priority"]}`,
			changeset.CodeTargetMissing:       `{"op":"updateEdge","id":"e9","patch":{"target":"ghost"}}`,
			changeset.CodeEdgeEndpointMissing: `{"op":"updateEdge","id":"e1","patch":{"source":"ghost"}}`,
		},
		"removeEdge": {
			changeset.CodeMalformed:     `{"op":"removeEdge","id":""}`,
			changeset.CodeTargetMissing: `{"op":"removeEdge","id":"e9"}`,
		},
		"metadata": {
			changeset.CodeMalformed: `{"op":"metadata","patch":{"version":"4"}}`,
		},
		"restore": {
			changeset.CodeMalformed:     `{"op":"restore","list":"edges","index":4,"remove":1,"insert":{}}`,
			changeset.CodeTargetMissing: `{"op":"restore","list":"edges","index":4,"remove":1,"insert":[]}`,
		},
	}
}

func TestEveryRefusalOfEveryOperation(t *testing.T) {
	for op, codes := range refusals() {
		for code, text := range codes {
			// Whatever stands before it, the first operation at fault is named.
			ops := append(appliedOps(t, "A6"), decode(t, text))
			result, rejection := changeset.Apply(base(t), ops)
			if result != nil {
				t.Errorf("%s: a result beside a rejection", op)
			}
			t.Run(op+"/"+code, func(t *testing.T) { assertRejected(t, rejection, code, new(1)) })
		}
	}
}

// The tables have every code, and every operation is refused, applied, inverted and undone somewhere in them.
func TestCasesAreComplete(t *testing.T) {
	operations := slices.Sorted(maps.Keys(refusals()))
	_, rejection := changeset.Apply(base(t), []any{map[string]any{"op": "no such operation"}})
	if want := "op must be one of addNode, updateNode, renameNode, removeNode, addEdge, updateEdge, removeEdge, metadata, restore"; rejection == nil || rejection.Reason != want {
		t.Fatalf("the operations are not those of the test: %v", rejection)
	}
	if len(operations) != 9 {
		t.Fatalf("%d operations", len(operations))
	}

	codes := map[string]bool{changeset.CodeStale: true} // of change sets, not of operations
	for _, of := range refusals() {
		for code := range of {
			codes[code] = true
		}
	}
	want := []string{
		changeset.CodeDuplicateID, changeset.CodeEdgeEndpointMissing, changeset.CodeMalformed, changeset.CodeStale, changeset.CodeTargetMissing,
	}
	if got := slices.Sorted(maps.Keys(codes)); !slices.Equal(got, want) {
		t.Errorf("codes %v, want %v", got, want)
	}

	rejected := map[string]bool{}
	for _, row := range vectors(rejectedVectors, 4) {
		rejected[row[1]] = true
	}
	for code := range codes {
		if !rejected[code] && code != changeset.CodeStale {
			t.Errorf("no vector is rejected with %s", code)
		}
	}
	applied := map[string]int{}
	for _, row := range vectors(appliedVectors, 3) {
		for _, op := range appliedOps(t, row[0]) {
			applied[fmt.Sprint(op.(map[string]any)["op"])]++
		}
	}
	for _, op := range operations {
		if applied[op] == 0 {
			t.Errorf("no vector applies %s", op)
		}
	}
}

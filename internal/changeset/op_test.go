package changeset_test

import (
	"math"
	"strings"
	"testing"

	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// Each operation below has the wrong shape in one way, and names what is not
// there besides: the shape is judged first.
func TestMalformedOperations(t *testing.T) {
	tests := map[string]string{
		"no op":                   `{"id":"ghost"}`,
		"an op that is no text":   `{"op":7,"id":"ghost"}`,
		"an op in another case":   `{"op":"removenode","id":"ghost"}`,
		"an op that is a list":    `{"op":["removeNode"],"id":"ghost"}`,
		"a null":                  `null`,
		"a list":                  `[]`,
		"a number":                `5`,
		"addNode without node":    `{"op":"addNode"}`,
		"a node that is text":     `{"op":"addNode","node":"read"}`,
		"a node without id":       `{"op":"addNode","node":{"type":"end","name":"E","config":{}}}`,
		"a node with empty id":    `{"op":"addNode","node":{"id":"","type":"end","name":"E","config":{}}}`,
		"a node without name":     `{"op":"addNode","node":{"id":"read","type":"end","config":{}}}`,
		"a node with empty name":  `{"op":"addNode","node":{"id":"read","type":"end","name":"","config":{}}}`,
		"a node without type":     `{"op":"addNode","node":{"id":"read","name":"E","config":{}}}`,
		"a type in capitals":      `{"op":"addNode","node":{"id":"read","type":"End","name":"E","config":{}}}`,
		"a node without config":   `{"op":"addNode","node":{"id":"read","type":"end","name":"E"}}`,
		"a config that is a list": `{"op":"addNode","node":{"id":"read","type":"end","name":"E","config":[]}}`,

		"updateNode without id":         `{"op":"updateNode","patch":{"name":"E"}}`,
		"updateNode with empty id":      `{"op":"updateNode","id":""}`,
		"a patch that is a list":        `{"op":"updateNode","id":"ghost","patch":[]}`,
		"a patch of the type":           `{"op":"updateNode","id":"ghost","patch":{"type":"end"}}`,
		"a patch of an extension":       `{"op":"updateNode","id":"ghost","patch":{"x-lane":"y"}}`,
		"a patch of the id":             `{"op":"updateNode","id":"ghost","patch":{"id":"ghost"}}`,
		"a null name":                   `{"op":"updateNode","id":"ghost","patch":{"name":null}}`,
		"an empty name":                 `{"op":"updateNode","id":"ghost","patch":{"name":""}}`,
		"a null config":                 `{"op":"updateNode","id":"ghost","patch":{"config":null}}`,
		"a null unset":                  `{"op":"updateNode","id":"ghost","unset":null}`,
		"an unset that is text":         `{"op":"updateNode","id":"ghost","unset":"inputs"}`,
		"an empty name in unset":        `{"op":"updateNode","id":"ghost","unset":["a",""]}`,
		"a number in unset":             `{"op":"updateNode","id":"ghost","unset":[1]}`,
		"a null member set and unset":   `{"op":"updateNode","id":"ghost","patch":{"config":{"a":null}},"unset":["a"]}`,
		"renameNode without id":         `{"op":"renameNode","newId":"sign"}`,
		"renameNode without a new id":   `{"op":"renameNode","id":"ghost"}`,
		"renameNode to nothing":         `{"op":"renameNode","id":"ghost","newId":""}`,
		"renameNode to a number":        `{"op":"renameNode","id":"ghost","newId":1}`,
		"removeNode without id":         `{"op":"removeNode"}`,
		"removeNode of null":            `{"op":"removeNode","id":null}`,
		"addEdge without edge":          `{"op":"addEdge"}`,
		"an edge that is null":          `{"op":"addEdge","edge":null}`,
		"an edge without id":            `{"op":"addEdge","edge":{"source":"ghost","target":"read","priority":0,"isDefault":false}}`,
		"an edge without source":        `{"op":"addEdge","edge":{"id":"e1","target":"ghost","priority":0,"isDefault":false}}`,
		"an edge with an empty target":  `{"op":"addEdge","edge":{"id":"e1","source":"ghost","target":"","priority":0,"isDefault":false}}`,
		"an edge without priority":      `{"op":"addEdge","edge":{"id":"e1","source":"ghost","target":"read","isDefault":false}}`,
		"a priority that is text":       `{"op":"addEdge","edge":{"id":"e1","source":"ghost","target":"read","priority":"0","isDefault":false}}`,
		"an isDefault that is a number": `{"op":"addEdge","edge":{"id":"e1","source":"ghost","target":"read","priority":0,"isDefault":0}}`,

		"updateEdge without id":          `{"op":"updateEdge"}`,
		"a patch that is null":           `{"op":"updateEdge","id":"e9","patch":null}`,
		"a patch of an edge's id":        `{"op":"updateEdge","id":"e9","patch":{"id":"e9"}}`,
		"an empty source":                `{"op":"updateEdge","id":"e9","patch":{"source":""}}`,
		"a null target":                  `{"op":"updateEdge","id":"e9","patch":{"target":null}}`,
		"a null priority":                `{"op":"updateEdge","id":"e9","patch":{"priority":null}}`,
		"a null isDefault":               `{"op":"updateEdge","id":"e9","patch":{"isDefault":null}}`,
		"unset of the id":                `{"op":"updateEdge","id":"e9","unset":["id"]}`,
		"unset of the source":            `{"op":"updateEdge","id":"e9","unset":["label","source"]}`,
		"unset of the target":            `{"op":"updateEdge","id":"e9","unset":["target"]}`,
		"unset of isDefault":             `{"op":"updateEdge","id":"e9","unset":["isDefault"]}`,
		"an edge member set and unset":   `{"op":"updateEdge","id":"e9","patch":{"label":"x"},"unset":["label"]}`,
		"removeEdge without id":          `{"op":"removeEdge"}`,
		"metadata without patch":         `{"op":"metadata"}`,
		"metadata of null":               `{"op":"metadata","patch":null}`,
		"metadata of the id":             `{"op":"metadata","patch":{"id":"other"}}`,
		"metadata of the nodes":          `{"op":"metadata","patch":{"nodes":[]}}`,
		"metadata of an extension":       `{"op":"metadata","patch":{"x":1}}`,
		"an empty workflow name":         `{"op":"metadata","patch":{"name":""}}`,
		"a null workflow name":           `{"op":"metadata","patch":{"name":null}}`,
		"a description that is a number": `{"op":"metadata","patch":{"description":1}}`,
		"a version that is text":         `{"op":"metadata","patch":{"version":"5"}}`,

		"restore of nothing":            `{"op":"restore"}`,
		"restore of another list":       `{"op":"restore","list":"steps","index":9,"remove":0,"insert":[]}`,
		"restore without index":         `{"op":"restore","list":"nodes","remove":9,"insert":[]}`,
		"restore without remove":        `{"op":"restore","list":"nodes","index":9,"insert":[]}`,
		"restore without insert":        `{"op":"restore","list":"nodes","index":9,"remove":9}`,
		"a negative index":              `{"op":"restore","list":"nodes","index":-1,"remove":9,"insert":[]}`,
		"half an entry removed":         `{"op":"restore","list":"nodes","index":9,"remove":0.5,"insert":[]}`,
		"an index that is text":         `{"op":"restore","list":"nodes","index":"9","remove":0,"insert":[]}`,
		"a null inserted":               `{"op":"restore","list":"edges","index":9,"remove":0,"insert":[null]}`,
		"an insert that is an object":   `{"op":"restore","list":"edges","index":9,"remove":0,"insert":{}}`,
		"restore of an empty member":    `{"op":"restore","member":""}`,
		"restore of a null member":      `{"op":"restore","member":null}`,
		"restore of the id":             `{"op":"restore","member":"id"}`,
		"a member and a list":           `{"op":"restore","member":"x","list":"nodes"}`,
		"a member and all the others":   `{"op":"restore","member":"x","list":"nodes","index":0,"remove":0,"insert":[]}`,
		"a member and a null insert":    `{"op":"restore","member":"x","insert":null}`,
		"nodes that would be no list":   `{"op":"restore","member":"nodes","value":5}`,
		"edges that would be an object": `{"op":"restore","member":"edges","value":{}}`,
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			_, rejection := changeset.Apply(base(t), []any{decode(t, text)})
			assertRejected(t, rejection, "malformed", new(0))
		})
	}
}

func TestOperationsThatAreNoJSON(t *testing.T) {
	for name, value := range map[string]any{
		"not a number": math.NaN(), "a Go type": []string{"a"}, "broken text": "\xff", "too deep": deep(jsonvalue.MaxDepth),
	} {
		t.Run(name, func(t *testing.T) {
			op := map[string]any{"op": "updateNode", "id": "ghost", "patch": map[string]any{"config": map[string]any{"x": value}}}
			_, rejection := changeset.Apply(base(t), []any{op})
			assertRejected(t, rejection, "malformed", new(0))
		})
	}
}

func deep(depth int) any {
	v := []any{}
	for range depth - 1 {
		v = []any{v}
	}
	return v
}

// A value may be just not too deep in an operation and too deep in the
// document, when the operation did not come in a decoded change set.
func TestResultWithoutRevision(t *testing.T) {
	op := map[string]any{"op": "metadata", "patch": map[string]any{}}
	doc := changeset.Document{"x": deep(jsonvalue.MaxDepth - 1)}
	if _, _, rejection := changeset.ApplyChecked(doc, changeSetOf(t, doc, []any{op})); rejection != nil {
		t.Errorf("rejected at the limit: %s", rejection)
	}
	tooDeep := map[string]any{"op": "addNode", "node": map[string]any{
		"id": "a", "type": "end", "name": "A", "config": map[string]any{"x": deep(jsonvalue.MaxDepth - 3)},
	}}
	_, _, rejection := changeset.ApplyChecked(doc, changeSetOf(t, doc, []any{tooDeep}))
	assertRejected(t, rejection, "malformed", nil)
	_, rejection = changeset.Inverse(doc, changeSetOf(t, doc, []any{tooDeep}))
	assertRejected(t, rejection, "malformed", nil)
}

func TestOperationsOnDrafts(t *testing.T) {
	tests := map[string]struct {
		draft, ops string
		want       string // a document, or "code index"
	}{
		"look-ups pass over what is no object": {
			`{"nodes":["a",{"id":1},null,{"id":"a","config":{}}]}`, `[{"op":"updateNode","id":"a","patch":{"name":"A"}}]`,
			`{"nodes":["a",{"id":1},null,{"id":"a","config":{},"name":"A"}]}`,
		},
		"the first of namesakes is meant": {
			`{"nodes":[{"id":"a","n":1},{"id":"a","n":2}]}`, `[{"op":"removeNode","id":"a"}]`,
			`{"nodes":[{"id":"a","n":2}]}`,
		},
		"a namesake stops a rename": {
			`{"nodes":[{"id":"a"},{"id":"b"},{"id":"a"}]}`, `[{"op":"renameNode","id":"b","newId":"a"}]`,
			`duplicate-id 0`,
		},
		"a namesake is another node": {
			`{"nodes":[{"id":"a"},{"id":"a"}]}`, `[{"op":"renameNode","id":"a","newId":"a"}]`,
			`duplicate-id 0`,
		},
		"a config that is none becomes one": {
			`{"nodes":[{"id":"a","config":[1]},{"id":"b"}]}`, `[{"op":"updateNode","id":"a"},{"op":"updateNode","id":"b","unset":["x"]}]`,
			`{"nodes":[{"id":"a","config":{}},{"id":"b","config":{}}]}`,
		},
		"config is merged one level deep": {
			`{"nodes":[{"id":"a","config":{"k":{"x":1},"l":2,"m":3}}]}`,
			`[{"op":"updateNode","id":"a","patch":{"config":{"k":{"y":1},"n":null}},"unset":["m"]}]`,
			`{"nodes":[{"id":"a","config":{"k":{"y":1},"l":2,"n":null}}]}`,
		},
		"an edge that dangles cannot be labelled": {
			`{"nodes":[{"id":"a"}],"edges":[{"id":"e","source":"a","target":"b"}]}`, `[{"op":"updateEdge","id":"e","patch":{"label":"x"}}]`,
			`edge-endpoint-missing 0`,
		},
		"nor left alone": {
			`{"nodes":[{"id":"a"}],"edges":[{"id":"e","source":"a"}]}`, `[{"op":"updateEdge","id":"e"}]`,
			`edge-endpoint-missing 0`,
		},
		"but mended": {
			`{"nodes":[{"id":"a"}],"edges":[{"id":"e","source":"a","target":7}]}`, `[{"op":"updateEdge","id":"e","patch":{"target":"a"}}]`,
			`{"nodes":[{"id":"a"}],"edges":[{"id":"e","source":"a","target":"a"}]}`,
		},
		"an empty id is an id to an edge": {
			`{"nodes":[{"id":""}],"edges":[{"id":"e","source":"","target":""}]}`, `[{"op":"updateEdge","id":"e","patch":{"label":"x"}}]`,
			`{"nodes":[{"id":""}],"edges":[{"id":"e","source":"","target":"","label":"x"}]}`,
		},
		"a missing end is no empty id": {
			`{"nodes":[{"id":""}],"edges":[{"id":"e"}]}`, `[{"op":"updateEdge","id":"e","patch":{"label":"x"}}]`,
			`edge-endpoint-missing 0`,
		},
		"lists come to be with what is added": {
			`{"nodes":null}`,
			`[{"op":"addNode","node":{"id":"a","type":"end","name":"A","config":{}}},{"op":"addEdge","edge":{"id":"e","source":"a","target":"a","priority":0,"isDefault":true}}]`,
			`{"nodes":[{"id":"a","type":"end","name":"A","config":{}}],"edges":[{"id":"e","source":"a","target":"a","priority":0,"isDefault":true}]}`,
		},
		"and stay away without": {
			`{"edges":null}`, `[{"op":"restore","list":"nodes","index":0,"remove":0,"insert":[]},{"op":"metadata","patch":{}}]`,
			`{"edges":null}`,
		},
		"a rename leaves other edges alone": {
			`{"nodes":[{"id":"a"},{"id":"b"}],"edges":[5,{"source":"b","target":"a"},{"id":"f","source":"b","target":["a"]}]}`,
			`[{"op":"renameNode","id":"a","newId":"c"}]`,
			`{"nodes":[{"id":"c"},{"id":"b"}],"edges":[5,{"source":"b","target":"c"},{"id":"f","source":"b","target":["a"]}]}`,
		},
		"a rename without edges": {
			`{"nodes":[{"id":"a"}],"edges":null}`, `[{"op":"renameNode","id":"a","newId":"c"}]`,
			`{"nodes":[{"id":"c"}],"edges":null}`,
		},
		"a restored node keeps its place": {
			`{"nodes":[{"id":"a","position":1},{"id":"b","position":2},{"id":"c"}]}`,
			`[{"op":"restore","list":"nodes","index":0,"remove":3,"insert":[{"id":"c","position":9},{"id":"a","x":1},{"id":"d","position":4}]}]`,
			`{"nodes":[{"id":"c"},{"id":"a","x":1,"position":1},{"id":"d","position":4}]}`,
		},
		"also by its member": {
			`{"nodes":[{"id":"a","position":1}]}`, `[{"op":"restore","member":"nodes","value":[5,{"id":"a","position":2},{"id":"a","position":3}]}]`,
			`{"nodes":[5,{"id":"a","position":1},{"id":"a","position":3}]}`,
		},
		"edges have no place to keep": {
			`{"edges":[{"id":"e","position":1}]}`, `[{"op":"restore","list":"edges","index":0,"remove":1,"insert":[{"id":"e","position":2}]}]`,
			`{"edges":[{"id":"e","position":2}]}`,
		},
		"a list restored to null and to nothing": {
			`{"nodes":[],"edges":[]}`, `[{"op":"restore","member":"nodes","value":null},{"op":"restore","member":"edges"}]`,
			`{"nodes":null}`,
		},
		"a splice at the end": {
			`{"edges":[{"id":"e"}]}`, `[{"op":"restore","list":"edges","index":1.0,"remove":0,"insert":[{}]}]`,
			`{"edges":[{"id":"e"},{}]}`,
		},
		"a splice beyond the end": {
			`{"edges":[{"id":"e"}]}`, `[{"op":"restore","list":"edges","index":2,"remove":0,"insert":[]}]`,
			`target-missing 0`,
		},
		"a splice far beyond the end": {
			`{"edges":[{"id":"e"}]}`, `[{"op":"restore","list":"edges","index":1e300,"remove":9223372036854775807,"insert":[]}]`,
			`target-missing 0`,
		},
		"endpoints are nodes at that moment": {
			`{"nodes":[{"id":"a"}],"edges":[]}`,
			`[{"op":"addEdge","edge":{"id":"e","source":"a","target":"b","priority":0,"isDefault":false}},{"op":"addNode","node":{"id":"b","type":"end","name":"B","config":{}}}]`,
			`edge-endpoint-missing 0`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			result, rejection := changeset.Apply(decode(t, tc.draft).(changeset.Document), decode(t, tc.ops))
			if code, _, ok := strings.Cut(tc.want, " 0"); ok {
				assertRejected(t, rejection, code, new(0))
				return
			}
			if rejection != nil {
				t.Fatal(rejection)
			}
			assertSame(t, "document", decode(t, tc.want), result)
		})
	}
}

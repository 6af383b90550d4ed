package jsonvalue_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/testing/cputime"
)

// document is a workflow of so many nodes, as far as its values and their sizes go.
func document(nodes int) any {
	list := make([]any, nodes)
	for i := range list {
		list[i] = map[string]any{
			"id": fmt.Sprintf("node-%03d", i), "type": "action", "name": "Assess the risk", "position": map[string]any{"x": 12.5 * float64(i), "y": int64(40)},
			"config": map[string]any{
				"actionType": "assess-risk", "inputs": map[string]any{"ref": "context.ref", "depth": int64(2)}, "timeout": "PT10M",
				"outputs": []any{map[string]any{"name": "score", "type": "number", "required": true, "contextKey": "risk"}},
			},
		}
	}
	return map[string]any{"id": "release", "name": "Release", "version": int64(4), "nodes": list}
}

// The two write the same value; only the order of names and the spelling of some numbers differ.
func BenchmarkCoreCanonical(b *testing.B) {
	value := document(100)
	for name, write := range map[string]func(v any) ([]byte, error){"canonical": jsonvalue.Canonical, "encoding-json": json.Marshal} {
		b.Run(name, func(b *testing.B) {
			text, err := write(value)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(text)))
			cputime.Loop(b, func() {
				if _, err := write(value); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}

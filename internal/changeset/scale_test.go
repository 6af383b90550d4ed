package changeset_test

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"

	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/testing/cputime"
)

// large returns a document of n nodes and 4 n edges.
func large(n int) changeset.Document {
	nodes, edges := make([]any, n), make([]any, 4*n)
	for i := range nodes {
		nodes[i] = map[string]any{
			"id": nodeName(i), "type": "action", "name": "Node", "position": map[string]any{"x": int64(i), "y": 0.5},
			"config": map[string]any{"actionType": "mail", "inputs": map[string]any{"to": "context.to", "tries": int64(3)}, "outputs": []any{}},
		}
	}
	for i := range edges {
		edges[i] = map[string]any{
			"id": fmt.Sprintf("edge-%05d", i), "source": nodeName(i % n), "target": nodeName((i * 7) % n),
			"priority": int64(i % 4), "isDefault": false, "condition": "context.ok == true",
		}
	}
	return changeset.Document{"id": "large", "name": "Large", "nodes": nodes, "edges": edges}
}

func nodeName(i int) string { return fmt.Sprintf("node-%05d", i) }

// manyOps returns n operations of every plain kind for a document of large.
func manyOps(n, nodes int) []any {
	ops := make([]any, 0, n)
	for i := range n {
		var op map[string]any
		switch i % 8 {
		case 0:
			op = map[string]any{"op": "addNode", "node": map[string]any{"id": fmt.Sprint("new-", i), "type": "wait", "name": "W", "config": map[string]any{}}}
		case 1:
			op = map[string]any{"op": "addEdge", "edge": map[string]any{
				"id": fmt.Sprint("new-", i), "source": fmt.Sprint("new-", i-1), "target": nodeName(nodes - 1), "priority": int64(0), "isDefault": false,
			}}
		case 2:
			op = map[string]any{"op": "updateNode", "id": nodeName(nodes/2 + i/8), "patch": map[string]any{"config": map[string]any{"inputs": nil}}}
		case 3:
			op = map[string]any{"op": "updateEdge", "id": fmt.Sprint("new-", i-2), "patch": map[string]any{"label": "x"}}
		case 4:
			op = map[string]any{"op": "renameNode", "id": nodeName(nodes/4 + i/8), "newId": fmt.Sprint("renamed-", i)}
		case 5:
			op = map[string]any{"op": "removeNode", "id": nodeName(i / 8)}
		case 6:
			op = map[string]any{"op": "metadata", "patch": map[string]any{"version": int64(i)}}
		default:
			op = map[string]any{"op": "removeEdge", "id": fmt.Sprint("new-", i-6)}
		}
		ops = append(ops, op)
	}
	return ops
}

// Twice the document, or twice the operations, must not cost much more than
// twice the allocations: what is quadratic shows here, on any machine.
func TestCostGrowsWithItsInput(t *testing.T) {
	small, double := large(250), large(500)
	sets := []changeset.ChangeSet{{Ops: manyOps(100, 500)}, {Ops: manyOps(200, 500)}}
	tests := map[string]func(twice bool){
		"revision of a document": func(twice bool) {
			_, _ = changeset.Revision(choose(twice, double, small))
		},
		"one operation on a document": func(twice bool) {
			_, _ = changeset.Apply(choose(twice, double, small), manyOps(1, 250))
		},
		"operations on one document": func(twice bool) {
			_, _ = changeset.Apply(double, choose(twice, sets[1], sets[0]).Ops)
		},
		"inverse of operations": func(twice bool) {
			_, _ = changeset.Inverse(double, choose(twice, sets[1], sets[0]))
		},
		"diff of documents": func(twice bool) {
			changeset.Diff(choose(twice, double, small), large(10))
		},
		"undo of everything": func(twice bool) {
			doc := choose(twice, double, small)
			_, _ = changeset.Undo(doc, changeset.Document{}, changeset.Document{"x": true})
		},
	}
	for name, work := range tests {
		t.Run(name, func(t *testing.T) {
			once := testing.AllocsPerRun(3, func() { work(false) })
			twice := testing.AllocsPerRun(3, func() { work(true) })
			if twice > 2.5*once {
				t.Errorf("%.0f allocations for twice the input, %.0f for once", twice, once)
			}
		})
	}
}

// A node takes at most twice the allocations in a document of the greatest size,
// with as many operations as nodes and with a single one.
func TestCostOfANodeIsFlat(t *testing.T) {
	for name, count := range map[string]func(n int) int{
		"operations on every node": func(n int) int { return n },
		"one operation":            func(int) int { return 1 },
	} {
		perNode := func(n int) float64 {
			doc := large(n)
			set := changeSetOf(t, doc, manyOps(count(n), n))
			return testing.AllocsPerRun(2, func() {
				if _, _, rejection := changeset.ApplyChecked(doc, set); rejection != nil {
					t.Fatal(rejection)
				}
			}) / float64(n)
		}
		small := perNode(10)
		for _, n := range []int{100, 1000} {
			if cost := perNode(n); cost > 2*small {
				t.Errorf("%s: %.1f allocations for each of %d nodes, %.1f for each of 10", name, cost, n, small)
			}
		}
	}
}

func choose[T any](second bool, b, a T) T {
	if second {
		return b
	}
	return a
}

func TestManyOperationsOnALargeDocument(t *testing.T) {
	doc, ops := large(1000), manyOps(1000, 1000)
	result := apply(t, doc, ops)
	inverse, rejection := changeset.Inverse(doc, changeSetOf(t, doc, ops))
	if rejection != nil {
		t.Fatal(rejection)
	}
	if _, revised, rejection := changeset.ApplyChecked(result, inverse); rejection != nil || revised != revision(t, doc) {
		t.Errorf("back: %s, %v", revised, rejection)
	}
}

// As many operations as the document has nodes, of every kind, against the revision they were written for.
func BenchmarkCoreApply(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			doc := large(n)
			set := changeSetOf(b, doc, manyOps(n, n))
			cputime.Loop(b, func() {
				if _, _, rejection := changeset.ApplyChecked(doc, set); rejection != nil {
					b.Fatal(rejection)
				}
			})
		})
	}
}

// One operation, which costs what it takes to name a document before and after.
func BenchmarkCoreApplyOne(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			doc := large(n)
			op := map[string]any{"op": "updateNode", "id": nodeName(n / 2), "patch": map[string]any{"config": map[string]any{"timeout": "PT1M"}}}
			set := changeSetOf(b, doc, []any{op})
			cputime.Loop(b, func() {
				if _, _, rejection := changeset.ApplyChecked(doc, set); rejection != nil {
					b.Fatal(rejection)
				}
			})
		})
	}
}

func BenchmarkRevision(b *testing.B) {
	for _, n := range []int{500, 1000, 2000} {
		doc := large(n)
		b.Run(fmt.Sprint(n, " nodes"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				revision(b, doc)
			}
		})
	}
}

// The costliest operations there are: each looks at every edge.
func BenchmarkApplyRenames(b *testing.B) {
	doc := large(1000)
	var ops []any
	for i := range 1000 {
		ops = append(ops, map[string]any{"op": "renameNode", "id": nodeName(i), "newId": fmt.Sprint("r", i)})
	}
	for b.Loop() {
		apply(b, doc, ops)
	}
}

func BenchmarkCoreInverse(b *testing.B) {
	doc, ops := large(1000), manyOps(1000, 1000)
	set := changeset.ChangeSet{Ops: ops}
	cputime.Loop(b, func() {
		inverse, rejection := changeset.Inverse(doc, set)
		if rejection != nil {
			b.Fatal(rejection)
		}
		runtime.KeepAlive(inverse)
	})
}

func BenchmarkUndo(b *testing.B) {
	before := large(1000)
	after := apply(b, before, manyOps(1000, 1000))
	live := apply(b, after, []any{map[string]any{"op": "metadata", "patch": map[string]any{"description": "since"}}})
	for b.Loop() {
		if _, conflict := changeset.Undo(before, after, live); conflict != nil {
			b.Fatal(conflict)
		}
	}
}

func BenchmarkDiff(b *testing.B) {
	before := large(1000)
	after := apply(b, before, manyOps(1000, 1000))
	for b.Loop() {
		changeset.Diff(before, after)
	}
}

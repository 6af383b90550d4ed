package workflow

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/testing/cputime"
)

// sized is a valid document of n nodes, a multiple of ten: blocks of ten nodes, one behind the other, of which the very
// first is the start and the very last the end. The suffix of a block makes its expressions differ from those of others.
func sized(n int, suffix func(block int) string) Document {
	var g sizedGraph
	for g.block = range n / 10 {
		g.suffix = suffix(g.block)
		g.addBlock(g.block == n/10-1)
	}
	return Document{"id": "w", "name": "W", "nodes": g.nodes, "edges": g.edges}
}

type sizedGraph struct {
	block        int
	suffix       string
	nodes, edges []any
}

func (g *sizedGraph) node(name string, kind Kind, config map[string]any) {
	g.nodes = append(g.nodes, map[string]any{
		"id": fmt.Sprintf("%s-%d", name, g.block), "name": name, "type": string(kind), "config": config,
		"position": map[string]any{"x": int64(g.block), "y": 0.5},
	})
}

func (g *sizedGraph) edge(source, target string, members map[string]any) {
	e := map[string]any{
		"id": fmt.Sprintf("e-%d", len(g.edges)), "source": fmt.Sprintf("%s-%d", source, g.block), "target": fmt.Sprintf("%s-%d", target, g.block),
	}
	maps.Copy(e, members)
	g.edges = append(g.edges, e)
}

func (g *sizedGraph) addBlock(isLast bool) {
	ref := "context.ref" + g.suffix
	action := map[string]any{
		"actionType": "assess", "inputs": map[string]any{"ref": ref, "depth": int64(2)}, "timeout": "PT10M",
		"outputs": []any{map[string]any{"name": "score", "type": "number", "required": true, "contextKey": "risk"}},
		"retry":   map[string]any{"maxAttempts": int64(3), "backoff": map[string]any{"initial": "PT10S"}},
	}
	if g.block == 0 {
		g.node("first", KindStart, map[string]any{"inputs": []any{map[string]any{"name": "ref"}}})
	} else {
		g.node("first", KindAction, action)
		g.edge("last", "first", map[string]any{"source": fmt.Sprintf("last-%d", g.block-1)})
	}
	g.node("approve", KindHumanTask, map[string]any{
		"title": "'Release ' + " + ref, "description": "Decide.", "inputs": map[string]any{"Risk": "context.risk"},
		"outputs": []any{map[string]any{"name": "ok", "type": "boolean"}}, "timeout": "P2D",
	})
	g.node("cool", KindWait, map[string]any{"duration": "PT8H"})
	g.node("split", KindWait, map[string]any{"duration": "PT0S"})
	g.node("call", KindComponent, map[string]any{"component": "c", "inputs": map[string]any{"ref": ref}})
	g.node("work", KindAction, action)
	g.node("join", KindWait, map[string]any{"duration": "PT0S"})
	g.node("merged", KindReceiveEvent, map[string]any{
		"eventType": fmt.Sprintf("t%s-%d", g.suffix, g.block), "match": []any{"event.payload.base == 'main" + g.suffix + "'"}, "timeout": "P7D",
		"correlationKey": map[string]any{"subscriptionKey": ref, "eventKey": "event.ref"},
		"outputs":        []any{map[string]any{"contextKey": "by", "expression": "event.actor.login"}},
	})
	g.node("late", KindWait, map[string]any{"duration": "PT1H"})
	if isLast {
		g.node("last", KindEnd, map[string]any{"outcome": "released"})
	} else {
		g.node("last", KindWait, map[string]any{"duration": "PT0S"})
	}
	g.edge("first", "approve", nil)
	g.edge("approve", "cool", map[string]any{"condition": "context.ok == true && context.risk" + g.suffix + " < 3"})
	g.edge("approve", "split", map[string]any{"isDefault": true})
	g.edge("approve", "merged", map[string]any{"isTimeout": true})
	g.edge("cool", "split", nil)
	g.edge("split", "call", nil)
	g.edge("split", "work", map[string]any{"priority": int64(1)})
	g.edge("call", "join", nil)
	g.edge("work", "join", nil)
	g.edge("join", "merged", nil)
	g.edge("merged", "last", nil)
	g.edge("merged", "late", map[string]any{"isTimeout": true})
	g.edge("late", "last", nil)
}

func sameExpressions(int) string { return "" }

// The documents of the benchmarks are such as people write: nothing is wrong with them.
func TestBenchmarkedDocumentsAreValid(t *testing.T) {
	for _, n := range []int{10, 100, MaxNodes} {
		doc := sized(n, strconv.Itoa)
		if problems := Validate(doc, newExpressions()); len(problems) > 0 || len(list(doc["nodes"])) != n {
			t.Errorf("%d nodes, problems %v", len(list(doc["nodes"])), problems)
		}
	}
}

// Allocations are what of the time can be counted: a node takes at most twice as many in the largest document.
func TestCostOfANodeIsFlat(t *testing.T) {
	perNode := func(n int) float64 {
		doc := sized(n, sameExpressions)
		return testing.AllocsPerRun(2, func() { Validate(doc, newExpressions()) }) / float64(n)
	}
	small := perNode(10)
	for _, n := range []int{100, MaxNodes} {
		if cost := perNode(n); cost > 2*small {
			t.Errorf("%.1f allocations for each of %d nodes, %.1f for each of 10", cost, n, small)
		}
	}
}

// BenchmarkCoreValidate validates documents whose expressions are known to the cache, and such where every block has
// expressions of its own that no cache has met.
func BenchmarkCoreValidate(b *testing.B) {
	for _, n := range []int{10, 100, MaxNodes} {
		b.Run(fmt.Sprintf("known/%d", n), func(b *testing.B) {
			doc := sized(n, sameExpressions)
			mustBeValid(b, doc)
			cputime.Loop(b, func() { mustBeValid(b, doc) })
		})
	}
	round := 0
	for _, n := range []int{10, 100, MaxNodes} {
		b.Run(fmt.Sprintf("new/%d", n), func(b *testing.B) {
			var doc Document
			prepare := func() {
				round++
				doc = sized(n, func(block int) string { return fmt.Sprintf("%d_%d", block, round) })
			}
			cputime.LoopPrepared(b, prepare, func() { mustBeValid(b, doc) })
		})
	}
}

func mustBeValid(b *testing.B, doc Document) {
	if problems := Validate(doc, newExpressions()); len(problems) > 0 {
		b.Fatal(problems)
	}
}

// hostileGraphs are at the limit of the budgets, and their regions cannot be accepted quickly.
var hostileGraphs = map[string]func() *graph{
	"every node a fork": func() *graph {
		r := rand.New(rand.NewPCG(1, 1))
		g := emptyGraph(MaxNodes)
		for v := range MaxNodes - 1 {
			g.isFork[v] = true
			for range 4 {
				g.add(arc{from: v, to: 1 + r.IntN(MaxNodes-1), branch: true})
			}
		}
		g.isEnd[MaxNodes-1] = true
		return g
	},
	"one fork of three thousand branches": func() *graph {
		g := emptyGraph(MaxNodes)
		for v := 1; v < MaxNodes-1; v++ {
			g.add(arc{from: v, to: v + 1, branch: true})
		}
		g.isFork[0] = true
		for i := range MaxEdges - MaxNodes + 1 {
			g.add(arc{from: 0, to: 1 + i%(MaxNodes-1), branch: true})
		}
		g.isEnd[MaxNodes-1] = true
		return g
	},
	"forks that never end": func() *graph {
		g := emptyGraph(MaxNodes)
		for v := range MaxNodes {
			g.isFork[v] = true
			for i := range 4 {
				g.add(arc{from: v, to: 1 + (v*7+i*331)%(MaxNodes-1), branch: true})
			}
		}
		return g
	},
}

// BenchmarkHostile validates what takes longest within the budgets: none may take a second.
func BenchmarkHostile(b *testing.B) {
	docs := hostileExpressions()
	for name, grow := range hostileGraphs {
		docs[name] = documentOf(grow())
	}
	for _, name := range slices.Sorted(maps.Keys(docs)) {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			var x *expression.Cache
			prepare := func() { x = expression.NewCache() } // one that knows none of the expressions
			cputime.LoopPrepared(b, prepare, func() { Validate(docs[name], x) })
		})
	}
}

package workflow

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
)

// hostile are documents at the limit of the budgets whose regions cannot be accepted quickly.
var hostile = map[string]func() *graph{
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

func BenchmarkValidateHostile(b *testing.B) {
	for name, grow := range hostile {
		b.Run(name, func(b *testing.B) {
			doc := documentOf(grow())
			for b.Loop() {
				Validate(doc, newExpressions())
			}
		})
	}
}

// Every expression is a new one, so that no cache helps.
func BenchmarkValidateExpressions(b *testing.B) {
	round := 0
	for b.Loop() {
		inputs := map[string]any{}
		for i := range 25_000 {
			inputs[strconv.Itoa(i)] = fmt.Sprintf("%d+%d", round, i)
		}
		round++
		doc := Blank("w")
		list(doc["nodes"])[0].(map[string]any)["type"] = "action"
		list(doc["nodes"])[0].(map[string]any)["config"] = map[string]any{"inputs": inputs}
		Validate(doc, newExpressions())
	}
}

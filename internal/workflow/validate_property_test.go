package workflow

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// words are member names and values that mean something, so that random values come near to documents.
var words = []string{
	"id", "name", "type", "nodes", "edges", "config", "inputs", "outputs", "source", "target", "condition", "priority", "isDefault",
	"isTimeout", "isError", "position", "x", "retry", "backoff", "maxAttempts", "initial", "match", "eventType", "lookback", "timeout",
	"correlationKey", "subscriptionKey", "eventKey", "contextKey", "expression", "options", "value", "label", "widget", "select",
	"responseSchema", "properties", "$ref", "#", "allOf", "assignees", "users", "component", "duration", "PT1S", "true", "context.a",
	"event.id", "context.", "string", "number", "object", "start", "end", "action", "human-task", "receive-event", "wait", "component",
	"a", "b", "", " ", "\xff", "forEach", "defaultValue", "required",
}

func randomValue(r *rand.Rand, depth int) any {
	word := func() string { return words[r.IntN(len(words))] }
	switch kind := r.IntN(12); {
	case kind < 4 && depth > 0:
		object := map[string]any{}
		for range r.IntN(8) {
			object[word()] = randomValue(r, depth-1)
		}
		return object
	case kind < 6 && depth > 0:
		list := []any{}
		for range r.IntN(5) {
			list = append(list, randomValue(r, depth-1))
		}
		return list
	case kind < 9:
		return word()
	case kind == 9:
		return []any{int64(r.IntN(20)), -0.5, math.NaN(), math.Inf(1), 1e300, int(7), int32(-1)}[r.IntN(7)]
	case kind == 10:
		return r.IntN(2) == 0
	}
	return nil
}

// spoil replaces, removes or adds something somewhere in a tree.
func spoil(r *rand.Rand, v any) any {
	switch v := v.(type) {
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		if len(names) > 0 && r.IntN(6) > 0 {
			name := names[r.IntN(len(names))]
			if r.IntN(8) == 0 {
				delete(v, name)
			} else {
				v[name] = spoil(r, v[name])
			}
			return v
		}
		v[words[r.IntN(len(words))]] = randomValue(r, 2)
		return v
	case []any:
		if len(v) > 0 && r.IntN(6) > 0 {
			at := r.IntN(len(v))
			v[at] = spoil(r, v[at])
			return v
		}
		return append(v, randomValue(r, 2))
	}
	return randomValue(r, 3)
}

func TestValidateOfAnything(t *testing.T) {
	text, err := os.ReadFile("testdata/release.yaml")
	if err != nil {
		t.Fatal(err)
	}
	release := parse(t, string(text))
	fired := map[string]bool{}
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 3))
		doc := randomValue(r, 6)
		if seed%4 > 0 {
			doc = jsonvalue.Clone(release)
			for range 1 + r.IntN(4) {
				doc = spoil(r, doc)
			}
		}
		checkValidate(t, doc)
		for _, p := range Validate(doc, newExpressions()) {
			fired[p.Code] = true
		}
	}
	if len(fired) < 50 {
		t.Errorf("only %d codes fired: the documents prove little", len(fired))
	}
}

// checkValidate holds the validation of a value to what is true of every one.
func checkValidate(t testing.TB, doc any) {
	t.Helper()
	before := fmt.Sprintf("%#v", doc)
	problems := Validate(doc, newExpressions())
	if diff := cmp.Diff(problems, Validate(jsonvalue.Clone(doc), newExpressions())); diff != "" {
		t.Fatalf("another verdict on the same document (-first +second):\n%s\n%s", diff, before)
	}
	if after := fmt.Sprintf("%#v", doc); after != before {
		t.Fatalf("validation changed the document:\n%s\n%s", before, after)
	}
	for _, p := range problems {
		if p.Severity != SeverityError && p.Severity != SeverityWarning || p.Code == "" || p.Message == "" || p.NodeID != "" && p.EdgeID != "" {
			t.Fatalf("problem = %+v", p)
		}
	}
	if len(Validate(doc, nil)) > len(problems) {
		t.Fatalf("more problems without looking at expressions: %s", before)
	}
}

func FuzzValidate(f *testing.F) {
	for _, cases := range allCases() {
		for _, tc := range cases {
			if data, err := jsonvalue.Canonical(parse(f, tc.bad)); err == nil && len(data) < 4096 {
				f.Add(data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if doc, err := jsonvalue.Decode(data); err == nil {
			checkValidate(t, doc)
		}
	})
}

// documentOf is a document with the graph: the first node is the start, ends are ends, all others waits.
func documentOf(g *graph) Document {
	var nodes, edges []any
	for v := range g.out {
		kind, config := KindWait, map[string]any{"duration": "PT1S"}
		if v == 0 {
			kind, config = KindStart, map[string]any{"inputs": []any{}}
		} else if g.isEnd[v] {
			kind = KindEnd
		}
		nodes = append(nodes, map[string]any{"id": fmt.Sprint("n", v), "type": string(kind), "name": "N", "config": config})
		choice := !g.isFork[v] && len(g.out[v]) > 1
		for i, id := range g.out[v] {
			edge := map[string]any{"id": fmt.Sprint("e", id), "source": fmt.Sprint("n", v), "target": fmt.Sprint("n", g.arcs[id].to)}
			if choice && i == 0 {
				edge["condition"] = "context.a == 1"
			} else if choice {
				edge["isDefault"] = true
			}
			edges = append(edges, edge)
		}
	}
	return Document{"id": "w", "name": "W", "nodes": nodes, "edges": edges}
}

// Memory taken stands in for time: no phase may work on more than it takes.
func TestCostGrowsWithTheDocument(t *testing.T) {
	for name, grow := range growing {
		if name == "a loop around many regions" {
			continue // its start would have an incoming edge
		}
		t.Run(name, func(t *testing.T) {
			cost := func(n int) float64 {
				doc := documentOf(grow(n))
				if problems := Validate(doc, newExpressions()); len(problems) > 0 {
					t.Fatalf("problems = %v", problems)
				}
				return testing.AllocsPerRun(3, func() { Validate(doc, newExpressions()) })
			}
			for n := 40; n <= 160; n *= 2 {
				if once, twice := cost(n), cost(2*n); twice > 2.5*once {
					t.Errorf("%.0f allocations for size %d, %.0f for twice the size", once, n, twice)
				}
			}
		})
	}
}

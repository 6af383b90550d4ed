package workflow

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// randomGraph draws arcs between few nodes, so that forks, joins, loops and dead ends are all common.
func randomGraph(r *rand.Rand) *graph {
	n := 3 + r.IntN(8)
	g := emptyGraph(n)
	for v := range n {
		g.isEnd[v] = r.IntN(6) == 0
	}
	for range r.IntN(3 * n) {
		from := r.IntN(n)
		if !g.isEnd[from] || r.IntN(10) == 0 {
			g.add(arc{from: from, to: r.IntN(n), branch: r.IntN(6) > 0})
		}
	}
	for v := range n {
		g.isFork[v] = len(g.branches(v)) > 1 && r.IntN(4) > 0
	}
	return g
}

func emptyGraph(n int) *graph {
	return &graph{out: make([][]int, n), in: make([][]int, n), isEnd: make([]bool, n), isFork: make([]bool, n)}
}

// A nesting draws graphs whose regions are all right.
type nesting struct {
	r *rand.Rand
	*graph
}

func (n *nesting) node() int {
	n.out, n.in = append(n.out, nil), append(n.in, nil)
	n.isEnd, n.isFork = append(n.isEnd, false), append(n.isFork, false)
	return len(n.out) - 1
}

func (n *nesting) arc(from, to int) {
	n.add(arc{from: from, to: to, branch: true})
}

// block draws something with one way in and one way out.
func (n *nesting) block(depth int) (in, out int) {
	kind := n.r.IntN(5)
	if depth == 0 {
		kind = 0
	}
	switch kind {
	case 1: // one after the other
		in, between := n.block(depth - 1)
		next, out := n.block(depth - 1)
		n.arc(between, next)
		return in, out
	case 2, 3: // a choice, or a fork
		in, out = n.node(), n.node()
		n.isFork[in] = kind == 3
		for range 2 + n.r.IntN(3) {
			first, last := n.block(depth - 1)
			n.arc(in, first)
			n.arc(last, out)
		}
		return in, out
	case 4: // a loop around it
		first, last := n.block(depth - 1)
		in, out := n.node(), n.node()
		n.arc(in, first)
		n.arc(last, out)
		n.arc(out, in)
		return in, out
	}
	v := n.node()
	return v, v
}

// nestedGraph draws a graph that ends, and with some luck spoils it by one arc.
func nestedGraph(r *rand.Rand, spoil bool) *graph {
	n := &nesting{r: r, graph: emptyGraph(0)}
	_, out := n.block(2 + r.IntN(3))
	end := n.node()
	n.isEnd[end] = true
	n.arc(out, end)
	if spoil {
		for range 1 + r.IntN(2) {
			n.add(arc{from: r.IntN(len(n.out) - 1), to: r.IntN(len(n.out)), branch: false})
		}
	}
	return n.graph
}

func describe(v verdict) string {
	names := []string{}
	for _, f := range v.faults {
		names = append(names, f.code)
	}
	return fmt.Sprintf("join %d %s", v.join, strings.Join(names, " "))
}

func (g *graph) String() string {
	var b strings.Builder
	for v := range g.out {
		fmt.Fprintf(&b, "%d end=%t fork=%t:", v, g.isEnd[v], g.isFork[v])
		for _, id := range g.out[v] {
			fmt.Fprintf(&b, " %d", g.arcs[id].to)
			if !g.arcs[id].branch {
				b.WriteString("*")
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// The quick way to judge forks must agree with the definition.
func TestVerdictsAreThoseOfWalking(t *testing.T) {
	accepted, refused := 0, 0
	for seed := range uint64(30_000) {
		r := rand.New(rand.NewPCG(seed, 1))
		g := randomGraph(r)
		switch seed % 3 {
		case 1:
			g = nestedGraph(r, true)
		case 2:
			g = nestedGraph(r, false)
		}
		got := newRegions(g).judge()
		for fork := range g.out {
			if !g.isFork[fork] {
				continue
			}
			want := newRegions(g).judgeByWalking(fork)
			if describe(got[fork]) != describe(want) {
				t.Fatalf("seed %d, fork %d: %s, want %s\n%s", seed, fork, describe(got[fork]), describe(want), g)
			}
			if len(want.faults) == 0 {
				accepted++
			} else {
				refused++
			}
		}
	}
	if accepted < 10_000 || refused < 5_000 {
		t.Errorf("%d forks accepted, %d refused: the graphs prove little", accepted, refused)
	}
}

// Whatever join is proposed, accepting it must be a proof: nothing else may depend on where the proposal came from.
func TestAcceptingIsAProof(t *testing.T) {
	accepted := 0
	for seed := range uint64(20_000) {
		random := rand.New(rand.NewPCG(seed, 5))
		g := randomGraph(random)
		if seed%2 == 1 {
			g = nestedGraph(random, true)
		}
		r := newRegions(g)
		r.judge()
		for fork := range g.out {
			if !g.isFork[fork] {
				continue
			}
			want := newRegions(g).judgeByWalking(fork)
			for join := range g.out {
				if r.accepts(fork, join) {
					accepted++
					if want.join != join || len(want.faults) > 0 {
						t.Fatalf("seed %d, fork %d: accepts join %d, want %s\n%s", seed, fork, join, describe(want), g)
					}
				}
			}
		}
	}
	if accepted < 5000 {
		t.Errorf("%d regions accepted: the graphs prove little", accepted)
	}
}

// Regions that are right must be accepted without walking every branch to the end of the graph.
func TestRightRegionsAreAcceptedQuickly(t *testing.T) {
	for seed := range uint64(3000) {
		g := nestedGraph(rand.New(rand.NewPCG(seed, 2)), false)
		r := newRegions(g)
		dominators := r.postDominators()
		for _, fork := range r.innerFirst() {
			join := r.nearestCommon(dominators, fork)
			want := newRegions(g).judgeByWalking(fork)
			if len(want.faults) > 0 {
				continue // an outer loop leads into the region when a choice is no fork
			}
			if join != want.join || !r.accepts(fork, join) {
				t.Fatalf("seed %d, fork %d: join %d was not accepted, want %d\n%s", seed, fork, join, want.join, g)
			}
			r.join[fork], r.fork[join] = join, fork
		}
	}
}

// Documents whose regions grow in one direction each.
var growing = map[string]func(n int) *graph{
	"a chain of nodes": func(n int) *graph {
		g := emptyGraph(n)
		for v := range n - 1 {
			g.add(arc{from: v, to: v + 1, branch: true})
		}
		g.isEnd[n-1] = true
		return g
	},
	"a chain of regions": func(n int) *graph {
		g := emptyGraph(3*n + 1)
		for i := range n {
			v := 3 * i
			g.isFork[v] = true
			for _, a := range [][2]int{{v, v + 1}, {v, v + 2}, {v + 1, v + 3}, {v + 2, v + 3}} {
				g.add(arc{from: a[0], to: a[1], branch: true})
			}
		}
		g.isEnd[3*n] = true
		return g
	},
	"regions in regions": func(n int) *graph {
		g := emptyGraph(3*n + 2)
		for i := range n { // forks 0..n-1, single nodes n..2n-1, joins 2n..3n-1
			g.isFork[i] = true
			g.add(arc{from: i, to: i + n, branch: true})
			inner, out := i+1, 2*n+i+1
			if i == n-1 {
				inner, out = 3*n, 3*n
			}
			g.add(arc{from: i, to: inner, branch: true})
			g.add(arc{from: i + n, to: 2*n + i, branch: true})
			g.add(arc{from: out, to: 2*n + i, branch: true})
		}
		g.add(arc{from: 2 * n, to: 3*n + 1, branch: true})
		g.isEnd[3*n+1] = true
		return g
	},
	"a region of many branches before a long chain": func(n int) *graph {
		g := emptyGraph(2*n + 2)
		g.isFork[0] = true
		for v := 1; v <= n; v++ {
			g.add(arc{from: 0, to: v, branch: true})
			g.add(arc{from: v, to: n + 1, branch: true})
		}
		for v := n + 1; v <= 2*n; v++ {
			g.add(arc{from: v, to: v + 1, branch: true})
		}
		g.isEnd[2*n+1] = true
		return g
	},
	"a loop around many regions": func(n int) *graph {
		g := emptyGraph(4*n + 1)
		for i := range n {
			v := 4 * i
			g.isFork[v] = true
			for _, a := range [][2]int{{v, v + 1}, {v, v + 2}, {v + 1, v + 3}, {v + 2, v + 3}, {v + 3, v + 4}} {
				g.add(arc{from: a[0], to: a[1], branch: true})
			}
		}
		g.add(arc{from: 4*n - 1, to: 0, branch: true})
		g.isEnd[4*n] = true
		return g
	},
}

func TestWorkGrowsWithTheDocument(t *testing.T) {
	for name, grow := range growing {
		t.Run(name, func(t *testing.T) {
			work := func(n int) int {
				r := newRegions(grow(n))
				for fork, v := range r.judge() {
					if len(v.faults) > 0 {
						t.Fatalf("fork %d: %s", fork, describe(v))
					}
				}
				return r.work
			}
			for n := 50; n <= 400; n *= 2 {
				if once, twice := work(n), work(2*n); float64(twice) > 2.5*float64(once) {
					t.Errorf("%d arcs looked at for size %d, %d for twice the size", once, n, twice)
				}
			}
		})
	}
}

func TestJoins(t *testing.T) {
	tests := map[string]struct {
		lines []string
		want  map[string]string
	}{
		"none":               {[]string{"s a? b!", "a e", "b e"}, map[string]string{}},
		"one in the other":   {[]string{"s a b", "a c d", "c k", "d k", "k j", "b j", "j e"}, map[string]string{"j": "s", "k": "a"}},
		"one after another":  {[]string{"s a b", "a j", "b j", "j c d", "c e", "d e"}, map[string]string{"j": "s", "e": "j"}},
		"not of a bad fork":  {[]string{"s a b", "a e1", "b e2"}, map[string]string{}},
		"branches are edges": {[]string{"s f", "f j j", "j e"}, map[string]string{"j": "f"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := Read(object(parse(t, regionsOf(tc.lines...))))
			if diff := cmp.Diff(tc.want, w.Joins()); diff != "" {
				t.Errorf("Joins() (-want +got):\n%s", diff)
			}
		})
	}
}

package graph

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func randomGraph(r *rand.Rand) *Graph {
	g := &Graph{}
	n := 1 + r.IntN(30)
	for i := range n {
		g.Nodes = append(g.Nodes, Node{ID: strconv.Itoa(i)})
	}
	g.Nodes[0].Kind = "start"
	for range r.IntN(2 * n) {
		g.Edges = append(g.Edges, Edge{Source: r.IntN(n), Target: r.IntN(n), Label: [...]string{"", "caption"}[r.IntN(2)]})
	}
	return g
}

// Nothing stands on anything else, everything stands in the picture, and every
// edge but those that close a loop leads down.
func TestLayout(t *testing.T) {
	for seed := range uint64(100) {
		g := randomGraph(rand.New(rand.NewPCG(seed, 2)))
		l := lay(g)
		for _, layer := range l.layers {
			for i := 1; i < len(layer); i++ {
				a, b := l.vertices[layer[i-1]], l.vertices[layer[i]]
				if a.x+a.width/2+a.beside+columnGap > b.x-b.width/2+1e-6 {
					t.Fatalf("seed %d: %+v and %+v are too near", seed, a, b)
				}
				if a.y != b.y {
					t.Fatalf("seed %d: %v and %v are in one layer", seed, a.y, b.y)
				}
			}
		}
		for _, v := range l.vertices {
			if v.x-v.width/2 < -1e-6 || v.x+v.width/2+v.beside > l.width+1e-6 || v.y-v.height/2 < 0 || v.y+v.height/2 > l.height {
				t.Fatalf("seed %d: %+v is outside of %v x %v", seed, v, l.width, l.height)
			}
		}
		for i, e := range g.Edges {
			top, bottom := l.vertices[e.Source], l.vertices[e.Target]
			if l.isReversed[i] {
				top, bottom = bottom, top
			}
			if e.Source != e.Target && top.layer >= bottom.layer {
				t.Fatalf("seed %d: edge %d does not lead down", seed, i)
			}
		}
	}
}

// A picture that somebody else draws is the one of the SVG.
func TestPicturesAreThoseOfSVG(t *testing.T) {
	for seed := range uint64(50) {
		g := randomGraph(rand.New(rand.NewPCG(seed, 3)))
		svg, picture := SVG(g), Place(g)
		if len(picture.Nodes) != len(g.Nodes) || len(picture.Edges) != len(g.Edges) {
			t.Fatalf("seed %d: %d nodes and %d edges", seed, len(picture.Nodes), len(picture.Edges))
		}
		for _, edge := range picture.Edges {
			if want := fmt.Sprintf("d=\"%s\"/><path class=\"head\" d=\"%s\"/>", edge.Line, edge.Head); !strings.Contains(svg, want) {
				t.Fatalf("seed %d: the SVG has no %s", seed, want)
			}
		}
		for _, n := range picture.Nodes {
			want := fmt.Sprintf("x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"", n.X-n.Width/2, n.Y-n.Height/2, n.Width, n.Height)
			if !strings.Contains(svg, want) {
				t.Fatalf("seed %d: the SVG has no %s", seed, want)
			}
		}
	}
}

func TestLoopsCloseWhereTheWalkComesBack(t *testing.T) {
	g := &Graph{
		Nodes: []Node{{ID: "b"}, {ID: "start", Kind: "start"}, {ID: "a"}},
		Edges: []Edge{{Source: 0, Target: 2}, {Source: 1, Target: 2}, {Source: 2, Target: 0}, {Source: 0, Target: 0}},
	}
	w := walkThrough(g)
	if want := []bool{true, false, false, false}; !slices.Equal(w.isReversed, want) {
		t.Errorf("reversed: %v, want %v", w.isReversed, want)
	}
	if want := []int{2, 0, 1}; !slices.Equal(w.layers(), want) {
		t.Errorf("layers: %v, want %v", w.layers(), want)
	}
}

func TestWhatLeadsInStandsRightAbove(t *testing.T) {
	g := &Graph{
		Nodes: []Node{{ID: "start", Kind: "start"}, {ID: "a"}, {ID: "b"}, {ID: "side"}, {ID: "alone"}},
		Edges: []Edge{{Source: 0, Target: 1}, {Source: 1, Target: 2}, {Source: 3, Target: 2}},
	}
	if got, want := walkThrough(g).layers(), []int{0, 1, 2, 1, 0}; !slices.Equal(got, want) {
		t.Errorf("layers: %v, want %v", got, want)
	}
}

// The count by sums is the count of pairs.
func TestCrossings(t *testing.T) {
	for seed := range uint64(100) {
		g := randomGraph(rand.New(rand.NewPCG(seed, 3)))
		w := walkThrough(g)
		l := &layout{isReversed: w.isReversed}
		l.addNodes(g, w.layers())
		l.addWays(g)
		l.fill(slices.Concat(w.trees...))
		want := crossingsByPairs(l)
		if got := l.crossings(); got != want {
			t.Fatalf("seed %d: %d crossings, want %d", seed, got, want)
		}
		l.untangle()
		if got := l.crossings(); got > want {
			t.Fatalf("seed %d: %d crossings, %d before they were untangled", seed, got, want)
		}
	}
}

func crossingsByPairs(l *layout) int {
	places := l.places()
	count := 0
	for _, layer := range l.layers {
		for i, a := range layer {
			for _, b := range layer[i+1:] {
				for _, toA := range l.vertices[a].down {
					for _, toB := range l.vertices[b].down {
						if places[toA] > places[toB] {
							count++
						}
					}
				}
			}
		}
	}
	return count
}

func TestPlaceKeepsWishesThatFit(t *testing.T) {
	l := &layout{vertices: []vertex{{width: 10}, {width: 10}, {width: 10}}}
	l.place([]int{0, 1, 2}, []float64{0, 100, 100}, []float64{1, 1, 1})
	step := 10.0 + columnGap
	for i, want := range []float64{0, 100 - step/2, 100 + step/2} {
		if got := l.vertices[i].x; got != want {
			t.Errorf("vertex %d stands at %v, want %v", i, got, want)
		}
	}
}

// A graph as large as a document may be is drawn within the bounds of its parts.
func TestLargeGraph(t *testing.T) {
	g := &Graph{}
	for i := range 1000 {
		g.Nodes = append(g.Nodes, Node{ID: strconv.Itoa(i)})
		if i > 0 {
			g.Edges = append(g.Edges, Edge{Source: i - 1, Target: i})
		}
	}
	for i := range 3000 {
		g.Edges = append(g.Edges, Edge{Source: i % 500, Target: 999 - i%300, Label: "x"})
	}
	l := lay(g)
	if len(l.vertices) > maxSlots+len(g.Nodes) {
		t.Errorf("%d vertices", len(l.vertices))
	}
	if len(SVG(g)) > 5<<20 {
		t.Errorf("the picture has %d bytes", len(SVG(g)))
	}
}

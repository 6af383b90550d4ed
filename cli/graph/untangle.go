package graph

import (
	"cmp"
	"slices"
)

// sweeps is how often the layers are put into a new order, alternately from the
// top and from the bottom. More gain nothing that one could see.
const sweeps = 12

// untangle orders each layer by where the neighbours of its vertices stand in
// the layer before, and keeps the order with the fewest crossings.
func (l *layout) untangle() {
	best, fewest := cloneLayers(l.layers), l.crossings()
	for i := 0; i < sweeps && fewest > 0; i++ {
		l.sweep(i%2 == 0)
		if n := l.crossings(); n < fewest {
			best, fewest = cloneLayers(l.layers), n
		}
	}
	l.layers = best
}

func cloneLayers(layers [][]int) [][]int {
	clone := make([][]int, len(layers))
	for i, layer := range layers {
		clone[i] = slices.Clone(layer)
	}
	return clone
}

func (l *layout) sweep(isDown bool) {
	places := l.places()
	for i := range l.layers {
		layer := l.layers[i]
		if !isDown {
			layer = l.layers[len(l.layers)-1-i]
		}
		weights := make(map[int]float64, len(layer))
		for _, v := range layer {
			weights[v] = l.mean(v, isDown, places)
		}
		slices.SortStableFunc(layer, func(a, b int) int { return cmp.Compare(weights[a], weights[b]) })
		for place, v := range layer {
			places[v] = float64(place)
		}
	}
}

// mean is the middle of the places of the neighbours above or below; without any
// a vertex stays where it is.
func (l *layout) mean(v int, above bool, places []float64) float64 {
	neighbours := l.vertices[v].down
	if above {
		neighbours = l.vertices[v].up
	}
	if len(neighbours) == 0 {
		return places[v]
	}
	sum := 0.0
	for _, n := range neighbours {
		sum += places[n]
	}
	return sum / float64(len(neighbours))
}

// places are the indices of the vertices within their layers.
func (l *layout) places() []float64 {
	places := make([]float64, len(l.vertices))
	for _, layer := range l.layers {
		for place, v := range layer {
			places[v] = float64(place)
		}
	}
	return places
}

func (l *layout) crossings() int {
	places := l.places()
	count := 0
	for _, layer := range l.layers {
		count += l.crossingsBelow(layer, places)
	}
	return count
}

// crossingsBelow counts the pairs of lines, taken from left to right at their
// upper end, that stand the other way round at the lower one: the inversions of
// a list, which a tree of partial sums finds without looking at every pair.
func (l *layout) crossingsBelow(layer []int, places []float64) int {
	var ends []int
	for _, v := range layer {
		first := len(ends)
		for _, lower := range l.vertices[v].down {
			ends = append(ends, int(places[lower]))
		}
		slices.Sort(ends[first:])
	}
	if len(ends) == 0 {
		return 0
	}
	sums := make([]int, slices.Max(ends)+2)
	count := 0
	for seen, end := range ends {
		count += seen
		for i := end + 1; i > 0; i -= i & -i {
			count -= sums[i]
		}
		for i := end + 1; i < len(sums); i += i & -i {
			sums[i]++
		}
	}
	return count
}

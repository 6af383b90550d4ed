package graph

// Every layer is moved towards its neighbours so often, and less in a large
// graph, where nobody could tell.
const (
	maxRounds = 200
	minRounds = 20
	// maxMoves is how many vertices are moved in all, beyond the least rounds.
	maxMoves = 1_000_000
)

// spread gives the vertices their horizontal places, in the order of their
// layers. Layer by layer each is drawn towards the middle of its neighbours, and
// those that would come too near to each other find the place that is best for
// them together.
func (l *layout) spread() {
	for _, layer := range l.layers {
		l.place(layer, make([]float64, len(layer)), ones(len(layer)))
	}
	rounds := maxMoves / max(len(l.vertices), 1)
	for round := range min(max(rounds, minRounds), maxRounds) {
		for i := range l.layers {
			layer := l.layers[i]
			if round%2 == 1 {
				layer = l.layers[len(l.layers)-1-i]
			}
			wishes, weights := l.wishes(layer)
			l.place(layer, wishes, weights)
		}
	}
}

func ones(n int) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = 1
	}
	return list
}

// wishes are where the vertices of a layer would stand best, and how much it
// matters. A line through many layers should be straight before all else.
func (l *layout) wishes(layer []int) (wishes, weights []float64) {
	for _, v := range layer {
		wish, weight := l.vertices[v].x, 0.1
		sum, total := 0.0, 0.0
		for _, neighbours := range [][]int{l.vertices[v].up, l.vertices[v].down} {
			for _, n := range neighbours {
				pull := l.pull(v, n)
				sum, total = sum+pull*l.vertices[n].x, total+pull
			}
		}
		if total > 0 {
			wish, weight = sum/total, total
		}
		wishes, weights = append(wishes, wish), append(weights, weight)
	}
	return wishes, weights
}

func (l *layout) pull(a, b int) float64 {
	switch {
	case l.vertices[a].isSlot && l.vertices[b].isSlot:
		return 8
	case l.vertices[a].isSlot || l.vertices[b].isSlot:
		return 2
	}
	return 1
}

// place solves exactly: minimal sum of weighted squares of the distances from
// the wishes, with the gaps kept. Taking off the gaps makes it a regression by a
// list that never falls, which pooling neighbours solves.
func (l *layout) place(layer []int, wishes, weights []float64) {
	offsets := l.offsets(layer)
	var pools []pool
	for i := range layer {
		pools = append(pools, pool{value: wishes[i] - offsets[i], weight: weights[i], size: 1})
		for n := len(pools); n > 1 && pools[n-2].value > pools[n-1].value; n-- {
			pools[n-2] = pools[n-2].join(pools[n-1])
			pools = pools[:n-1]
		}
	}
	i := 0
	for _, p := range pools {
		for range p.size {
			l.vertices[layer[i]].x = p.value + offsets[i]
			i++
		}
	}
}

// offsets are where the vertices of a layer stand when they are as near to each
// other as they may be.
func (l *layout) offsets(layer []int) []float64 {
	offsets := make([]float64, len(layer))
	for i := 1; i < len(layer); i++ {
		a, b := l.vertices[layer[i-1]], l.vertices[layer[i]]
		offsets[i] = offsets[i-1] + a.width/2 + a.beside + columnGap + b.width/2
	}
	return offsets
}

// A pool is a run of vertices that stand as near to each other as they may.
type pool struct {
	value, weight float64
	size          int
}

func (p pool) join(q pool) pool {
	weight := p.weight + q.weight
	return pool{value: (p.value*p.weight + q.value*q.weight) / weight, weight: weight, size: p.size + q.size}
}

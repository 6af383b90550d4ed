package main

import (
	"context"
	"fmt"
	"time"
)

// chainKind is a sort of nodes that something outside completes.
type chainKind struct {
	short string
	about string
	node  nodeMaker
	step  step
}

var (
	byAnswers = chainKind{"tasks", "human tasks, each answered at once", askNode, (*play).answerNode}
	byEvents  = chainKind{"receivers", "receivers, each sent its event at once", receiveNode, (*play).sendNode}
)

// measureChains completes chains of 50 nodes as fast as they ask, and compares
// with as many raw relays.
func measureChains(ctx context.Context, w *world) ([]figure, error) {
	const nodes = 50
	p, err := w.play(ctx)
	if err != nil {
		return nil, err
	}
	defer p.close()
	raw, err := w.newRelay(ctx, p.namespace)
	if err != nil {
		return nil, err
	}
	defer raw.close()
	var figures []figure
	for i, kind := range []chainKind{byAnswers, byEvents} {
		var samples paired
		err := w.profiled(ctx, fmt.Sprintf("chain-%d", i), 5*time.Second, func() error {
			return alternate(ctx, w.pick(9, 3), &samples,
				func() (time.Duration, error) { return p.chain(ctx, kind, nodes) },
				func() (time.Duration, error) { return raw.times(ctx, nodes) })
		})
		if err != nil {
			return nil, err
		}
		figures = append(figures, figure{
			measure: fmt.Sprintf("chain of %d %s", nodes, kind.about), goal: "≤ 1.5×", limit: 1.5, ratio: samples.ratioOfPairs(),
			value: fmt.Sprintf("%s (%s)", times(samples.ratioOfPairs()), ms(median(samples.measured))),
			raw:   ms(median(samples.raw)),
		})
	}
	floor, err := measureFloor(ctx, w, raw, nodes)
	return append(figures, floor), err
}

// measureFloor compares the writes that a chain of human tasks cannot do without,
// made raw, with as many raw relays.
func measureFloor(ctx context.Context, w *world, raw *relay, nodes int) (figure, error) {
	var samples paired
	err := alternate(ctx, w.pick(9, 3), &samples,
		func() (time.Duration, error) { return raw.nodes(ctx, nodes) },
		func() (time.Duration, error) { return raw.times(ctx, nodes) })
	return figure{
		measure: fmt.Sprintf("%d times what a task cannot do without: create, answer, step with the history so far, all raw", nodes), noGoal: true,
		value: fmt.Sprintf("%s (%s)", times(samples.ratioOfPairs()), ms(median(samples.measured))),
		raw:   ms(median(samples.raw)),
	}, err
}

// alternate takes pairs of samples, the raw one first.
func alternate(ctx context.Context, rounds int, samples *paired, measured, raw func() (time.Duration, error)) error {
	for range rounds {
		limit, err := raw()
		if err != nil {
			return err
		}
		took, err := measured()
		if err != nil {
			return err
		}
		samples.add(took, limit)
		// What is measured leaves some work behind, which must not fall on the raw
		// writes that come next.
		if err := pause(ctx, settled); err != nil {
			return err
		}
	}
	return nil
}

// times passes a relay again and again.
func (r *relay) times(ctx context.Context, n int) (time.Duration, error) {
	began := time.Now()
	for range n {
		if _, err := r.run(ctx); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

// nodes makes the writes of so many human tasks, one after the other.
func (r *relay) nodes(ctx context.Context, n int) (time.Duration, error) {
	began := time.Now()
	for i := range n {
		if err := r.node(ctx, i); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

// chain runs one chain from its creation to its end.
func (p *play) chain(ctx context.Context, kind chainKind, nodes int) (time.Duration, error) {
	comp, err := p.world.compose(ctx, p.namespace, chainOf(kind.node, nodes))
	if err != nil {
		return 0, err
	}
	if err := pause(ctx, settled); err != nil {
		return 0, err
	}
	began := time.Now()
	run, err := p.begin(ctx, comp)
	if err != nil {
		return 0, err
	}
	for i := 1; i <= nodes; i++ {
		if err := kind.step(p, ctx, run, i); err != nil {
			return 0, err
		}
	}
	err = p.await(ctx, "the end of "+run.Name, func() bool { return p.isCompleted(run) })
	return time.Since(began), err
}

// measureLengths compares the cost of a node in chains of 10, 100 and 998 nodes.
func measureLengths(ctx context.Context, w *world) ([]figure, error) {
	lengths := []int{10, 100, w.pick(998, 300)}
	p, err := w.play(ctx)
	if err != nil {
		return nil, err
	}
	defer p.close()
	var figures []figure
	for _, kind := range []chainKind{byAnswers, byEvents} {
		perNode := map[int][]time.Duration{}
		for range w.pick(3, 1) {
			for _, nodes := range lengths {
				for range max(1, min(5, 100/nodes)) {
					took, err := p.chain(ctx, kind, nodes)
					if err != nil {
						return nil, err
					}
					perNode[nodes] = append(perNode[nodes], took/time.Duration(nodes))
				}
			}
		}
		short, middle, long := median(perNode[lengths[0]]), median(perNode[lengths[1]]), median(perNode[lengths[2]])
		growth := quotient(long, short)
		figures = append(figures, figure{
			measure: fmt.Sprintf("%s: cost per node at %d nodes, over that at 10", kind.short, lengths[2]), goal: "flat", limit: 1.2, ratio: growth,
			value: fmt.Sprintf("%s (10: %s, 100: %s, %d: %s)", times(growth), ms(short), ms(middle), lengths[2], ms(long)),
		})
	}
	return figures, nil
}

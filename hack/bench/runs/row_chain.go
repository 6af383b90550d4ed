package main

import (
	"context"
	"fmt"
	"time"
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
	var samples paired
	for range w.pick(9, 3) {
		limit, err := raw.times(ctx, nodes)
		if err != nil {
			return nil, err
		}
		took, err := p.chain(ctx, nodes)
		if err != nil {
			return nil, err
		}
		samples.add(took, limit)
	}
	return []figure{{
		measure: "chain of 50 human tasks, each answered at once", goal: "≤ 1.5×", limit: 1.5, ratio: samples.ratioOfPairs(),
		value: fmt.Sprintf("%s (%s)", times(samples.ratioOfPairs()), ms(median(samples.measured))),
		raw:   ms(median(samples.raw)),
	}}, nil
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

// chain runs one chain of human tasks from its creation to its end.
func (p *play) chain(ctx context.Context, nodes int) (time.Duration, error) {
	comp, err := p.world.compose(ctx, p.namespace, chainOf(askNode, nodes))
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
		task, err := p.task(ctx, run, activation(i))
		if err != nil {
			return 0, err
		}
		if err := p.world.answer(ctx, task); err != nil {
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
	perNode := map[int][]time.Duration{}
	for range w.pick(3, 1) {
		for _, nodes := range lengths {
			for range max(1, min(5, 100/nodes)) {
				took, err := p.chain(ctx, nodes)
				if err != nil {
					return nil, err
				}
				perNode[nodes] = append(perNode[nodes], took/time.Duration(nodes))
			}
		}
	}
	short, middle, long := median(perNode[lengths[0]]), median(perNode[lengths[1]]), median(perNode[lengths[2]])
	growth := quotient(long, short)
	return []figure{{
		measure: fmt.Sprintf("cost per node at %d nodes, over that at 10", lengths[2]), goal: "flat", limit: 1.2, ratio: growth,
		value: fmt.Sprintf("%s (10: %s, 100: %s, %d: %s)", times(growth), ms(short), ms(middle), lengths[2], ms(long)),
	}}, nil
}

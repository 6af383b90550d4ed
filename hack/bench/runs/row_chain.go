package main

import (
	"context"
	"fmt"
	"time"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
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
		comp, err := p.prepare(ctx, kind, nodes)
		if err != nil {
			return nil, err
		}
		var samples paired
		err = w.profiled(ctx, fmt.Sprintf("chain-%d", i), func() error {
			return alternate(ctx, w.pick(9, 3), &samples,
				func() error { return p.chain(ctx, kind, comp, nodes) },
				func() error { return raw.times(ctx, nodes) })
		})
		if err != nil {
			return nil, err
		}
		figures = append(figures, figure{
			measure: fmt.Sprintf("chain of %d %s", nodes, kind.about), goal: "≤ 1.5×", limit: 1.5, ratio: samples.ratioOfPairs(),
			value: samples.ofPairs(), raw: ms(median(samples.raw)),
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
		func() error { return raw.nodes(ctx, nodes) },
		func() error { return raw.times(ctx, nodes) })
	return figure{
		measure: fmt.Sprintf("%d times what a task cannot do without: create, answer, step with the history so far, all raw", nodes), noGoal: true,
		value: samples.ofPairs(), raw: ms(median(samples.raw)),
	}, err
}

// alternate takes pairs of samples, the raw one first.
func alternate(ctx context.Context, rounds int, samples *paired, measured, raw func() error) error {
	for range rounds {
		limit, usedRaw, err := timed(raw)
		if err != nil {
			return err
		}
		passed, used, err := timed(measured)
		if err != nil {
			return err
		}
		samples.add(passed, limit)
		samples.use(used, usedRaw)
		// What is measured leaves some work behind, which must not fall on the raw
		// writes that come next.
		if err := pause(ctx, settled); err != nil {
			return err
		}
	}
	return nil
}

// times passes a relay again and again.
func (r *relay) times(ctx context.Context, n int) error {
	for range n {
		if _, err := r.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// nodes makes the writes of so many human tasks, one after the other.
func (r *relay) nodes(ctx context.Context, n int) error {
	for i := range n {
		if err := r.node(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// prepare applies a chain and lets things settle.
func (p *play) prepare(ctx context.Context, kind chainKind, nodes int) (*api.Composition, error) {
	comp, err := p.world.compose(ctx, p.namespace, chainOf(kind.node, nodes))
	if err != nil {
		return nil, err
	}
	return comp, pause(ctx, settled)
}

// chain runs a chain from the run's creation to its end.
func (p *play) chain(ctx context.Context, kind chainKind, comp *api.Composition, nodes int) error {
	run, err := p.begin(ctx, comp)
	if err != nil {
		return err
	}
	for i := 1; i <= nodes; i++ {
		if err := kind.step(p, ctx, run, i); err != nil {
			return err
		}
	}
	return p.await(ctx, "the end of "+run.Name, func() bool { return p.isCompleted(run) })
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
		costs := make([]nodeCost, len(lengths))
		for i := range lengths {
			if costs[i], err = p.nodeCost(ctx, kind, lengths[i]); err != nil {
				return nil, err
			}
		}
		short, middle, long := costs[0], costs[1], costs[2]
		growth := quotient(long.passed, short.passed)
		figures = append(figures, figure{
			measure: fmt.Sprintf("%s: cost per node at %d nodes, over that at 10", kind.short, lengths[2]), goal: "flat", limit: 1.2, ratio: growth,
			value: fmt.Sprintf("%s (10: %s, 100: %s, %d: %s; %s of processor time, %s from 100 on)", times(growth),
				ms(short.passed), ms(middle.passed), lengths[2], ms(long.passed),
				times(quotient(long.used, short.used)), times(quotient(long.used, middle.used))),
		})
	}
	return figures, nil
}

// nodeCost is what a node of a chain takes of time and of the processors.
type nodeCost struct{ passed, used time.Duration }

func (p *play) nodeCost(ctx context.Context, kind chainKind, nodes int) (nodeCost, error) {
	comp, err := p.prepare(ctx, kind, nodes)
	if err != nil {
		return nodeCost{}, err
	}
	var passed []time.Duration
	var total time.Duration
	for range p.world.pick(3, 1) * max(1, min(5, 100/nodes)) {
		took, used, err := timed(func() error { return p.chain(ctx, kind, comp, nodes) })
		if err != nil {
			return nodeCost{}, err
		}
		passed = append(passed, took)
		total += used
	}
	return nodeCost{median(passed) / time.Duration(nodes), total / time.Duration(len(passed)*nodes)}, nil
}

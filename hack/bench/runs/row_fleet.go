package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// measureFleets lets many chains run at once and compares the writes that they
// need with what the server takes of raw ones.
func measureFleets(ctx context.Context, w *world) ([]figure, error) {
	const nodes = 10
	runs := w.pick(100, 20)
	var figures []figure
	for _, workers := range []int{8, 32} {
		if err := w.operate(ctx, workers); err != nil {
			return nil, err
		}
		var ratios, rates []float64
		for range w.pick(3, 1) {
			ratio, rate, err := w.fleet(ctx, workers, runs, nodes)
			if err != nil {
				return nil, err
			}
			ratios, rates = append(ratios, ratio), append(rates, rate)
		}
		figures = append(figures, figure{
			measure: fmt.Sprintf("%d chains of %d tasks, %d workers: needed writes per second", runs, nodes, workers),
			goal:    "≥ 0.8 of raw", limit: 0.8, atLeast: true, ratio: medianOf(ratios),
			value: fmt.Sprintf("%.2f (%.0f nodes/s, 3 writes each)", medianOf(ratios), medianOf(rates)),
		})
	}
	return figures, w.operate(ctx, defaultWorkers)
}

// fleet returns needed writes as a part of the raw rate, and nodes per second. A
// node needs three writes: its task, the answer and the step.
func (w *world) fleet(ctx context.Context, workers, runs, nodes int) (ratio, nodesPerSecond float64, err error) {
	p, err := w.play(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer p.close()
	raw, err := w.rawRate(ctx, p.namespace, workers, w.pick(2000, 400))
	if err != nil {
		return 0, 0, err
	}
	comp, err := w.compose(ctx, p.namespace, chainOf(askNode, nodes))
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := p.flood(ctx, comp, runs); err != nil {
		return 0, 0, err
	}
	nodesPerSecond = float64(runs*nodes) / time.Since(began).Seconds()
	return 3 * nodesPerSecond / raw, nodesPerSecond, nil
}

// flood begins runs and answers every task as it appears, until all runs are
// over.
func (p *play) flood(ctx context.Context, comp *api.Composition, runs int) error {
	var busy sync.WaitGroup
	failed := make(chan error, 1)
	act := func(do func() error) {
		busy.Go(func() {
			if err := do(); err != nil {
				select {
				case failed <- err:
				default:
				}
			}
		})
	}
	for i := range runs {
		run := newRun(comp, fmt.Sprintf("%s-%d", comp.Name, i))
		act(func() error { return p.world.person.Create(ctx, run) })
	}
	answered := map[string]bool{}
	completed := func() int {
		n := 0
		for _, run := range p.shown {
			if run.Status.Phase == api.RunCompleted {
				n++
			}
		}
		return n
	}
	err := p.await(ctx, "the end of all runs", func() bool {
		for key, task := range p.asked {
			if !answered[key] {
				answered[key] = true
				act(func() error { return p.world.answer(ctx, task) })
			}
		}
		return completed() == runs || len(failed) > 0
	})
	busy.Wait()
	select {
	case err = <-failed:
	default:
	}
	return err
}

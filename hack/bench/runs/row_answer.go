package main

import (
	"context"
	"fmt"
	"time"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// measureAnswers takes the time from a person's answer to the moment when
// everybody can see the next node parked.
func measureAnswers(ctx context.Context, w *world) ([]figure, error) {
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
	chain := &answerChain{play: p, raw: raw}
	for range w.pick(8, 2) {
		if err := chain.answer(ctx, w.pick(50, 20)); err != nil {
			return nil, err
		}
	}
	samples, floor := &chain.samples, &chain.floor
	return []figure{
		{
			measure: "human answer → next node parked, p50", goal: "≤ 1.5×", limit: 1.5, ratio: samples.ratio(50),
			value: fmt.Sprintf("%s (%s)", times(samples.ratio(50)), ms(median(samples.measured))),
			raw:   ms(median(samples.raw)),
		},
		{
			measure: "human answer → next node parked, p99", goal: "≤ 3×", limit: 3, ratio: samples.ratio(99),
			value: fmt.Sprintf("%s (%s)", times(samples.ratio(99)), ms(percentile(samples.measured, 99))),
			raw:   ms(percentile(samples.raw, 99)),
		},
		{
			measure: "the two writes of that, raw: an answer, and the step with the history so far", noGoal: true,
			value: fmt.Sprintf("%s (%s)", times(floor.ratio(50)), ms(median(floor.measured))), raw: ms(median(floor.raw)),
		},
	}, nil
}

// answerChain collects samples of answers.
type answerChain struct {
	play *play
	raw  *relay
	// samples are answers, floor the same writes raw, both against raw relays.
	samples, floor paired
}

// answer answers one run's tasks, each after a raw relay and one that writes as
// much as the answer and its step do.
func (c *answerChain) answer(ctx context.Context, nodes int) error {
	p, raw := c.play, c.raw
	comp, err := p.world.compose(ctx, p.namespace, chainOf(askNode, nodes))
	if err != nil {
		return err
	}
	run, err := p.begin(ctx, comp)
	if err != nil {
		return err
	}
	return p.world.profiled(ctx, "answer", func() error {
		for i := 1; i < nodes; i++ {
			limit, err := raw.run(ctx)
			if err != nil {
				return err
			}
			least, err := raw.pass(ctx, 0, i)
			if err != nil {
				return err
			}
			c.floor.add(least, limit)
			took, err := p.answered(ctx, run, i)
			if err != nil {
				return err
			}
			c.samples.add(took, limit)
		}
		return nil
	})
}

// answered answers the i-th task of a run and waits until the next is parked;
// then it lets things settle.
func (p *play) answered(ctx context.Context, run *api.WorkflowRun, i int) (time.Duration, error) {
	task, err := p.task(ctx, run, activation(i))
	if err != nil {
		return 0, err
	}
	if err := pause(ctx, 40*time.Millisecond); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := p.world.answer(ctx, task); err != nil {
		return 0, err
	}
	err = p.await(ctx, "the next node", func() bool { return p.isParkedAt(run, activation(i+1)) })
	took := time.Since(began)
	if err == nil {
		_, err = p.task(ctx, run, activation(i+1))
	}
	if err == nil {
		err = pause(ctx, 40*time.Millisecond)
	}
	return took, err
}

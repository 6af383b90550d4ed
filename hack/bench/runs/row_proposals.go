package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// measureProposals has sessions propose change sets at once, round after round,
// each on what became of the one before. Between two rounds as many raw writes
// are made at once.
func measureProposals(ctx context.Context, w *world) ([]figure, error) {
	namespace, err := w.namespace(ctx)
	if err != nil {
		return nil, err
	}
	l := &load{world: w, rounds: w.pick(40, 6)}
	if err := l.prepare(ctx, namespace, w.pick(50, 10)); err != nil {
		return nil, err
	}
	before, err := w.operator.heapInUse(ctx)
	if err != nil {
		return nil, err
	}
	for i := range l.rounds {
		if err := l.round(ctx, i); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(l.repeat(ctx), l.check(ctx)); err != nil {
		return nil, err
	}
	after, err := w.operator.heapInUse(ctx)
	if err != nil {
		return nil, err
	}
	alone, err := l.alone(ctx)
	if err != nil {
		return nil, err
	}
	return append(l.figures(alone), figure{
		measure: fmt.Sprintf("memory: the operator's heap in use, before and after %d change sets", l.rounds*len(l.sessions)),
		value:   fmt.Sprintf("%s → %s", mebibytes(before), mebibytes(after)), noGoal: true,
	}), nil
}

// load is some sessions that propose at once.
type load struct {
	world    *world
	rounds   int
	sessions []*agentSession
	probes   []*unstructured.Unstructured
	atOnce   paired
}

// prepare starts a turn for each session, and makes a probe for each of them.
func (l *load) prepare(ctx context.Context, namespace string, n int) error {
	for range n {
		session, err := l.world.startTurn(ctx, namespace)
		if err != nil {
			return err
		}
		probe, err := l.world.probe(ctx, namespace)
		if err != nil {
			return err
		}
		l.sessions, l.probes = append(l.sessions, session), append(l.probes, probe)
	}
	for _, session := range l.sessions {
		if err := session.ready(ctx); err != nil {
			return err
		}
	}
	_, _, err := l.world.operator.quiet(ctx)
	return err
}

// round is one proposal by each session, and one raw write to each probe.
func (l *load) round(ctx context.Context, i int) error {
	proposals, err := atOnce(len(l.sessions), func(n int) error { return l.sessions[n].propose(ctx) })
	if err != nil {
		return err
	}
	writes, err := atOnce(len(l.probes), func(n int) error { return l.world.writeRaw(ctx, l.probes[n], i) })
	l.atOnce.measured = append(l.atOnce.measured, proposals...)
	l.atOnce.raw = append(l.atOnce.raw, writes...)
	return err
}

// atOnce does something n times at once, and tells how long each took.
func atOnce(n int, do func(int) error) ([]time.Duration, error) {
	took, errs := make([]time.Duration, n), make([]error, n)
	var busy sync.WaitGroup
	for i := range n {
		busy.Go(func() {
			began := time.Now()
			errs[i] = do(i)
			took[i] = time.Since(began)
		})
	}
	busy.Wait()
	return took, errors.Join(errs...)
}

// repeat has all sessions send their last set again, which must be stale.
func (l *load) repeat(ctx context.Context) error {
	_, err := atOnce(len(l.sessions), func(n int) error {
		session := l.sessions[n]
		answer, err := session.send(ctx, session.last)
		if err == nil && answer.Applied {
			return fmt.Errorf("%s: a set was applied twice", session.name)
		}
		return err
	})
	return err
}

// check holds what the turns recorded against what the sessions were told.
func (l *load) check(ctx context.Context) error {
	for _, session := range l.sessions {
		recorded, err := session.recorded(ctx)
		if err != nil {
			return err
		}
		if !slices.Equal(recorded, session.told) {
			return fmt.Errorf("%s: it was told of %d sets in order, and its turn has %d", session.name, len(session.told), len(recorded))
		}
	}
	return nil
}

// alone measures one session that nobody disturbs.
func (l *load) alone(ctx context.Context) (*paired, error) {
	var p paired
	for i := range 20 {
		proposal, usedProposal, err := timed(func() error { return l.sessions[0].propose(ctx) })
		if err != nil {
			return nil, err
		}
		write, usedWrite, err := timed(func() error { return l.world.writeRaw(ctx, l.probes[0], i) })
		if err != nil {
			return nil, err
		}
		p.add(proposal, write)
		p.use(usedProposal, usedWrite)
	}
	return &p, nil
}

func (l *load) figures(alone *paired) []figure {
	who := fmt.Sprintf("%d sessions propose at once, over as many raw writes at once", len(l.sessions))
	figures := []figure{{
		measure: "one session proposes, p50", noGoal: true, raw: ms(median(alone.raw)),
		value: fmt.Sprintf("%s (%s; %s)", times(alone.ratio(50)), ms(median(alone.measured)), alone.processor()),
	}}
	for _, p := range []float64{50, 99} {
		figures = append(figures, figure{
			measure: fmt.Sprintf("%s, p%.0f", who, p), noGoal: true, raw: ms(percentile(l.atOnce.raw, p)),
			value: fmt.Sprintf("%s (%s)", times(l.atOnce.ratio(p)), ms(percentile(l.atOnce.measured, p))),
		})
	}
	last, one := percentile(l.atOnce.measured, 99), median(alone.raw)
	sets := l.rounds * len(l.sessions)
	return append(figures, figure{
		measure: fmt.Sprintf("%d sessions propose at once, p99, over one raw write that nothing disturbs", len(l.sessions)), noGoal: true,
		value: fmt.Sprintf("%s (%s)", times(quotient(last, one)), ms(last)), raw: ms(one),
	}, figure{
		measure: "change sets lost; applied twice", goal: "0; 0", value: fmt.Sprintf("0; 0 of %d, and of %d repeated", sets, len(l.sessions)),
	})
}

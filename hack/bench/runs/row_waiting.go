package main

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// measureWaiting lets runs wait for people, more and more of them, and looks at
// what that costs while nothing happens and after a restart.
func measureWaiting(ctx context.Context, w *world) ([]figure, error) {
	namespace, err := w.namespace(ctx)
	if err != nil {
		return nil, err
	}
	comp, err := w.compose(ctx, namespace, chainOf(askNode, 2))
	if err != nil {
		return nil, err
	}
	var figures []figure
	begun := 0
	for _, goal := range []waitGoal{{w.pick(1000, 100), 100, 2 * time.Second}, {w.pick(10000, 300), 300, 10 * time.Second}} {
		for ; begun < goal.runs; begun++ {
			if err := w.person.Create(ctx, newRun(comp, fmt.Sprintf("wait-%d", begun))); err != nil {
				return nil, fmt.Errorf("create run: %w", err)
			}
			if begun%1000 == 999 {
				w.say("  %d runs", begun+1)
			}
		}
		more, err := w.waiting(ctx, goal)
		if err != nil {
			return nil, err
		}
		figures = append(figures, more...)
	}
	return figures, nil
}

// waitGoal is what so many waiting runs may cost.
type waitGoal struct {
	runs   int
	memory float64 // MiB
	steady time.Duration
}

func (w *world) waiting(ctx context.Context, goal waitGoal) ([]figure, error) {
	before, _, err := w.operator.quiet(ctx)
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, time.Duration(w.pick(60, 5))*time.Second); err != nil {
		return nil, err
	}
	after, err := w.operator.stats(ctx)
	if err != nil {
		return nil, err
	}
	if err := w.operator.kill(); err != nil {
		return nil, err
	}
	if err := w.start(ctx); err != nil {
		return nil, err
	}
	var restarted managerStats
	var steady time.Duration
	err = w.profiled(ctx, fmt.Sprintf("restart-%d", goal.runs), func() (err error) {
		restarted, steady, err = w.steady(ctx, goal.runs)
		return err
	})
	if err != nil {
		return nil, err
	}
	memory, err := w.operator.resident()
	if err != nil {
		return nil, err
	}
	idle, mib := after.since(before).requests(), float64(memory)/(1<<20)
	what := fmt.Sprintf("%d waiting runs, each with its task: ", goal.runs)
	return []figure{
		{measure: what + "requests while idle", goal: "0", ratio: float64(idle), value: strconv.Itoa(idle)},
		{measure: what + "writes of a restart", goal: "0", ratio: float64(restarted.writes()), value: strconv.Itoa(restarted.writes())},
		{
			measure: what + "restart until steady", goal: "< " + goal.steady.String(), limit: goal.steady.Seconds(),
			ratio: steady.Seconds(), value: steady.Round(10 * time.Millisecond).String(),
		},
		{
			measure: what + "memory after the restart", goal: fmt.Sprintf("< %.0f MiB", goal.memory), limit: goal.memory, ratio: mib,
			value: fmt.Sprintf("%.0f MiB resident, %.0f MiB heap", mib, float64(restarted.Heap)/(1<<20)),
		},
	}, nil
}

// steady waits until a new operator has looked at all runs and has nothing more
// to do.
func (w *world) steady(ctx context.Context, runs int) (managerStats, time.Duration, error) {
	for {
		stats, since, err := w.operator.quiet(ctx)
		if err != nil {
			return stats, 0, err
		}
		if stats.Reconciles["workflowrun"] >= runs {
			return stats, since.Sub(w.operator.started), nil
		}
	}
}

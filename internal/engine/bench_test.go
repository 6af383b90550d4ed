package engine_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/testing/cputime"
)

// long is a run that goes round and round, with everything in its loop that an instance keeps: an action, an event that is
// remembered, a fork with its join, and a choice.
const longNodes = `s start {inputs: []}
	a action {actionType: a, inputs: {in: context.n}, outputs: [{name: 'n'}]}
	r receive-event {eventType: t, match: ["event.n == context.n"], outputs: [{contextKey: m, expression: event.n}]}
	f wait {duration: PT0S}
	b human-task {description: D, outputs: []}
	c component {component: c, inputs: {}}
	j wait {duration: PT0S}
	e end {}`

const longEdges = "s a {}\na r {}\nr f {}\nf b {}\nf c {priority: 1}\nb j {}\nc j {}\n" +
	"j a {condition: \"context.n >= 0\"}\nj e {isDefault: true}"

// A run that came so far, before its action completes.
type longRun struct {
	def *engine.Definition
	in  engine.Instance
	now time.Time
	// round counts how often the loop was gone through.
	round int
}

// runFor goes on until the history has so many entries, and further until the action is open.
func runFor(tb testing.TB, entries int) *longRun {
	tb.Helper()
	r := &longRun{def: define(tb, flow(longNodes, longEdges)), now: noon}
	step, err := engine.Start(tb.Context(), r.def, engine.Values{"n": int64(0)}, r.now)
	if err != nil {
		tb.Fatal(err)
	}
	r.in = step.Instance
	for historyOf(r.in) < entries {
		r.goRound(tb)
	}
	return r
}

// historyOf counts the entries there are: every activation that is no longer open.
func historyOf(in engine.Instance) int {
	n := -len(in.ActiveBranches)
	for _, visits := range in.Visits {
		n += visits
	}
	return n
}

func (r *longRun) goRound(tb testing.TB) {
	tb.Helper()
	r.round++
	r.now = r.now.Add(time.Second)
	for _, call := range []func(tb testing.TB) engine.Step{
		r.completeAction, r.deliver, r.timeOut("f"), r.complete("b"), r.complete("c"), r.timeOut("j"),
	} {
		step := call(tb)
		if !step.Applied {
			tb.Fatalf("round %d: %s", r.round, step.Reason)
		}
		r.in = step.Instance
	}
	if r.in.Status != engine.StatusWaiting {
		tb.Fatalf("round %d: %s, %+v", r.round, r.in.Status, r.in.Failure)
	}
}

func (r *longRun) at(node string) engine.Address {
	return engine.Address{Activation: fmt.Sprintf("%s#%d", node, r.in.Visits[node]), Attempt: 1}
}

func (r *longRun) completeAction(tb testing.TB) engine.Step {
	return engine.Complete(tb.Context(), r.def, r.in, r.at("a"), engine.Values{"n": int64(r.round % 7)}, "", r.now)
}

func (r *longRun) complete(node string) func(tb testing.TB) engine.Step {
	return func(tb testing.TB) engine.Step {
		return engine.Complete(tb.Context(), r.def, r.in, r.at(node), engine.Values{}, "ada", r.now)
	}
}

func (r *longRun) deliver(tb testing.TB) engine.Step {
	event := engine.Event{Map: engine.Values{"type": "t", "id": strconv.Itoa(r.round), "n": int64(r.round % 7)}, Arrived: r.now}
	return engine.Deliver(tb.Context(), r.def, r.in, r.at("r"), event, r.now)
}

func (r *longRun) timeOut(node string) func(tb testing.TB) engine.Step {
	return func(tb testing.TB) engine.Step {
		return engine.TimeOut(tb.Context(), r.def, r.in, r.at(node), r.now)
	}
}

// The steps that are measured, each on an instance that waits for it. None changes the instance, so that each can be made
// any number of times.
var measuredSteps = map[string]func(tb testing.TB, r *longRun) func() engine.Step{
	"complete": func(tb testing.TB, r *longRun) func() engine.Step {
		return func() engine.Step { return r.completeAction(tb) }
	},
	"deliver": func(tb testing.TB, r *longRun) func() engine.Step {
		r.in = r.completeAction(tb).Instance
		r.round++
		r.in.Context["n"] = int64(r.round % 7)
		return func() engine.Step { return r.deliver(tb) }
	},
}

// What a step costs does not depend on what lies behind the run. A node remembers up to 64 events, so a delivery is
// measured from there on.
func BenchmarkCoreStep(b *testing.B) {
	for name, prepare := range measuredSteps {
		for _, entries := range []int{shortHistory(name), 10_000} {
			b.Run(fmt.Sprintf("%s/%d", name, entries), func(b *testing.B) {
				step := prepare(b, runFor(b, entries))
				cputime.Loop(b, func() {
					if s := step(); !s.Applied {
						b.Fatal(s.Reason)
					}
				})
			})
		}
	}
}

func shortHistory(step string) int {
	if step == "deliver" {
		return 1_000
	}
	return 10
}

func TestStepsAreFlat(t *testing.T) {
	for name, prepare := range measuredSteps {
		cost := func(entries int) float64 {
			r := runFor(t, entries)
			step := prepare(t, r)
			if s := step(); !s.Applied {
				t.Fatalf("%s after %d entries: %s", name, entries, s.Reason)
			}
			return testing.AllocsPerRun(20, func() { step() })
		}
		// Longer numbers in names of activations may take an allocation more.
		if short, long := cost(shortHistory(name)), cost(10_000); long > short+4 {
			t.Errorf("%s takes %.0f allocations after %d entries, %.0f after 10,000", name, short, shortHistory(name), long)
		}
	}
}

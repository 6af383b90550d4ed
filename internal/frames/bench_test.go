package frames_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/frames"
	"github.com/apitomy/axiom-operator/internal/testing/cputime"
)

// A spiral is a run that goes round and round in a frame of some depth, where each round calls a worker.
type spiral struct {
	def   frames.Definition
	state frames.State
	// path is the address of the deepest frame that lasts.
	path  string
	round int
}

// wind makes a run whose loop is so many frames deep; the worker is one deeper.
func wind(tb testing.TB, depth int) *spiral {
	tb.Helper()
	names := make([]string, depth+1)
	for i := range names {
		names[i] = fmt.Sprintf("C%d", i)
	}
	var chain []*component
	for i, name := range names[:depth] {
		chain = append(chain, declare(tb, name, "n component {component: "+names[i+1]+", inputs: {num: context.num}}\nend end {}", "start n\nn end", "num=0", ""))
	}
	chain = append(chain,
		declare(tb, names[depth], "call component {component: Worker, inputs: {num: context.num}, outputs: {num: result.num}}\nagain wait {duration: PT0S}\nend end {}",
			"start call\ncall again\nagain call {condition: 'context.num >= 0'}\nagain end {isDefault: true}", "num=0", ""),
		declare(tb, "Worker", "do "+act+"\nend end {}", "start do\ndo end", "num", "num: context.num"))
	s := &spiral{def: bundle(chain...), path: strings.Repeat("n[1]/", depth)}
	step, err := frames.Start(tb.Context(), s.def, nil, noon, noon)
	if err != nil {
		tb.Fatal(err)
	}
	if step.State.Root.Status != engine.StatusWaiting {
		tb.Fatalf("status %s, failure %+v", step.State.Root.Status, step.State.Root.Failure)
	}
	s.state = step.State
	return s
}

// work completes what the worker does: its frame ends, and its caller goes on.
func (s *spiral) work(tb testing.TB) frames.Step {
	address := fmt.Sprintf("%scall[%d]/do#1", s.path, s.round+1)
	return frames.Complete(tb.Context(), s.def, s.state, at(address), engine.Values{"num": int64(s.round % 7)}, "", noon)
}

// goRound ends a frame and opens the next.
func (s *spiral) goRound(tb testing.TB) {
	tb.Helper()
	s.state = s.work(tb).State
	s.round++
	step := frames.TimeOut(tb.Context(), s.def, s.state, at(fmt.Sprintf("%sagain#%d", s.path, s.round)), noon)
	if !step.Applied || step.State.Root.Status != engine.StatusWaiting {
		tb.Fatalf("round %d: applied %t, reason %q, status %s", s.round, step.Applied, step.Reason, step.State.Root.Status)
	}
	s.state = step.State
}

func BenchmarkFrameStep(b *testing.B) {
	for _, depth := range []int{0, frames.MaxDepth - 1} {
		for _, rounds := range []int{1, 1_000} {
			b.Run(fmt.Sprintf("depth-%d/%d", depth, rounds), func(b *testing.B) {
				s := wind(b, depth)
				for range rounds {
					s.goRound(b)
				}
				cputime.Loop(b, func() {
					if step := s.work(b); !step.Applied {
						b.Fatal(step.Reason)
					}
				})
			})
		}
	}
}

// What a step costs does not depend on how many frames came before, and little on how many are around: their list and
// the longer addresses.
func TestStepsAreFlat(t *testing.T) {
	cost := func(depth, rounds int) float64 {
		s := wind(t, depth)
		for range rounds {
			s.goRound(t)
		}
		if step := s.work(t); !step.Applied {
			t.Fatalf("depth %d, round %d: %s", depth, rounds, step.Reason)
		}
		return testing.AllocsPerRun(20, func() { s.work(t) })
	}
	once := cost(0, 1)
	if later := cost(0, 1_000); later > once+4 { // longer numbers in addresses
		t.Errorf("a step takes %.0f allocations at first, %.0f after 1,000 frames", once, later)
	}
	const around = frames.MaxDepth - 1
	if deep := cost(around, 1); deep > once+4*around {
		t.Errorf("a step takes %.0f allocations in the root, %.0f in the midst of %d frames", once, deep, around)
	}
}

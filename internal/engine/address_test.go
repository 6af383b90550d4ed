package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/engine"
)

// calls are all that can be delivered to an activation, valid in themselves.
func calls(s *story) map[string]func(ctx context.Context, in engine.Instance, at engine.Address) engine.Step {
	return map[string]func(ctx context.Context, in engine.Instance, at engine.Address) engine.Step{
		"Complete": func(ctx context.Context, in engine.Instance, at engine.Address) engine.Step {
			return engine.Complete(ctx, s.def, in, at, engine.Values{}, "", s.now)
		},
		"Fail": func(ctx context.Context, in engine.Instance, at engine.Address) engine.Step {
			return engine.Fail(ctx, s.def, in, at, exit(engine.PhaseExecution), s.now)
		},
		"Deliver": func(ctx context.Context, in engine.Instance, at engine.Address) engine.Step {
			return engine.Deliver(ctx, s.def, in, at, engine.Event{Map: engine.Values{"type": "t", "id": "1"}, Arrived: s.now}, s.now)
		},
		"TimeOut": func(ctx context.Context, in engine.Instance, at engine.Address) engine.Step {
			return engine.TimeOut(ctx, s.def, in, at, s.now)
		},
	}
}

func TestDeliveriesThatDoNotApply(t *testing.T) {
	for name, tc := range map[string]struct {
		at   engine.Address
		want engine.Reason
	}{
		"no activation":             {engine.Address{}, engine.ReasonUnknownActivation},
		"a node":                    {engine.Address{Activation: "x", Attempt: 1}, engine.ReasonUnknownActivation},
		"a visit to come":           {engine.Address{Activation: "x#2", Attempt: 1}, engine.ReasonUnknownActivation},
		"a visit before the first":  {engine.Address{Activation: "x#0", Attempt: 1}, engine.ReasonUnknownActivation},
		"a negative visit":          {engine.Address{Activation: "x#-1", Attempt: 1}, engine.ReasonUnknownActivation},
		"a visit spelt otherwise":   {engine.Address{Activation: "x#01", Attempt: 1}, engine.ReasonUnknownActivation},
		"a visit with a sign":       {engine.Address{Activation: "x#+1", Attempt: 1}, engine.ReasonUnknownActivation},
		"a visit beyond any number": {engine.Address{Activation: "x#99999999999999999999", Attempt: 1}, engine.ReasonUnknownActivation},
		"a node that is not there":  {engine.Address{Activation: "y#1", Attempt: 1}, engine.ReasonUnknownActivation},
		"a node not visited":        {engine.Address{Activation: "e#1", Attempt: 1}, engine.ReasonUnknownActivation},
		"an activation that closed": {engine.Address{Activation: "s#1", Attempt: 1}, engine.ReasonStaleActivation},
		"an attempt to come":        {engine.Address{Activation: "x#1", Attempt: 2}, engine.ReasonStaleAttempt},
		"no attempt":                {engine.Address{Activation: "x#1"}, engine.ReasonStaleAttempt},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(t, single(act, false), "{}")
			for call, do := range calls(s) {
				step := s.do(func(in engine.Instance) engine.Step { return do(t.Context(), in, tc.at) })
				if step.Reason != tc.want {
					t.Errorf("%s: reason %q, want %q", call, step.Reason, tc.want)
				}
			}
		})
	}
}

func TestDeliveriesByKind(t *testing.T) {
	for kind, want := range map[string]map[string]engine.Reason{
		act:  {"Complete": "", "Fail": "", "Deliver": engine.ReasonWrongKind, "TimeOut": engine.ReasonNoTimeout},
		ask:  {"Complete": "", "Fail": "", "Deliver": engine.ReasonWrongKind, "TimeOut": engine.ReasonNoTimeout},
		comp: {"Complete": "", "Fail": "", "Deliver": engine.ReasonWrongKind, "TimeOut": engine.ReasonNoTimeout},
		hear: {"Complete": engine.ReasonWrongKind, "Fail": engine.ReasonWrongKind, "Deliver": "", "TimeOut": engine.ReasonNoTimeout},
		zero: {"Complete": engine.ReasonWrongKind, "Fail": engine.ReasonWrongKind, "Deliver": engine.ReasonWrongKind, "TimeOut": ""},
	} {
		t.Run(kind, func(t *testing.T) {
			got := map[string]engine.Reason{}
			for call := range want {
				s := tell(t, single(kind, false), "{}")
				got[call] = s.do(func(in engine.Instance) engine.Step { return calls(s)[call](t.Context(), in, s.at("x#1")) }).Reason
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("reasons (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTerminalIsAbsorbing(t *testing.T) {
	ends := map[string]func(s *story){
		"completed": func(s *story) { s.complete("x#1", "{}") },
		"failed":    func(s *story) { s.fail("x#1", exit(engine.PhaseExecution)) },
		"cancelled": func(s *story) {
			s.do(func(in engine.Instance) engine.Step { return engine.Cancel(in, "", s.now) })
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			s := tell(t, single(act, false), "{}")
			end(s)
			for call, do := range calls(s) {
				for _, activation := range []string{"x#1", "y#1", ""} {
					s.do(func(in engine.Instance) engine.Step { return do(t.Context(), in, s.at(activation)) })
					if s.last.Reason != engine.ReasonTerminal {
						t.Errorf("%s: reason %q", call, s.last.Reason)
					}
				}
			}
			if parked := engine.Parked(s.def, s.in); len(parked) > 0 {
				t.Errorf("parked = %v", parked)
			}
		})
	}
}

func TestAttemptsOfThePast(t *testing.T) {
	s := tell(t, single("action {actionType: a, inputs: {}, outputs: [], timeout: PT1S, retry: {}}", false), "{}")
	s.fail("x#1", exit(engine.PhaseExecution))
	s.after(time.Hour)
	for call, do := range calls(s) {
		step := s.do(func(in engine.Instance) engine.Step {
			return do(t.Context(), in, engine.Address{Activation: "x#1", Attempt: 1})
		})
		if step.Reason != engine.ReasonStaleAttempt {
			t.Errorf("%s: reason %q", call, step.Reason)
		}
	}
}

// What was interrupted changes nothing and works the next time.
func TestInterruption(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for kind, call := range map[string]string{
		"action {actionType: a, inputs: {}, outputs: []}":                     "Complete",
		"component {component: c}":                                            "Fail",
		"receive-event {eventType: t, match: [event.id == '1'], outputs: []}": "Deliver",
		"wait {duration: PT0S}":                                               "TimeOut",
	} {
		s := tell(t, single(kind, false), "{}")
		step := s.do(func(in engine.Instance) engine.Step { return calls(s)[call](ctx, in, s.at("x#1")) })
		if step.Reason != engine.ReasonInterrupted {
			t.Errorf("%s: reason %q", call, step.Reason)
		}
		step = s.do(func(in engine.Instance) engine.Step {
			return calls(s)[call](ctx, in, engine.Address{Activation: "s#1"})
		})
		if step.Reason != engine.ReasonStaleActivation {
			t.Errorf("%s: reason %q for what will never apply", call, step.Reason)
		}
		if step = s.do(func(in engine.Instance) engine.Step { return calls(s)[call](t.Context(), in, s.at("x#1")) }); !step.Applied {
			t.Errorf("%s: reason %q once it is not interrupted", call, step.Reason)
		}
	}
}

// A context may end at any moment of a step. Either the step is done or nothing of it is.
func TestInterruptionAtEveryMoment(t *testing.T) {
	doc := flow("s "+from+"\nx action {actionType: a, inputs: {}, outputs: []}\nh human-task {description: D, title: context.a, inputs: {i: context.a}, outputs: []}\n"+
		"r receive-event {eventType: t, correlationKey: {subscriptionKey: context.a, eventKey: event.id}}\nj "+zero+"\ne end {}",
		"s x {}\nx h {}\nx r {}\nh j {}\nr j {}\nj e {}")
	s := tell(t, doc, "{a: 1}")
	whole := engine.Complete(t.Context(), s.def, s.in, s.at("x#1"), engine.Values{}, "", s.now)
	interrupted, moments := 0, 0
	for ; ; moments++ {
		ctx := &countdown{Context: t.Context(), left: moments}
		step := engine.Complete(ctx, s.def, s.in, s.at("x#1"), engine.Values{}, "", s.now)
		if step.Applied {
			if diff := cmp.Diff(whole, step); diff != "" {
				t.Fatalf("moment %d (-whole +got):\n%s", moments, diff)
			}
			if ctx.left >= 0 {
				break
			}
			continue
		}
		interrupted++
		if diff := cmp.Diff(engine.Step{Instance: s.in, Reason: engine.ReasonInterrupted}, step); diff != "" {
			t.Fatalf("moment %d (-want +got):\n%s", moments, diff)
		}
	}
	if interrupted < 4 {
		t.Errorf("only %d of %d moments interrupt", interrupted, moments)
	}
}

// A countdown ends after its error was asked for a number of times.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	c.left--
	if c.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestParked(t *testing.T) {
	s := tell(t, flow(forkNodes, forkEdges), "{}")
	parked := engine.Parked(s.def, s.in)
	got := []string{}
	for _, p := range parked {
		got = append(got, p.Activation+" "+string(p.Kind)+" "+p.Name)
	}
	if diff := cmp.Diff([]string{"a#1 action The a", "b#1 human-task The b", "c#1 wait The c"}, got); diff != "" {
		t.Errorf("Parked() (-want +got):\n%s", diff)
	}
	if parked[2].Config["duration"] != "PT1H" || parked[2].Deadline != noon.Add(time.Hour) {
		t.Errorf("Parked() = %+v", parked[2])
	}
}

// Node ids may have any characters, so activations are split at the last mark.
func TestActivationsOfOddIDs(t *testing.T) {
	doc := flow("s "+from+"\na#1 "+act+"\na "+act+"\ne end {}", "s a#1 {}\na#1 a {}\na e {}")
	s := tell(t, doc, "{}")
	s.complete("a#1#1", "{}")
	s.wantOpen("a#1")
	s.complete("a#1", "{}")
	s.wantStatus(engine.StatusCompleted)
}

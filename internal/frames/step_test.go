package frames_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/frames"
)

// nested is a run of three levels: a loop around a repeat, in a call.
func nested(t *testing.T) *story {
	t.Helper()
	observation := declare(t, "Observation", "prompt "+act+"\nend end {}", "start prompt\nprompt end", "", "kind: \"context.?kind.orValue('')\"")
	implementation := declare(t, "Implementation",
		"observe component {component: Observation, outputs: {kind: result.kind}, repeat: {max: 4, until: \"result.kind == 'proposal'\"}}\nagain "+act+"\nend end {}",
		"start observe\nobserve again\nagain observe {condition: context.again}\nagain end {isDefault: true}", "", "")
	root := declare(t, "Root", "Implementation component {component: Implementation, outputs: {}, repeat: {max: 2, until: 'false'}}\nend end {}",
		"start Implementation\nImplementation end", "", "")
	return tell(t, "{}", root, implementation, observation)
}

func TestAddresses(t *testing.T) {
	s := nested(t).wantOpen("Implementation[1]/observe[1]/prompt#1")
	t.Run("supervised 11: a completion for one frame does not complete the next", func(t *testing.T) {
		s.complete("Implementation[1]/observe[1]/prompt#1", "{}").wantOpen("Implementation[1]/observe[2]/prompt#1")
		s.complete("Implementation[1]/observe[1]/prompt#1", "{kind: proposal}").wantReason(engine.ReasonStaleActivation)
		s.fail("Implementation[1]/observe[1]/prompt#1", "LATE").wantReason(engine.ReasonStaleActivation)
		s.wantOpen("Implementation[1]/observe[2]/prompt#1")
	})
	t.Run("supervised 11: frames are counted over the visits of a node", func(t *testing.T) {
		s.complete("Implementation[1]/observe[2]/prompt#1", "{kind: proposal}").wantOpen("Implementation[1]/again#1")
		s.complete("Implementation[1]/observe[2]/prompt#1", "{kind: proposal}").wantReason(engine.ReasonStaleActivation)
		s.complete("Implementation[1]/again#1", "{again: true}").wantOpen("Implementation[1]/observe[3]/prompt#1")
		s.complete("Implementation[1]/observe[3]/prompt#1", "{kind: proposal}").complete("Implementation[1]/again#2", "{again: false}")
	})
	t.Run("supervised 11: an inner frame has the address of its outer one", func(t *testing.T) {
		s.wantOpen("Implementation[2]/observe[1]/prompt#1")
		s.complete("Implementation[1]/observe[3]/prompt#1", "{}").wantReason(engine.ReasonStaleActivation)
		s.complete("Implementation[1]/again#2", "{}").wantReason(engine.ReasonStaleActivation)
	})
	if diff := cmp.Diff(map[string]int{"Implementation": 2, "Implementation[2]/observe": 1}, s.state.Opened); diff != "" {
		t.Errorf("opened (-want +got):\n%s", diff)
	}
}

func TestDeliveriesForNobody(t *testing.T) {
	s := nested(t).complete("Implementation[1]/observe[1]/prompt#1", "{}")
	for activation, want := range map[string]engine.Reason{
		"":                                       engine.ReasonUnknownActivation,
		"#1":                                     engine.ReasonUnknownActivation,
		"/":                                      engine.ReasonUnknownActivation,
		"prompt#1":                               engine.ReasonUnknownActivation,
		"observe[1]/prompt#1":                    engine.ReasonUnknownActivation,
		"Implementation[2]/observe[1]/prompt#1":  engine.ReasonUnknownActivation,
		"Implementation[1]/observe[3]/prompt#1":  engine.ReasonUnknownActivation,
		"Implementation[1]/observe[0]/prompt#1":  engine.ReasonUnknownActivation,
		"Implementation[1]/observe[01]/prompt#1": engine.ReasonUnknownActivation,
		"Implementation[1]/observe/prompt#1":     engine.ReasonUnknownActivation,
		"Implementation[1]/observe[2]/prompt#2":  engine.ReasonUnknownActivation,
		"Implementation[1]/observe[1]/prompt#1":  engine.ReasonStaleActivation,
		"Implementation[1]/observe[2]/start#1":   engine.ReasonStaleActivation,
		"Implementation[1]/observe#1":            engine.ReasonWrongKind,
		"Implementation#1":                       engine.ReasonWrongKind,
	} {
		s.complete(activation, "{kind: proposal}").wantReason(want)
		s.fail(activation, "C").wantReason(want)
	}
	s.do(func(state frames.State) frames.Step {
		return frames.Complete(t.Context(), s.def, state, engine.Address{Activation: "Implementation[1]/observe[2]/prompt#1", Attempt: 2}, nil, "", noon)
	})
	s.wantReason(engine.ReasonStaleAttempt).wantOpen("Implementation[1]/observe[2]/prompt#1")
	if got := frames.Context(s.def, s.state, "Implementation[1]/observe[1]/prompt#1"); got != nil {
		t.Errorf("a frame that is gone has context %v", got)
	}
}

// fork has a call in each of two branches and one action in a third.
func fork(t *testing.T) *story {
	t.Helper()
	middle := declare(t, "Middle", "deep component {component: Worker, inputs: {given: '1'}}\nend end {}", "start deep\ndeep end", "", "")
	root := declare(t, "Root", `
		left component {component: Worker, inputs: {given: '1'}, outputs: {left: result.items}, forEach: {items: '[1, 2]', as: i, max: 2}}
		right component {component: Middle, outputs: {right: result}}
		mid `+act+"\njoin wait {duration: PT0S}\nend end {}",
		"start mid\nstart left {priority: 1}\nstart right {priority: 2}\nleft join\nright join\nmid join\njoin end", "", "")
	return tell(t, "{}", root, middle, worker(t))
}

func TestCallsInBranches(t *testing.T) {
	open := []string{"mid#1", "left[1]/do#1", "right[1]/deep[1]/do#1"}
	cancelled := []string{
		"mid#1 Cancelled", "left[1]/do#1 Cancelled", "left#1 Cancelled",
		"right[1]/deep[1]/do#1 Cancelled", "right[1]/deep#1 Cancelled", "right#1 Cancelled",
	}
	t.Run("each has its own instance", func(t *testing.T) {
		s := fork(t).wantOpen(open...)
		if diff := cmp.Diff(open, s.last.Opened); diff != "" {
			t.Errorf("opened (-want +got):\n%s", diff)
		}
		s.complete("right[1]/deep[1]/do#1", "{out: 1}").wantOpen("mid#1", "left[1]/do#1")
		s.complete("left[1]/do#1", "{out: 1}").wantOpen("mid#1", "left[2]/do#1").complete("mid#1", "{}")
		s.complete("left[2]/do#1", "{out: 1}").wantOpen("join#1")
	})
	t.Run("a failure closes what other branches call", func(t *testing.T) {
		s := fork(t)
		before := len(s.history)
		s.fail("mid#1", "C").wantFailure(engine.PhaseExecution, "C", "mid#1")
		if diff := cmp.Diff(append([]string{"mid#1 Failed"}, cancelled[1:]...), s.closed()[before:]); diff != "" {
			t.Errorf("history (-want +got):\n%s", diff)
		}
	})
	t.Run("a cancelled run closes all, what is called before its caller", func(t *testing.T) {
		s := fork(t)
		before := len(s.history)
		s.do(func(state frames.State) frames.Step { return frames.Cancel(s.def, state, "enough", noon) })
		if diff := cmp.Diff(cancelled, s.closed()[before:]); diff != "" || s.state.Root.Status != engine.StatusCancelled {
			t.Errorf("status %s, history (-want +got):\n%s", s.state.Root.Status, diff)
		}
		for _, e := range s.history[before:] {
			if e.Error == nil || e.Error.Message != "enough" {
				t.Errorf("%s has error %+v", e.Activation, e.Error)
			}
		}
		s.do(func(state frames.State) frames.Step { return frames.Cancel(s.def, state, "again", noon) })
		s.wantReason(engine.ReasonTerminal).complete("left[1]/do#1", "{}").wantReason(engine.ReasonTerminal)
		s.do(func(state frames.State) frames.Step {
			return frames.Abort(s.def, state, engine.Failure{Code: "C"}, noon)
		})
		s.wantReason(engine.ReasonTerminal)
	})
	t.Run("a run whose definition is lost is cancelled alike", func(t *testing.T) {
		step := frames.Cancel(frames.Definition{}, fork(t).state, "enough", noon)
		var closed []string
		for _, e := range step.Closed {
			closed = append(closed, e.Activation+" "+string(e.Outcome))
		}
		if diff := cmp.Diff(cancelled, closed); diff != "" || step.State.Root.Status != engine.StatusCancelled || len(step.State.Frames) > 0 {
			t.Errorf("status %s, frames %+v, history (-want +got):\n%s", step.State.Root.Status, step.State.Frames, diff)
		}
	})
	t.Run("an aborted run closes all", func(t *testing.T) {
		s := fork(t)
		before := len(s.history)
		s.do(func(state frames.State) frames.Step {
			return frames.Abort(s.def, state, engine.Failure{Phase: engine.PhaseExecution, Code: "GONE", Message: "m"}, noon)
		})
		if diff := cmp.Diff(cancelled, s.closed()[before:]); diff != "" {
			t.Errorf("history (-want +got):\n%s", diff)
		}
		s.wantFailure(engine.PhaseExecution, "GONE", "")
	})
}

func TestLoopsOfCallsEnd(t *testing.T) {
	empty := declare(t, "Empty", "end end {}", "start end", "", "")
	for name, config := range map[string]string{
		"frames that end at once":          "component {component: Empty}",
		"calls of no items":                "component {component: Empty, forEach: {items: '[]', as: i, max: 1}}",
		"calls that fail":                  "component {component: Empty, inputs: {unknown: '1'}}",
		"calls of nothing":                 "component {component: Nobody}",
		"repeats that end at once":         "component {component: Empty, repeat: {max: 100, until: 'false'}}",
		"lists of frames that end at once": "component {component: Empty, forEach: {items: 'lists.range(60)', as: i, max: 100}}",
	} {
		t.Run(name, func(t *testing.T) {
			root := declare(t, "Root", "call "+config+"\nback "+config+"\nend end {}",
				"start call\ncall back\nback call {isDefault: true}\nback end {condition: 'false'}\n"+
					"call back {isError: true, id: failed}\nback call {isError: true, id: again}", "", "")
			s := tell(t, "{}", root, empty)
			if f := s.state.Root.Failure; f == nil || f.Code != engine.CodeMoveLimit || f.Phase != engine.PhaseEdgeSelection || len(s.paths) > frames.MaxOpened || len(s.history) > 10*frames.MaxOpened {
				t.Errorf("failure %+v after %d frames and %d entries", f, len(s.paths), len(s.history))
			}
		})
	}
}

func TestFramesNestEightDeep(t *testing.T) {
	chain := []*component{declare(t, "Root", "n component {component: C1}\nend end {}", "start n\nn end", "", "")}
	for i := 1; i <= 8; i++ {
		chain = append(chain, declare(t, fmt.Sprintf("C%d", i), fmt.Sprintf("n component {component: C%d}\nend end {}", i+1), "start n\nn end", "", ""))
	}
	deepest := strings.Repeat("n[1]/", 8)
	last := declare(t, "C8", "do "+act+"\nend end {}", "start do\ndo end", "", "")
	s := tell(t, "{}", append(chain[:8:8], last)...).wantOpen(deepest+"do#1").complete(deepest+"do#1", "{}").wantOutputs("{}")
	if len(s.paths) != 8 {
		t.Errorf("%d frames", len(s.paths))
	}
	tell(t, "{}", append(chain, declare(t, "C9", "end end {}", "start end", "", ""))...).
		wantFailure(engine.PhaseExecution, frames.CodeNestingLimit, deepest+"n#1")
}

func TestEventsAndTimesReachFrames(t *testing.T) {
	inner := declare(t, "Worker", "hear receive-event {eventType: t, match: ['event.more == 1'], timeout: PT1M}\nrest wait {duration: PT1M}\nend end {}\nlate end {}",
		"start hear\nhear rest\nhear late {isTimeout: true}\nrest end", "given", "got: 'context.?event.orValue(null)'")
	s := tell(t, "{num: 1}", caller(t, "inputs: {}"), inner).wantOpen("call[1]/hear#1")
	deliver := func(event string) {
		t.Helper()
		ev := engine.Event{Map: values(t, event), Arrived: noon}
		s.do(func(state frames.State) frames.Step {
			return frames.Deliver(t.Context(), s.def, state, at("call[1]/hear#1"), ev, noon)
		})
	}
	deliver("{type: t, id: a}")
	if last := s.wantReason(engine.ReasonMatchError).state.Frames[0].Instance.ActiveBranches[0].LastError; last == nil || last.Field != "match[0]" {
		t.Errorf("last error %+v", last)
	}
	deliver("{type: t, id: b, more: 2}")
	s.wantReason(engine.ReasonNotMatched)
	timeOut := func(activation string, now time.Time) *story {
		s.do(func(state frames.State) frames.Step {
			return frames.TimeOut(t.Context(), s.def, state, at(activation), now)
		})
		return s
	}
	timeOut("call[1]/hear#1", noon).wantReason(engine.ReasonNotDue)
	deliver("{type: t, id: c, more: 1}")
	s.wantOpen("call[1]/rest#1")
	deliver("{type: t, id: c, more: 1}")
	s.wantReason(engine.ReasonStaleActivation)
	timeOut("call[1]/rest#1", noon.Add(time.Minute)).wantOutputs("{got: {type: t, id: c, more: 1}, error: null, repeat: null}")
}

// A context that ended changes nothing, wherever in a step it ends.
func TestInterruptedStepsChangeNothing(t *testing.T) {
	s := nested(t)
	before := encode(t, s.state)
	deadline := func(left int) context.Context { return &ending{Context: t.Context(), left: &left} }
	for left := range 500 {
		step := frames.Complete(deadline(left), s.def, s.state, at("Implementation[1]/observe[1]/prompt#1"), engine.Values{}, "", noon)
		if step.Applied {
			if left == 0 {
				t.Fatal("the step looks at no context")
			}
			return
		}
		if step.Reason != engine.ReasonInterrupted || encode(t, step.State) != before {
			t.Fatalf("after %d looks the step has reason %q and changed the state", left, step.Reason)
		}
	}
	t.Fatal("the step looks at its context too often")
}

func TestInterruptedStart(t *testing.T) {
	s := nested(t)
	for left := range 500 {
		step, err := frames.Start(&ending{Context: t.Context(), left: &left}, s.def, nil, noon, noon)
		if err == nil {
			return
		}
		if !errors.Is(err, context.Canceled) || step.Applied {
			t.Fatalf("Start() error: %v", err)
		}
	}
	t.Fatal("the start looks at its context too often")
}

// ending is a context that ends after it was looked at some times.
type ending struct {
	context.Context
	left *int
}

func (c *ending) Err() error {
	if *c.left <= 0 {
		return context.Canceled
	}
	*c.left--
	return nil
}

func TestStartRefuses(t *testing.T) {
	root := declare(t, "Root", "do "+act+"\nend end {}", "start do\ndo end", "a! b=2", "")
	if step, err := frames.Start(t.Context(), bundle(root), map[string]any{"a": nil}, noon, noon); err == nil || step.Applied {
		t.Errorf("Start() starts without a required input: %+v", step)
	}
	tell(t, "{a: 1, b: null}", root).wantContext("do#1", "{a: 1, b: 2}")
	doc := parse(t, flow("start start {inputs: [{name: c, required: true}]}\nend end {}", "start end"))
	root.flow, _ = engine.New(doc.(map[string]any), newExpressions())
	var input *engine.InputError
	if _, err := frames.Start(t.Context(), bundle(root), map[string]any{"a": int64(1)}, noon, noon); !errors.As(err, &input) || input.Name != "c" {
		t.Errorf("Start() error: %v", err)
	}
}

func TestCallStateInJSON(t *testing.T) {
	var state frames.CallState
	if err := json.Unmarshal([]byte(`{"call":"c#1","items":[9007199254740993,1.5],"results":null}`), &state); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(frames.CallState{Call: "c#1", Items: []any{int64(9007199254740993), 1.5}}, state); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
	for _, text := range []string{`[]`, `{"call":1}`, `{"items":{}}`, `{"results":1}`} {
		if err := json.Unmarshal([]byte(text), &state); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}

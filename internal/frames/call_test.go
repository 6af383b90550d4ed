package frames_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/frames"
)

// worker does one action and gives back what it left.
func worker(t *testing.T) *component {
	t.Helper()
	return declare(t, "Worker", "do "+act+"\nend end {outcome: inner}", "start do\ndo end", "given! more=7", "out: context.out, given: context.given")
}

func TestACallIsAFrame(t *testing.T) {
	root := declare(t, "Root", `
		call component {component: Worker, inputs: {given: context.num + 1}, outputs: {got: result}}
		end end {outcome: good}`, "start call\ncall end", "num! secret=1", "got: context.got")
	s := tell(t, "{num: 1}", root, worker(t)).wantOpen("call[1]/do#1")
	t.Run("supervised 09: a frame sees its inputs and their defaults, and nothing else", func(t *testing.T) {
		s.wantContext("call[1]/do#1", "{given: 2, more: 7}")
	})
	s.wantHistory("start#1 Completed", "call#1 > call[1]", "call[1]/start#1 Completed")
	entry := s.history[1]
	if want := (frames.CallEntry{Path: "call[1]", Component: "Worker", SourcePath: "Worker.md", SourceHash: "hash of Worker"}); *entry.Call != want {
		t.Errorf("call %+v", *entry.Call)
	}
	if entry.Type != "component" || entry.Outcome != engine.OutcomeCompleted || entry.Node != "call" || entry.Input["given"] != int64(2) {
		t.Errorf("entry %+v", entry)
	}
	parked := frames.Parked(s.def, s.state)[0]
	if parked.Frame != "call[1]" || parked.Component != "Worker" || parked.Node != "do" {
		t.Errorf("parked %+v", parked)
	}
	s.complete("call[1]/do#1", "{out: x, other: y}").wantOutputs("{got: {out: x, given: 2}}")
	if s.last.Outcome != "good" {
		t.Errorf("outcome %q", s.last.Outcome)
	}
	s.wantHistory("start#1 Completed", "call#1 > call[1]", "call[1]/start#1 Completed",
		"call[1]/do#1 Completed", "call[1]/end#1 Completed", "call#1 Completed", "end#1 Completed")
}

// caller calls the worker with a configuration, takes the error edge to an action, and gives back all it has.
func caller(t *testing.T, config string) *component {
	t.Helper()
	return declare(t, "Root", "call component {component: Worker, "+config+"}\nmend "+act+"\nend end {}",
		"start call\ncall end\ncall mend {isError: true}\nmend end", "num! list",
		"got: 'context.?got.orValue(null)', error: context.error, repeat: 'context.?repeat.orValue(null)'")
}

func TestInnerFailures(t *testing.T) {
	t.Run("supervised 09: an inner failure reaches the caller's error edge", func(t *testing.T) {
		root := caller(t, "inputs: {given: context.num}")
		s := tell(t, "{num: 1}", root, worker(t)).fail("call[1]/do#1", "BROKEN").wantOpen("mend#1")
		s.wantContext("mend#1", `{num: 1, list: null, error: {phase: EXECUTION, code: BROKEN, node: do, activation: "call[1]/do#1", message: m}}`)
		s.wantHistory("start#1 Completed", "call#1 > call[1]", "call[1]/start#1 Completed", "call[1]/do#1 Failed", "call#1 Failed")
		for _, e := range s.history[3:] {
			if e.Error.Code != "BROKEN" || e.Error.Activation != "call[1]/do#1" {
				t.Errorf("%s has error %+v", e.Activation, *e.Error)
			}
		}
	})
	t.Run("supervised 09: a failure that no error edge takes fails the run", func(t *testing.T) {
		middle := declare(t, "Middle", "deep component {component: Worker, inputs: {given: 1}}\nend end {}", "start deep\ndeep end", "", "")
		root := declare(t, "Root", "call component {component: Middle}\nend end {}", "start call\ncall end", "", "")
		s := tell(t, "{}", root, middle, worker(t)).fail("call[1]/deep[1]/do#1", "BROKEN")
		s.wantFailure(engine.PhaseExecution, "BROKEN", "call[1]/deep[1]/do#1")
	})
	t.Run("supervised 09: an error edge inside takes a failure", func(t *testing.T) {
		inner := declare(t, "Worker", "do "+act+"\nend end {}\nover end {}", "start do\ndo end\ndo over {isError: true}", "given", "got: context.error.code")
		s := tell(t, "{num: 1}", caller(t, "inputs: {}"), inner).fail("call[1]/do#1", "BROKEN")
		s.wantOutputs("{got: BROKEN, error: null, repeat: null}")
	})
	t.Run("an end that no edge leads to", func(t *testing.T) {
		inner := declare(t, "Worker", "do "+act+"\nend end {}", "start do\ndo end {condition: 'false'}", "given", "")
		s := tell(t, "{num: 1}", caller(t, "inputs: {}"), inner).complete("call[1]/do#1", "{}").wantOpen("mend#1")
		if got := s.state.Root.Context["error"].(map[string]any); got["code"] != engine.CodeNoMatchingEdge || got["activation"] != "call[1]/do#1" {
			t.Errorf("error %v", got)
		}
	})
}

// What goes wrong with a call fails its node, and binds nothing.
func TestBrokenCalls(t *testing.T) {
	for name, tc := range map[string]struct {
		config, outputs, result string
		phase                   engine.Phase
		code, activation        string
	}{
		"an input of no value":              {config: "inputs: {given: context.nobody}", phase: engine.PhaseInputResolution, code: engine.CodeExpressionError},
		"an input that is undeclared":       {config: "inputs: {given: 1, else: 2}", phase: engine.PhaseInputResolution, code: frames.CodeInputContract},
		"a required input that is missing":  {config: "inputs: {}", phase: engine.PhaseInputResolution, code: frames.CodeInputContract},
		"a required input that is null":     {config: "inputs: {given: 'null'}", phase: engine.PhaseInputResolution, code: frames.CodeInputContract},
		"a section that cannot be rendered": {config: "inputs: {given: '#nobody'}", phase: engine.PhaseExecution, code: frames.CodeRenderFailed},
		"supervised 09: an output of another type binds nothing": {
			config: "inputs: {given: 1}, outputs: {got: result}", outputs: "x: context.given, out: context.out", result: "{out: wrong}",
			phase: engine.PhaseOutputValidation, code: frames.CodeOutputContract, activation: "call[1]/end#1",
		},
		"supervised 09: an output of no value binds nothing": {
			config: "inputs: {given: 1}, outputs: {got: result}", outputs: "x: context.given, out: context.out",
			phase: engine.PhaseOutputMapping, code: engine.CodeExpressionError, activation: "call[1]/end#1",
		},
		"supervised 09: a mapping of no value binds nothing": {
			config: "inputs: {given: 1}, outputs: {got: result.out, other: result.nobody}", outputs: "out: context.given",
			phase: engine.PhaseOutputMapping, code: engine.CodeExpressionError,
		},
		"a mapping whose value is too large": {
			config: "inputs: {given: 1}, outputs: {got: 'lists.range(100000)'}", phase: engine.PhaseOutputMapping, code: engine.CodeExpressionError,
		},
		"a condition of no value": {
			config: "inputs: {given: 1}, outputs: {got: result}, repeat: {max: 3, until: result.nobody}",
			phase:  engine.PhaseOutputMapping, code: engine.CodeExpressionError,
		},
		"supervised 09: a mapping of no value between two rounds binds nothing": {
			config: "inputs: {given: 1}, outputs: {got: result.given, other: result.nobody}, repeat: {max: 3, until: 'false'}", outputs: "given: context.given",
			phase: engine.PhaseOutputMapping, code: engine.CodeExpressionError,
		},
		"items that are no list": {
			config: "inputs: {given: 1}, forEach: {items: context.num, as: item, max: 3}", phase: engine.PhaseInputResolution, code: frames.CodeInputContract,
		},
		"items of no value": {
			config: "inputs: {given: 1}, forEach: {items: context.nobody, as: item, max: 3}", phase: engine.PhaseInputResolution, code: engine.CodeExpressionError,
		},
		"supervised 10: one item too many": {
			config: "inputs: {given: 1}, forEach: {items: '[1, 2, 3, 4]', as: item, max: 3}", phase: engine.PhaseExecution, code: frames.CodeForEachLimit,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inner := declare(t, "Worker", "do "+act+"\nend end {}", "start do\ndo end", "given!", tc.outputs)
			s := tell(t, "{num: 1}", caller(t, tc.config), inner)
			if len(s.state.Frames) > 0 {
				s.complete("call[1]/do#1", "{"+strings.Trim(tc.result, "{}")+"}")
			}
			want := map[string]any{"phase": tc.phase, "code": tc.code, "activation": "call#1", "node": "call"}
			if tc.activation != "" {
				want["activation"], want["node"] = tc.activation, "end"
			}
			s.wantOpen("mend#1")
			told, _ := s.state.Root.Context["error"].(map[string]any)
			if message, _ := told["message"].(string); message == "" {
				t.Error("there is no message")
			}
			delete(told, "message")
			if diff := cmp.Diff(want, told); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if _, bound := s.state.Root.Context["got"]; bound || len(s.state.Opened) > 1 {
				t.Errorf("context %v", s.state.Root.Context)
			}
			if called := len(s.paths); (called > 0) != (tc.phase == engine.PhaseOutputMapping || tc.activation != "") {
				t.Errorf("%d frames were opened", called)
			}
		})
	}
}

func TestInputsOfEverySort(t *testing.T) {
	inner := declare(t, "Worker", "do "+act+"\nend end {}", "start do\ndo end", "a b c d=4 e=5", "")
	root := caller(t, "inputs: {a: context.num, b: '#num', c: [x], d: context.list}")
	tell(t, "{num: 1.0}", root, inner).wantContext("call[1]/do#1", "{a: 1, b: num is 1, c: [x], d: 4, e: 5}")
}

func TestTheRunFailsWithItsOutputs(t *testing.T) {
	root := declare(t, "Root", "do "+act+"\nend end {outcome: good}", "start do\ndo end", "", "out: context.out")
	s := tell(t, "{}", root).complete("do#1", "{out: wrong}").wantFailure(engine.PhaseOutputValidation, frames.CodeOutputContract, "end#1")
	s.wantHistory("start#1 Completed", "do#1 Completed", "end#1 Failed")
	if s.last.Outputs != nil || s.last.Outcome != "" {
		t.Errorf("outputs %v, outcome %q", s.last.Outputs, s.last.Outcome)
	}
}

func TestWhatIsNotDeclaredIsNotCalled(t *testing.T) {
	root := caller(t, "inputs: {}")
	s := tell(t, "{num: 1}", root).wantOpen("mend#1")
	if got := s.state.Root.Context["error"].(map[string]any)["code"]; got != frames.CodeComponentUndeclared {
		t.Errorf("code %v", got)
	}
	root = caller(t, "inputs: {}")
	delete(root.calls, "call")
	s = tell(t, "{num: 1}", root, worker(t)).wantOpen("mend#1")
	if got := s.state.Root.Context["error"].(map[string]any)["code"]; got != frames.CodeComponentUndeclared {
		t.Errorf("code %v", got)
	}
}

// Each frame has the moves of a run, and what goes wrong nowhere in particular goes wrong with the call.
func TestAFrameThatMovesTooOften(t *testing.T) {
	failing := "action {actionType: a, inputs: {a: context.nobody}, outputs: []}"
	inner := declare(t, "Worker", "one "+failing+"\ntwo "+failing+"\nend end {}",
		"start one\none two {isError: true}\ntwo one {isError: true}\none end\ntwo end", "", "")
	s := tell(t, "{num: 1}", caller(t, "inputs: {}"), inner).wantOpen("mend#1")
	if got := s.state.Root.Context["error"].(map[string]any); got["code"] != engine.CodeMoveLimit || got["activation"] != "call#1" || got["node"] != "call" {
		t.Errorf("error %v", got)
	}
}

func TestEnginesThatRefuse(t *testing.T) {
	for name, tc := range map[string]struct{ nodes, code string }{
		"an input that only the workflow requires": {"start start {inputs: [{name: a, required: true}]}\nend end {}", frames.CodeInputContract},
		"a workflow that is none":                  {"start start {inputs: []}", frames.CodeComponentUndeclared},
	} {
		t.Run(name, func(t *testing.T) {
			inner := worker(t)
			doc, _ := parse(t, flow(tc.nodes, "start end")).(map[string]any)
			inner.flow, _ = engine.New(doc, newExpressions())
			s := tell(t, "{num: 1}", caller(t, "inputs: {given: '1'}"), inner).wantOpen("mend#1")
			if got := s.state.Root.Context["error"].(map[string]any)["code"]; got != tc.code || len(s.paths) != 0 {
				t.Errorf("code %v, frames %v", got, s.paths)
			}
		})
	}
}

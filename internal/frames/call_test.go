package frames_test

import (
	"testing"

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

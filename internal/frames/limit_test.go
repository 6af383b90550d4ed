package frames_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/frames"
)

// half is more than half of what a context may hold.
var half = "{big: " + strings.Repeat("x", engine.MaxContextBytes/2+1) + "}"

// wantSmallHistory requires that every entry can be stored by itself.
func (s *story) wantSmallHistory() {
	s.t.Helper()
	for _, e := range s.history {
		data, err := json.Marshal(e)
		if err != nil {
			s.t.Fatal(err)
		}
		if len(data) > engine.MaxContextBytes+engine.MaxContextBytes/2 {
			s.t.Errorf("the entry of %s has %d bytes", e.Activation, len(data))
		}
	}
}

// What a frame begins and ends with is bounded as a whole, not only value by value.
func TestFramesBeginAndEndWithinAContext(t *testing.T) {
	inner := declare(t, "Worker", "do "+act+"\nend end {}", "start do\ndo end", "a b c d", "x: 'context.?big', y: 'context.?big', z: 'context.?big'")
	root := func(inputs string) *component {
		return declare(t, "Root", "do "+act+"\ncall component {component: Worker, inputs: "+inputs+", outputs: {got: size(result)}}\nend end {}",
			"start do\ndo call\ncall end", "", "")
	}
	t.Run("inputs", func(t *testing.T) {
		s := tell(t, "{}", root("{a: context.big, b: context.big, c: context.big, d: context.big}"), inner).complete("do#1", half)
		s.wantFailure(engine.PhaseOutputMapping, engine.CodeContextTooLarge, "call#1").wantSmallHistory()
		if len(s.paths) > 0 {
			t.Errorf("frames %v were opened", s.paths)
		}
	})
	t.Run("outputs of a call", func(t *testing.T) {
		s := tell(t, "{}", root("{}"), inner).complete("do#1", "{}").complete("call[1]/do#1", half)
		s.wantFailure(engine.PhaseResultValidation, frames.CodeResultTooLarge, "call[1]/end#1").wantSmallHistory()
	})
	t.Run("outputs of the run", func(t *testing.T) {
		root := declare(t, "Root", "do "+act+"\nend end {}", "start do\ndo end", "", "x: context.big, y: context.big")
		s := tell(t, "{}", root).complete("do#1", half)
		s.wantFailure(engine.PhaseResultValidation, frames.CodeResultTooLarge, "end#1")
		if s.last.Outputs != nil {
			t.Error("a failed run has outputs")
		}
	})
}

func TestFailuresOfExpressionsQuoteNoValue(t *testing.T) {
	const value = "sesame"
	worker := declare(t, "Worker", "do "+act+"\nend end {}", "start do\ndo end", "a", "out: context.a")
	wrong := declare(t, "Wrong", "do "+act+"\nend end {}", "start do\ndo end", "a", "out: timestamp(context.a)")
	for name, config := range map[string]string{
		"input":     "component: Worker, inputs: {a: 'context[context.word]'}",
		"items":     "component: Worker, inputs: {a: i}, forEach: {items: 'context[context.word]', as: i, max: 3}",
		"mapping":   "component: Worker, inputs: {a: context.word}, outputs: {got: 'result[result.out]'}",
		"condition": "component: Worker, inputs: {a: context.word}, repeat: {max: 2, until: 'context[result.out]'}",
		"output":    "component: Wrong, inputs: {a: context.word}",
	} {
		t.Run(name, func(t *testing.T) {
			root := declare(t, "Root", "call component {"+config+"}\nend end {}", "start call\ncall end", "word", "")
			s := tell(t, "{word: "+value+"}", root, worker, wrong)
			if len(s.state.Frames) > 0 {
				s.complete("call[1]/do#1", "{}")
			}
			f := s.state.Root.Failure
			if f == nil || f.Code != engine.CodeExpressionError || f.Message == "" || strings.Contains(f.Message, value) {
				t.Errorf("failure %+v", f)
			}
		})
	}
}

// Nodes that call nothing are refused at admission; should one come through, its error edge must not lead it on for ever.
func TestLoopsOfNodesThatCallNothingEnd(t *testing.T) {
	root := declare(t, "Root", "call component {component: Worker}\nback component {component: Worker}\nend end {}",
		"start call\ncall end\nback end\ncall back {isError: true}\nback call {isError: true}", "", "")
	clear(root.calls)
	s := tell(t, "{}", root, worker(t))
	if f := s.state.Root.Failure; f == nil || f.Code != engine.CodeMoveLimit {
		t.Errorf("failure %+v", f)
	}
}

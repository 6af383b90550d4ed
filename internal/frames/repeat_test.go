package frames_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/frames"
)

func TestRepeat(t *testing.T) {
	config := "inputs: {given: '[context.?got.orValue(null), context.num]'}, outputs: {got: result.out, repeat: result.repeat}, repeat: {max: 3, until: result.out == context.num}"
	t.Run("supervised 10: a repeat ends with break when its condition holds", func(t *testing.T) {
		s := tell(t, "{num: 9}", caller(t, config), worker(t)).wantContext("call[1]/do#1", "{given: [null, 9], more: 7}")
		s.complete("call[1]/do#1", "{out: 1}").wantOpen("call[2]/do#1")
		s.wantContext("call[2]/do#1", "{given: [1, 9], more: 7}")
		s.wantContext("call#1", "{num: 9, list: null, error: null, got: 1, repeat: {iterations: 1, outcome: null}}")
		s.complete("call[2]/do#1", "{out: 9}").wantOutputs("{got: 9, error: null, repeat: {iterations: 2, outcome: break}}")
		s.wantHistory("start#1 Completed",
			"call#1 > call[1]", "call[1]/start#1 Completed", "call[1]/do#1 Completed", "call[1]/end#1 Completed",
			"call#1 > call[2]", "call[2]/start#1 Completed", "call[2]/do#1 Completed", "call[2]/end#1 Completed",
			"call#1 Completed", "end#1 Completed")
		if first, second := s.history[1].Call, s.history[5].Call; first.Iteration != 1 || second.Iteration != 2 || second.Item != 0 {
			t.Errorf("calls %+v and %+v", *first, *second)
		}
	})
	t.Run("supervised 10: a repeat ends with exhausted after its last frame", func(t *testing.T) {
		s := tell(t, "{num: 9}", caller(t, config), worker(t))
		for i := 1; i <= 3; i++ {
			s.complete(fmt.Sprintf("call[%d]/do#1", i), fmt.Sprintf("{out: %d}", i))
		}
		s.wantOutputs("{got: 3, error: null, repeat: {iterations: 3, outcome: exhausted}}")
	})
	t.Run("the condition that holds in the last round breaks", func(t *testing.T) {
		s := tell(t, "{num: 9}", caller(t, strings.Replace(config, "max: 3", "max: 1", 1)), worker(t))
		s.complete("call[1]/do#1", "{out: 9}").wantOutputs("{got: 9, error: null, repeat: {iterations: 1, outcome: break}}")
	})
	t.Run("only true breaks", func(t *testing.T) {
		s := tell(t, "{num: 9}", caller(t, "inputs: {given: 1}, repeat: {max: 2, until: result.out}"), worker(t))
		s.complete("call[1]/do#1", "{out: yes please}").wantOpen("call[2]/do#1")
		s.complete("call[2]/do#1", "{out: true}").wantOutputs("{got: null, error: null, repeat: {iterations: 2, outcome: break}}")
	})
	t.Run("the members of a result go by their names", func(t *testing.T) {
		s := tell(t, "{num: 9}", caller(t, "inputs: {given: 1}, repeat: {max: 2, until: 'false'}"), worker(t)).complete("call[1]/do#1", "{out: 5}")
		s.wantContext("call#1", "{num: 9, list: null, error: null, out: 5, given: 1, repeat: {iterations: 1, outcome: null}}")
	})
	t.Run("supervised 09: the failure of a round ends the repeat", func(t *testing.T) {
		s := tell(t, "{num: 9}", caller(t, config), worker(t)).complete("call[1]/do#1", "{out: 1}").fail("call[2]/do#1", "BROKEN").wantOpen("mend#1")
		if got := s.state.Root.Context["got"]; got != int64(1) {
			t.Errorf("got %v", got)
		}
	})
	t.Run("a result that the context cannot hold ends the repeat", func(t *testing.T) {
		big := strings.Repeat("x", 200<<10)
		s := tell(t, "{num: '"+big+"'}", caller(t, config), declare(t, "Worker", "do "+act+"\nend end {}", "start do\ndo end", "given", "out: context.out"))
		s.complete("call[1]/do#1", "{out: '"+strings.Repeat("y", 100<<10)+"'}")
		if s.state.Root.Failure != nil || len(s.state.Frames) > 0 {
			t.Fatalf("failure %+v, frames %d", s.state.Root.Failure, len(s.state.Frames))
		}
		if got := s.state.Root.Context["error"].(map[string]any)["code"]; got != engine.CodeContextTooLarge {
			t.Errorf("code %v", got)
		}
	})
}

func TestForEach(t *testing.T) {
	config := "inputs: {given: '[finding, index, context.num]'}, outputs: {got: 'result.items.map(i, i.out)'}, forEach: {items: context.list, as: finding, max: 3}"
	t.Run("supervised 10: the items of a list are called in order, one at a time", func(t *testing.T) {
		s := tell(t, "{num: 9, list: [a, {b: 1.0}, null]}", caller(t, config), worker(t))
		s.wantOpen("call[1]/do#1").wantContext("call[1]/do#1", "{given: [a, 0, 9], more: 7}").complete("call[1]/do#1", "{out: 3}")
		s.wantOpen("call[2]/do#1").wantContext("call[2]/do#1", "{given: [{b: 1}, 1, 9], more: 7}").complete("call[2]/do#1", "{out: 2}")
		s.wantContext("call#1", "{num: 9, list: [a, {b: 1}, null], error: null, got: null}")
		s.wantOpen("call[3]/do#1").wantContext("call[3]/do#1", "{given: [null, 2, 9], more: 7}").complete("call[3]/do#1", "{out: 1}")
		s.wantOutputs("{got: [3, 2, 1], error: null, repeat: null}")
		var items []int
		for _, e := range s.history {
			if e.Call != nil {
				items = append(items, e.Call.Item)
			}
		}
		if diff := cmp.Diff([]int{1, 2, 3}, items); diff != "" {
			t.Errorf("items (-want +got):\n%s", diff)
		}
	})
	t.Run("supervised 10: the first failure ends the list", func(t *testing.T) {
		s := tell(t, "{num: 9, list: [a, b, c]}", caller(t, config), worker(t)).complete("call[1]/do#1", "{out: 3}").fail("call[2]/do#1", "BROKEN").wantOpen("mend#1")
		if _, bound := s.state.Root.Context["got"]; bound || len(s.paths) != 2 || len(s.state.Calls) != 0 {
			t.Errorf("context %v, frames %v, calls %v", s.state.Root.Context, s.paths, s.state.Calls)
		}
	})
	t.Run("supervised 10: as many items as allowed are called", func(t *testing.T) {
		tell(t, "{num: 9, list: [a, b, c]}", caller(t, config), worker(t)).wantOpen("call[1]/do#1")
	})
	t.Run("supervised 10: no items are no calls", func(t *testing.T) {
		s := tell(t, "{num: 9, list: []}", caller(t, config), worker(t)).wantOutputs("{got: [], error: null, repeat: null}")
		s.wantHistory("start#1 Completed", "call#1 Completed", "end#1 Completed")
	})
	t.Run("what is kept of a list is as JSON has it", func(t *testing.T) {
		inner := declare(t, "Worker", "do "+act+"\nend end {}", "start do\ndo end", "given", "out: \"'double'\"")
		s := tell(t, "{num: 9}", caller(t, "inputs: {given: item}, forEach: {items: '[1.0, 1.5]', as: item, max: 2}"), inner).complete("call[1]/do#1", "{}")
		want := []frames.CallState{{Call: "call#1", Items: []any{int64(1), 1.5}, Results: []any{map[string]any{"out": int64(2)}}}}
		if diff := cmp.Diff(want, s.state.Calls); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
	t.Run("without outputs the results go by the name of items", func(t *testing.T) {
		root := declare(t, "Root", "call component {component: Worker, inputs: {given: '1'}, forEach: {items: '[1]', as: i, max: 1}}\nend end {}",
			"start call\ncall end", "", "got: context.items")
		tell(t, "{}", root, worker(t)).complete("call[1]/do#1", "{out: 3}").wantOutputs("{got: [{out: 3, given: 1}]}")
	})
	t.Run("a hundred calls that end at once are one step", func(t *testing.T) {
		inner := declare(t, "Worker", "end end {}", "start end", "given", "out: context.given")
		s := tell(t, "{num: 9}", caller(t, "inputs: {given: item}, outputs: {got: size(result.items)}, forEach: {items: 'lists.range(100)', as: item, max: 100}"), inner)
		s.wantOutputs("{got: 100, error: null, repeat: null}")
	})
	t.Run("results that are too large together", func(t *testing.T) {
		s := tell(t, "{num: 9, list: [a, b, c]}", caller(t, config), declare(t, "Worker", "do "+act+"\nend end {}", "start do\ndo end", "given", "out: context.out"))
		big := "{out: '" + strings.Repeat("y", 150<<10) + "'}"
		s.complete("call[1]/do#1", big).wantOpen("call[2]/do#1").complete("call[2]/do#1", big).wantOpen("mend#1")
		if got := s.state.Root.Context["error"].(map[string]any)["code"]; got != frames.CodeResultTooLarge {
			t.Errorf("code %v", got)
		}
	})
}

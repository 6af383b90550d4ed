package frames_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/frames"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// A chooser draws a number from 0 up to but not including n.
type chooser func(n int) int

func drawing(seed uint64) chooser { return rand.New(rand.NewPCG(seed, 7)).IntN }

// A generator draws a component: blocks with one way in and one way out, set one into the other, some of which call.
type generator struct {
	pick  chooser
	level int
	ids   int
	nodes []string
	edges []string
}

// levels is how deep generated components call each other.
const levels = 3

// generate draws components that call those of the levels below; the first is the root.
func generate(t testing.TB, pick chooser) []*component {
	t.Helper()
	components := []*component{}
	for level := range levels {
		for i := range 1 + min(level, 1) {
			g := &generator{pick: pick, level: level}
			first, last := g.block(2)
			g.edges = append([]string{"start " + first}, g.edges...)
			g.edge(last, g.node("end", "{outcome: done}"), "")
			outputs := "got: 'context.?got.orValue(0)', flag: 'context.?flag.orValue(false)'"
			if pick(12) == 0 {
				outputs = "got: context.got" // which may be missing
			}
			c := declare(t, fmt.Sprintf("C%d%c", level, 'a'+rune(i)), strings.Join(g.nodes, "\n"), strings.Join(g.edges, "\n"), "num=3", outputs)
			components = append(components, c)
		}
	}
	return components
}

func (g *generator) node(kind, config string) string {
	g.ids++
	id := fmt.Sprintf("%c%d", kind[0], g.ids)
	g.nodes = append(g.nodes, id+" "+kind+" "+config)
	return id
}

func (g *generator) edge(source, target, members string) {
	text := fmt.Sprintf("%s %s {id: e%d", source, target, len(g.edges))
	if members != "" {
		text += ", " + members
	}
	g.edges = append(g.edges, text+"}")
}

func (g *generator) rest() string { return g.node("wait", "{duration: PT0S}") }

func (g *generator) block(depth int) (first, last string) {
	if depth == 0 {
		return g.work()
	}
	switch g.pick(6) {
	case 0, 1:
		return g.work()
	case 2:
		return g.fork(depth)
	case 3:
		return g.loop(depth)
	}
	first, between := g.block(depth - 1)
	next, last := g.block(depth - 1)
	g.edge(between, next, "")
	return first, last
}

func (g *generator) fork(depth int) (first, last string) {
	first, last = g.rest(), g.rest()
	for i := range 2 {
		in, out := g.block(depth - 1)
		g.edge(first, in, fmt.Sprintf("priority: %d", i))
		before := g.rest()
		g.edge(out, before, "")
		g.edge(before, last, "")
	}
	return first, last
}

func (g *generator) loop(depth int) (first, last string) {
	first, last = g.block(depth - 1)
	turn, next := g.node("action", "{actionType: a, inputs: {}, outputs: []}"), g.rest()
	g.edge(last, turn, "")
	g.edge(turn, first, "condition: 'context.?flag.orValue(false)'")
	g.edge(turn, next, "isDefault: true")
	return first, next
}

// work is a node that is served by others or by a call, with an error edge around it or without.
func (g *generator) work() (first, last string) {
	switch {
	case g.level < levels-1 && g.pick(4) > 0:
		first = g.node("component", g.call())
	case g.pick(5) == 0:
		first = g.node("human-task", "{description: D, outputs: []}")
	default:
		first = g.node("action", "{actionType: a, inputs: {}, outputs: []}")
	}
	last = g.rest()
	g.edge(first, last, "")
	if g.pick(2) == 0 {
		g.edge(first, last, "isError: true")
	}
	return first, last
}

func (g *generator) call() string {
	inputs := []string{"{num: context.num}", "{num: 'context.?got.orValue(1)'}", "{}", "{num: context.nobody}"}[g.pick(19)/6]
	outputs := []string{"", ", outputs: {got: 'result.?got.orValue(9)', flag: 'result.?flag.orValue(false)'}", ", outputs: {got: result.got}"}[g.pick(3)]
	again := ""
	switch g.pick(3) {
	case 0:
		again = fmt.Sprintf(", repeat: {max: %d, until: 'result.?flag.orValue(context.?flag.orValue(false))'}", 1+g.pick(4))
	case 1:
		inputs = []string{"{num: item}", "{num: index}", "{num: item + index}"}[g.pick(3)]
		outputs = []string{", outputs: {got: size(result.items)}", ""}[g.pick(2)]
		again = fmt.Sprintf(", forEach: {items: 'lists.range(%d)', as: item, max: 4}", g.pick(6))
	}
	return fmt.Sprintf("{component: C%d%c, inputs: %s%s%s}", g.level+1, 'a'+rune(g.pick(2)), inputs, outputs, again)
}

// A player makes random deliveries to a run.
type player struct {
	*story
	pick chooser
	// spent are activations that were open once.
	spent []string
}

func play(t testing.TB, seed uint64) *player {
	t.Helper()
	pick := drawing(seed)
	return &player{story: tell(t, "{num: 2}", generate(t, pick)...), pick: pick}
}

// address draws one that is open more often than not.
func (p *player) address() (activation string, kind workflow.Kind) {
	parked := frames.Parked(p.def, p.state)
	if len(p.spent) > 0 && (len(parked) == 0 || p.pick(6) == 0) {
		return p.spent[p.pick(len(p.spent))], workflow.KindAction
	}
	if len(parked) == 0 {
		return "nobody#1", workflow.KindAction
	}
	drawn := parked[p.pick(len(parked))]
	p.spent = append(p.spent, drawn.Activation)
	return drawn.Activation, drawn.Kind
}

func (p *player) turn() {
	p.now = p.now.Add(time.Duration(p.pick(90)) * time.Second)
	activation, kind := p.address()
	ctx, now := p.t.Context(), p.now
	call := func(state frames.State) frames.Step { return frames.TimeOut(ctx, p.def, state, at(activation), now) }
	out := p.result()
	switch {
	case kind == workflow.KindWait:
	case p.pick(20) == 0:
		call = func(state frames.State) frames.Step {
			return frames.Fail(ctx, p.def, state, at(activation), engine.Failure{Code: "C", Message: "m"}, now)
		}
	default:
		call = func(state frames.State) frames.Step {
			return frames.Complete(ctx, p.def, state, at(activation), out, "ada", now)
		}
	}
	before := p.state
	step := p.do(call)
	p.check(before, step, activation)
	again := p.do(call)
	known := again.Reason == engine.ReasonStaleActivation || again.Reason == engine.ReasonTerminal
	if again.Applied || step.Applied && !known {
		p.t.Fatalf("a second delivery to %s: applied %t, reason %q", activation, again.Applied, again.Reason)
	}
}

// result draws one of an action, which now and then is none.
func (p *player) result() engine.Values {
	switch p.pick(24) {
	case 0:
		return nil
	case 1, 2, 3:
		return engine.Values{"got": 1.5}
	case 4, 5, 6:
		return engine.Values{"got": int64(1), "flag": true}
	}
	return engine.Values{"flag": p.pick(3) == 0}
}

// check holds one step against the state before it.
func (p *player) check(before frames.State, step frames.Step, activation string) {
	if before.Root.Status.IsTerminal() {
		if step.Reason != engine.ReasonTerminal {
			p.t.Fatalf("after the end: applied %t, reason %q", step.Applied, step.Reason)
		}
		return
	}
	wasOpen := slices.ContainsFunc(frames.Parked(p.def, before), func(a frames.ParkedActivation) bool { return a.Activation == activation })
	if step.Applied != wasOpen {
		p.t.Fatalf("delivery to %s, open %t: applied %t, reason %q", activation, wasOpen, step.Applied, step.Reason)
	}
	if !step.Applied {
		return
	}
	var opened []string
	for _, a := range frames.Parked(p.def, step.State) {
		if !slices.ContainsFunc(frames.Parked(p.def, before), func(b frames.ParkedActivation) bool { return b.Activation == a.Activation }) {
			opened = append(opened, a.Activation)
		}
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(opened)), slices.Sorted(slices.Values(step.Opened))); diff != "" {
		p.t.Fatalf("opened (-want +got):\n%s", diff)
	}
	if completed := step.State.Root.Status == engine.StatusCompleted; completed != (step.Outputs != nil) || completed != (step.Outcome == "done") {
		p.t.Fatalf("status %s, outputs %v, outcome %q", step.State.Root.Status, step.Outputs, step.Outcome)
	}
}

// checkCalls requires that the frames of each call come one after the other, and are counted by it.
func (p *player) checkCalls() {
	counts := map[string]int{}
	opened := map[string]int{}
	live := map[string]string{}
	for _, e := range p.history {
		if e.Call == nil {
			delete(live, e.Activation)
			if e.Type == workflow.KindEnd || e.Outcome != engine.OutcomeCompleted {
				frame, _ := cutLast(e.Activation)
				for call, path := range live {
					if path == frame {
						delete(live, call)
					}
				}
			}
			continue
		}
		if live[e.Activation] != "" {
			p.t.Fatalf("%s opened %s beside %s", e.Activation, e.Call.Path, live[e.Activation])
		}
		live[e.Activation] = e.Call.Path
		counts[e.Activation]++
		if nth := max(e.Call.Iteration, e.Call.Item, 1); nth != counts[e.Activation] {
			p.t.Fatalf("frame %d of %s is %+v", counts[e.Activation], e.Activation, *e.Call)
		}
		frame, last := cutLast(e.Activation)
		node, _, _ := strings.Cut(last, "#")
		key := join(frame, node)
		opened[key]++
		if want := fmt.Sprintf("%s[%d]", key, opened[key]); e.Call.Path != want {
			p.t.Fatalf("frame %s, want %s", e.Call.Path, want)
		}
	}
}

func cutLast(address string) (path, last string) {
	at := strings.LastIndexByte(address, '/')
	return address[:max(at, 0)], address[at+1:]
}

func TestRandomRuns(t *testing.T) {
	statuses := map[engine.Status]int{}
	deep, frameCount := 0, 0
	for seed := range uint64(150) {
		p := play(t, seed)
		for range 20 + p.pick(80) {
			p.turn()
			for _, f := range p.state.Frames {
				deep = max(deep, strings.Count(f.Path, "/")+1)
			}
			if p.state.Root.Status.IsTerminal() {
				break
			}
		}
		if !p.state.Root.Status.IsTerminal() {
			p.do(func(state frames.State) frames.Step { return frames.Cancel(p.def, state, "r", p.now) })
		}
		p.turn()
		p.checkCalls()
		frameCount += len(p.paths)
		statuses[p.state.Root.Status]++
	}
	t.Logf("statuses %v, depth %d, %d frames", statuses, deep, frameCount)
	for _, status := range []engine.Status{engine.StatusCompleted, engine.StatusFailed, engine.StatusCancelled} {
		if statuses[status] < 3 {
			t.Errorf("only %d runs are %s", statuses[status], status)
		}
	}
	if deep < levels-1 || frameCount < 300 {
		t.Errorf("%d frames, at most %d deep", frameCount, deep)
	}
}

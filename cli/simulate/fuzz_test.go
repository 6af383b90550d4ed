package simulate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/apitomy/axiom-operator/cli/simulate"
	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// A dice makes choices of bytes. Where they end, the first choice is taken.
type dice struct{ data []byte }

func (d *dice) roll(sides int) int {
	if len(d.data) == 0 {
		return 0
	}
	n := int(d.data[0]) % sides
	d.data = d.data[1:]
	return n
}

// A planner lays out a workflow of blocks one behind the other: single nodes,
// choices that may lead back, and forks that join again. Now and then it makes a
// mistake, for what is invalid must be refused and not break anything.
type planner struct {
	dice
	nodes, edges []any
}

func (p *planner) document() workflow.Document {
	start := p.node("start")
	last := start
	blocks := []func(string) string{p.single, p.choice, p.fork}
	for range 1 + p.roll(6) {
		last = blocks[p.roll(len(blocks))](last)
	}
	p.edge(last, p.node("end"), nil)
	if p.roll(8) == 7 {
		p.edge(fmt.Sprint("n", p.roll(9)), fmt.Sprint("n", p.roll(9)), map[string]any{"isDefault": true})
	}
	return workflow.Document{"id": "w", "name": "W", "nodes": p.nodes, "edges": p.edges}
}

var configs = map[string][]map[string]any{
	"start": {{}},
	"end":   {{}, {"outcome": "done"}},
	"action": {
		{"actionType": "x", "inputs": map[string]any{}, "outputs": []any{}},
		{"actionType": "x", "inputs": map[string]any{"n": "context.n"}, "timeout": "PT1M", "retry": map[string]any{"maxAttempts": int64(2)}},
		{"actionType": "x", "outputs": []any{map[string]any{"name": "n", "required": true}}},
	},
	"human-task":    {{"title": "'for ' + string(context.n)"}, {"inputs": map[string]any{"n": "1 / context.n"}}},
	"receive-event": {{"eventType": "t"}, {"eventType": "u", "match": []any{"event.n == context.n"}, "lookback": "none"}},
	"wait":          {{"duration": "PT1M"}, {"duration": "PT0S"}},
	"component":     {{"component": "c"}},
}

func (p *planner) node(kind string) string {
	id := fmt.Sprint("n", len(p.nodes))
	p.nodes = append(p.nodes, map[string]any{
		"id": id, "type": kind, "name": id, "config": any(configs[kind][p.roll(len(configs[kind]))]),
	})
	return id
}

var working = []string{"wait", "action", "human-task", "receive-event", "component"}

func (p *planner) work() string {
	return p.node(working[p.roll(len(working))])
}

func (p *planner) edge(from, to string, more map[string]any) {
	edge := map[string]any{"id": fmt.Sprint("e", len(p.edges)), "source": from, "target": to}
	maps.Copy(edge, more)
	p.edges = append(p.edges, edge)
}

func (p *planner) single(last string) string {
	node := p.work()
	p.edge(last, node, nil)
	return node
}

func (p *planner) choice(last string) string {
	choice, next := p.single(last), p.work()
	conditions := []string{"context.n == 1", "context.gone", "true", "context.n > 0"}
	p.edge(choice, fmt.Sprint("n", 1+p.roll(len(p.nodes)-1)), map[string]any{"condition": conditions[p.roll(len(conditions))]})
	p.edge(choice, next, map[string]any{"isDefault": true})
	return next
}

func (p *planner) fork(last string) string {
	fork := p.single(last)
	var branches []string
	for range 2 + p.roll(2) {
		branches = append(branches, p.single(fork))
	}
	join := p.work()
	for _, branch := range branches {
		p.edge(branch, join, nil)
	}
	return join
}

// script makes steps one after the other, most of them for what is parked then.
func (p *planner) script(t *testing.T, definition *engine.Definition) simulate.Script {
	script := simulate.Script{{Verb: simulate.VerbStart, Values: engine.Values{"n": int64(p.roll(3))}}}
	for range p.roll(30) {
		elements, err := simulate.Run(t.Context(), definition, script)
		if err != nil {
			t.Fatal(err)
		}
		script = append(script, p.step(elements[len(elements)-1]))
	}
	return script
}

func (p *planner) step(last simulate.Element) simulate.Step {
	step := simulate.Step{
		Verb:       deliveries[p.roll(len(deliveries))],
		Activation: fmt.Sprintf("n%d#%d", p.roll(12), 1+p.roll(3)),
		Failure:    engine.Failure{Code: "C", Message: "M"},
	}
	if len(last.Parked) > 0 && p.roll(8) < 7 {
		step.Activation = last.Parked[p.roll(len(last.Parked))].Activation
	} else {
		step.Attempt = p.roll(3)
	}
	switch step.Verb {
	case simulate.VerbNow:
		step.Now = last.Now.Add(time.Duration(p.roll(5)-1) * 30 * time.Second)
	case simulate.VerbEvent:
		step.Values = engine.Values{"type": []any{"t", "u", nil}[p.roll(3)], "id": strconv.Itoa(p.roll(5)), "n": int64(p.roll(3))}
	case simulate.VerbComplete:
		step.Values = []engine.Values{{}, {"n": int64(1)}, {"n": int64(2)}, nil, {"n": nil}}[p.roll(5)]
	default:
	}
	return step
}

// What a run is likely to wait for comes more often than what ends it.
var deliveries = append(slices.Repeat([]simulate.Verb{
	simulate.VerbComplete, simulate.VerbTimeOut, simulate.VerbEvent, simulate.VerbComplete, simulate.VerbNow,
}, 4), simulate.VerbFail, simulate.VerbStart, simulate.VerbCancel, simulate.VerbAbort)

// Any script on any workflow gives an element for each step, the same ones
// twice; every activation is open or closed once; and behind the end of the run
// nothing happens.
func FuzzSimulate(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{3, 2, 1, 4, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20})
	f.Add([]byte("the quick brown fox jumps over the lazy dog and then does it all over again and again"))
	cache := expression.NewCache()
	f.Fuzz(func(t *testing.T, data []byte) {
		p := &planner{dice: dice{data}}
		definition, _ := engine.New(p.document(), cache)
		script := p.script(t, definition)
		elements, err := simulate.Run(t.Context(), definition, script)
		if err != nil {
			t.Fatal(err)
		}
		if len(elements) != len(script) {
			t.Fatalf("%d elements for %d steps", len(elements), len(script))
		}
		c := &checker{open: map[string]bool{}}
		for i, e := range elements {
			if err := c.check(i, e); err != nil {
				t.Fatalf("step %d: %v\n%s", i+1, err, encode(t, e))
			}
		}
		again, err := simulate.Run(t.Context(), definition, script)
		if err != nil || encode(t, again) != encode(t, elements) {
			t.Errorf("the second time it is another story: %v", err)
		}
	})
}

// What the planner plans is mostly valid, and runs come to all the ends there are.
func TestPlansAreOfUse(t *testing.T) {
	cache := expression.NewCache()
	counts := map[engine.Status]int{}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 7))
		data := make([]byte, 400)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		p := &planner{dice: dice{data}}
		definition, _ := engine.New(p.document(), cache)
		elements, err := simulate.Run(t.Context(), definition, p.script(t, definition))
		if err != nil {
			t.Fatal(err)
		}
		counts[elements[len(elements)-1].Status]++
	}
	for status, least := range map[engine.Status]int{
		engine.StatusCompleted: 3, engine.StatusFailed: 10, engine.StatusCancelled: 10, engine.StatusWaiting: 10,
	} {
		if counts[status] < least {
			t.Errorf("%d runs are %s, want %d at least: %v", counts[status], status, least, counts)
		}
	}
}

func encode(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A checker follows a run from element to element.
type checker struct {
	open   map[string]bool
	closed int
	isOver bool
	status engine.Status
}

func (c *checker) check(index int, e simulate.Element) error {
	if e.Step != index+1 {
		return fmt.Errorf("it is numbered %d", e.Step)
	}
	if c.isOver && (len(e.Opened) > 0 || len(e.Closed) > 0 || e.Status != c.status) {
		return errors.New("something happened behind the end")
	}
	for _, activation := range e.Opened {
		if c.open[activation] {
			return fmt.Errorf("%s was opened twice", activation)
		}
		c.open[activation] = true
	}
	for _, entry := range e.Closed {
		if c.closed++; entry.Seq != c.closed {
			return fmt.Errorf("entry %d has number %d", c.closed, entry.Seq)
		}
		delete(c.open, entry.Activation)
	}
	var parked []string
	for _, p := range e.Parked {
		parked = append(parked, p.Activation)
		if !c.open[p.Activation] {
			return fmt.Errorf("%s is parked and was never opened", p.Activation)
		}
	}
	if len(parked) != len(c.open) || len(parked) != len(slices.Compact(slices.Sorted(slices.Values(parked)))) {
		return fmt.Errorf("%v are parked, %v are open", parked, c.open)
	}
	c.status, c.isOver = e.Status, e.Status.IsTerminal()
	return nil
}

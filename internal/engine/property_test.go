package engine_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

func drawing(seed, stream uint64) chooser {
	return rand.New(rand.NewPCG(seed, stream)).IntN
}

// A delivery is one call with all its arguments but the instance.
type delivery struct {
	name string
	at   engine.Address
	call func(in engine.Instance) engine.Step
}

// A player makes random deliveries to a run.
type player struct {
	*story
	pick  chooser
	joins []string
}

func play(t testing.TB, doc workflow.Document, pick chooser) *player {
	t.Helper()
	def, problems := engine.New(doc, newExpressions())
	if workflow.HasErrors(problems) {
		text, _ := json.Marshal(doc)
		t.Fatalf("document is not valid: %v\n%s", problems, text)
	}
	p := &player{story: &story{t: t, def: def, now: noon}, pick: pick, joins: slices.Collect(maps.Keys(def.Workflow().Joins()))}
	inputs := engine.Values{"num": []any{int64(1), 1.0, int64(2), "r", nil, true}[pick(6)]}
	step, err := engine.Start(t.Context(), def, inputs, noon)
	if err != nil {
		t.Fatalf("Start() error: %v", err)
	}
	p.take(step)
	return p
}

// delivery draws one that may or may not apply.
func (p *player) delivery(at engine.Address) delivery {
	ctx, now := p.t.Context(), p.now
	switch p.sort(at) {
	case "Complete":
		out := []engine.Values{{"out": int64(1), "flag": true}, {"out": "x"}, {}, nil, {"out": nil, "flag": false}}[p.pick(5)]
		return delivery{"Complete", at, func(in engine.Instance) engine.Step {
			return engine.Complete(ctx, p.def, in, at, out, "ada", now)
		}}
	case "Fail":
		f := engine.Failure{Phase: []engine.Phase{"", engine.PhaseExecutorLookup, engine.PhaseResultValidation}[p.pick(3)], Code: "C", Message: "m"}
		return delivery{"Fail", at, func(in engine.Instance) engine.Step { return engine.Fail(ctx, p.def, in, at, f, now) }}
	case "Deliver":
		ev := p.event()
		return delivery{"Deliver", at, func(in engine.Instance) engine.Step { return engine.Deliver(ctx, p.def, in, at, ev, now) }}
	}
	return delivery{"TimeOut", at, func(in engine.Instance) engine.Step { return engine.TimeOut(ctx, p.def, in, at, now) }}
}

// sort draws what to do to an activation: what its kind asks for more often than not.
func (p *player) sort(at engine.Address) string {
	if p.pick(4) == 0 {
		return []string{"Complete", "Fail", "Deliver", "TimeOut"}[p.pick(4)]
	}
	switch p.kind(at) {
	case workflow.KindReceiveEvent:
		return "Deliver"
	case workflow.KindWait:
		return "TimeOut"
	default:
		return "Complete"
	}
}

func (p *player) kind(at engine.Address) workflow.Kind {
	id, _, _ := strings.Cut(at.Activation, "#")
	node, _ := p.def.Workflow().Node(id)
	return node.Kind()
}

func (p *player) event() engine.Event {
	event := engine.Values{
		"type": []any{"t", "t", "t", "u"}[p.pick(4)], "id": strconv.Itoa(p.pick(30)), "ref": []any{int64(1), "r", "2"}[p.pick(3)],
	}
	if p.pick(2) == 0 {
		event["more"] = int64(1 + p.pick(2))
	}
	return engine.Event{Map: event, Arrived: p.now.Add(-time.Duration(p.pick(120)) * time.Second)}
}

// address draws one that is right more often than not.
func (p *player) address() engine.Address {
	if len(p.in.ActiveBranches) == 0 || p.pick(8) == 0 {
		ids := p.def.Workflow().Nodes()
		return engine.Address{Activation: fmt.Sprintf("%s#%d", ids[p.pick(len(ids))].ID(), p.pick(4)), Attempt: p.pick(3)}
	}
	b := p.in.ActiveBranches[p.pick(len(p.in.ActiveBranches))]
	at := engine.Address{Activation: b.Activation, Attempt: b.Attempt}
	if p.pick(8) == 0 {
		at.Attempt--
	}
	return at
}

func (p *player) turn() {
	p.now = p.now.Add(time.Duration(p.pick(90)) * time.Second)
	before := p.in
	d := p.delivery(p.address())
	step := p.do(d.call)
	p.checkAttempts(before, step)
	p.checkJoins()
	if f := p.in.Failure; f != nil && (f.Code == engine.CodeDeadlock || f.Code == engine.CodeMoveLimit) {
		p.t.Fatalf("failure = %+v", f)
	}
	if step.Applied && step.Reason == "" && p.pick(3) == 0 {
		p.do(d.call)
		if p.last.Applied && d.name != "TimeOut" && d.name != "Fail" {
			p.t.Fatalf("%s of %v applied twice", d.name, d.at)
		}
	}
	if before.Status.IsTerminal() && step.Reason != engine.ReasonTerminal {
		p.t.Fatalf("%s after the end: applied %t, reason %q", d.name, step.Applied, step.Reason)
	}
}

// checkAttempts holds retries to their formula.
func (p *player) checkAttempts(before engine.Instance, step engine.Step) {
	for _, e := range step.Closed {
		node, _ := p.def.Workflow().Node(e.Node)
		if e.Attempts > node.Retry().MaxAttempts || (node.Kind() == workflow.KindAction) != (e.Attempts > 0) {
			p.t.Fatalf("%s had %d attempts", e.Activation, e.Attempts)
		}
	}
	for _, b := range step.Instance.ActiveBranches {
		at := slices.IndexFunc(before.ActiveBranches, func(o engine.ActiveBranch) bool { return o.Activation == b.Activation })
		if at < 0 || b.Attempt == before.ActiveBranches[at].Attempt {
			continue
		}
		node, _ := p.def.Workflow().Node(b.Node)
		backoff, _ := node.Config()["retry"].(map[string]any)["backoff"].(map[string]any)
		factor, ok := backoff["factor"].(float64)
		if !ok {
			factor = float64(backoff["factor"].(int64))
		}
		delay := min(7*math.Pow(factor, float64(b.Attempt-2)), 60)
		want := p.now.Add(time.Duration(delay * float64(time.Second)))
		if b.Attempt != before.ActiveBranches[at].Attempt+1 || !b.NotBefore.Equal(want) {
			p.t.Fatalf("attempt %d not before %v, want %v", b.Attempt, b.NotBefore, want)
		}
	}
}

// checkJoins requires that a join was entered as often as its incoming edges were all followed.
func (p *player) checkJoins() {
	flow := p.def.Workflow()
	completed := map[string]int{}
	for _, e := range p.history {
		if e.Outcome == engine.OutcomeCompleted {
			completed[e.Node]++
		}
	}
	for _, join := range p.joins {
		least := math.MaxInt
		for _, e := range flow.Incoming(join) {
			if !isJoinFeeder(flow, e.Source()) {
				p.t.Fatalf("%s does not feed the join %s", e.Source(), join)
			}
			least = min(least, completed[e.Source()])
			arrived := slices.Contains(p.in.JoinArrivals[join], e.ID())
			if ahead := completed[e.Source()] - p.in.Visits[join]; !p.in.Status.IsTerminal() && (ahead == 1) != arrived {
				p.t.Fatalf("edge %s was followed %d times, join entered %d times, arrived %t", e.ID(), completed[e.Source()], p.in.Visits[join], arrived)
			}
		}
		if p.in.Visits[join] != least {
			p.t.Fatalf("join %s was entered %d times, want %d", join, p.in.Visits[join], least)
		}
	}
}

func TestRandomRuns(t *testing.T) {
	statuses := map[engine.Status]int{}
	joins := 0
	for seed := range uint64(250) {
		pick := drawing(seed, 1)
		p := play(t, generate(pick, false), pick)
		for range 60 {
			p.turn()
		}
		statuses[p.in.Status]++
		for _, join := range p.joins {
			joins += p.in.Visits[join]
		}
		if !p.in.Status.IsTerminal() {
			p.do(func(in engine.Instance) engine.Step { return engine.Cancel(in, "enough", p.now) })
			p.wantStatus(engine.StatusCancelled)
		}
		p.turn()
	}
	for _, status := range []engine.Status{engine.StatusWaiting, engine.StatusCompleted, engine.StatusFailed} {
		if statuses[status] < 20 {
			t.Errorf("%d runs end %s: the runs prove little", statuses[status], status)
		}
	}
	if joins < 40 {
		t.Errorf("%d joins entered: the runs prove little", joins)
	}
}

func FuzzEngineDeliveries(f *testing.F) {
	f.Add(uint64(1), []byte("a run of the mill"))
	f.Add(uint64(7), []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	f.Fuzz(func(t *testing.T, seed uint64, script []byte) {
		pick := pickBytes(script)
		p := play(t, generate(drawing(seed, 2), false), pick)
		for range min(len(script)/4, 80) {
			p.turn()
		}
	})
}

// What commutes of an instance and the history of a step: all but order and what tells of it.
func commuting(in engine.Instance, closed []engine.Entry) string {
	in.Context = engine.Values{"context": map[string]any(in.Context)}
	delete(in.Context["context"].(map[string]any), "error")
	in.ActiveBranches = slices.Clone(in.ActiveBranches)
	for i := range in.ActiveBranches {
		in.ActiveBranches[i].Edge, in.ActiveBranches[i].Condition = "", ""
	}
	slices.SortFunc(in.ActiveBranches, func(a, b engine.ActiveBranch) int { return strings.Compare(a.Activation, b.Activation) })
	closed = slices.Clone(closed)
	for i := range closed {
		closed[i].Seq, closed[i].Edge, closed[i].Condition = 0, "", ""
	}
	slices.SortFunc(closed, func(a, b engine.Entry) int { return strings.Compare(a.Activation, b.Activation) })
	data, err := json.MarshalIndent([]any{in, closed}, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func TestDeliveriesToDifferentBranchesCommute(t *testing.T) {
	compared := 0
	for seed := range uint64(300) {
		pick := drawing(seed, 3)
		p := play(t, generate(pick, true), pick)
		for range 40 {
			if len(p.in.ActiveBranches) > 1 && p.commutes() {
				compared++
			}
			p.turn()
		}
	}
	if compared < 500 {
		t.Errorf("%d pairs compared: the runs prove little", compared)
	}
}

// commutes makes two deliveries in both orders and tells whether they could be compared.
func (p *player) commutes() bool {
	i := p.pick(len(p.in.ActiveBranches))
	j := (i + 1 + p.pick(len(p.in.ActiveBranches)-1)) % len(p.in.ActiveBranches)
	at := func(b engine.ActiveBranch) engine.Address {
		return engine.Address{Activation: b.Activation, Attempt: b.Attempt}
	}
	first, second := p.settledDelivery(at(p.in.ActiveBranches[i])), p.settledDelivery(at(p.in.ActiveBranches[j]))
	one := first.call(p.in)
	oneTwo := second.call(one.Instance)
	two := second.call(p.in)
	twoOne := first.call(two.Instance)
	for _, s := range []engine.Step{one, oneTwo, two, twoOne} {
		if !s.Applied || s.Instance.Status.IsTerminal() {
			return false
		}
	}
	a := commuting(decode(p.t, encode(p.t, oneTwo.Instance)), slices.Concat(one.Closed, oneTwo.Closed))
	b := commuting(decode(p.t, encode(p.t, twoOne.Instance)), slices.Concat(two.Closed, twoOne.Closed))
	if diff := cmp.Diff(a, b); diff != "" {
		p.t.Fatalf("%s of %v and %s of %v (-first first +second first):\n%s", first.name, first.at, second.name, second.at, diff)
	}
	return true
}

// settledDelivery writes no key that another branch writes too, the undeclared flag in particular.
func (p *player) settledDelivery(at engine.Address) delivery {
	d := p.delivery(at)
	if d.name != "Complete" {
		return d
	}
	ctx, now := p.t.Context(), p.now
	d.call = func(in engine.Instance) engine.Step {
		out := engine.Values{at.Activation: true}
		if p.kind(at) != workflow.KindComponent { // which declares no outputs, so the name would be the key
			out["out"] = at.Activation
		}
		return engine.Complete(ctx, p.def, in, at, out, "ada", now)
	}
	return d
}

// However a number is spelt in a context, nothing comes out differently.
func TestRespelledNumbers(t *testing.T) {
	for seed := range uint64(200) {
		pick := drawing(seed, 4)
		p := play(t, generate(pick, false), pick)
		for range 15 {
			d := p.delivery(p.address())
			respelled := p.in
			respelled.Context = engine.Values{}
			for key, v := range p.in.Context {
				respelled.Context[key] = respell(v)
			}
			want, got := d.call(p.in), d.call(respelled)
			if diff := cmp.Diff(encode(t, want.Instance), encode(t, got.Instance)); diff != "" || want.Reason != got.Reason {
				t.Fatalf("seed %d: %s of %v gives %q and %q, instance (-want +got):\n%s", seed, d.name, d.at, want.Reason, got.Reason, diff)
			}
			p.turn()
		}
	}
}

func respell(v any) any {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = respell(v[i])
		}
		return list
	case map[string]any:
		object := map[string]any{}
		for name, member := range v {
			object[name] = respell(member)
		}
		return object
	}
	return v
}

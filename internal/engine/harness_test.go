package engine_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// newExpressions shares one cache among all tests: building its environments takes most of their time.
var newExpressions = sync.OnceValue(expression.NewCache)

// noon is when every story begins.
var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// parse reads YAML as a JSON tree.
func parse(t testing.TB, text string) any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("parse %s: %v", text, err)
	}
	v, err := jsonvalue.Decode(data)
	if err != nil {
		t.Fatalf("parse %s: %v", text, err)
	}
	return v
}

func values(t testing.TB, text string) engine.Values {
	t.Helper()
	object, ok := parse(t, text).(map[string]any)
	if !ok {
		t.Fatalf("%s is no object", text)
	}
	return object
}

// flow is a document with these nodes and edges, one to a line. A node is written "id kind {config}", an edge
// "source target {members}"; its id is "source-target".
func flow(nodes, edges string) string {
	var b strings.Builder
	b.WriteString("id: w\nname: W\nnodes:\n")
	for line := range strings.Lines(nodes) {
		if id, rest, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			kind, config, _ := strings.Cut(rest, " ")
			b.WriteString("- {id: '" + id + "', type: " + kind + ", name: The " + id + ", config: " + config + "}\n")
		}
	}
	b.WriteString("edges:\n")
	for line := range strings.Lines(edges) {
		if source, rest, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			target, members, _ := strings.Cut(rest, " ")
			members = strings.TrimSuffix(strings.TrimPrefix(members, "{"), "}")
			if members != "" {
				members = ", " + members
			}
			b.WriteString("- {id: '" + source + "-" + target + "', source: '" + source + "', target: '" + target + "'" + members + "}\n")
		}
	}
	return b.String()
}

// A story is a run that a test tells step by step.
type story struct {
	t       testing.TB
	def     *engine.Definition
	in      engine.Instance
	now     time.Time
	history []engine.Entry
	last    engine.Step
}

func define(t testing.TB, doc string) *engine.Definition {
	t.Helper()
	def, problems := engine.New(parse(t, doc).(map[string]any), newExpressions())
	for _, p := range problems {
		if p.IsError() {
			t.Fatalf("document is not valid: %v\n%s", p, doc)
		}
	}
	return def
}

func tell(t testing.TB, doc, inputs string) *story {
	t.Helper()
	s := &story{t: t, def: define(t, doc), now: noon}
	step, err := engine.Start(t.Context(), s.def, values(t, inputs), s.now)
	if err != nil {
		t.Fatalf("Start() error: %v", err)
	}
	s.take(step)
	return s
}

// do makes one step and holds it to what is true of every step.
func (s *story) do(call func(in engine.Instance) engine.Step) engine.Step {
	s.t.Helper()
	before := encode(s.t, s.in)
	step := call(s.in)
	if after := encode(s.t, s.in); after != before {
		s.t.Fatalf("the step changed its instance (-before +after):\n%s", cmp.Diff(before, after))
	}
	// cmp is slow, and most steps are the same.
	if again := call(decode(s.t, before)); !reflect.DeepEqual(step, again) {
		s.t.Fatalf("another step after the instance went through JSON (-first +second):\n%s", cmp.Diff(step, again))
	}
	if !step.Applied {
		s.checkIgnored(step)
		s.last = step
		s.in = step.Instance
		return step
	}
	if step.Reason != "" || step.Instance.Step != s.in.Step+1 {
		s.t.Fatalf("applied step %d has reason %q and number %d", s.in.Step, step.Reason, step.Instance.Step)
	}
	s.take(step)
	return step
}

// checkIgnored requires that a refused delivery left no trace but the error of a match.
func (s *story) checkIgnored(step engine.Step) {
	s.t.Helper()
	if step.Reason == "" || len(step.Closed)+len(step.Opened) > 0 {
		s.t.Fatalf("ignored step has reason %q, closed %v, opened %v", step.Reason, step.Closed, step.Opened)
	}
	after := decode(s.t, encode(s.t, step.Instance))
	if step.Reason == engine.ReasonMatchError {
		for i := range after.ActiveBranches {
			after.ActiveBranches[i].LastError = s.in.ActiveBranches[i].LastError
		}
	}
	if before, after := encode(s.t, s.in), encode(s.t, after); before != after {
		s.t.Fatalf("ignored step changed the instance (-before +after):\n%s", cmp.Diff(before, after))
	}
}

// take accepts a step and holds the instance to what is true of every instance.
func (s *story) take(step engine.Step) {
	s.t.Helper()
	for _, e := range step.Closed {
		s.history = append(s.history, e)
		if e.Seq != len(s.history) {
			s.t.Fatalf("entry %s has seq %d, want %d", e.Activation, e.Seq, len(s.history))
		}
	}
	s.last, s.in = step, step.Instance
	checkInstance(s.t, s.in, s.history)
}

func checkInstance(t testing.TB, in engine.Instance, history []engine.Entry) {
	t.Helper()
	seen := map[string]bool{}
	for _, e := range history {
		if seen[e.Activation] {
			t.Fatalf("%s closed twice", e.Activation)
		}
		seen[e.Activation] = true
	}
	for _, b := range in.ActiveBranches {
		if seen[b.Activation] {
			t.Fatalf("%s is open and closed, or open twice", b.Activation)
		}
		seen[b.Activation] = true
	}
	visits := 0
	for _, n := range in.Visits {
		visits += n
	}
	if visits != len(seen) {
		t.Fatalf("%d visits, but %d activations", visits, len(seen))
	}
	if in.Status.IsTerminal() != (len(in.ActiveBranches) == 0) {
		t.Fatalf("status %s with %d active branches", in.Status, len(in.ActiveBranches))
	}
	if (in.Status == engine.StatusFailed) != (in.Failure != nil) {
		t.Fatalf("status %s with failure %v", in.Status, in.Failure)
	}
	if size := jsonvalue.Size(map[string]any(in.Context)); size > engine.MaxContextBytes {
		t.Fatalf("context has %d bytes", size)
	}
}

func encode(t testing.TB, in engine.Instance) string {
	t.Helper()
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatalf("encode instance: %v", err)
	}
	return string(data)
}

func decode(t testing.TB, text string) engine.Instance {
	t.Helper()
	var in engine.Instance
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		t.Fatalf("decode instance: %v", err)
	}
	return in
}

// at addresses an activation, of an action at its present attempt.
func (s *story) at(activation string) engine.Address {
	for _, b := range s.in.ActiveBranches {
		if b.Activation == activation {
			return engine.Address{Activation: activation, Attempt: b.Attempt}
		}
	}
	return engine.Address{Activation: activation, Attempt: 1}
}

func (s *story) complete(activation, out string) {
	s.t.Helper()
	at, result := s.at(activation), values(s.t, out)
	s.do(func(in engine.Instance) engine.Step {
		return engine.Complete(s.t.Context(), s.def, in, at, result, "ada", s.now)
	})
}

func (s *story) fail(activation string, f engine.Failure) {
	s.t.Helper()
	at := s.at(activation)
	s.do(func(in engine.Instance) engine.Step { return engine.Fail(s.t.Context(), s.def, in, at, f, s.now) })
}

func (s *story) timeOut(activation string) {
	s.t.Helper()
	at := s.at(activation)
	s.do(func(in engine.Instance) engine.Step { return engine.TimeOut(s.t.Context(), s.def, in, at, s.now) })
}

func (s *story) deliver(activation, event string, arrived time.Time) {
	s.t.Helper()
	at, ev := s.at(activation), engine.Event{Map: values(s.t, event), Arrived: arrived}
	s.do(func(in engine.Instance) engine.Step { return engine.Deliver(s.t.Context(), s.def, in, at, ev, s.now) })
}

func (s *story) after(d time.Duration) *story {
	s.now = s.now.Add(d)
	return s
}

// wantOpen requires these activations to be open, in this order.
func (s *story) wantOpen(activations ...string) {
	s.t.Helper()
	var open []string
	for _, p := range engine.Parked(s.def, s.in) {
		open = append(open, p.Activation)
	}
	if diff := cmp.Diff(activations, open); diff != "" {
		s.t.Fatalf("open activations (-want +got):\n%s\nhistory: %v", diff, s.closed())
	}
}

// wantHistory requires the history to be of these activations and outcomes, written "a#1 Completed".
func (s *story) wantHistory(entries ...string) {
	s.t.Helper()
	if diff := cmp.Diff(entries, s.closed()); diff != "" {
		s.t.Fatalf("history (-want +got):\n%s", diff)
	}
}

func (s *story) closed() []string {
	var closed []string
	for _, e := range s.history {
		closed = append(closed, e.Activation+" "+string(e.Outcome))
	}
	return closed
}

func (s *story) wantContext(want string) {
	s.t.Helper()
	if diff := cmp.Diff(values(s.t, want), s.in.Context); diff != "" {
		s.t.Fatalf("context (-want +got):\n%s", diff)
	}
}

func (s *story) wantStatus(want engine.Status) {
	s.t.Helper()
	if s.in.Status != want {
		s.t.Fatalf("status %s, want %s; failure %+v", s.in.Status, want, s.in.Failure)
	}
}

func (s *story) wantFailure(phase engine.Phase, code, activation string) engine.Failure {
	s.t.Helper()
	s.wantStatus(engine.StatusFailed)
	f := *s.in.Failure
	if f.Phase != phase || f.Code != code || f.Activation != activation || f.Message == "" {
		s.t.Fatalf("failure %+v, want %s/%s of %s", f, phase, code, activation)
	}
	return f
}

func (s *story) wantReason(want engine.Reason) {
	s.t.Helper()
	if s.last.Applied || s.last.Reason != want {
		s.t.Fatalf("applied %t, reason %q, want %q", s.last.Applied, s.last.Reason, want)
	}
}

// branch is the open activation.
func (s *story) branch(activation string) engine.ActiveBranch {
	s.t.Helper()
	for _, b := range s.in.ActiveBranches {
		if b.Activation == activation {
			return b
		}
	}
	s.t.Fatalf("%s is not open", activation)
	return engine.ActiveBranch{}
}

func (s *story) entry(activation string) engine.Entry {
	s.t.Helper()
	for _, e := range s.history {
		if e.Activation == activation {
			return e
		}
	}
	s.t.Fatalf("%s has no entry", activation)
	return engine.Entry{}
}

const (
	act  = "action {actionType: a, inputs: {}, outputs: []}"
	comp = "component {component: c}"
	ask  = "human-task {description: D, outputs: []}"
	hear = "receive-event {eventType: t}"
	zero = "wait {duration: PT0S}"
	from = "start {inputs: []}"
)

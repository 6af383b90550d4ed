package workflow

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

func edgeIDs(edges []Edge) []string {
	ids := []string{}
	for _, e := range edges {
		ids = append(ids, e.ID())
	}
	return ids
}

func TestLookUps(t *testing.T) {
	doc := object(parse(t, `
id: w
name: W
description: D
nodes:
- {id: a, type: start, name: first}
- {id: a, type: end, name: second}
- {id: b, type: start}
edges:
- {id: e1, source: a, target: b, priority: 2}
- {id: e2, source: a, target: b, priority: -1}
- {id: e3, source: a, target: b, priority: 2, isError: true}
- {id: e4, source: a, target: b, isTimeout: true, priority: 7}
- {id: e5, source: a, target: b, condition: c}
- {id: e6, source: a, target: b, isDefault: true}`))
	w := Read(doc)
	if n, ok := w.Node("a"); !ok || n.Name() != "first" {
		t.Errorf("Node(a) = %v, %t, want the first one", n, ok)
	}
	if _, ok := w.Node("c"); ok {
		t.Error("Node(c) was found")
	}
	if n, ok := w.Start(); !ok || n.Name() != "first" {
		t.Errorf("Start() = %v, %t", n, ok)
	}
	if w.ID() != "w" || w.Name() != "W" || w.Description() != "D" || len(w.Nodes()) != 3 || len(w.Edges()) != 6 {
		t.Errorf("workflow %s %s %s with %d nodes and %d edges", w.ID(), w.Name(), w.Description(), len(w.Nodes()), len(w.Edges()))
	}
	for name, tc := range map[string]struct{ got, want []string }{
		"outgoing": {edgeIDs(w.Outgoing("a")), []string{"e2", "e5", "e6", "e1", "e3", "e4"}},
		"incoming": {edgeIDs(w.Incoming("b")), []string{"e1", "e2", "e3", "e4", "e5", "e6"}},
		"normal":   {edgeIDs(w.Normal("a")), []string{"e2", "e5", "e6", "e1"}},
		"nothing":  {edgeIDs(w.Outgoing("b")), []string{}},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	plain := []string{}
	for _, e := range w.Edges() {
		if e.IsPlain() {
			plain = append(plain, e.ID())
		}
	}
	if diff := cmp.Diff([]string{"e1", "e2"}, plain); diff != "" {
		t.Errorf("plain edges (-want +got):\n%s", diff)
	}
	if e, ok := w.EdgeOf("a", ClassError); !ok || e.ID() != "e3" {
		t.Errorf("EdgeOf(error) = %v, %t", e.ID(), ok)
	}
	if _, ok := w.EdgeOf("b", ClassTimeout); ok {
		t.Error("EdgeOf(b) found one")
	}
}

func TestForks(t *testing.T) {
	for edges, want := range map[string]bool{
		"":                         false,
		"{source: a}":              false,
		"{source: a}, {source: a}": true,
		"{source: a}, {source: a, condition: ' '}":               true,
		"{source: a}, {source: a}, {source: a, isError: true}":   true,
		"{source: a}, {source: a, isTimeout: true}":              false,
		"{source: a}, {source: a, condition: 'true'}":            false,
		"{source: a}, {source: a}, {source: a, isDefault: true}": false,
	} {
		w := Read(object(parse(t, flow("{id: a}", edges))))
		if got := w.IsFork("a"); got != want {
			t.Errorf("IsFork with edges %s is %t", edges, got)
		}
	}
}

func TestDeclaredKeys(t *testing.T) {
	doc := object(parse(t, `
nodes:
- {id: a, type: start, config: {inputs: [{name: in, contextKey: renamed}, {name: ' '}, {}]}}
- {id: b, type: action, config: {outputs: [{name: o, contextKey: action-key}, {name: plain, contextKey: ' '}], inputs: {x: '1'}}}
- {id: c, type: human-task, config: {outputs: [{name: answer}]}}
- {id: d, type: receive-event, config: {outputs: [{contextKey: mapped, expression: ' '}, {contextKey: '', expression: e}]}}
- {id: e, type: component, config: {outputs: {bound: result}}}
- {id: f, type: wait, config: {outputs: [{name: never}]}}
- {id: g, type: end, config: {outputs: [{name: neither}]}}`))
	want := []string{"action-key", "answer", "bound", "in", "mapped", "plain"}
	if diff := cmp.Diff(want, Read(doc).DeclaredKeys()); diff != "" {
		t.Errorf("DeclaredKeys() (-want +got):\n%s", diff)
	}
	doc = object(parse(t, "{nodes: [{type: receive-event, config: {outputs: []}}], edges: [{isError: true}]}"))
	if diff := cmp.Diff([]string{"error", "event"}, Read(doc).DeclaredKeys()); diff != "" {
		t.Errorf("DeclaredKeys() (-want +got):\n%s", diff)
	}
}

func TestFields(t *testing.T) {
	n := Node{object(parse(t, `{type: human-task, config: {outputs: [
		{name: a, type: ' ', label: L, description: D, widget: select, required: true, defaultValue: 1, options: [{label: l, value: v}, 1]}, 5,
		{name: b, type: number, contextKey: c}]}}`))}
	fields := n.OutputFields()
	if len(fields) != 2 {
		t.Fatalf("%d fields", len(fields))
	}
	a, b := fields[0], fields[1]
	if a.Name() != "a" || a.Type() != "string" || a.Label() != "L" || a.Description() != "D" || a.Widget() != "select" ||
		!a.IsRequired() || a.DefaultValue() != int64(1) || a.EffectiveContextKey() != "a" {
		t.Errorf("field a = %v", a)
	}
	if diff := cmp.Diff([]Option{{Label: "l", Value: "v"}, {}}, a.Options()); diff != "" {
		t.Errorf("Options() (-want +got):\n%s", diff)
	}
	if b.Type() != "number" || b.EffectiveContextKey() != "c" || b.IsRequired() || b.DefaultValue() != nil || b.Options() != nil {
		t.Errorf("field b = %v", b)
	}
}

// Views of a document that is all wrong must say nothing rather than fail.
func TestViewsOfOtherShapes(t *testing.T) {
	doc := object(parse(t, `{id: 1, nodes: [1, {}, {id: 7, type: action, config: {outputs: [1], retry: [], timeout: 5, inputs: []}},
		{type: receive-event, config: {match: [1], outputs: [1], correlationKey: 1, lookback: 1}}, {type: wait, config: {duration: P}}],
		edges: [null, {priority: 9999999999, condition: 1, isDefault: 1}]}`))
	before := jsonvalue.Clone(doc)
	w := Read(doc)
	for _, n := range w.Nodes() {
		if n.ID() != "" || n.Name() != "" || n.InputFields() != nil || n.OutputFields() != nil || n.Inputs() != nil || n.Match() != nil {
			t.Errorf("node = %v", n)
		}
		if _, ok := n.Correlation(); ok || n.WaitDuration() != 0 || n.Retry() != (Retry{MaxAttempts: 1}) {
			t.Errorf("node = %v", n)
		}
		if d, ok := n.Timeout(); ok || d != 0 {
			t.Errorf("timeout = %v", d)
		}
	}
	e := w.Edges()[0]
	if e.Priority() != 0 || e.HasCondition() || e.IsDefault() || e.Class() != ClassNormal || e.Label() != "" {
		t.Errorf("edge = %v", e)
	}
	if _, ok := w.Start(); ok {
		t.Error("a start was found")
	}
	if diff := cmp.Diff(before, any(doc)); diff != "" {
		t.Errorf("reading changed the document (-before +after):\n%s", diff)
	}
}

func TestNodeConfig(t *testing.T) {
	n := Node{object(parse(t, `{type: receive-event, config: {eventType: t, timeout: PT1M, match: [a, b], title: T, outcome: O,
		correlationKey: {subscriptionKey: s, eventKey: e}, outputs: [{contextKey: k, expression: x}]}}`))}
	if d, ok := n.Timeout(); !ok || d != time.Minute {
		t.Errorf("Timeout() = %v, %t", d, ok)
	}
	if key, ok := n.Correlation(); !ok || key != (Correlation{SubscriptionKey: "s", EventKey: "e"}) {
		t.Errorf("Correlation() = %v, %t", key, ok)
	}
	if n.EventType() != "t" || n.Lookback() != LookbackRunStart || n.Title() != "T" || n.Outcome() != "O" {
		t.Errorf("node = %v", n)
	}
	if diff := cmp.Diff([]Mapping{{ContextKey: "k", Expression: "x"}}, n.Mappings()); diff != "" {
		t.Errorf("Mappings() (-want +got):\n%s", diff)
	}
	if d, ok := (Node{map[string]any{"type": "wait", "config": n.Config()}}).Timeout(); ok {
		t.Errorf("a wait has timeout %v", d)
	}
}

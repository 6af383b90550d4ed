package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/apitomy/axiom-operator/internal/engine"
)

// TestDiscreet has expressions of every place fail over a value that their reasons
// quote, and the same definition keep it to itself when it is told to.
func TestDiscreet(t *testing.T) {
	const inputs, quoted = "{word: marigold, key: pr}", "marigold"
	event := engine.Event{Map: values(t, "{id: e, type: merged, ref: pr, word: "+quoted+"}"), Arrived: noon.Add(time.Second)}
	failed := func(s engine.Step) string { return s.Instance.Failure.Message }
	for name, c := range map[string]struct {
		nodes, edges string
		message      func(engine.Step) string
	}{
		"a condition": {
			nodes: "start start {}\nend end {}", edges: "start end {condition: 'context[context.word] == 1'}", message: failed,
		},
		"an input": {
			nodes: "start start {}\na action {actionType: t, inputs: {kept: 'context[context.word]'}}\nend end {}",
			edges: "start a\na end", message: failed,
		},
		"a subscription": {
			nodes: "start start {}\ne receive-event {eventType: merged, correlationKey: {subscriptionKey: 'context[context.word]', eventKey: event.ref}}\nend end {}",
			edges: "start e\ne end", message: failed,
		},
		"a key of an event": {
			nodes:   "start start {}\ne receive-event {eventType: merged, correlationKey: {subscriptionKey: context.key, eventKey: 'event[event.word]'}}\nend end {}",
			edges:   "start e\ne end",
			message: func(s engine.Step) string { return s.Instance.ActiveBranches[0].LastError.Message },
		},
		"what is kept of an event": {
			nodes: "start start {}\ne receive-event {eventType: merged, correlationKey: {subscriptionKey: context.key, eventKey: event.ref}, outputs: [{contextKey: kept, expression: 'event[event.word]'}]}\nend end {}",
			edges: "start e\ne end", message: failed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			def := define(t, flow(c.nodes, c.edges))
			said := c.message(fall(t, def, inputs, event))
			if !strings.Contains(said, quoted) {
				t.Fatalf("the reason quotes no value: %q", said)
			}
			if said := c.message(fall(t, def.Discreet(), inputs, event)); said == "" || strings.Contains(said, quoted) {
				t.Errorf("a discreet definition says %q", said)
			}
		})
	}
}

// fall starts a run, which an event is for unless it fails at once.
func fall(t *testing.T, def *engine.Definition, inputs string, event engine.Event) engine.Step {
	t.Helper()
	step, err := engine.Start(t.Context(), def, values(t, inputs), noon)
	if err != nil {
		t.Fatal(err)
	}
	if step.Instance.Status.IsTerminal() {
		return step
	}
	at := engine.Address{Activation: step.Instance.ActiveBranches[0].Activation}
	return engine.Deliver(t.Context(), def, step.Instance, at, event, noon.Add(time.Second))
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// nodeMaker gives the i-th node of a chain, which something outside completes.
type nodeMaker func(i int) map[string]any

// askNode asks a person.
func askNode(i int) map[string]any {
	return map[string]any{
		"type": "human-task", "name": fmt.Sprintf("Ask %d", i),
		"config": map[string]any{
			"title": "'Step of ' + context.ref", "description": "Go on?",
			"inputs":  map[string]any{"Ref": "context.ref"},
			"outputs": []any{map[string]any{"name": "ok", "type": "boolean", "required": true}},
		},
	}
}

// receiveNode waits for an event of its own.
func receiveNode(i int) map[string]any {
	return map[string]any{
		"type": "receive-event", "name": fmt.Sprintf("Receive %d", i),
		"config": map[string]any{
			"eventType": eventType, "lookback": "none",
			"correlationKey": map[string]any{"subscriptionKey": fmt.Sprintf("context.ref + '/%s'", nodeID(i)), "eventKey": "event.ref"},
		},
	}
}

// eventType is that of all events.
const eventType = "bench.step"

// newEvent is the event that the i-th node of a run waits for.
func newEvent(run *api.WorkflowRun, i int) *api.StreamEvent {
	e := &api.StreamEvent{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", run.Name, i), Namespace: run.Namespace}}
	e.Spec = api.StreamEventSpec{ID: e.Name, Type: eventType, EventSourceID: "bench", Ref: run.Name + "/" + nodeID(i)}
	return e
}

// chainOf is a start, n nodes one after the other, and an end.
func chainOf(node nodeMaker, n int) map[string]any {
	nodes := []any{map[string]any{
		"id": "start", "type": "start", "name": "Start",
		"config": map[string]any{"inputs": []any{map[string]any{"name": "ref", "required": true}}},
	}}
	var edges []any
	previous := "start"
	link := func(to string) {
		edges = append(edges, map[string]any{"id": fmt.Sprintf("e%d", len(edges)), "source": previous, "target": to})
		previous = to
	}
	for i := 1; i <= n; i++ {
		made := node(i)
		made["id"] = nodeID(i)
		nodes = append(nodes, made)
		link(nodeID(i))
	}
	nodes = append(nodes, map[string]any{"id": "end", "type": "end", "name": "End"})
	link("end")
	return map[string]any{"id": "chain", "name": "Chain", "nodes": nodes, "edges": edges}
}

func nodeID(i int) string { return fmt.Sprintf("n%d", i) }

// activation is the first visit of the i-th node.
func activation(i int) string { return nodeID(i) + "#1" }

func (w *world) composition(name, namespace string, document map[string]any) *api.Composition {
	raw, err := json.Marshal(document)
	if err != nil {
		panic(err) // maps of texts and numbers can be written
	}
	comp := &api.Composition{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	comp.Spec.Workflow = &runtime.RawExtension{Raw: raw}
	return comp
}

// compose applies a composition and waits until its history is written.
func (w *world) compose(ctx context.Context, namespace string, document map[string]any) (*api.Composition, error) {
	comp := w.composition(w.name("chain"), namespace, document)
	if err := w.person.Create(ctx, comp); err != nil {
		return nil, fmt.Errorf("create composition: %w", err)
	}
	for comp.Status.Snapshot == "" {
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return nil, fmt.Errorf("wait for the composition's history: %w", err)
		}
		if err := w.person.Get(ctx, client.ObjectKeyFromObject(comp), comp); err != nil {
			return nil, fmt.Errorf("read composition: %w", err)
		}
	}
	return comp, nil
}

func newRun(comp *api.Composition, name string) *api.WorkflowRun {
	run := &api.WorkflowRun{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: comp.Namespace}}
	run.Spec.CompositionRef.Name = comp.Name
	run.Spec.Inputs = &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"ref":%q}`, name)}
	return run
}

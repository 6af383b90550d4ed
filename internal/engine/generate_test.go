package engine_test

import (
	"fmt"
	"maps"
	"strings"

	"github.com/apitomy/axiom-operator/internal/workflow"
)

// A chooser draws a number from 0 up to but not including n.
type chooser func(n int) int

// A generator draws documents that are valid: blocks with one way in and one way out, set one into the other.
type generator struct {
	pick chooser
	// settled keeps conditions to what no node writes, so that branches do not depend on each other.
	settled bool
	nodes   []any
	edges   []any
}

// generate draws a document of moderate size.
func generate(pick chooser, settled bool) workflow.Document {
	g := &generator{pick: pick, settled: settled}
	start := g.node(workflow.KindStart, map[string]any{"inputs": []any{map[string]any{"name": "num"}}})
	first, last := g.block(3)
	end := g.node(workflow.KindEnd, map[string]any{"outcome": "done"})
	g.edge(start, first, nil)
	g.edge(last, end, nil)
	return workflow.Document{"id": "w", "name": "W", "nodes": g.nodes, "edges": g.edges}
}

func (g *generator) node(kind workflow.Kind, config map[string]any) string {
	id := fmt.Sprintf("%c%d", kind[0], len(g.nodes))
	g.nodes = append(g.nodes, map[string]any{"id": id, "name": "N " + id, "type": string(kind), "config": config})
	return id
}

func (g *generator) edge(source, target string, members map[string]any) {
	edge := map[string]any{"id": fmt.Sprintf("%s-%s-%d", source, target, len(g.edges)), "source": source, "target": target}
	maps.Copy(edge, members)
	g.edges = append(g.edges, edge)
}

func (g *generator) block(depth int) (first, last string) {
	if depth == 0 || len(g.nodes) > 60 {
		return g.work()
	}
	switch g.pick(6) {
	case 0:
		return g.work()
	case 1, 2:
		first, between := g.block(depth - 1)
		next, last := g.block(depth - 1)
		g.edge(between, next, nil)
		return first, last
	case 3:
		return g.choice(depth)
	case 4:
		return g.fork(depth)
	}
	return g.loop(depth)
}

func (g *generator) choice(depth int) (first, last string) {
	first, last = g.wait(), g.wait()
	options := 2 + g.pick(2)
	for i := range options {
		in, out := g.block(depth - 1)
		members := map[string]any{"isDefault": true}
		if i < options-1 {
			members = map[string]any{"condition": g.condition(), "priority": int64(i)}
		}
		g.edge(first, in, members)
		g.edge(out, last, nil)
	}
	return first, last
}

func (g *generator) fork(depth int) (first, last string) {
	first, last = g.wait(), g.wait()
	for i := range 2 + g.pick(2) {
		in, out := g.block(depth - 1)
		// The node before a join has no other edge, so that its completions can be counted.
		before := g.wait()
		g.edge(first, in, map[string]any{"priority": int64(-i)})
		g.edge(out, before, nil)
		g.edge(before, last, nil)
	}
	return first, last
}

func (g *generator) loop(depth int) (first, last string) {
	in, out := g.block(depth - 1)
	first, last = g.wait(), g.wait()
	g.edge(first, in, nil)
	g.edge(out, last, nil)
	next := g.wait()
	g.edge(last, first, map[string]any{"condition": g.condition()})
	g.edge(last, next, map[string]any{"isDefault": true})
	return first, next
}

func (g *generator) wait() string {
	return g.node(workflow.KindWait, map[string]any{"duration": []string{"PT0S", "PT1M", "-PT1S"}[g.pick(3)]})
}

// condition is over the start input and, unless settled, over what nodes write. Some have no value for some contexts.
func (g *generator) condition() string {
	conditions := []string{"context.num == 1", "context.num == 1.0", "context.num != 2", "context.num", "true", "false"}
	if !g.settled {
		conditions = append(conditions, "context.error != null", "context.?flag.orValue(false)", "context.?flag.orValue(1) == 1", "context.num > 0", "context.nobody == 1")
	}
	return conditions[g.pick(len(conditions))]
}

// work is a node that somebody serves, with its error and timeout edges leading around to what comes next.
func (g *generator) work() (first, last string) {
	key := fmt.Sprintf("k%d", len(g.nodes))
	switch g.pick(5) {
	case 0:
		first = g.node(workflow.KindAction, g.action(key))
	case 1:
		first = g.node(workflow.KindHumanTask, g.task(key))
	case 2:
		first = g.node(workflow.KindReceiveEvent, g.receive(key))
	case 3:
		first = g.node(workflow.KindComponent, map[string]any{"component": "c", "inputs": g.inputs(), "outputs": map[string]any{key: "result"}})
	default:
		id := g.wait()
		return id, id
	}
	last = g.wait()
	g.edge(first, last, nil)
	config := g.nodes[len(g.nodes)-2].(map[string]any)["config"].(map[string]any)
	if kind := first[0]; config["timeout"] != nil && (kind == 'r' || kind == 'h' && g.pick(2) == 0) {
		g.edge(first, last, map[string]any{"isTimeout": true})
	}
	if g.pick(2) == 0 {
		g.edge(first, last, map[string]any{"isError": true})
	}
	return first, last
}

func (g *generator) inputs() map[string]any {
	inputs := map[string]any{"literal": []any{int64(1)}, "num": "context.num"}
	if g.pick(12) == 0 {
		inputs["broken"] = "context.nobody"
	}
	return inputs
}

func (g *generator) outputs(key string) []any {
	return []any{map[string]any{"name": "out", "contextKey": key, "required": g.pick(2) == 0}}
}

func (g *generator) action(key string) map[string]any {
	config := map[string]any{"actionType": "a", "inputs": g.inputs(), "outputs": g.outputs(key)}
	if g.pick(2) == 0 {
		config["timeout"] = "PT1M"
	}
	if g.pick(2) == 0 {
		config["retry"] = map[string]any{
			"maxAttempts": int64(1 + g.pick(4)),
			"backoff":     map[string]any{"initial": "PT7S", "factor": []any{int64(1), 1.5, int64(10)}[g.pick(3)], "max": "PT1M"},
		}
	}
	return config
}

func (g *generator) task(key string) map[string]any {
	config := map[string]any{
		"title": []string{"'T'", "context.nobody", "context.num"}[g.pick(3)], "description": "D", "inputs": g.inputs(), "outputs": g.outputs(key),
	}
	if g.pick(2) == 0 {
		config["timeout"] = "P1D"
	}
	return config
}

func (g *generator) receive(key string) map[string]any {
	config := map[string]any{
		"eventType": "t", "outputs": []any{map[string]any{"contextKey": key, "expression": []string{"event.id", "event.?more", "event.more"}[g.pick(3)]}},
		"lookback": []string{"run-start", "none", "PT1M"}[g.pick(3)],
	}
	if g.pick(2) == 0 {
		config["timeout"] = "PT1M"
	}
	if g.pick(2) == 0 {
		config["match"] = []any{[]string{"event.more == 1", "event.?more.orValue(1) == 1"}[g.pick(2)]}
	}
	if g.pick(2) == 0 {
		config["correlationKey"] = map[string]any{"subscriptionKey": "context.num", "eventKey": "event.ref"}
	}
	return config
}

// pickBytes draws from bytes, and zeros when they are used up.
func pickBytes(data []byte) chooser {
	return func(n int) int {
		if len(data) == 0 {
			return 0
		}
		drawn := int(data[0]) % n
		data = data[1:]
		return drawn
	}
}

// isJoinFeeder tells whether a node of a generated document has one edge, which leads into a join.
func isJoinFeeder(def *workflow.Workflow, id string) bool {
	return strings.HasPrefix(id, "w") && len(def.Outgoing(id)) == 1
}

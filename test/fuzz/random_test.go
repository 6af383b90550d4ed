package fuzz

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"
)

// dice make all choices of one case; the same name gives the same choices.
type dice struct {
	*rand.Rand
	// deepest is how many levels deep is the deepest value.
	deepest int
	// room is left for what is large, in bytes.
	room int
}

func newDice(name string) *dice {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return &dice{Rand: rand.New(rand.NewPCG(seed, h.Sum64())), deepest: 9000, room: 2 * huge} //nolint:gosec // choices that can be repeated
}

// once in n times it is true.
func (d *dice) once(n int) bool { return d.IntN(n) == 0 }

func pick[T any](d *dice, from []T) T { return from[d.IntN(len(from))] }

// schema is an OpenAPI schema as a CRD has it.
type schema map[string]any

func (s schema) child(name string) schema {
	member, _ := s[name].(map[string]any)
	return member
}

func (s schema) limit(name string, absent int) int {
	switch n := s[name].(type) {
	case int64:
		return int(n)
	case float64:
		return int(n)
	}
	return absent
}

const maxDepth = 9

// value makes a value that a schema mostly takes.
func (d *dice) value(s schema, depth int) any {
	if options, isEnum := s["enum"].([]any); isEnum && !d.once(20) {
		return pick(d, options)
	}
	switch s["type"] {
	case "object":
		return d.object(s, depth)
	case "array":
		return d.list(s, depth)
	case "string":
		return d.text(s)
	case "integer":
		return d.integer(s)
	case "number":
		return d.Float64() * 100
	case "boolean":
		return d.once(2)
	}
	return d.anything(depth)
}

func (d *dice) object(s schema, depth int) any {
	properties := s.child("properties")
	if properties == nil && s.child("additionalProperties") == nil {
		return d.anything(depth)
	}
	required, _ := s["required"].([]any)
	object := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		isRequired := slices.Contains(required, any(name))
		if depth < maxDepth && d.once(3) || isRequired && !d.once(40) {
			object[name] = d.value(properties.child(name), depth+1)
		}
	}
	if more := s.child("additionalProperties"); more != nil {
		for range d.IntN(3) {
			object[d.word()] = d.value(more, depth+1)
		}
	}
	return object
}

func (d *dice) list(s schema, depth int) any {
	least := s.limit("minItems", 0)
	count := least + d.IntN(3)
	if most := s.limit("maxItems", 1000); d.once(60) && d.room > 0 {
		count = min(most, 2000) + d.IntN(2)
		d.room -= count << 10
	}
	list := make([]any, count)
	for i := range list {
		list[i] = d.value(s.child("items"), depth+1)
	}
	return list
}

func (d *dice) integer(s schema) any {
	least, most := s.limit("minimum", -3), s.limit("maximum", math.MaxInt32)
	switch d.IntN(8) {
	case 0:
		return least
	case 1:
		return most
	}
	return least + d.IntN(min(most-least, 100)+1)
}

// words are what the fields of the project's kinds mean something by.
var words = []string{
	"a", "start-1", "end-1", "triage", "assess", "Approve", "alice", "managers", "system:masters", "context.x == true", "context.x +", "'text'",
	"event.ref", "PT1H", "P1D", "-PT1S", "P", "1h", "30m0s", "true", "0", "", " ", "sha256:" + strings.Repeat("0", 64), "axiom-workbench", "bash", "script",
	"Accepted", "Completed", "human-task", "git.commit", "${{ inputs.a }}", "$(HOME)", "../..", "https://example.invalid/", "javascript:alert(1)",
	"\x00", "\u202e", "é", "e\u0301", "😀", "\ud7ff", "{{inputs.a}}", "null", "9223372036854775807", "1e400", "x-note",
}

func (d *dice) word() string { return pick(d, words) }

func (d *dice) text(s schema) any {
	switch s["format"] {
	case "date-time":
		return time.Unix(d.Int64N(4e9), 0).UTC().Format(time.RFC3339)
	case "duration":
		return pick(d, []string{"30m0s", "1h", "0s", "-5m", "9999999h", "P1D", ""})
	}
	least, most := s.limit("minLength", 0), s.limit("maxLength", 1<<20)
	pattern, _ := s["pattern"].(string)
	expression, err := regexp.Compile(pattern)
	for range 40 {
		text := d.word()
		if len(text) >= least && len(text) <= most && err == nil && expression.MatchString(text) {
			return text
		}
	}
	if d.once(10) && d.room > 0 {
		text := strings.Repeat("é", min(most, 300_000)+d.IntN(2))
		d.room -= len(text)
		return text
	}
	return strings.Repeat("a", max(least, 1))
}

// anything is a JSON value of any shape.
func (d *dice) anything(depth int) any {
	kind := d.IntN(9)
	if depth >= maxDepth && kind > 5 {
		kind = d.IntN(6)
	}
	switch kind {
	case 0:
		return nil
	case 1:
		return d.once(2)
	case 2:
		return pick(d, []any{0, -1, 1, math.MaxInt64, math.MinInt64, 1.5, 1e308, math.Copysign(0, -1), 1e21})
	case 3, 4, 5:
		return d.word()
	case 6:
		list := make([]any, d.IntN(4))
		for i := range list {
			list[i] = d.anything(depth + 1)
		}
		return list
	case 7:
		return d.workflow()
	}
	object := map[string]any{}
	for range d.IntN(4) {
		object[d.word()] = d.anything(depth + 1)
	}
	return object
}

// workflow is a document that looks like one, more or less.
func (d *dice) workflow() any {
	kinds := []string{"start", "end", "action", "human-task", "receive-event", "wait", "component", "start", "end", "robot"}
	members := map[string][]any{
		"actionType": {"assess", "git.commit", "", 1}, "title": {"'T'", "context.", nil}, "description": {"D"}, "eventType": {"pr.merged", " "},
		"inputs": {map[string]any{"a": "context.x"}, []any{map[string]any{"name": "x", "required": true}}, "x"}, "duration": {"PT1H", "P", 5},
		"outputs":  {[]any{map[string]any{"name": "ok", "type": "boolean"}}, []any{map[string]any{"contextKey": "e", "expression": "event.ref"}}, []any{nil}},
		"timeout":  {"PT1H", "-PT1H", true},
		"match":    {[]any{"event.a == context.b"}, []any{1}, "x"},
		"lookback": {"run-start", "none", "P1D", "soon"}, "retry": {map[string]any{"maxAttempts": 3}, map[string]any{"backoff": 1}},
		"assignees": {map[string]any{"users": []any{"alice"}}, map[string]any{}, []any{}}, "responseSchema": {map[string]any{"type": "object"}, map[string]any{"$ref": "http://x"}, true},
		"correlationKey": {map[string]any{"subscriptionKey": "context.a", "eventKey": "event.a"}, 7},
	}
	count := 1 + d.IntN(6)
	var nodes, edges []any
	for i := range count {
		config := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if d.once(4) {
				config[name] = pick(d, members[name])
			}
		}
		nodes = append(nodes, map[string]any{"id": fmt.Sprintf("n%d", i), "type": pick(d, kinds), "name": d.word(), "config": config})
	}
	for i := range d.IntN(2 * count) {
		edge := map[string]any{"id": fmt.Sprintf("e%d", i), "source": fmt.Sprintf("n%d", d.IntN(count)), "target": fmt.Sprintf("n%d", d.IntN(count+1))}
		if d.once(3) {
			edge["condition"] = d.word()
		}
		if d.once(4) {
			edge[pick(d, []string{"isDefault", "isTimeout", "isError"})] = true
		}
		edges = append(edges, edge)
	}
	return map[string]any{"id": "w", "name": d.word(), "nodes": nodes, "edges": edges}
}

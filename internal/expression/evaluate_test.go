package expression

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEvaluate(t *testing.T) {
	event := map[string]any{"type": "pr.merged", "ref": "r-1"}
	tests := map[string]struct {
		request Request
		want    Result
	}{
		"null":    {Request{Expression: "null", Scope: ScopeActionInput}, Result{OK: true, ValueJSON: "null", ValueType: "null"}},
		"boolean": {Request{Expression: "1 < 2", Scope: ScopeEdgeCondition}, Result{OK: true, ValueJSON: "true", ValueType: "boolean"}},
		"number":  {Request{Expression: "1.5", Scope: ScopeActionInput}, Result{OK: true, ValueJSON: "1.5", ValueType: "number"}},
		"integer with all its digits": {
			Request{Expression: "9007199254740993", Scope: ScopeActionInput},
			Result{OK: true, ValueJSON: "9007199254740993", ValueType: "number"},
		},
		"string": {Request{Expression: "'<a>'", Scope: ScopeActionInput}, Result{OK: true, ValueJSON: `"<a>"`, ValueType: "string"}},
		"object": {
			Request{Expression: "{'b': 1, 'a': [2]}", Scope: ScopeActionInput},
			Result{OK: true, ValueJSON: `{"a":[2],"b":1}`, ValueType: "object"},
		},
		"array": {Request{Expression: "[]", Scope: ScopeActionInput}, Result{OK: true, ValueJSON: "[]", ValueType: "array"}},
		"a context": {
			Request{Expression: "context.n + 1", Scope: ScopeActionInput, Context: map[string]any{"n": 1.0}},
			Result{OK: true, ValueJSON: "2", ValueType: "number"},
		},
		"no context is an empty one": {
			Request{Expression: "size(context)", Scope: ScopeActionInput},
			Result{OK: true, ValueJSON: "0", ValueType: "number"},
		},
		"an event": {
			Request{Expression: "event.ref", Scope: ScopeCorrelationEventKey, Event: event},
			Result{OK: true, ValueJSON: `"r-1"`, ValueType: "string"},
		},
		"a context and an event": {
			Request{
				Expression: "event.ref == context.ref && !has(context.event)", Scope: ScopeReceiveEventMatch,
				Context: map[string]any{"ref": "r-1"}, Event: event,
			},
			Result{OK: true, ValueJSON: "true", ValueType: "boolean"},
		},
		"an event in the context": {
			Request{Expression: "context.event.ref", Scope: ScopeEdgeCondition, Context: map[string]any{"a": 1}, Event: event},
			Result{OK: true, ValueJSON: `"r-1"`, ValueType: "string"},
		},
		"an event in no context": {
			Request{Expression: "context.event.ref", Scope: ScopeEdgeCondition, Event: event},
			Result{OK: true, ValueJSON: `"r-1"`, ValueType: "string"},
		},
		"a context that has an event": {
			Request{
				Expression: "context.event", Scope: ScopeEdgeCondition,
				Context: map[string]any{"event": nil}, Event: event,
			},
			Result{OK: true, ValueJSON: "null", ValueType: "null"},
		},
		"blank": {Request{Expression: " ", Scope: ScopeEdgeCondition}, Result{OK: true, ValueJSON: "true", ValueType: "boolean"}},
	}
	cache := NewCache()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Evaluate(t.Context(), cache, tc.request)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEvaluateTellsWhatIsWrong(t *testing.T) {
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	tests := map[string]struct {
		ctx       context.Context
		request   Request
		wantError string
	}{
		"no event":                  {t.Context(), Request{Expression: "event.ref", Scope: ScopeCorrelationEventKey}, "needs an event"},
		"no event for a match":      {t.Context(), Request{Expression: "true", Scope: ScopeReceiveEventMatch}, "needs an event"},
		"a list as context":         {t.Context(), Request{Expression: "1", Scope: ScopeActionInput, Context: []any{}}, "must be an object, not array"},
		"a text as context":         {t.Context(), Request{Expression: "1", Scope: ScopeActionInput, Context: ""}, "must be an object, not string"},
		"an unknown scope":          {t.Context(), Request{Expression: "1", Scope: "nowhere"}, "unknown scope"},
		"what does not compile":     {t.Context(), Request{Expression: "context.", Scope: ScopeActionInput}, "compile expression"},
		"what has no value":         {t.Context(), Request{Expression: "context.x", Scope: ScopeActionInput}, "no such key: x"},
		"a variable of other scope": {t.Context(), Request{Expression: "event", Scope: ScopeEdgeCondition, Event: map[string]any{}}, "undeclared"},
		"an interruption":           {interrupted, Request{Expression: "1", Scope: ScopeActionInput}, "interrupted"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Evaluate(tc.ctx, NewCache(), tc.request)
			if got.OK || got.ValueJSON != "" || got.ValueType != "" || !strings.Contains(got.Error, tc.wantError) {
				t.Errorf("got %+v, want only an error with %q", got, tc.wantError)
			}
		})
	}
}

func TestResultMembers(t *testing.T) {
	for name, tc := range map[string]struct {
		result Result
		want   string
	}{
		"a value":  {Result{OK: true, ValueJSON: "1", ValueType: "number"}, `{"ok":true,"valueJson":"1","valueType":"number"}`},
		"an error": {Result{Error: "x"}, `{"ok":false,"error":"x"}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(tc.result)
			if err != nil || string(got) != tc.want {
				t.Errorf("got %s, %v; want %s", got, err, tc.want)
			}
		})
	}
}

package expression

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
)

// A Request asks for the value of an expression outside any run, for somebody who is writing it.
type Request struct {
	Expression string
	Scope      Scope
	// Context is the variable context: a JSON object, or nil for an empty one.
	Context any
	// Event is the event map, or nil without one. A scope that sees only context finds it in context.event, unless
	// Context has a member of that name.
	Event map[string]any
}

// A Result is the answer to a Request. Either it is OK and has a value, or it has an error.
type Result struct {
	OK bool `json:"ok"`
	// ValueJSON is the value as JSON text.
	ValueJSON string `json:"valueJson,omitempty"`
	// ValueType is null, boolean, number, string, object or array.
	ValueType string `json:"valueType,omitempty"`
	// Error says in one line why there is no value.
	Error string `json:"error,omitempty"`
}

// Evaluate compiles and evaluates one expression exactly as a run would. Whatever is wrong, the expression, its
// variables or its value, is told in the result.
func Evaluate(ctx context.Context, cache *Cache, request Request) Result {
	variables, err := request.variables()
	if err != nil {
		return Result{Error: err.Error()}
	}
	program, err := cache.Compile(request.Scope, request.Expression)
	if err != nil {
		return Result{Error: err.Error()}
	}
	value, err := program.Eval(ctx, variables)
	if err != nil {
		return Result{Error: err.Error()}
	}
	text, err := encodeJSON(value)
	if err != nil {
		return Result{Error: fmt.Sprintf("encode value: %v", err)}
	}
	return Result{OK: true, ValueJSON: text, ValueType: typeOfJSON(value)}
}

func (r Request) variables() (Variables, error) {
	values, isObject := r.Context.(map[string]any)
	switch {
	case r.Context != nil && !isObject:
		return Variables{}, fmt.Errorf("context must be an object, not %s", typeOfJSON(r.Context))
	case r.Scope.seesEvent() && r.Event == nil:
		return Variables{}, fmt.Errorf("scope %s needs an event", r.Scope)
	case r.Event != nil && !r.Scope.seesEvent():
		values = withEvent(values, r.Event)
	}
	return Variables{Context: values, Event: r.Event}, nil
}

// withEvent is a copy of values with the event, or values itself if it has one.
func withEvent(values, event map[string]any) map[string]any {
	if _, taken := values[eventVariable]; taken {
		return values
	}
	merged := make(map[string]any, len(values)+1)
	maps.Copy(merged, values)
	merged[eventVariable] = event
	return merged
}

// encodeJSON keeps all digits of an integer, which the canonical form would round to a double.
func encodeJSON(value any) (string, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "", err
	}
	return string(bytes.TrimRight(buffer.Bytes(), "\n")), nil
}

func typeOfJSON(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "number"
}

package definition

import (
	"maps"
	"slices"

	"github.com/apitomy/axiom-operator/internal/expression"
)

// maxCalls bounds how often one visit of a node may call.
const maxCalls = 100

// A Call is what a node says of the component it calls.
type Call struct {
	Component string
	// Inputs as written: a string is an expression or refers to a section, anything else stands for itself.
	Inputs map[string]any
	// Outputs are expressions over the result by context key; nil: the members of the result go by their names.
	Outputs map[string]string
	// Repeat and ForEach are nil where the node has none. It has at most one of them.
	Repeat  *Repeat
	ForEach *ForEach

	scope expression.Scope // of the inputs
}

// A Repeat calls until a condition over context and result holds.
type Repeat struct {
	Max   int
	Until string
}

// A ForEach calls for each item of a list.
type ForEach struct {
	// Items is an expression over the context.
	Items string
	// As is what inputs call the item.
	As  string
	Max int
}

var callMembers = []string{"component", memberInputs, memberOutputs, "repeat", "forEach"}

// readCall reads the configuration of a component node; what is wrong with it is told by a rule.
func readCall(config map[string]any, x *compiler) (call Call, rule string) {
	for name := range config {
		if !slices.Contains(callMembers, name) {
			return call, ruleCallMember
		}
	}
	call.Component, _ = config["component"].(string)
	call.Inputs, _ = config[memberInputs].(map[string]any)
	call.scope = expression.ScopeActionInput
	var ok bool
	if call.Repeat, ok = readRepeat(config["repeat"], x); !ok {
		return call, ruleRepeat
	}
	if call.ForEach, ok = readForEach(config["forEach"], x); !ok {
		return call, ruleForEach
	}
	if call.ForEach != nil {
		call.scope, _ = expression.ForEachInput(call.ForEach.As)
	}
	for _, name := range slices.Sorted(maps.Keys(call.Inputs)) {
		text, isString := call.Inputs[name].(string)
		if isString && text != "" && !IsReference(text) && x.check(call.scope, text) != nil {
			return call, ruleInputExpression
		}
	}
	if call.Outputs, ok = readCallOutputs(config[memberOutputs], x); !ok {
		return call, ruleOutputExpression
	}
	return call, ""
}

func readRepeat(v any, x *compiler) (*Repeat, bool) {
	if v == nil {
		return nil, true
	}
	raw, _ := v.(map[string]any)
	until, _ := raw["until"].(string)
	limit, ok := readLimit(raw["max"])
	resultType, err := x.typeOf(expression.ScopeRepeatUntil, until)
	isCondition := resultType == "bool" || resultType == "dyn"
	return &Repeat{Max: limit, Until: until}, ok && len(raw) == 2 && err == nil && isCondition
}

func readForEach(v any, x *compiler) (*ForEach, bool) {
	if v == nil {
		return nil, true
	}
	raw, _ := v.(map[string]any)
	items, _ := raw["items"].(string)
	as, _ := raw["as"].(string)
	limit, ok := readLimit(raw["max"])
	_, isName := expression.ForEachInput(as)
	return &ForEach{Items: items, As: as, Max: limit},
		ok && isName && len(raw) == 3 && x.check(expression.ScopeActionInput, items) == nil
}

func readLimit(v any) (int, bool) {
	limit, isInteger := v.(int64)
	return int(limit), isInteger && limit >= 1 && limit <= maxCalls
}

func readCallOutputs(v any, x *compiler) (map[string]string, bool) {
	if v == nil {
		return nil, true
	}
	raw, isObject := v.(map[string]any)
	outputs := make(map[string]string, len(raw))
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		text, _ := raw[key].(string)
		if key == "" || x.check(expression.ScopeCallOutput, text) != nil {
			return nil, false
		}
		outputs[key] = text
	}
	return outputs, isObject
}

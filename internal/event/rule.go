package event

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// Limits of rules and of what they give.
const (
	// MaxRuleInputs is how many inputs a rule may name.
	MaxRuleInputs = 64
	// MaxInputBytes bounds the compact JSON of the inputs of one run.
	MaxInputBytes = 256 << 10
	// maxRuleText bounds one expression, in bytes.
	maxRuleText = 8192
)

// Fields of a rule that have expressions.
const (
	FieldFilter    = "filter"
	FieldInputs    = "inputs"
	FieldDedupeKey = "dedupeKey"
)

// A Rule says for which events of a type a run is started, and with what.
// Its expressions see event.
type Rule struct {
	// Filter must be true. A blank one always is.
	Filter string
	// Inputs of the run: text is an expression, anything else stands for itself.
	Inputs map[string]any
	// DedupeKey tells which events are to start one run between them. With a
	// blank one it is those of the same identity.
	DedupeKey string
}

// A Problem is why a rule cannot be used.
type Problem struct {
	// Field that is at fault, and which of the inputs it is, if it is one.
	Field, Input string
	// Rule that it breaks.
	Rule string
}

// Problems of the rule, in the order of its fields.
func (r Rule) Problems(x *expression.Cache) []Problem {
	var problems []Problem
	add := func(field, input, format string, args ...any) {
		problems = append(problems, Problem{Field: field, Input: input, Rule: fmt.Sprintf(format, args...)})
	}
	if resultType, err := check(x, r.Filter); err != nil {
		add(FieldFilter, "", "must be an expression over event: %v", err)
	} else if !isBlank(r.Filter) && resultType != "bool" && resultType != "dyn" {
		add(FieldFilter, "", "must be a condition, and is of type %s", resultType)
	}
	if len(r.Inputs) > MaxRuleInputs {
		add(FieldInputs, "", "must have at most %d members, and has %d", MaxRuleInputs, len(r.Inputs))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Inputs)) {
		text, isExpression := r.Inputs[name].(string)
		switch _, err := check(x, text); {
		case !isExpression:
		case isBlank(text):
			add(FieldInputs, name, `must not be blank; literal text is written as "'text'"`)
		case err != nil:
			add(FieldInputs, name, "must be an expression over event: %v", err)
		}
	}
	if _, err := check(x, r.DedupeKey); err != nil {
		add(FieldDedupeKey, "", "must be an expression over event: %v", err)
	}
	return problems
}

func check(x *expression.Cache, text string) (resultType string, err error) {
	if len(text) > maxRuleText {
		return "", fmt.Errorf("it has %d bytes, the limit is %d", len(text), maxRuleText)
	}
	program, err := x.Compile(expression.ScopeCorrelationEventKey, text)
	if err != nil {
		if faulty, isFaulty := errors.AsType[*expression.CompileError](err); isFaulty {
			return "", errors.New(faulty.Reason)
		}
		return "", err
	}
	return program.ResultType(), nil
}

// A Start is what a rule asks for.
type Start struct {
	// Inputs of the run.
	Inputs map[string]any
	// Key that the rule gave the event; empty: its identity is the key.
	Key string
}

// A RuleError is why it cannot be told what a rule makes of an event.
type RuleError struct {
	// Field of the rule, with the name of the input if it is one.
	Field string
	// Err is what was wrong with it.
	Err error
}

// Error names the field first.
func (e *RuleError) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap gives the cause.
func (e *RuleError) Unwrap() error { return e.Err }

// Apply shows an event to the rule. There is no start if the event is not meant.
// The error is a [*RuleError], or wraps [expression.ErrInterrupted].
func (r Rule) Apply(ctx context.Context, x *expression.Cache, event map[string]any) (*Start, error) {
	if meant, err := r.isMeant(ctx, x, event); err != nil || !meant {
		return nil, err
	}
	inputs, err := r.inputsOf(ctx, x, event)
	if err != nil {
		return nil, err
	}
	start := &Start{Inputs: inputs}
	if isBlank(r.DedupeKey) {
		return start, nil
	}
	key, err := Key(ctx, x, r.DedupeKey, event)
	if err == nil && key == "" {
		err = errors.New("must not be empty")
	}
	if err != nil {
		return nil, ruleError(FieldDedupeKey, err)
	}
	start.Key = ShortKey(key)
	return start, nil
}

func (r Rule) isMeant(ctx context.Context, x *expression.Cache, event map[string]any) (bool, error) {
	if isBlank(r.Filter) {
		return true, nil
	}
	value, err := evaluate(ctx, x, r.Filter, event)
	if err != nil {
		return false, ruleError(FieldFilter, err)
	}
	meant, isBool := value.(bool)
	return isBool && meant, nil
}

func (r Rule) inputsOf(ctx context.Context, x *expression.Cache, event map[string]any) (map[string]any, error) {
	inputs := make(map[string]any, len(r.Inputs))
	for _, name := range slices.Sorted(maps.Keys(r.Inputs)) {
		inputs[name] = r.Inputs[name]
		text, isExpression := r.Inputs[name].(string)
		if !isExpression {
			continue
		}
		value, err := evaluate(ctx, x, text, event)
		if err != nil {
			return nil, ruleError(FieldInputs+"."+name, err)
		}
		inputs[name] = value
	}
	if size := jsonvalue.Size(inputs); size > MaxInputBytes {
		return nil, ruleError(FieldInputs, fmt.Errorf("they have %d bytes of JSON, the limit is %d", size, MaxInputBytes))
	}
	return inputs, nil
}

// ruleError keeps interruptions apart: they say nothing about the rule.
func ruleError(field string, err error) error {
	if errors.Is(err, expression.ErrInterrupted) {
		return err
	}
	return &RuleError{Field: field, Err: err}
}

func isBlank(text string) bool { return strings.TrimSpace(text) == "" }

// Missing are the names that are in none of the rule's inputs, sorted.
func (r Rule) Missing(names []string) []string {
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		value, given := r.Inputs[name]
		return given && value != nil
	})
	slices.SortFunc(missing, cmp.Compare[string])
	return missing
}

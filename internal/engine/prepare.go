package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// prepare gives an activation what it needs while it is parked.
func (s *stepper) prepare(b *ActiveBranch, node workflow.Node) *Failure {
	switch node.Kind() {
	case workflow.KindAction:
		b.Attempt = 1
		s.setDeadline(b, node, s.now)
		return s.resolveInputs(b, node)
	case workflow.KindComponent:
		if node.IsForEach() {
			return nil // its inputs are resolved for each item
		}
		return s.resolveInputs(b, node)
	case workflow.KindHumanTask:
		s.resolveTitle(b, node)
		return s.resolveInputs(b, node)
	case workflow.KindReceiveEvent:
		s.setDeadline(b, node, s.now)
		b.Since = s.since(node)
		return s.resolveSubscription(b, node)
	case workflow.KindWait:
		b.Deadline = s.now.Add(node.WaitDuration())
	case workflow.KindStart, workflow.KindEnd:
	}
	return nil
}

func (s *stepper) setDeadline(b *ActiveBranch, node workflow.Node, from time.Time) {
	b.Deadline = time.Time{}
	if timeout, ok := node.Timeout(); ok {
		b.Deadline = from.Add(timeout)
	}
}

func (s *stepper) resolveInputs(b *ActiveBranch, node workflow.Node) *Failure {
	inputs := node.Inputs()
	resolved := make(Values, len(inputs))
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		text, isExpression := inputs[name].(string)
		if !isExpression {
			literal, err := normalize(inputs[name], 0)
			if err != nil {
				return &Failure{Phase: PhaseInputResolution, Code: CodeExpressionError, Field: name, Message: err.Error()}
			}
			resolved[name] = literal
			continue
		}
		value, failure := s.resolve(expression.ScopeActionInput, text, name)
		if failure != nil || s.interrupted {
			return failure
		}
		resolved[name] = value
	}
	if len(resolved) > 0 {
		b.Input = resolved
	}
	return nil
}

// resolve evaluates what a node needs when it is entered. There is no failure if the step was interrupted.
func (s *stepper) resolve(scope expression.Scope, text, field string) (any, *Failure) {
	value, err := s.evaluate(scope, text, nil)
	if err == nil {
		value, err = normalize(value, 0)
	}
	if err == nil || s.isInterrupted(err) {
		return value, nil
	}
	return nil, &Failure{
		Phase: PhaseInputResolution, Code: CodeExpressionError, Field: field, Expression: text, Message: s.valueless(err),
	}
}

// resolveTitle falls back on the name of the node: a task with a poor title is better than none.
func (s *stepper) resolveTitle(b *ActiveBranch, node workflow.Node) {
	b.Title = node.Name()
	value, err := s.evaluate(expression.ScopeHumanTaskTitle, node.Title(), nil)
	if err != nil {
		s.isInterrupted(err)
		return
	}
	title, err := jsonvalue.StringForm(value)
	if err == nil && strings.TrimSpace(title) != "" {
		b.Title = title
	}
}

// maxSubscriptionKey in bytes. A key stays in the instance for as long as its node waits.
const maxSubscriptionKey = 4 << 10

func (s *stepper) resolveSubscription(b *ActiveBranch, node workflow.Node) *Failure {
	correlation, ok := node.Correlation()
	if !ok {
		return nil
	}
	value, failure := s.resolve(expression.ScopeCorrelationSubscriptionKey, correlation.SubscriptionKey, "subscriptionKey")
	if failure != nil || s.interrupted {
		return failure
	}
	key, err := jsonvalue.StringForm(value)
	if err == nil && len(key) > maxSubscriptionKey {
		err = fmt.Errorf("the key is of %d bytes, over %d", len(key), maxSubscriptionKey)
	}
	if err != nil {
		return &Failure{
			Phase: PhaseInputResolution, Code: CodeExpressionError, Field: "subscriptionKey",
			Expression: correlation.SubscriptionKey, Message: s.valueless(err),
		}
	}
	b.SubscriptionKey = key
	return nil
}

// since is the earliest arrival of an event that a node entered now may take.
func (s *stepper) since(node workflow.Node) time.Time {
	since := s.StartedOn
	switch lookback := node.Lookback(); lookback {
	case workflow.LookbackRunStart:
	case workflow.LookbackNone:
		since = s.now
	default:
		if d, err := workflow.ParseDuration(lookback); err == nil && s.now.Add(-d).After(since) {
			since = s.now.Add(-d)
		}
	}
	return since.Truncate(time.Second)
}

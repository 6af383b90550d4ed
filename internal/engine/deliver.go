package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// Deliver offers an event to a receive-event activation, which takes it only if it is meant.
//
//nolint:revive // a step gets all that it depends on as arguments
func Deliver(ctx context.Context, d *Definition, in Instance, at Address, ev Event, now time.Time) Step {
	s := begin(ctx, d, in, now)
	index, node, reason := s.find(at, workflow.KindReceiveEvent)
	if reason != "" {
		return s.refuse(reason)
	}
	if s.isInterrupted(nil) {
		return s.end()
	}
	event, err := normalObject(ev.Map)
	if err != nil {
		return s.refuse(ReasonNotMatched)
	}
	r := receiver{
		stepper: s, node: node, branch: s.ActiveBranches[index],
		event: event, arrived: ev.Arrived.UTC().Truncate(time.Second),
	}
	if reason, failure := r.match(); reason != "" {
		return s.passOver(index, reason, failure)
	}
	s.take(index)
	r.receive()
	return s.end()
}

// passOver ends a step in which an event was not taken, leaving word if that is because matching failed.
func (s *stepper) passOver(index int, reason Reason, failure *Failure) Step {
	step := s.refuse(reason)
	if reason == ReasonMatchError {
		s.ActiveBranches[index].LastError = failure
		step.Instance = s.Instance
	}
	return step
}

// A receiver is an activation with an event offered to it.
type receiver struct {
	*stepper
	node    workflow.Node
	branch  ActiveBranch
	event   Values
	arrived time.Time
}

func (r *receiver) text(member string) string {
	s, _ := r.event[member].(string)
	return s
}

// match tells why the event is not taken. Expressions are evaluated only for events that may be meant, and only until
// one of them decides.
func (r *receiver) match() (Reason, *Failure) {
	eventType := r.node.EventType()
	switch {
	case r.Consumed[r.node.ID()].has(r.identity(), r.arrived):
		return ReasonConsumed, nil
	case strings.TrimSpace(eventType) == "" || r.text("type") != eventType || r.arrived.Before(r.branch.Since):
		return ReasonNotMatched, nil
	}
	if reason, failure := r.correlate(); reason != "" {
		return reason, failure
	}
	for i, expr := range r.node.Match() {
		selected, err := r.selects(expression.ScopeReceiveEventMatch, expr, r.event)
		if err != nil {
			return r.mismatch(fmt.Sprintf("match[%d]", i), expr, err)
		}
		if !selected {
			return ReasonNotMatched, nil
		}
	}
	return "", nil
}

func (r *receiver) correlate() (Reason, *Failure) {
	correlation, ok := r.node.Correlation()
	if !ok {
		return "", nil
	}
	value, err := r.evaluate(expression.ScopeCorrelationEventKey, correlation.EventKey, r.event)
	if err != nil {
		return r.mismatch("eventKey", correlation.EventKey, err)
	}
	key, err := jsonvalue.StringForm(value)
	if err != nil {
		return r.mismatch("eventKey", correlation.EventKey, err)
	}
	if key == "" || key != r.branch.SubscriptionKey {
		return ReasonNotMatched, nil
	}
	return "", nil
}

func (r *receiver) mismatch(field, expr string, err error) (Reason, *Failure) {
	if r.isInterrupted(err) {
		return ReasonInterrupted, nil
	}
	failure := located(Failure{Code: CodeExpressionError, Field: field, Expression: expr, Message: r.valueless(err)}, r.branch)
	return ReasonMatchError, &failure
}

// receive closes the activation with the event. Once it does, the node never sees the event again, whatever comes of it.
func (r *receiver) receive() {
	r.consume(r.node.ID(), r.identity(), r.arrived)
	output, failure := r.outputs()
	if r.interrupted {
		return
	}
	if failure == nil {
		failure = r.merge(output)
	}
	if failure != nil {
		r.failNode(r.branch, *failure)
		return
	}
	r.close(r.branch, Entry{Outcome: OutcomeCompleted, Output: output, By: r.text("id")})
	r.leave(r.branch)
}

// outputs evaluates the mappings over the context as it is before any of them.
func (r *receiver) outputs() (Values, *Failure) {
	mappings := r.node.Mappings()
	if len(mappings) == 0 {
		return Values{workflow.EventKey: map[string]any(r.event)}, nil
	}
	var output Values
	for _, m := range mappings {
		if m.IsIgnored() {
			continue
		}
		value, err := r.evaluate(expression.ScopeReceiveEventOutput, m.Expression, r.event)
		if err == nil {
			value, err = normalize(value, 0)
		}
		if err != nil {
			if r.isInterrupted(err) {
				return nil, nil
			}
			return nil, &Failure{
				Phase: PhaseOutputMapping, Code: CodeExpressionError,
				Field: m.ContextKey, Expression: m.Expression, Message: r.valueless(err),
			}
		}
		if output == nil {
			output = Values{}
		}
		output[m.ContextKey] = value
	}
	return output, nil
}

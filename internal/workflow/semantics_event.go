package workflow

import (
	"fmt"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

func (c *checker) checkReceiveEvent(i int, n Node) {
	c.checkTimeout(i, n, "INVALID_RECEIVE_EVENT_TIMEOUT")
	switch eventType := n.Config()["eventType"]; {
	case eventType == nil:
		c.nodeProblem(i, "MISSING_EVENT_TYPE", "without eventType no event is ever received")
	case blank(eventType):
		c.nodeProblem(i, "INVALID_EVENT_TYPE_VALUE", "a blank eventType matches no event")
	}
	c.checkMatch(i, n)
	for at, m := range n.Mappings() {
		c.checkMapping(i, at, m)
	}
	if _, ok := c.w.EdgeOf(n.ID(), ClassTimeout); n.Config()["timeout"] != nil && !ok {
		c.nodeProblem(i, "MISSING_TIMEOUT_EDGE", "no timeout edge says what happens when the time is up")
	}
	c.checkCompletion(i, n, "MISSING_EVENT_EDGE")
	if !validLookback(n.Lookback()) {
		c.nodeProblem(i, "INVALID_LOOKBACK", fmt.Sprintf("lookback %s is neither %s nor %s nor a positive duration",
			show(n.Lookback()), LookbackRunStart, LookbackNone))
	}
	c.checkCorrelation(i, n)
}

func validLookback(lookback string) bool {
	_, isDuration := positiveDuration(lookback)
	return isDuration || lookback == LookbackRunStart || lookback == LookbackNone
}

func (c *checker) checkMatch(i int, n Node) {
	for at, expression := range n.Match() {
		resultType, err := c.check(scopeMatch, expression)
		switch {
		case blank(expression) && c.x != nil:
			c.nodeProblem(i, "NON_BOOLEAN_MATCH", fmt.Sprintf("match %d is blank and never true", at))
		case err != nil:
			c.nodeProblem(i, "INVALID_MATCH_EXPRESSION", fmt.Sprintf("match %d: %v", at, err))
		case !maybeBoolean(resultType):
			c.nodeProblem(i, "NON_BOOLEAN_MATCH", fmt.Sprintf("match %d is of type %s and never true", at, resultType))
		}
	}
}

func (c *checker) checkMapping(i, at int, m Mapping) {
	if blank(m.ContextKey) {
		c.nodeProblem(i, "MISSING_OUTPUT_CONTEXT_KEY", fmt.Sprintf("output %d has no contextKey and is ignored", at))
	}
	if blank(m.Expression) {
		c.nodeProblem(i, "MISSING_OUTPUT_EXPRESSION", fmt.Sprintf("output %d has no expression and is ignored", at))
	}
	if _, err := c.check(scopeOutput, m.Expression); err != nil {
		c.nodeProblem(i, "INVALID_OUTPUT_EXPRESSION", fmt.Sprintf("output %d: %v", at, err))
	}
}

func (c *checker) checkCorrelation(i int, n Node) {
	correlation, ok := n.Correlation()
	if !ok {
		return
	}
	for _, key := range []struct{ name, scope, expression string }{
		{"subscriptionKey", scopeSubscriptionKey, correlation.SubscriptionKey},
		{"eventKey", scopeEventKey, correlation.EventKey},
	} {
		if blank(key.expression) {
			c.nodeProblem(i, "MISSING_CORRELATION_KEY_EXPRESSION", key.name+" of correlationKey is missing")
		}
		if _, err := c.check(key.scope, key.expression); err != nil {
			c.nodeProblem(i, "INVALID_CORRELATION_KEY_EXPRESSION", fmt.Sprintf("%s of correlationKey: %v", key.name, err))
		}
	}
}

// checkReceivers warns where two nodes wait for the same events, so that it is hard to say which one gets them.
func (c *checker) checkReceivers() {
	seen := map[string]bool{}
	for i, n := range c.w.nodes {
		if n.Kind() != KindReceiveEvent || blank(n.EventType()) {
			continue
		}
		key := receiverKey(n)
		if seen[key] {
			c.nodeProblem(i, "DUPLICATE_EVENT_RECEIVER", "another node before it waits for the same events")
		}
		seen[key] = true
	}
}

// receiverKey is equal for nodes of equal event type and match.
func receiverKey(n Node) string {
	parts := []any{n.EventType()}
	for _, expression := range n.Match() {
		parts = append(parts, expression)
	}
	key, err := jsonvalue.Canonical(parts)
	if err != nil { // text that is not Unicode, which no decoder lets in
		return fmt.Sprint(parts...)
	}
	return string(key)
}

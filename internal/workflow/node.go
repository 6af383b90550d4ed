package workflow

import (
	"slices"
	"time"
)

// A Node is one step of a workflow.
type Node struct {
	raw map[string]any
}

// ID identifies the node among all nodes.
func (n Node) ID() string { return text(n.raw["id"]) }

// Name is for people.
func (n Node) Name() string { return text(n.raw["name"]) }

// Kind is what the node does.
func (n Node) Kind() Kind { return Kind(text(n.raw["type"])) }

// Config is the configuration as it stands in the document, nil if there is none. It must not be changed.
func (n Node) Config() map[string]any { return object(n.raw["config"]) }

// Inputs are the values of an action, human task or component by name: a string is an expression, anything else stands
// for itself.
func (n Node) Inputs() map[string]any { return object(n.Config()["inputs"]) }

// InputFields are the declared inputs of a start node.
func (n Node) InputFields() []Field {
	if n.Kind() != KindStart {
		return nil
	}
	return fields(n.Config()["inputs"])
}

// OutputFields are the declared outputs of an action or a human task.
func (n Node) OutputFields() []Field {
	if n.Kind() != KindAction && n.Kind() != KindHumanTask {
		return nil
	}
	return fields(n.Config()["outputs"])
}

// A Mapping says which expression over an event gives the value of a context key.
type Mapping struct {
	ContextKey string
	Expression string
}

// IsIgnored tells whether the mapping is incomplete, so that it does nothing.
func (m Mapping) IsIgnored() bool { return blank(m.ContextKey) || blank(m.Expression) }

// Mappings are what a receive-event node takes from its event; none means the event as a whole.
func (n Node) Mappings() []Mapping {
	if n.Kind() != KindReceiveEvent {
		return nil
	}
	var mappings []Mapping
	for _, entry := range list(n.Config()["outputs"]) {
		m := object(entry)
		mappings = append(mappings, Mapping{ContextKey: text(m["contextKey"]), Expression: text(m["expression"])})
	}
	return mappings
}

// Title is the expression that names a human task; blank if there is none.
func (n Node) Title() string { return text(n.Config()["title"]) }

// Outcome is the word an end node leaves in the status of its run; empty if there is none.
func (n Node) Outcome() string { return text(n.Config()["outcome"]) }

// EventType is the type of the events a receive-event node waits for. A blank one matches nothing.
func (n Node) EventType() string { return text(n.Config()["eventType"]) }

// Match are the expressions that must all hold for an event.
func (n Node) Match() []string { return texts(n.Config()["match"]) }

// A Correlation ties an event to one of many runs that wait for its type.
type Correlation struct {
	// SubscriptionKey is the expression over the context that is evaluated when the wait begins.
	SubscriptionKey string
	// EventKey is the expression over the event whose value must be the same.
	EventKey string
}

// Correlation is how a receive-event node recognises its events, if it has a correlation key.
func (n Node) Correlation() (Correlation, bool) {
	key, ok := n.Config()["correlationKey"].(map[string]any)
	return Correlation{SubscriptionKey: text(key["subscriptionKey"]), EventKey: text(key["eventKey"])}, ok
}

// Values of lookback that are no durations.
const (
	// LookbackRunStart reaches back to the creation of the run; it is the default.
	LookbackRunStart = "run-start"
	// LookbackNone does not reach behind the beginning of the wait.
	LookbackNone = "none"
)

// Lookback is how old an event of a receive-event node may be: LookbackRunStart, LookbackNone or a duration.
func (n Node) Lookback() string {
	if n.Config()["lookback"] == nil {
		return LookbackRunStart
	}
	return text(n.Config()["lookback"])
}

// Timeout is the time an action, human task or receive-event node has, if it is limited.
func (n Node) Timeout() (time.Duration, bool) {
	if !slices.Contains([]Kind{KindAction, KindHumanTask, KindReceiveEvent}, n.Kind()) {
		return 0, false
	}
	return positiveDuration(n.Config()["timeout"])
}

// WaitDuration is the time of a wait; it may be zero or negative.
func (n Node) WaitDuration() time.Duration {
	d, err := ParseDuration(text(n.Config()["duration"]))
	if n.Kind() != KindWait || err != nil {
		return 0
	}
	return d
}

// IsForEach tells whether a component is called once for each item of a list, so that its inputs are those of the calls
// and not of the node.
func (n Node) IsForEach() bool {
	return n.Kind() == KindComponent && n.Config()["forEach"] != nil
}

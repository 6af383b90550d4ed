package expression

import "slices"

// A Scope names the place of an expression in a workflow document.
type Scope string

// The scopes. The condition of an edge and the match of an event ask for a boolean, all others for a value.
const (
	// ScopeEdgeCondition decides whether an edge is taken; it sees context.
	ScopeEdgeCondition Scope = "edge-condition"
	// ScopeActionInput is an input of an action, a human task or a component; it sees context.
	ScopeActionInput Scope = "action-input"
	// ScopeHumanTaskTitle is the title of a human task; it sees context.
	ScopeHumanTaskTitle Scope = "human-task-title"
	// ScopeCorrelationSubscriptionKey is what a waiting node listens for; it sees context.
	ScopeCorrelationSubscriptionKey Scope = "correlation-subscription-key"
	// ScopeCorrelationEventKey is what an event is about; it sees event.
	ScopeCorrelationEventKey Scope = "correlation-event-key"
	// ScopeReceiveEventMatch decides whether an event completes a waiting node; it sees context and event.
	ScopeReceiveEventMatch Scope = "receive-event-match"
	// ScopeReceiveEventOutput is what a received event leaves in the context; it sees context and event.
	ScopeReceiveEventOutput Scope = "receive-event-output"
	// ScopeAgentPrompt is a placeholder in the prompt of an action type; it sees inputs. A prompt is no part of a
	// workflow document, so this scope is not among [Scopes].
	ScopeAgentPrompt Scope = "agent-prompt"
)

// Names of the variables.
const (
	contextVariable = "context"
	eventVariable   = "event"
	inputsVariable  = "inputs"
)

// Scopes lists the scopes of workflow documents, in the order of their documentation.
func Scopes() []Scope {
	return []Scope{
		ScopeEdgeCondition, ScopeActionInput, ScopeHumanTaskTitle, ScopeCorrelationSubscriptionKey,
		ScopeCorrelationEventKey, ScopeReceiveEventMatch, ScopeReceiveEventOutput,
	}
}

// ParseScope finds the scope of the given name.
func ParseScope(name string) (Scope, bool) {
	scope := Scope(name)
	return scope, slices.Contains(Scopes(), scope)
}

// parseScope finds the scope of the given name, also that of prompts.
func parseScope(name string) (Scope, bool) {
	if name == string(ScopeAgentPrompt) {
		return ScopeAgentPrompt, true
	}
	return ParseScope(name)
}

// Variables are the names that expressions of this scope may use.
func (s Scope) Variables() []string {
	var names []string
	if s.seesContext() {
		names = append(names, contextVariable)
	}
	if s.seesEvent() {
		names = append(names, eventVariable)
	}
	if s.seesInputs() {
		names = append(names, inputsVariable)
	}
	return names
}

// IsCondition tells whether expressions of this scope are asked for a boolean.
func (s Scope) IsCondition() bool {
	return s == ScopeEdgeCondition || s == ScopeReceiveEventMatch
}

// seesContext tells whether expressions of this scope may use the variable context.
func (s Scope) seesContext() bool {
	return s != ScopeCorrelationEventKey && s != ScopeAgentPrompt
}

// seesInputs tells whether expressions of this scope may use the variable inputs.
func (s Scope) seesInputs() bool {
	return s == ScopeAgentPrompt
}

// seesEvent tells whether expressions of this scope may use the variable event.
func (s Scope) seesEvent() bool {
	return s == ScopeCorrelationEventKey || s == ScopeReceiveEventMatch || s == ScopeReceiveEventOutput
}

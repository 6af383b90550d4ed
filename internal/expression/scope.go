package expression

import (
	"regexp"
	"slices"
	"strings"
)

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
	// ScopeCallOutput is what a call of a component leaves in the context; it sees result. Like the scopes below it is one
	// of definitions that call components, which drafts do not, so it is not among [Scopes] either.
	ScopeCallOutput Scope = "call-output"
	// ScopeRepeatUntil decides whether a call was repeated often enough; it sees context and result.
	ScopeRepeatUntil Scope = "repeat-until"
)

// forEachPrefix begins the scopes of inputs for each item; the name of the item follows.
const forEachPrefix = "for-each-input/"

// ForEachInput is the scope of an input of a component that is called for each item of a list: it sees context, the item
// by this name, and index. The name must be an identifier that means nothing else.
func ForEachInput(item string) (scope Scope, ok bool) {
	if !itemName.MatchString(item) || slices.Contains(takenNames, item) {
		return "", false
	}
	return Scope(forEachPrefix + item), true
}

// itemName is the grammar of identifiers, as long as one may be here.
var itemName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

// takenNames are those of variables, and those that the language keeps for itself.
var takenNames = []string{
	contextVariable, eventVariable, inputsVariable, resultVariable, indexVariable,
	"as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop", "package",
	"namespace", "null", "return", "true", "var", "void", "while",
}

// Names of the variables.
const (
	contextVariable = "context"
	eventVariable   = "event"
	inputsVariable  = "inputs"
	resultVariable  = "result"
	indexVariable   = "index"
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

// parseScope finds the scope of the given name, also one that no draft has.
func parseScope(name string) (Scope, bool) {
	if item, isForEach := strings.CutPrefix(name, forEachPrefix); isForEach {
		return ForEachInput(item)
	}
	scope := Scope(name)
	return scope, slices.Contains(fixedScopes(), scope)
}

// fixedScopes are those whose variables have the same names everywhere.
func fixedScopes() []Scope {
	return append(Scopes(), ScopeAgentPrompt, ScopeCallOutput, ScopeRepeatUntil)
}

// item is the name of the item in the scope of an input for each item; else it is empty.
func (s Scope) item() string {
	item, isForEach := strings.CutPrefix(string(s), forEachPrefix)
	if !isForEach {
		return ""
	}
	return item
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
	if s.seesResult() {
		names = append(names, resultVariable)
	}
	if item := s.item(); item != "" {
		names = append(names, item, indexVariable)
	}
	return names
}

// IsCondition tells whether expressions of this scope are asked for a boolean.
func (s Scope) IsCondition() bool {
	return s == ScopeEdgeCondition || s == ScopeReceiveEventMatch || s == ScopeRepeatUntil
}

// seesContext tells whether expressions of this scope may use the variable context.
func (s Scope) seesContext() bool {
	return s != ScopeCorrelationEventKey && s != ScopeAgentPrompt && s != ScopeCallOutput
}

// seesInputs tells whether expressions of this scope may use the variable inputs.
func (s Scope) seesInputs() bool {
	return s == ScopeAgentPrompt
}

// seesResult tells whether expressions of this scope may use the variable result.
func (s Scope) seesResult() bool {
	return s == ScopeCallOutput || s == ScopeRepeatUntil
}

// seesEvent tells whether expressions of this scope may use the variable event.
func (s Scope) seesEvent() bool {
	return s == ScopeCorrelationEventKey || s == ScopeReceiveEventMatch || s == ScopeReceiveEventOutput
}

package workflow

import "fmt"

// A nodeShape reports on the members of one node.
type nodeShape struct {
	*shape
	index int
	node  Node
}

func (n *nodeShape) require(ok bool, code, format string, args ...any) {
	if !ok {
		n.shape.node(n.index, n.node.ID(), code, fmt.Sprintf(format, args...))
	}
}

// text requires a member of the configuration to be a string where it is there.
func (n *nodeShape) text(name, code string) {
	n.require(!mistyped(n.node.Config()[name], isString), code, "%s must be a string", name)
}

func (n *nodeShape) checkConfig() {
	switch n.node.Kind() {
	case KindStart:
		n.list("inputs", "INVALID_INPUTS_TYPE")
		n.fields("inputs", "INVALID_INPUT_DEFINITION", false)
	case KindAction:
		n.checkAction()
	case KindHumanTask:
		n.checkHumanTask()
	case KindReceiveEvent:
		n.checkReceiveEvent()
	case KindWait:
		n.text("duration", "INVALID_WAIT_DURATION")
	case KindComponent:
		n.object("inputs", "INVALID_INPUTS_TYPE")
		n.object("outputs", "INVALID_OUTPUTS_TYPE")
	case KindEnd:
	}
}

func (n *nodeShape) list(name, code string) {
	n.require(!mistyped(n.node.Config()[name], isList), code, "%s must be a list", name)
}

func (n *nodeShape) object(name, code string) {
	n.require(!mistyped(n.node.Config()[name], isObject), code, "%s must be an object", name)
}

func (n *nodeShape) checkAction() {
	n.text("actionType", "INVALID_ACTION_TYPE_VALUE")
	n.text("timeout", "INVALID_ACTION_TIMEOUT")
	n.object("inputs", "INVALID_INPUTS_TYPE")
	n.outputs()
	n.checkRetry()
}

func (n *nodeShape) checkHumanTask() {
	n.text("title", "INVALID_TASK_TITLE")
	n.text("description", "INVALID_TASK_DESCRIPTION")
	n.text("timeout", "INVALID_TASK_TIMEOUT")
	n.object("inputs", "INVALID_INPUTS_TYPE")
	n.outputs()
	n.checkAssignees()
	n.require(!mistyped(n.node.Config()["responseSchema"], isSchema),
		"INVALID_RESPONSE_SCHEMA", "responseSchema must be an object or a boolean")
}

func (n *nodeShape) checkReceiveEvent() {
	n.text("eventType", "INVALID_EVENT_TYPE_VALUE")
	n.text("lookback", "INVALID_LOOKBACK")
	n.text("timeout", "INVALID_RECEIVE_EVENT_TIMEOUT")
	n.require(!mistyped(n.node.Config()["match"], isStringList), "INVALID_MATCH_TYPE", "match must be a list of strings")
	n.list("outputs", "INVALID_OUTPUTS_TYPE")
	n.checkMappings()
	n.checkCorrelation()
}

func (n *nodeShape) outputs() {
	n.list("outputs", "INVALID_OUTPUTS_TYPE")
	n.fields("outputs", "INVALID_OUTPUT_DEFINITION", true)
	for i, entry := range list(n.node.Config()["outputs"]) {
		n.options(i, object(entry))
	}
}

// fields requires every entry of a list to be a field. Without a name an output cannot be anything, while a nameless
// input of the start is only of no use.
func (n *nodeShape) fields(name, code string, named bool) {
	for i, entry := range list(n.node.Config()[name]) {
		raw, ok := entry.(map[string]any)
		if !ok {
			n.require(false, code, "entry %d of %s must be an object", i, name)
			continue
		}
		wrong, found := firstMistyped(raw, []member{
			{"name", isString},
			{"type", isString},
			{"description", isString},
			{"label", isString},
			{"widget", isString},
			{"contextKey", isString},
			{"required", isBool},
			{"options", isList},
		})
		n.require(!found, code, "%s of entry %d of %s has the wrong type", wrong, i, name)
		n.require(!named || mistyped(raw["name"], isString) || !blank(raw["name"]),
			code, "name of entry %d of %s must not be blank", i, name)
	}
}

func (n *nodeShape) options(output int, raw map[string]any) {
	for i, entry := range list(raw["options"]) {
		option, ok := entry.(map[string]any)
		_, found := firstMistyped(option, []member{{"label", isString}, {"value", isString}})
		n.require(ok && !found, "MALFORMED_OUTPUT_OPTION",
			"option %d of entry %d of outputs must be an object of strings label and value", i, output)
	}
}

func (n *nodeShape) checkMappings() {
	for i, entry := range list(n.node.Config()["outputs"]) {
		raw, ok := entry.(map[string]any)
		n.require(ok && !mistyped(raw["contextKey"], isString),
			"MISSING_OUTPUT_CONTEXT_KEY", "entry %d of outputs must be an object whose contextKey is a string", i)
		n.require(ok && !mistyped(raw["expression"], isString),
			"MISSING_OUTPUT_EXPRESSION", "entry %d of outputs must be an object whose expression is a string", i)
	}
}

func (n *nodeShape) checkCorrelation() {
	v := n.node.Config()["correlationKey"]
	_, found := firstMistyped(object(v), []member{{"subscriptionKey", isString}, {"eventKey", isString}})
	n.require(!mistyped(v, isObject) && !found,
		"INVALID_CORRELATION_KEY", "correlationKey must be an object of strings subscriptionKey and eventKey")
}

func (n *nodeShape) checkRetry() {
	v := n.node.Config()["retry"]
	n.require(!mistyped(v, isObject), "INVALID_RETRY", "retry must be an object")
	name, found := firstMistyped(object(v), []member{{"maxAttempts", isNumber}, {"backoff", isObject}})
	n.require(!found, "INVALID_RETRY", "%s of retry has the wrong type", name)
	name, found = firstMistyped(object(object(v)["backoff"]), []member{
		{"initial", isString}, {"factor", isNumber}, {"max", isString},
	})
	n.require(!found, "INVALID_RETRY", "backoff.%s of retry has the wrong type", name)
}

func (n *nodeShape) checkAssignees() {
	v := n.node.Config()["assignees"]
	_, found := firstMistyped(object(v), []member{{"users", isStringList}, {"groups", isStringList}})
	n.require(!mistyped(v, isObject) && !found,
		"INVALID_ASSIGNEES", "assignees must be an object whose users and groups are lists of strings")
}

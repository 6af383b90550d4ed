package workflow

import (
	"fmt"
	"math"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

var shapeRules = errorRules(
	"INVALID_NODES", "INVALID_EDGES", "INVALID_NODE", "INVALID_EDGE",
	"INVALID_WORKFLOW_DESCRIPTION", "INVALID_WORKFLOW_VERSION",
	"MISSING_NODE_ID", "MISSING_EDGE_ID", "MISSING_EDGE_SOURCE", "MISSING_EDGE_TARGET",
	"INVALID_NODE_TYPE", "INVALID_NODE_NAME", "INVALID_NODE_CONFIG", "INVALID_NODE_POSITION",
	"INVALID_EDGE_FIELD",
	"INVALID_ACTION_TYPE_VALUE", "INVALID_TASK_TITLE", "INVALID_TASK_DESCRIPTION", "INVALID_WAIT_DURATION",
	"INVALID_EVENT_TYPE_VALUE", "INVALID_LOOKBACK", "INVALID_RECEIVE_EVENT_TIMEOUT", "INVALID_TASK_TIMEOUT",
	"INVALID_ACTION_TIMEOUT",
	"INVALID_MATCH_TYPE", "INVALID_INPUTS_TYPE", "INVALID_OUTPUTS_TYPE",
	"INVALID_INPUT_DEFINITION", "INVALID_OUTPUT_DEFINITION", "MALFORMED_OUTPUT_OPTION", "INVALID_CORRELATION_KEY",
	"MISSING_OUTPUT_CONTEXT_KEY", "MISSING_OUTPUT_EXPRESSION",
	"INVALID_RETRY", "INVALID_ASSIGNEES", "INVALID_RESPONSE_SCHEMA",
)

// A jsonType tells whether a value that is there has the type.
type jsonType func(v any) bool

func isString(v any) bool {
	_, ok := v.(string)
	return ok
}

func isBool(v any) bool {
	_, ok := v.(bool)
	return ok
}

func isObject(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

func isList(v any) bool {
	_, ok := v.([]any)
	return ok
}

func isNumber(v any) bool {
	_, ok := jsonvalue.Number(v)
	return ok
}

func isInteger(v any) bool {
	_, ok := integer(v)
	return ok
}

func isInt32(v any) bool {
	n, ok := integer(v)
	return ok && n >= math.MinInt32 && n <= math.MaxInt32
}

func isStringList(v any) bool {
	return isList(v) && len(texts(v)) == len(list(v))
}

func isSchema(v any) bool {
	return isObject(v) || isBool(v)
}

// mistyped tells whether a value is there and not of the type. Null counts as absent.
func mistyped(v any, is jsonType) bool {
	return v != nil && !is(v)
}

// A member is one that may be absent but not of another type.
type member struct {
	name string
	is   jsonType
}

// firstMistyped names the first member of an object that is there and of a wrong type.
func firstMistyped(raw map[string]any, members []member) (name string, found bool) {
	for _, m := range members {
		if mistyped(raw[m.name], m.is) {
			return m.name, true
		}
	}
	return "", false
}

// A shape reports on the members of one document.
type shape struct {
	report
}

func checkShape(doc map[string]any) []Problem {
	s := &shape{report{rules: shapeRules}}
	for _, m := range []struct {
		name, code, want string
		is               jsonType
	}{
		{"nodes", "INVALID_NODES", "a list", isList},
		{"edges", "INVALID_EDGES", "a list", isList},
		{"description", "INVALID_WORKFLOW_DESCRIPTION", "a string", isString},
		{"version", "INVALID_WORKFLOW_VERSION", "an integer", isInteger},
	} {
		if mistyped(doc[m.name], m.is) {
			s.document(m.code, "%s of a workflow must be %s", m.name, m.want)
		}
	}
	for i, entry := range list(doc["nodes"]) {
		s.checkNode(i, entry)
	}
	for i, entry := range list(doc["edges"]) {
		s.checkEdge(i, entry)
	}
	return s.problems()
}

func (s *shape) checkEdge(index int, entry any) {
	raw, ok := entry.(map[string]any)
	if !ok {
		s.edge(index, "", "INVALID_EDGE", fmt.Sprintf("entry %d of edges must be an object", index))
		return
	}
	id := text(raw["id"])
	for _, m := range []struct{ name, code string }{
		{"id", "MISSING_EDGE_ID"}, {"source", "MISSING_EDGE_SOURCE"}, {"target", "MISSING_EDGE_TARGET"},
	} {
		if blank(raw[m.name]) {
			s.edge(index, id, m.code, fmt.Sprintf("%s of entry %d of edges must be a string and not blank", m.name, index))
		}
	}
	for _, m := range []struct {
		member
		want string
	}{
		{member{"condition", isString}, "a string"},
		{member{"label", isString}, "a string"},
		{member{"priority", isInt32}, "a 32-bit integer"},
		{member{"isDefault", isBool}, "a boolean"},
		{member{"isTimeout", isBool}, "a boolean"},
		{member{"isError", isBool}, "a boolean"},
	} {
		if mistyped(raw[m.name], m.is) {
			s.edge(index, id, "INVALID_EDGE_FIELD", fmt.Sprintf("%s of edge %s must be %s", m.name, show(id), m.want))
		}
	}
}

func (s *shape) checkNode(index int, entry any) {
	raw, ok := entry.(map[string]any)
	if !ok {
		s.node(index, "", "INVALID_NODE", fmt.Sprintf("entry %d of nodes must be an object", index))
		return
	}
	n := nodeShape{shape: s, index: index, node: Node{raw}}
	n.require(!blank(raw["id"]), "MISSING_NODE_ID", "id of entry %d of nodes must be a string and not blank", index)
	n.require(n.node.Kind().isKnown(), "INVALID_NODE_TYPE", "type of node %s must be one of %v", show(n.node.ID()), Kinds())
	n.require(!mistyped(raw["name"], isString), "INVALID_NODE_NAME", "name must be a string")
	n.require(!mistyped(raw["config"], isObject), "INVALID_NODE_CONFIG", "config must be an object")
	n.require(!mistyped(raw["position"], isPosition), "INVALID_NODE_POSITION", "x and y of position must be finite numbers")
	n.checkConfig()
}

func isPosition(v any) bool {
	position, ok := v.(map[string]any)
	return ok && !mistyped(position["x"], isNumber) && !mistyped(position["y"], isNumber)
}

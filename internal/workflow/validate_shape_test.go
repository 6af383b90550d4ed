package workflow

import (
	"fmt"
	"strings"
)

// many repeats an entry whose %d is its index.
func many(n int, entry string) string {
	entries := make([]string, n)
	for i := range entries {
		entries[i] = fmt.Sprintf(entry, i)
	}
	return strings.Join(entries, ", ")
}

func budgetCases() map[string]validationCase {
	sized := func(n int) string {
		return fmt.Sprintf(`{"id":"w","name":"W","x-fill":%q,"nodes":[%s],"edges":[]}`, strings.Repeat("x", n), `{"id":"s","type":"start","name":"S","config":{"inputs":[]}}`)
	}
	frame := len(sized(0))
	return map[string]validationCase{
		"not an object": {
			bad: "[]", want: "INVALID_WORKFLOW!",
			good: "{}", rest: "MISSING_WORKFLOW_ID! MISSING_WORKFLOW_NAME! EMPTY_WORKFLOW!",
		},
		"null":   {bad: "null", want: "INVALID_WORKFLOW!"},
		"string": {bad: `"a"`, want: "INVALID_WORKFLOW!"},
		"one byte too many": {
			bad: sized(MaxDocumentBytes - frame + 1), want: "WORKFLOW_TOO_LARGE!",
			good: sized(MaxDocumentBytes - frame), rest: "NO_END_NODE! NO_OUTGOING_EDGES!(s) NO_PATH_TO_END(s)",
		},
		"one node too many": {
			bad: flow(many(MaxNodes+1, "%d"), ""), want: "TOO_MANY_NODES!",
			good: flow(many(MaxNodes, "{id: n%d}"), "1"), rest: invalidTypes(MaxNodes) + " INVALID_EDGE!",
		},
		"one edge too many": {
			bad: flow("", many(MaxEdges+1, "%d")), want: "TOO_MANY_EDGES!",
			good: flow("", many(MaxEdges, "{id: e%d, source: a, target: b, label: 1}")), rest: invalidFields(MaxEdges),
		},
		"too much of everything": {
			bad:  flow(many(MaxNodes+1, "%d"), many(MaxEdges+1, "{x: '"+strings.Repeat("y", 200)+"%d'}")),
			want: "WORKFLOW_TOO_LARGE! TOO_MANY_NODES! TOO_MANY_EDGES!",
		},
	}
}

func invalidTypes(n int) string {
	return strings.ReplaceAll(many(n, "INVALID_NODE_TYPE!(n%d)"), ",", "")
}

func invalidFields(n int) string {
	return strings.ReplaceAll(many(n, "INVALID_EDGE_FIELD!(e%d)"), ",", "")
}

func shapeCases() map[string]validationCase {
	valid := flow(startNode+", "+endNode, "{id: se, source: s, target: e}")
	node := func(members string) string {
		return flow(startNode+", {id: e, type: end, name: E"+also(members)+"}", "{id: se, source: s, target: e}")
	}
	edge := func(members string) string {
		return flow(startNode+", "+endNode, "{id: se, source: s, target: e"+also(members)+"}")
	}
	top := func(members string) string {
		return strings.TrimSuffix(valid, "}") + also(members) + "}"
	}
	return map[string]validationCase{
		"nodes no list": {
			bad: "{nodes: {}}", want: "INVALID_NODES!",
			good: "{nodes: null}", rest: "MISSING_WORKFLOW_ID! MISSING_WORKFLOW_NAME! EMPTY_WORKFLOW!",
		},
		"edges no list": {
			bad: "{edges: x, nodes: 1}", want: "INVALID_NODES! INVALID_EDGES!",
			good: "{edges: null}", rest: "MISSING_WORKFLOW_ID! MISSING_WORKFLOW_NAME! EMPTY_WORKFLOW!",
		},
		"entries no objects": {
			bad: flow("null, "+startNode, "[], 1"), want: "INVALID_NODE! INVALID_EDGE! INVALID_EDGE!",
			good: valid,
		},
		"description no string":      {bad: top("description: 1"), want: "INVALID_WORKFLOW_DESCRIPTION!", good: top("description: null")},
		"version no integer":         {bad: top("version: 1.5"), want: "INVALID_WORKFLOW_VERSION!", good: top("version: 2.0")},
		"version a string":           {bad: top("version: '1'"), want: "INVALID_WORKFLOW_VERSION!"},
		"node without id":            {bad: flow("{type: end}", ""), want: "MISSING_NODE_ID!", good: valid},
		"blank node id":              {bad: flow("{id: ' ', type: end}", ""), want: "MISSING_NODE_ID!(_)"},
		"numeric node id":            {bad: flow("{id: 1, type: end}", ""), want: "MISSING_NODE_ID!"},
		"edge without members":       {bad: flow("", "{}"), want: "MISSING_EDGE_ID! MISSING_EDGE_SOURCE! MISSING_EDGE_TARGET!", good: valid},
		"edge with blank members":    {bad: flow("", "{id: '', source: ' ', target: 7}"), want: "MISSING_EDGE_ID! MISSING_EDGE_SOURCE! MISSING_EDGE_TARGET!"},
		"unknown kind":               {bad: flow("{id: a, type: task}", ""), want: "INVALID_NODE_TYPE!(a)", good: valid},
		"no kind":                    {bad: flow("{id: a}", ""), want: "INVALID_NODE_TYPE!(a)"},
		"kind in other case":         {bad: flow("{id: a, type: Action}", ""), want: "INVALID_NODE_TYPE!(a)"},
		"name no string":             {bad: node("name: 1"), want: "INVALID_NODE_NAME!(e)", good: node("name: null"), rest: "MISSING_NODE_NAME(e)"},
		"config no object":           {bad: node("config: []"), want: "INVALID_NODE_CONFIG!(e)", good: node("config: null")},
		"position no object":         {bad: node("position: 1"), want: "INVALID_NODE_POSITION!(e)", good: node("position: null")},
		"coordinate no number":       {bad: node("position: {x: a, 'y': 1}"), want: "INVALID_NODE_POSITION!(e)", good: node("position: {x: -1.5, 'y': 0}")},
		"the other no number":        {bad: node("position: {x: 1, 'y': []}"), want: "INVALID_NODE_POSITION!(e)", good: node("position: {x: 1, 'y': null}")},
		"condition no string":        {bad: edge("condition: true"), want: "INVALID_EDGE_FIELD!(se)", good: edge("condition: null")},
		"priority beyond int32":      {bad: edge("priority: 2147483648"), want: "INVALID_EDGE_FIELD!(se)", good: edge("priority: -2147483648")},
		"priority no integer":        {bad: edge("priority: 0.5"), want: "INVALID_EDGE_FIELD!(se)", good: edge("priority: 1e2")},
		"flags no booleans":          {bad: edge("label: 1, isDefault: 'true', isTimeout: 0, isError: 1"), want: "INVALID_EDGE_FIELD!(se) INVALID_EDGE_FIELD!(se) INVALID_EDGE_FIELD!(se) INVALID_EDGE_FIELD!(se)"},
		"action type no string":      {bad: around("action", "actionType: 1"), want: "INVALID_ACTION_TYPE_VALUE!(x)", good: action("")},
		"title no string":            {bad: task("title: 1, outputs: []"), want: "INVALID_TASK_TITLE!(x)", good: task("title: null, outputs: []")},
		"description no text":        {bad: around("human-task", "description: [], outputs: []"), want: "INVALID_TASK_DESCRIPTION!(x)", good: task("outputs: []")},
		"wait a number":              {bad: around("wait", "duration: 5"), want: "INVALID_WAIT_DURATION!(x)", good: around("wait", "duration: PT5S")},
		"event type no string":       {bad: around("receive-event", "eventType: 1"), want: "INVALID_EVENT_TYPE_VALUE!(x)", good: receive("")},
		"lookback no string":         {bad: receive("lookback: 1"), want: "INVALID_LOOKBACK!(x)", good: receive("lookback: null")},
		"event timeout no string":    {bad: receive("timeout: 1"), want: "INVALID_RECEIVE_EVENT_TIMEOUT!(x)", good: receive("timeout: null")},
		"task timeout no string":     {bad: task("outputs: [], timeout: 1"), want: "INVALID_TASK_TIMEOUT!(x)", good: task("outputs: [], timeout: PT1S")},
		"action timeout no string":   {bad: action("timeout: 1"), want: "INVALID_ACTION_TIMEOUT!(x)", good: action("timeout: PT1S")},
		"match no list":              {bad: receive("match: 'true'"), want: "INVALID_MATCH_TYPE!(x)", good: receive("match: null")},
		"match of other things":      {bad: receive("match: ['true', true]"), want: "INVALID_MATCH_TYPE!(x)", good: receive("match: []")},
		"inputs no object":           {bad: around("action", "actionType: a, inputs: [], outputs: []"), want: "INVALID_INPUTS_TYPE!(x)", good: action("")},
		"task inputs no object":      {bad: task("inputs: x, outputs: []"), want: "INVALID_INPUTS_TYPE!(x)"},
		"component inputs no object": {bad: around("component", "component: c, inputs: []"), want: "INVALID_INPUTS_TYPE!(x)", good: around("component", "component: c, inputs: {}")},
		"start inputs no list":       {bad: flow("{id: s, type: start, name: S, config: {inputs: {}}}", ""), want: "INVALID_INPUTS_TYPE!(s)"},
		"outputs no list":            {bad: around("action", "actionType: a, inputs: {}, outputs: {}"), want: "INVALID_OUTPUTS_TYPE!(x)", good: action("")},
		"event outputs no list":      {bad: receive("outputs: {}"), want: "INVALID_OUTPUTS_TYPE!(x)", good: receive("outputs: []")},
		"component outputs no object": {
			bad: around("component", "component: c, outputs: []"), want: "INVALID_OUTPUTS_TYPE!(x)",
			good: around("component", "component: c, outputs: {a: result}"),
		},
		"start input no object": {
			bad: flow("{id: s, type: start, config: {inputs: [a]}}", ""), want: "INVALID_INPUT_DEFINITION!(s)",
			good: flow("{id: s, type: start, name: S, config: {inputs: [{name: a}]}}, "+endNode, "{id: se, source: s, target: e}"),
		},
		"start input member mistyped": {
			bad:  flow("{id: s, type: start, config: {inputs: [{name: a, required: 'true'}, {name: 1}]}}", ""),
			want: "INVALID_INPUT_DEFINITION!(s) INVALID_INPUT_DEFINITION!(s)",
		},
		"output no object":        {bad: action("outputs: [1]"), want: "INVALID_OUTPUT_DEFINITION!(x)", good: action("outputs: [{name: a}]")},
		"output member mistyped":  {bad: action("outputs: [{name: a, type: 1}]"), want: "INVALID_OUTPUT_DEFINITION!(x)", good: action("outputs: [{name: a, type: null}]")},
		"output without name":     {bad: task("outputs: [{type: string}]"), want: "INVALID_OUTPUT_DEFINITION!(x)", good: task("outputs: [{name: a, x-more: 1}]")},
		"output with blank name":  {bad: task("outputs: [{name: ' '}]"), want: "INVALID_OUTPUT_DEFINITION!(x)"},
		"output name no string":   {bad: task("outputs: [{name: 7}]"), want: "INVALID_OUTPUT_DEFINITION!(x)"},
		"options no list":         {bad: task("outputs: [{name: a, options: {}}]"), want: "INVALID_OUTPUT_DEFINITION!(x)", good: task("outputs: [{name: a, options: []}]")},
		"option no object":        {bad: task("outputs: [{name: a, options: [b]}]"), want: "MALFORMED_OUTPUT_OPTION!(x)", good: task("outputs: [{name: a, options: [{label: b, value: b}]}]")},
		"option value no string":  {bad: task("outputs: [{name: a, options: [{label: b, value: 1}]}]"), want: "MALFORMED_OUTPUT_OPTION!(x)"},
		"correlation no object":   {bad: receive("correlationKey: a"), want: "INVALID_CORRELATION_KEY!(x)", good: receive("correlationKey: null")},
		"correlation key typed":   {bad: receive("correlationKey: {subscriptionKey: 1, eventKey: event.id}"), want: "INVALID_CORRELATION_KEY!(x)", good: receive("correlationKey: {subscriptionKey: '1', eventKey: event.id}")},
		"mapping no object":       {bad: receive("outputs: [a]"), want: "MISSING_OUTPUT_CONTEXT_KEY!(x) MISSING_OUTPUT_EXPRESSION!(x)", good: receive("outputs: [{contextKey: a, expression: event.id}]")},
		"mapping key no string":   {bad: receive("outputs: [{contextKey: 1, expression: event.id}]"), want: "MISSING_OUTPUT_CONTEXT_KEY!(x)", good: receive("outputs: [{contextKey: null, expression: event.id}]"), rest: "MISSING_OUTPUT_CONTEXT_KEY(x)"},
		"mapping value no string": {bad: receive("outputs: [{contextKey: a, expression: 1}]"), want: "MISSING_OUTPUT_EXPRESSION!(x)", good: receive("outputs: [{contextKey: a}]"), rest: "MISSING_OUTPUT_EXPRESSION(x)"},
		"retry no object":         {bad: action("retry: 3"), want: "INVALID_RETRY!(x)", good: action("retry: null")},
		"attempts no number":      {bad: action("retry: {maxAttempts: '3'}"), want: "INVALID_RETRY!(x)", good: action("retry: {maxAttempts: 3}")},
		"backoff no object":       {bad: action("retry: {backoff: PT1S}"), want: "INVALID_RETRY!(x)", good: action("retry: {backoff: {}}")},
		"backoff mistyped":        {bad: action("retry: {backoff: {initial: 1}}"), want: "INVALID_RETRY!(x)", good: action("retry: {backoff: {initial: PT1S, max: null, factor: 1.5}}")},
		"assignees no object":     {bad: task("outputs: [], assignees: [a]"), want: "INVALID_ASSIGNEES!(x)", good: task("outputs: [], assignees: {}")},
		"assignees mistyped":      {bad: task("outputs: [], assignees: {users: [1]}"), want: "INVALID_ASSIGNEES!(x)", good: task("outputs: [], assignees: {users: [], groups: null}")},
		"schema no schema":        {bad: task("responseSchema: []"), want: "INVALID_RESPONSE_SCHEMA!(x)", good: task("responseSchema: true")},
		"the document before nodes before edges": {
			bad:  "{description: 1, edges: [{}], nodes: [{id: a, type: wait, config: {duration: 1}, name: 1}, 1]}",
			want: "INVALID_WORKFLOW_DESCRIPTION! INVALID_NODE_NAME!(a) INVALID_WAIT_DURATION!(a) INVALID_NODE! MISSING_EDGE_ID! MISSING_EDGE_SOURCE! MISSING_EDGE_TARGET!",
		},
	}
}

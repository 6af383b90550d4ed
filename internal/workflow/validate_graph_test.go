package workflow

func structureCases() map[string]validationCase {
	se := "{id: se, source: s, target: e}"
	return map[string]validationCase{
		"no id": {
			bad:  "{name: W, nodes: [" + startNode + ", " + endNode + "], edges: [" + se + "]}",
			want: "MISSING_WORKFLOW_ID!",
			good: flow(startNode+", "+endNode, se),
		},
		"an id that is no string, and a blank name": {
			bad:  "{id: 1, name: ' ', nodes: [" + startNode + ", " + endNode + "], edges: [" + se + "]}",
			want: "MISSING_WORKFLOW_ID! MISSING_WORKFLOW_NAME!",
			good: flow(startNode+", "+endNode, se),
		},
		"no nodes": {
			bad:  flow("", "{id: ab, source: a, target: b}"),
			want: "EMPTY_WORKFLOW!",
			good: flow(startNode+", "+endNode, se),
		},
		"no start": {
			bad:  flow("{id: w, type: wait, name: W, config: {duration: PT1S}}, "+endNode, "{id: we, source: w, target: e}"),
			want: "NO_START_NODE! NO_INCOMING_EDGES(w) UNREACHABLE_NODE(w) UNREACHABLE_NODE(e)",
			good: flow(startNode+", "+endNode, se),
		},
		"two starts": {
			bad:  flow(startNode+", {id: s2, type: start, name: S, config: {inputs: []}}, "+endNode, se+", {id: s2e, source: s2, target: e}"),
			want: "MULTIPLE_START_NODES!",
			good: flow(startNode+", "+endNode, se),
		},
		"no end": {
			bad:  flow(startNode+", {id: w, type: wait, name: W, config: {duration: PT1S}}", "{id: sw, source: s, target: w}, {id: ww, source: w, target: w}"),
			want: "NO_END_NODE! SELF_LOOP_EDGE(ww) NO_PATH_TO_END(s) NO_PATH_TO_END(w)",
			good: flow(startNode+", "+endNode, se),
		},
		"the same node id thrice": {
			bad:  flow(startNode+", "+endNode+", "+endNode+", "+endNode, se),
			want: "DUPLICATE_NODE_ID!(e) DUPLICATE_NODE_ID!(e)",
			good: flow(startNode+", "+endNode+", {id: E, type: end, name: E}", se+", {id: sE, source: s, target: E, isDefault: true, condition: 'true'}"),
			rest: "DEFAULT_EDGE_WITH_CONDITION(sE) MIXED_FORK_EDGES!(s)",
		},
		"the same edge id twice": {
			bad:  flow(startNode+", "+endNode, "{id: se, source: s, target: e, condition: 'true'}, {id: se, source: s, target: e, isDefault: true}"),
			want: "DUPLICATE_EDGE_ID!(se) DUPLICATE_EDGE(se)",
			good: flow(startNode+", "+endNode, "{id: se, source: s, target: e, condition: 'true'}, {id: s-e, source: s, target: e, isDefault: true}"),
			rest: "DUPLICATE_EDGE(s-e)",
		},
		"a blank node name": {
			bad:  flow(startNode+", {id: e, type: end, name: ' '}", se),
			want: "MISSING_NODE_NAME(e)",
			good: flow(startNode+", {id: e, type: end, name: '.'}", se),
		},
		"an edge into the start": {
			bad:  around("wait", "duration: PT1S")[:len(around("wait", "duration: PT1S"))-2] + ", {id: xs, source: x, target: s, isDefault: true, condition: ''}]}",
			want: "START_HAS_INCOMING!(s) MIXED_FORK_EDGES!(x)",
			good: around("wait", "duration: PT1S"),
		},
		"an edge out of an end": {
			bad:  flow(startNode+", "+endNode+", {id: f, type: end, name: F}", se+", {id: ef, source: e, target: f}"),
			want: "END_HAS_OUTGOING!(e)",
			good: flow(startNode+", "+endNode, se),
		},
		"no action type":           {bad: around("action", "inputs: {}, outputs: []"), want: "MISSING_ACTION_TYPE!(x)", good: action("")},
		"a null action type":       {bad: around("action", "actionType: null, inputs: {}, outputs: []"), want: "MISSING_ACTION_TYPE!(x)"},
		"a blank action type":      {bad: around("action", "actionType: ' ', inputs: {}, outputs: []"), want: "INVALID_ACTION_TYPE_VALUE!(x)", good: action("")},
		"no component":             {bad: around("component", ""), want: "MISSING_COMPONENT!(x)", good: around("component", "component: c")},
		"a blank component":        {bad: around("component", "component: ''"), want: "MISSING_COMPONENT!(x)"},
		"a component of no string": {bad: around("component", "component: 7"), want: "MISSING_COMPONENT!(x)"},
		"no action inputs":         {bad: around("action", "actionType: a, outputs: []"), want: "MISSING_ACTION_INPUTS(x)", good: action("")},
		"null action outputs":      {bad: around("action", "actionType: a, inputs: {}, outputs: null"), want: "MISSING_ACTION_OUTPUTS(x)", good: action("")},
		"action inputs without expression": {
			bad:  action("inputs: {b: null, a: ' ', c: 0, d: false, e: {}, f: []}"),
			want: "EMPTY_ACTION_INPUT_EXPRESSION(x) EMPTY_ACTION_INPUT_EXPRESSION(x)",
			good: action("inputs: {c: 0, d: false, e: {}, f: [], g: 'null'}"),
		},
		"component input without expression": {
			bad:  around("component", "component: c, inputs: {a: ''}"),
			want: "EMPTY_ACTION_INPUT_EXPRESSION(x)",
			good: around("component", "component: c, inputs: {a: '1'}"),
		},
		"two outputs for one key": {
			bad:  action("outputs: [{name: a}, {name: b, contextKey: a}, {name: c, contextKey: ' '}, {name: a}]"),
			want: "DUPLICATE_OUTPUT_NAME(x) DUPLICATE_OUTPUT_NAME(x)",
			good: action("outputs: [{name: a, contextKey: b}, {name: b, contextKey: a}]"),
		},
		"edges from and to nowhere": {
			bad:  flow(startNode+", "+endNode, se+", {id: ae, source: a, target: e}, {id: sb, source: s, target: b, isDefault: true}"),
			want: "INVALID_EDGE_SOURCE!(ae) INVALID_EDGE_TARGET!(sb)",
			good: flow(startNode+", "+endNode, se),
		},
		"an edge back to its node": {
			bad:  flow(startNode+", {id: a, type: wait, name: A, config: {duration: PT1S}}, "+endNode, "{id: sa, source: s, target: a}, {id: aa, source: a, target: a, condition: 'true'}, {id: ae, source: a, target: e, isDefault: true}"),
			want: "SELF_LOOP_EDGE(aa)",
			good: around("wait", "duration: PT1S"),
		},
		"the same edge thrice": {
			bad:  flow(startNode+", "+endNode, se+", {id: a, source: s, target: e}, {id: b, source: s, target: e}"),
			want: "DUPLICATE_EDGE(a) DUPLICATE_EDGE(b)",
			good: flow(startNode+", "+endNode, se),
		},
	}
}

func connectivityCases() map[string]validationCase {
	wait := func(id string) string {
		return "{id: " + id + ", type: wait, name: W, config: {duration: PT1S}}"
	}
	se := "{id: se, source: s, target: e}"
	return map[string]validationCase{
		"a node without edges": {
			bad:  flow(startNode+", "+wait("a")+", "+endNode, se),
			want: "DISCONNECTED_NODE!(a) UNREACHABLE_NODE(a)",
			good: around("wait", "duration: PT1S"),
		},
		"a start without edges is not disconnected": {
			bad:  flow(startNode+", "+endNode, ""),
			want: "NO_OUTGOING_EDGES!(s) NO_PATH_TO_END(s) DISCONNECTED_NODE!(e) UNREACHABLE_NODE(e)",
		},
		"a node that leads nowhere": {
			bad:  flow(startNode+", "+wait("a")+", "+endNode, se+", {id: sa, source: s, target: a, condition: 'true'}"),
			want: "NO_OUTGOING_EDGES!(a) NO_PATH_TO_END(a) NO_DEFAULT_EDGE(s) DUPLICATE_EDGE_PRIORITY(s) MIXED_FORK_EDGES!(s)",
			good: around("wait", "duration: PT1S"),
		},
		"a node nothing leads to": {
			bad:  flow(startNode+", "+wait("a")+", "+endNode, se+", {id: ae, source: a, target: e}"),
			want: "NO_INCOMING_EDGES(a) UNREACHABLE_NODE(a)",
			good: around("wait", "duration: PT1S"),
		},
		"a loop nothing leads to": {
			bad:  flow(startNode+", "+wait("a")+", "+wait("b")+", "+endNode, se+", {id: ab, source: a, target: b}, {id: ba, source: b, target: a}"),
			want: "UNREACHABLE_NODE(a) UNREACHABLE_NODE(b)",
			good: flow(startNode+", "+endNode, se),
		},
		"a loop without way out": {
			bad:  flow(startNode+", "+wait("a")+", "+wait("b")+", "+endNode, "{id: se, source: s, target: e, condition: 'true'}, {id: sa, source: s, target: a, isDefault: true}, {id: ab, source: a, target: b}, {id: ba, source: b, target: a}"),
			want: "NO_PATH_TO_END(a) NO_PATH_TO_END(b)",
			good: flow(startNode+", "+wait("a")+", "+wait("b")+", "+endNode, "{id: sa, source: s, target: a}, {id: ab, source: a, target: b}, {id: ba, source: b, target: a, condition: 'true'}, {id: be, source: b, target: e, isDefault: true}"),
		},
		"reached by a timeout edge alone": {
			bad: flow(startNode+", {id: x, type: receive-event, name: X, config: {eventType: t, timeout: PT1S}}, "+wait("a")+", "+endNode,
				"{id: sx, source: s, target: x}, {id: xe, source: x, target: e}, {id: xa, source: x, target: a, isTimeout: true}, {id: ae, source: a, target: e}"),
			want: "",
		},
		"the repeat of an id has no edges of its own": {
			bad:  flow(startNode+", "+endNode+", "+wait("e"), se),
			want: "DUPLICATE_NODE_ID!(e)",
		},
	}
}

func edgeCases() map[string]validationCase {
	choice := func(edges string) string {
		return flow(startNode+", {id: a, type: end, name: A}, {id: b, type: end, name: B}, {id: c, type: end, name: C}",
			edges)
	}
	ab := ", {id: sb, source: s, target: b, isDefault: true, priority: 9}, {id: sc, source: s, target: c, priority: 8, condition: 'true'}"
	handled := func(kind, config, edges string) string {
		return flow(startNode+", {id: x, type: "+kind+", name: X, config: {"+config+"}}, "+endNode+", {id: f, type: end, name: F}",
			"{id: sx, source: s, target: x}, {id: xe, source: x, target: e}"+also(edges))
	}
	const event, human, act = "eventType: t, timeout: PT1H", "description: D, outputs: [], timeout: PT1H", "actionType: a, inputs: {}, outputs: []"
	timeout, failed := "{id: xf, source: x, target: f, isTimeout: true}", "{id: xf, source: x, target: f, isError: true}"
	return map[string]validationCase{
		"one edge with a condition": {
			bad:  flow(startNode+", "+endNode, "{id: se, source: s, target: e, condition: 'true'}"),
			want: "SINGLE_CONDITIONAL_EDGE(s)",
			good: flow(startNode+", "+endNode, "{id: se, source: s, target: e, condition: ' '}"),
		},
		"one edge that is default with a condition": {
			bad:  flow(startNode+", "+endNode, "{id: se, source: s, target: e, condition: 'true', isDefault: true}"),
			want: "DEFAULT_EDGE_WITH_CONDITION(se)",
			good: flow(startNode+", "+endNode, "{id: se, source: s, target: e, isDefault: true}"),
		},
		"two defaults": {
			bad:  choice("{id: sa, source: s, target: a, isDefault: true}" + ab),
			want: "MULTIPLE_DEFAULT_EDGES(s)",
			good: choice("{id: sa, source: s, target: a, condition: 'true'}" + ab),
		},
		"conditions without default": {
			bad: choice("{id: sa, source: s, target: a, condition: 'true'}, {id: sb, source: s, target: b, condition: 'true', priority: 1}," +
				"{id: sc, source: s, target: c, condition: 'true', priority: 2}"),
			want: "NO_DEFAULT_EDGE(s)",
			good: choice("{id: sa, source: s, target: a, condition: 'true'}" + ab),
		},
		"two share a priority": {
			bad:  choice("{id: sa, source: s, target: a, condition: 'true', priority: 8}" + ab),
			want: "DUPLICATE_EDGE_PRIORITY(s)",
			good: choice("{id: sa, source: s, target: a, condition: 'true', priority: 9}" + ab),
		},
		"two twos share a priority": {
			bad: choice("{id: sa, source: s, target: a, condition: 'true', priority: 8}, {id: sa2, source: s, target: a, condition: 'true', priority: 7}," +
				"{id: sa3, source: s, target: a, condition: 'true', priority: 7}" + ab),
			want: "DUPLICATE_EDGE(sa2) DUPLICATE_EDGE(sa3) DUPLICATE_EDGE_PRIORITY(s)",
		},
		"a condition that does not compile": {
			bad:  choice("{id: sa, source: s, target: a, condition: 'context.'}" + ab),
			want: "INVALID_CONDITION!(sa)",
			good: choice("{id: sa, source: s, target: a, condition: context.a}" + ab),
		},
		"a condition that sees an event": {
			bad:  choice("{id: sa, source: s, target: a, condition: event.id == '1'}" + ab),
			want: "INVALID_CONDITION!(sa)",
		},
		"a condition of another type": {
			bad:  choice("{id: sa, source: s, target: a, condition: '1 + 1'}" + ab),
			want: "NON_BOOLEAN_CONDITION(sa)",
			good: choice("{id: sa, source: s, target: a, condition: context.a || true}" + ab),
		},
		"a timeout edge of an action": {
			bad:  handled("action", act+", timeout: PT1S", timeout),
			want: "INVALID_TIMEOUT_EDGE!(xf)",
			good: handled("human-task", human, timeout),
		},
		"a timeout edge without timeout": {
			bad:  handled("receive-event", "eventType: t", timeout),
			want: "INVALID_TIMEOUT_EDGE!(xf)",
			good: handled("receive-event", event, timeout),
		},
		"an error edge of a wait": {
			bad:  handled("wait", "duration: PT1S", failed),
			want: "INVALID_ERROR_EDGE!(xf)",
			good: handled("action", act, failed),
		},
		"an error edge of a component": {
			bad:  handled("start", "inputs: []", failed),
			want: "MULTIPLE_START_NODES! START_HAS_INCOMING!(x) INVALID_ERROR_EDGE!(xf)",
			good: handled("component", "component: c", failed),
		},
		"an edge for two occasions": {
			bad:  handled("receive-event", event, "{id: xf, source: x, target: f, isTimeout: true, isError: true}"),
			want: "INVALID_ERROR_EDGE!(xf)",
			good: handled("receive-event", event, timeout+", {id: xf2, source: x, target: f, isError: true}"),
			rest: "DUPLICATE_EDGE(xf2)",
		},
		"a timeout edge with a condition": {
			bad:  handled("receive-event", event, "{id: xf, source: x, target: f, isTimeout: true, condition: 'true'}"),
			want: "TIMEOUT_EDGE_WITH_CONDITION(xf)",
			good: handled("receive-event", event, timeout),
		},
		"a default timeout edge": {
			bad:  handled("receive-event", event, "{id: xf, source: x, target: f, isTimeout: true, isDefault: true}"),
			want: "TIMEOUT_EDGE_WITH_CONDITION(xf)",
		},
		"a default timeout edge with a condition": {
			bad:  handled("receive-event", event, "{id: xf, source: x, target: f, isTimeout: true, isDefault: true, condition: 'true'}"),
			want: "DEFAULT_EDGE_WITH_CONDITION(xf) TIMEOUT_EDGE_WITH_CONDITION(xf)",
		},
		"an error edge with a condition": {
			bad:  handled("action", act, "{id: xf, source: x, target: f, isError: true, condition: 'true'}"),
			want: "ERROR_EDGE_WITH_CONDITION(xf)",
			good: handled("action", act, failed),
		},
		"a default error edge": {
			bad:  handled("action", act, "{id: xf, source: x, target: f, isError: true, isDefault: true}"),
			want: "ERROR_EDGE_WITH_CONDITION(xf)",
		},
		"two timeout edges": {
			bad:  handled("receive-event", event, timeout+", {id: xe2, source: x, target: e, isTimeout: true}"),
			want: "DUPLICATE_EDGE(xe2) MULTIPLE_TIMEOUT_EDGES!(x)",
			good: handled("receive-event", event, timeout),
		},
		"two error edges": {
			bad:  handled("action", act, failed+", {id: xe2, source: x, target: e, isError: true}"),
			want: "DUPLICATE_EDGE(xe2) MULTIPLE_ERROR_EDGES!(x)",
			good: handled("action", act, failed),
		},
	}
}

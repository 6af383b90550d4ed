package workflow

import "maps"

func semanticCases() map[string]validationCase {
	merged := map[string]validationCase{}
	for _, cases := range []map[string]validationCase{actionCases(), taskCases(), eventCases(), otherCases()} {
		maps.Copy(merged, cases)
	}
	return merged
}

func actionCases() map[string]validationCase {
	retry := func(members string) string { return action("retry: {" + members + "}") }
	return map[string]validationCase{
		"an input that does not compile": {
			bad:  action("inputs: {a: context., b: event.id, c: [context.], d: ' '}"),
			want: "EMPTY_ACTION_INPUT_EXPRESSION(x) INVALID_INPUT_EXPRESSION!(x) INVALID_INPUT_EXPRESSION!(x)",
			good: action("inputs: {a: context.a, c: [context.], d: {e: context.}}"),
		},
		"a component input that does not compile": {
			bad:  around("component", "component: c, inputs: {a: item}"),
			want: "INVALID_INPUT_EXPRESSION!(x)",
			good: around("component", "component: c, inputs: {a: item}, forEach: {items: context.items, as: item, max: 3}"),
		},
		"an action timeout of nothing": {bad: action("timeout: PT0S"), want: "INVALID_ACTION_TIMEOUT!(x)", good: action("timeout: PT0.000000001S")},
		"an action timeout of no text": {bad: action("timeout: ''"), want: "INVALID_ACTION_TIMEOUT!(x)"},
		"an action timeout of Go":      {bad: action("timeout: 1h"), want: "INVALID_ACTION_TIMEOUT!(x)"},
		"no attempts":                  {bad: retry("maxAttempts: 0"), want: "INVALID_RETRY!(x)", good: retry("maxAttempts: 1")},
		"eleven attempts":              {bad: retry("maxAttempts: 11"), want: "INVALID_RETRY!(x)", good: retry("maxAttempts: 10")},
		"half an attempt":              {bad: retry("maxAttempts: 2.5"), want: "INVALID_RETRY!(x)", good: retry("maxAttempts: 2.0")},
		"a backoff of nothing":         {bad: retry("backoff: {initial: PT0S}"), want: "INVALID_RETRY!(x)", good: retry("backoff: {initial: PT0.1S}")},
		"a negative longest backoff":   {bad: retry("backoff: {max: -PT1S}"), want: "INVALID_RETRY!(x)", good: retry("backoff: {max: PT10S}")},
		"a factor below one":           {bad: retry("backoff: {factor: 0.9}"), want: "INVALID_RETRY!(x)", good: retry("backoff: {factor: 1}")},
		"a factor above ten":           {bad: retry("backoff: {factor: 10.1}"), want: "INVALID_RETRY!(x)", good: retry("backoff: {factor: 10}")},
		"a backoff that shrinks":       {bad: retry("backoff: {initial: PT2S, max: PT1S}"), want: "INVALID_RETRY!(x)", good: retry("backoff: {initial: PT2S, max: PT2S}")},
		"a backoff beyond the default": {bad: retry("backoff: {initial: PT11M}"), want: "INVALID_RETRY!(x)", good: retry("backoff: {initial: PT11M, max: PT11M}")},
		"a longest below the default":  {bad: retry("backoff: {max: PT9S}"), want: "INVALID_RETRY!(x)"},
		"an action that cannot complete": {
			bad: flow(startNode+", {id: x, type: action, name: X, config: {actionType: a, inputs: {}, outputs: []}}, "+endNode,
				"{id: sx, source: s, target: x}, {id: xe, source: x, target: e, isError: true}"),
			want: "MISSING_COMPLETION_EDGE!(x)",
			good: action(""),
		},
		"a component that cannot complete": {
			bad: flow(startNode+", {id: x, type: component, name: X, config: {component: c}}, "+endNode,
				"{id: sx, source: s, target: x}, {id: xe, source: x, target: e, isError: true}"),
			want: "MISSING_COMPLETION_EDGE!(x)",
			good: around("component", "component: c"),
		},
	}
}

func taskCases() map[string]validationCase {
	output := func(members string) string { return task("outputs: [{name: a" + also(members) + "}]") }
	schema := func(text string) string { return task("responseSchema: " + text) }
	return map[string]validationCase{
		"a task timeout below nothing":  {bad: task("outputs: [], timeout: -PT1S"), want: "INVALID_TASK_TIMEOUT!(x)", good: task("outputs: [], timeout: P1D")},
		"a title that does not compile": {bad: task("outputs: [], title: Approve it"), want: "INVALID_TASK_TITLE_EXPRESSION(x)", good: task("outputs: [], title: \"'Approve it'\"")},
		"a task input that does not":    {bad: task("outputs: [], inputs: {a: context.}"), want: "INVALID_INPUT_EXPRESSION!(x)", good: task("outputs: [], inputs: {a: context.a}")},
		"no task description":           {bad: around("human-task", "outputs: []"), want: "MISSING_TASK_DESCRIPTION(x)", good: task("outputs: []")},
		"an empty task input":           {bad: task("outputs: [], inputs: {a: null, b: ''}"), want: "EMPTY_TASK_INPUT_EXPRESSION(x) EMPTY_TASK_INPUT_EXPRESSION(x)", good: task("outputs: [], inputs: {a: 0}")},
		"no task outputs":               {bad: task(""), want: "MISSING_TASK_OUTPUTS(x)", good: task("responseSchema: {}")},
		"null task outputs":             {bad: task("outputs: null"), want: "MISSING_TASK_OUTPUTS(x)", good: task("outputs: []")},
		"a task that cannot complete": {
			bad: flow(startNode+", {id: x, type: human-task, name: X, config: {description: D, outputs: [], timeout: PT1S}}, "+endNode,
				"{id: sx, source: s, target: x}, {id: xe, source: x, target: e, isTimeout: true}"),
			want: "MISSING_COMPLETION_EDGE!(x)",
			good: task("outputs: [], timeout: PT1S"),
		},
		"schema and outputs":         {bad: task("responseSchema: {}, outputs: [{name: a}]"), want: "INVALID_RESPONSE_SCHEMA!(x)", good: task("responseSchema: {}, outputs: []")},
		"a schema of no known type":  {bad: schema("{type: text}"), want: "INVALID_RESPONSE_SCHEMA!(x)", good: schema("{type: [string, 'null']}")},
		"a widget on a number":       {bad: output("type: number, widget: slider"), want: "WIDGET_TYPE_MISMATCH(x)", good: output("type: string, widget: slider")},
		"a blank widget on a number": {bad: output("type: number, widget: ' ', defaultValue: x"), want: "DEFAULT_VALUE_TYPE_MISMATCH(x)", good: output("type: number, widget: ' '")},
		"nothing to select":          {bad: output("widget: select, options: []"), want: "SELECT_MISSING_OPTIONS(x)", good: output("widget: select, options: [{label: b, value: b}]")},
		"an option without value":    {bad: output("widget: select, options: [{label: b}, {value: ' '}]"), want: "MALFORMED_OUTPUT_OPTION(x) MALFORMED_OUTPUT_OPTION(x)", good: output("widget: select, options: [{value: b}]")},
		"a default of another type":  {bad: output("defaultValue: 1"), want: "DEFAULT_VALUE_TYPE_MISMATCH(x)", good: output("defaultValue: '1'")},
		"a default that is text":     {bad: output("type: boolean, defaultValue: 'true'"), want: "DEFAULT_VALUE_TYPE_MISMATCH(x)", good: output("type: boolean, defaultValue: true")},
		"a default of an object":     {bad: output("type: object, defaultValue: x"), want: "DEFAULT_VALUE_TYPE_MISMATCH(x)", good: output("type: object, defaultValue: []")},
		"a default of unknown type":  {bad: output("type: date, defaultValue: 1"), want: "DEFAULT_VALUE_TYPE_MISMATCH(x)", good: output("type: date, defaultValue: today")},
		"a null default":             {bad: output("type: number, defaultValue: null, widget: x"), want: "WIDGET_TYPE_MISMATCH(x)"},
	}
}

func eventCases() map[string]validationCase {
	waiting := func(config, edges string) string {
		return flow(startNode+", {id: x, type: receive-event, name: X, config: {eventType: t"+also(config)+"}}, "+endNode, "{id: sx, source: s, target: x}, "+edges)
	}
	two := func(first, second string) string {
		return flow(startNode+", {id: x, type: receive-event, name: X, config: {"+first+"}}, {id: z, type: receive-event, name: Z, config: {"+second+"}}, "+endNode,
			"{id: sx, source: s, target: x}, {id: xz, source: x, target: z}, {id: ze, source: z, target: e}")
	}
	return map[string]validationCase{
		"an event timeout of nothing": {
			bad:  waiting("timeout: PT0S", "{id: xe, source: x, target: e}, {id: xt, source: x, target: e, isTimeout: true}"),
			want: "DUPLICATE_EDGE(xt) INVALID_RECEIVE_EVENT_TIMEOUT!(x)",
			good: waiting("timeout: PT1S", "{id: xe, source: x, target: e}, {id: xt, source: x, target: e, isTimeout: true}"),
			rest: "DUPLICATE_EDGE(xt)",
		},
		"no event type":           {bad: around("receive-event", ""), want: "MISSING_EVENT_TYPE(x)", good: receive("")},
		"a blank event type":      {bad: around("receive-event", "eventType: ' '"), want: "INVALID_EVENT_TYPE_VALUE(x)", good: receive("")},
		"a match not compiling":   {bad: receive("match: ['true', 'event.', 'contex.a']"), want: "INVALID_MATCH_EXPRESSION!(x) INVALID_MATCH_EXPRESSION!(x)", good: receive("match: [context.a == event.id]")},
		"a blank match":           {bad: receive("match: [' ']"), want: "NON_BOOLEAN_MATCH(x)", good: receive("match: []")},
		"a match of another type": {bad: receive("match: [event.id + '']"), want: "NON_BOOLEAN_MATCH(x)", good: receive("match: [event.id, 'true']")},
		"a mapping half blank": {
			bad:  receive("outputs: [{contextKey: ' ', expression: event.id}, {contextKey: a, expression: ''}, {}]"),
			want: "MISSING_OUTPUT_CONTEXT_KEY(x) MISSING_OUTPUT_CONTEXT_KEY(x) MISSING_OUTPUT_EXPRESSION(x) MISSING_OUTPUT_EXPRESSION(x)",
			good: receive("outputs: [{contextKey: a, expression: event.id}]"),
		},
		"a mapping not compiling": {bad: receive("outputs: [{contextKey: a, expression: event.}]"), want: "INVALID_OUTPUT_EXPRESSION!(x)", good: receive("outputs: [{contextKey: a, expression: context.b}]")},
		"no edge for the timeout": {
			bad: receive("timeout: PT1S"), want: "MISSING_TIMEOUT_EDGE!(x)",
			good: task("outputs: [], timeout: PT1S"),
		},
		"no edge for the event": {
			bad:  waiting("timeout: PT1S", "{id: xt, source: x, target: e, isTimeout: true}"),
			want: "MISSING_EVENT_EDGE!(x)",
			good: receive(""),
		},
		"an unknown lookback":    {bad: receive("lookback: always"), want: "INVALID_LOOKBACK!(x)", good: receive("lookback: none")},
		"a lookback of nothing":  {bad: receive("lookback: PT0S"), want: "INVALID_LOOKBACK!(x)", good: receive("lookback: P1D")},
		"a blank lookback":       {bad: receive("lookback: ''"), want: "INVALID_LOOKBACK!(x)", good: receive("lookback: run-start")},
		"half a correlation key": {bad: receive("correlationKey: {eventKey: event.id}"), want: "MISSING_CORRELATION_KEY_EXPRESSION!(x)", good: receive("correlationKey: {subscriptionKey: context.a, eventKey: event.id}")},
		"no correlation key":     {bad: receive("correlationKey: {}"), want: "MISSING_CORRELATION_KEY_EXPRESSION!(x) MISSING_CORRELATION_KEY_EXPRESSION!(x)"},
		"correlation keys swapped": {
			bad:  receive("correlationKey: {subscriptionKey: event.id, eventKey: context.a}"),
			want: "INVALID_CORRELATION_KEY_EXPRESSION!(x) INVALID_CORRELATION_KEY_EXPRESSION!(x)",
			good: receive("correlationKey: {subscriptionKey: context.a, eventKey: event.id}"),
		},
		"two receivers of the same": {
			bad:  two("eventType: t, match: [event.id == '1']", "match: [event.id == '1'], eventType: t, lookback: none"),
			want: "DUPLICATE_EVENT_RECEIVER(z)",
			good: two("eventType: t, match: [event.id == '1']", "eventType: t, match: [event.id == '2']"),
		},
		"two receivers without match": {bad: two("eventType: t", "eventType: t, match: []"), want: "DUPLICATE_EVENT_RECEIVER(z)", good: two("eventType: t", "eventType: u")},
		"two receivers of nothing":    {bad: two("", "eventType: ''"), want: "MISSING_EVENT_TYPE(x) INVALID_EVENT_TYPE_VALUE(z)"},
	}
}

func otherCases() map[string]validationCase {
	start := func(config string) string {
		return flow("{id: s, type: start, name: S, config: {"+config+"}}, "+endNode, "{id: se, source: s, target: e}")
	}
	loop := func(kind, config string) string {
		return flow(startNode+", {id: b, type: action, name: B, config: {actionType: a, inputs: {}, outputs: []}}, {id: c, type: "+kind+", name: C, config: {"+config+"}}, "+endNode,
			"{id: sc, source: s, target: c}, {id: cb, source: c, target: b}, {id: bc, source: b, target: c, condition: 'true'}, {id: be, source: b, target: e, isDefault: true}")
	}
	self := func(kind, config string) string {
		return flow(startNode+", {id: x, type: "+kind+", name: X, config: {"+config+"}}, "+endNode,
			"{id: sx, source: s, target: x}, {id: xx, source: x, target: x, condition: 'true'}, {id: xe, source: x, target: e, isDefault: true}")
	}
	return map[string]validationCase{
		"no wait duration":        {bad: around("wait", ""), want: "MISSING_WAIT_DURATION!(x)", good: around("wait", "duration: PT0S")},
		"a null wait duration":    {bad: around("wait", "duration: null"), want: "MISSING_WAIT_DURATION!(x)", good: around("wait", "duration: -PT1S")},
		"a wait of a month":       {bad: around("wait", "duration: P1M"), want: "INVALID_WAIT_DURATION!(x)", good: around("wait", "duration: PT1M")},
		"a blank wait":            {bad: around("wait", "duration: ''"), want: "INVALID_WAIT_DURATION!(x)"},
		"no start inputs":         {bad: start(""), want: "MISSING_START_INPUTS(s)", good: start("inputs: []")},
		"a start input unnamed":   {bad: start("inputs: [{required: true}, {name: ' '}]"), want: "INVALID_INPUT_DEFINITION(s) INVALID_INPUT_DEFINITION(s)", good: start("inputs: [{name: a}]")},
		"a start input repeated":  {bad: start("inputs: [{name: a}, {name: a, contextKey: b}]"), want: "DUPLICATE_INPUT_NAME(s)", good: start("inputs: [{name: a}, {name: b, contextKey: a}]")},
		"a loop of actions":       {bad: loop("action", "actionType: a, inputs: {}, outputs: []"), want: "AUTOMATED_CYCLE(b)", good: loop("wait", "duration: PT1S")},
		"a loop with a component": {bad: loop("component", "component: c"), want: "AUTOMATED_CYCLE(b)", good: loop("human-task", "description: D, outputs: []")},
		"an action before itself": {bad: self("action", "actionType: a, inputs: {}, outputs: []"), want: "SELF_LOOP_EDGE(xx) AUTOMATED_CYCLE(x)", good: self("receive-event", "eventType: t"), rest: "SELF_LOOP_EDGE(xx)"},
	}
}

package workflow

import (
	"fmt"
	"maps"
	"slices"
)

var semanticRules = slices.Concat(
	errorRules("INVALID_INPUT_EXPRESSION", "INVALID_ACTION_TIMEOUT", "INVALID_TASK_TIMEOUT",
		"INVALID_RECEIVE_EVENT_TIMEOUT", "INVALID_RETRY"),
	warningRules("MISSING_EVENT_TYPE", "INVALID_EVENT_TYPE_VALUE"),
	errorRules("INVALID_MATCH_EXPRESSION"),
	warningRules("NON_BOOLEAN_MATCH", "MISSING_OUTPUT_CONTEXT_KEY", "MISSING_OUTPUT_EXPRESSION"),
	errorRules("INVALID_OUTPUT_EXPRESSION", "MISSING_TIMEOUT_EDGE", "MISSING_EVENT_EDGE", "MISSING_COMPLETION_EDGE",
		"INVALID_LOOKBACK", "MISSING_CORRELATION_KEY_EXPRESSION", "INVALID_CORRELATION_KEY_EXPRESSION"),
	warningRules("DUPLICATE_EVENT_RECEIVER", "INVALID_TASK_TITLE_EXPRESSION", "MISSING_TASK_DESCRIPTION",
		"EMPTY_TASK_INPUT_EXPRESSION", "MISSING_TASK_OUTPUTS"),
	errorRules("INVALID_RESPONSE_SCHEMA"),
	warningRules("WIDGET_TYPE_MISMATCH", "SELECT_MISSING_OPTIONS", "MALFORMED_OUTPUT_OPTION", "DEFAULT_VALUE_TYPE_MISMATCH"),
	errorRules("MISSING_WAIT_DURATION", "INVALID_WAIT_DURATION"),
	warningRules("MISSING_START_INPUTS", "INVALID_INPUT_DEFINITION", "DUPLICATE_INPUT_NAME", "AUTOMATED_CYCLE"),
)

func (c *checker) checkSemantics() {
	for i, n := range c.w.nodes {
		switch n.Kind() {
		case KindStart:
			c.checkStart(i, n)
		case KindAction:
			c.checkAction(i, n)
		case KindHumanTask:
			c.checkHumanTask(i, n)
		case KindReceiveEvent:
			c.checkReceiveEvent(i, n)
		case KindWait:
			c.checkWait(i, n)
		case KindComponent:
			c.checkComponent(i, n)
		case KindEnd:
		}
	}
	c.checkReceivers()
	c.checkAutomatedCycles()
}

func (c *checker) checkStart(i int, n Node) {
	if n.Config()["inputs"] == nil {
		c.nodeProblem(i, "MISSING_START_INPUTS", "inputs are missing; [] says that there are none")
	}
	seen := map[string]bool{}
	for at, f := range n.InputFields() {
		name := f.Name()
		if blank(name) {
			c.nodeProblem(i, "INVALID_INPUT_DEFINITION", fmt.Sprintf("entry %d of inputs has no name", at))
			continue
		}
		if seen[name] {
			c.nodeProblem(i, "DUPLICATE_INPUT_NAME", "another input before it has the name "+show(name))
		}
		seen[name] = true
	}
}

func (c *checker) checkAction(i int, n Node) {
	c.checkInputs(i, n)
	c.checkTimeout(i, n, "INVALID_ACTION_TIMEOUT")
	if raw := object(n.Config()["retry"]); raw != nil {
		if _, wrong := readRetry(raw); wrong != "" {
			c.nodeProblem(i, "INVALID_RETRY", wrong)
		}
	}
	c.checkCompletion(i, n, "MISSING_COMPLETION_EDGE")
}

func (c *checker) checkComponent(i int, n Node) {
	// The inputs of calls for each item see that item too, which no scope here knows.
	if !n.IsForEach() {
		c.checkInputs(i, n)
	}
	c.checkCompletion(i, n, "MISSING_COMPLETION_EDGE")
}

func (c *checker) checkWait(i int, n Node) {
	duration := n.Config()["duration"]
	if duration == nil {
		c.nodeProblem(i, "MISSING_WAIT_DURATION", "duration is missing")
		return
	}
	if _, err := ParseDuration(text(duration)); err != nil {
		c.nodeProblem(i, "INVALID_WAIT_DURATION", fmt.Sprintf("duration: %v", err))
	}
}

func (c *checker) checkInputs(i int, n Node) {
	inputs := n.Inputs()
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		if _, err := c.check(scopeInput, text(inputs[name])); err != nil {
			c.nodeProblem(i, "INVALID_INPUT_EXPRESSION", fmt.Sprintf("input %s: %v", show(name), err))
		}
	}
}

func (c *checker) checkTimeout(i int, n Node, code string) {
	timeout := n.Config()["timeout"]
	if timeout == nil {
		return
	}
	if _, ok := positiveDuration(timeout); !ok {
		c.nodeProblem(i, code, fmt.Sprintf("timeout %s is no positive duration", show(text(timeout))))
	}
}

// checkCompletion reports a node that has edges but none to follow when it completes.
func (c *checker) checkCompletion(i int, n Node, code string) {
	if c.isFirst(i) && len(c.w.Outgoing(n.ID())) > 0 && len(c.w.Normal(n.ID())) == 0 {
		c.nodeProblem(i, code, "no edge is followed when the node completes")
	}
}

// checkAutomatedCycles warns of loops in which nobody and nothing from outside has a say.
func (c *checker) checkAutomatedCycles() {
	automated := make([]bool, len(c.w.nodes))
	for i, n := range c.w.nodes {
		automated[i] = c.isFirst(i) && (n.Kind() == KindAction || n.Kind() == KindComponent)
	}
	g := newGraph(c.w)
	for _, loop := range g.loops(automated) {
		what := "the node leads back to itself"
		if len(loop) > 1 {
			what = fmt.Sprintf("%d nodes form a loop", len(loop))
		}
		c.nodeProblem(slices.Min(loop), "AUTOMATED_CYCLE", what+" without a person, an event or a wait")
	}
}

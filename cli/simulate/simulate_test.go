package simulate_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/cli/simulate"
	"github.com/apitomy/axiom-operator/cli/source"
	"github.com/apitomy/axiom-operator/internal/engine"
)

func parse(t testing.TB, text string) *source.Document {
	t.Helper()
	doc, err := source.Parse("script.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func read(t testing.TB, script string) simulate.Script {
	t.Helper()
	steps, err := simulate.Read(parse(t, script))
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

func define(t testing.TB, flow string) *engine.Definition {
	t.Helper()
	definition, _ := engine.New(parse(t, flow).Value.(map[string]any), nil)
	return definition
}

// play plays a script on a workflow, both YAML.
func play(t testing.TB, flow, script string) []simulate.Element {
	t.Helper()
	elements, err := simulate.Run(t.Context(), define(t, flow), read(t, script))
	if err != nil {
		t.Fatal(err)
	}
	return elements
}

// story is what a script came to, a line for each step: result and reason, what
// was opened, what was closed, what is parked.
func story(elements []simulate.Element) string {
	var lines []string
	for _, e := range elements {
		result := string(e.Result)
		if e.Reason != "" {
			result += " " + e.Reason
		}
		if e.Error != nil {
			result += " " + e.Error.Code
		}
		var closed, parked []string
		for _, entry := range e.Closed {
			closed = append(closed, entry.Activation+" "+string(entry.Outcome))
		}
		for _, p := range e.Parked {
			parked = append(parked, p.Activation)
		}
		parts := []string{result}
		for _, list := range [][]string{e.Opened, closed, parked} {
			parts = append(parts, cmp.Or(strings.Join(list, ", "), "-"))
		}
		lines = append(lines, strings.Join(parts, " | "))
	}
	return strings.Join(lines, "\n")
}

func assertStory(t *testing.T, elements []simulate.Element, want string) {
	t.Helper()
	if diff := gocmp.Diff(strings.TrimSpace(want), story(elements)); diff != "" {
		t.Errorf("story (-want +got):\n%s", diff)
	}
}

// A chain of one node between start and end, and an end for when it fails.
const (
	action = `
id: w
name: W
nodes:
- {id: s, type: start, name: S, config: {inputs: [{name: ref, required: true}]}}
- {id: a, type: action, name: A, config: {actionType: x, inputs: {}, outputs: [], timeout: PT1M, retry: {maxAttempts: 2}}}
- {id: e, type: end, name: E}
- {id: bad, type: end, name: Bad}
edges:
- {id: e1, source: s, target: a}
- {id: e2, source: a, target: e}
- {id: e3, source: a, target: bad, isError: true}
`
	wait = `
id: w
name: W
nodes:
- {id: s, type: start, name: S}
- {id: w, type: wait, name: W, config: {duration: PT1H}}
- {id: r, type: receive-event, name: R, config: {eventType: t, match: ["event.n == context.n"], outputs: [{contextKey: got, expression: event.id}]}}
- {id: e, type: end, name: E}
edges:
- {id: e1, source: s, target: w}
- {id: e2, source: w, target: r}
- {id: e3, source: r, target: e}
`
	// fork has two receivers of the same events and one of others.
	fork = `
id: w
name: W
nodes:
- {id: s, type: start, name: S}
- {id: b, type: receive-event, name: B, config: {eventType: t}}
- {id: a, type: receive-event, name: A, config: {eventType: t}}
- {id: c, type: receive-event, name: C, config: {eventType: u, lookback: none}}
- {id: j, type: human-task, name: J, config: {outputs: []}}
- {id: e, type: end, name: E}
edges:
- {id: e1, source: s, target: b}
- {id: e2, source: s, target: a}
- {id: e3, source: s, target: c}
- {id: e4, source: b, target: j}
- {id: e5, source: a, target: j}
- {id: e6, source: c, target: j}
- {id: e7, source: j, target: e}
`
)

func TestAction(t *testing.T) {
	elements := play(t, action, `
- complete: {activation: a#1}
- start:
- start: {inputs: {ref: 1}}
- start: {inputs: {ref: 1}}
- complete: {activation: nobody#1}
- complete: {activation: a#1, attempt: 2}
- fail: {activation: a#1, code: C, message: M, attempt: 1}
- complete: {activation: a#1, attempt: 1}
- complete: {activation: a#1, by: ada}
- complete: {activation: a#1}
- abort: {code: C, message: M}
`)
	assertStory(t, elements, `
error NotStarted | - | - | -
error InvalidInputs | - | - | -
ok | a#1 | s#1 Completed | a#1
error AlreadyStarted | - | - | a#1
ignored UnknownActivation | - | - | a#1
ignored StaleAttempt | - | - | a#1
ok | - | - | a#1
ignored StaleAttempt | - | - | a#1
ok | - | a#1 Completed, e#1 Completed | -
ignored Terminal | - | - | -
ignored Terminal | - | - | -`)
	if got := elements[6].Parked[0]; got.Attempt != 2 || got.NotBefore != simulate.Begin.Add(10*time.Second) {
		t.Errorf("the second attempt is %+v", got)
	}
	if by := elements[8].Closed[0].By; by != "ada" {
		t.Errorf("completed by %q", by)
	}
	if refused := elements[1].Error; refused.Name != "ref" || refused.Rule != engine.RuleRequired {
		t.Errorf("the start was refused with %+v", refused)
	}
}

func TestFailureTakesTheErrorEdge(t *testing.T) {
	assertStory(t, play(t, action, `
- start: {ref: 1}
- fail: {activation: a#1, code: UNKNOWN_ACTION_TYPE, phase: EXECUTOR_LOOKUP}
`), `
ok | a#1 | s#1 Completed | a#1
ok | - | a#1 Failed, bad#1 Completed | -`)
}

func TestClockMovesByNowAlone(t *testing.T) {
	elements := play(t, action, `
- start: {ref: 1}
- timeOut: {activation: a#1}
- now: 2026-01-01T00:01:00+00:00
- now: 2025-12-31T23:59:59Z
- timeOut: {activation: a#1, attempt: 1}
- timeOut: {activation: a#1, attempt: 1}
`)
	assertStory(t, elements, `
ok | a#1 | s#1 Completed | a#1
ignored NotDue | - | - | a#1
ok | - | - | a#1
error ClockTurnedBack | - | - | a#1
ok | - | - | a#1
ignored StaleAttempt | - | - | a#1`)
	if at := elements[5].Now; !at.Equal(simulate.Begin.Add(time.Minute)) {
		t.Errorf("it is %v", at)
	}
}

func TestCancelAndAbort(t *testing.T) {
	elements := play(t, action, "[{start: {ref: 1}}, {cancel: {reason: enough}}]")
	assertStory(t, elements, `
ok | a#1 | s#1 Completed | a#1
ok | - | a#1 Cancelled | -`)
	if entry := elements[1].Closed[0]; entry.Name != "A" || entry.Error == nil || entry.Error.Message != "enough" {
		t.Errorf("cancelled: %+v", entry)
	}
	elements = play(t, action, "[{start: {ref: 1}}, {abort: {code: DEADLINE_EXCEEDED, message: late}}]")
	if last := elements[1]; last.Status != engine.StatusFailed || !last.Ended || last.Failure.Code != "DEADLINE_EXCEEDED" {
		t.Errorf("aborted: %+v", last)
	}
}

func TestInvalidDefinition(t *testing.T) {
	elements := play(t, "{id: w, name: W, nodes: []}", "[{start: {}}, {now: 2026-01-01T01:00:00Z}, {event: {id: '1'}}, {cancel: }]")
	assertStory(t, elements, `
error InvalidDefinition | - | - | -
ok | - | - | -
ok | - | - | -
error NotStarted | - | - | -`)
	if len(elements[0].Error.Problems) == 0 {
		t.Error("the problems are missing")
	}
	assertJSON(t, elements[1], `{"step":2,"result":"ok","opened":[],"closed":[],"parked":[],"instance":{}}`)
}

func assertJSON(t *testing.T, v any, want string) {
	t.Helper()
	got, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(want, string(got)); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

// An event from before the wait is found when the wait begins, the oldest first,
// if it matches; one that was taken is not taken again.
func TestEarlyEvents(t *testing.T) {
	elements := play(t, wait, `
- start: {n: 1}
- event: {id: other, type: t, eventSourceId: f, n: 2}
- event: {id: first, type: t, eventSourceId: f, n: 1}
- event: {id: second, type: t, eventSourceId: f, n: 1}
- now: 2026-01-01T01:00:00Z
- timeOut: {activation: w#1}
`)
	assertStory(t, elements, `
ok | w#1 | s#1 Completed | w#1
ok | - | - | w#1
ok | - | - | w#1
ok | - | - | w#1
ok | - | - | w#1
ok | r#1 | w#1 Completed, r#1 Completed, e#1 Completed | -`)
	if by := elements[5].Closed[1].By; by != "first" {
		t.Errorf("the receiver took %q", by)
	}
}

// What arrived before the run was created is no event of the run.
func TestEventsFromBeforeTheRun(t *testing.T) {
	assertStory(t, play(t, fork, `
- event: {id: "1", type: t, eventSourceId: f}
- now: 2026-01-01T00:00:01Z
- start:
`), `
ok | - | - | -
ok | - | - | -
ok | b#1, a#1, c#1 | s#1 Completed | b#1, a#1, c#1`)
}

func TestOneEventForAllReceivers(t *testing.T) {
	assertStory(t, play(t, fork, `
- start:
- event: {id: "1", type: t, eventSourceId: f}
- event: {id: "1", type: t, eventSourceId: f}
- event: {id: "1", type: u, eventSourceId: f}
- event: {type: u}
- complete: {activation: j#1, output: {ok: true}}
`), `
ok | b#1, a#1, c#1 | s#1 Completed | b#1, a#1, c#1
ok | - | a#1 Completed, b#1 Completed | c#1
ok | - | - | c#1
ok | - | - | c#1
ok | j#1 | c#1 Completed | j#1
ok | - | j#1 Completed, e#1 Completed | -`)
}

// An error in a match is no match; the run goes on and remembers.
func TestMatchThatFails(t *testing.T) {
	elements := play(t, wait, `
- start: {}
- now: 2026-01-01T01:00:00Z
- timeOut: {activation: w#1}
- event: {id: "1", type: t, n: 1}
- complete: {activation: r#1}
`)
	assertStory(t, elements, `
ok | w#1 | s#1 Completed | w#1
ok | - | - | w#1
ok | r#1 | w#1 Completed | r#1
ok | - | - | r#1
ignored WrongKind | - | - | r#1`)
	if got := elements[3].Parked[0].LastError; got == nil || got.Code != engine.CodeExpressionError {
		t.Errorf("the last error is %+v", got)
	}
}

func TestMembersOfAnElement(t *testing.T) {
	elements := play(t, action, `
- start: {ref: r-1}
- fail: {activation: a#1, code: C, message: M}
- complete: {activation: a#1, output: 7}
`)
	assertJSON(t, elements[1].Parked, `[{"activation":"a#1","node":"a","kind":"action","branch":"root","attempt":2,`+
		`"deadline":"2026-01-01T00:01:10Z","notBefore":"2026-01-01T00:00:10Z"}]`)
	assertJSON(t, elements[0].Closed, `[{"seq":1,"activation":"s#1","node":"s","name":"S","type":"start","branch":"root",`+
		`"enteredOn":"2026-01-01T00:00:00Z","completedOn":"2026-01-01T00:00:00Z","outcome":"Completed","input":{"ref":"r-1"}}]`)
	if got := elements[2].Closed[0].Error.Code; got != engine.CodeInvalidResult {
		t.Errorf("an output that is no object: %s", got)
	}
}

func TestInputsStandUnderInputsOrByThemselves(t *testing.T) {
	for script, want := range map[string]engine.Values{
		"start: {inputs: {ref: 1}}":           {"ref": int64(1)},
		"start: {ref: 1}":                     {"ref": int64(1)},
		"start: {inputs: {inputs: 1}}":        {"inputs": int64(1)},
		"start: {inputs: {ref: 1}, other: 2}": {"inputs": map[string]any{"ref": int64(1)}, "other": int64(2)},
		"start: {inputs: 1}":                  {"inputs": int64(1)},
		"start: {inputs: }":                   {},
		"start:":                              {},
		"start: {}":                           {},
	} {
		if diff := gocmp.Diff(want, read(t, "- "+script)[0].Values); diff != "" {
			t.Errorf("%s (-want +got):\n%s", script, diff)
		}
	}
}

func TestScriptsThatCannotBePlayed(t *testing.T) {
	for script, want := range map[string]string{
		"{}":                                     "1:1: a script is a list of steps, this is an object",
		"- x":                                    "1:3: step 1 must be an object with one member",
		"- {now: 1, start: 2}":                   "1:3: step 1 must be an object with one member",
		"- {}":                                   "1:3: step 1 must be an object with one member",
		"- later: 1":                             `1:10: "later" is no step: there are now, start, complete, fail, timeOut, event, cancel and abort`,
		"- now: soon":                            "1:8: now takes a time such as 2026-01-01T08:00:00Z",
		"- now: 2026-01-01":                      "1:8: now takes a time such as 2026-01-01T08:00:00Z",
		"- now: 7":                               "1:8: now takes a time such as 2026-01-01T08:00:00Z",
		"- start: 7":                             "1:10: start takes an object, this is a number",
		"- event: [1]":                           "1:10: event takes an object, this is a list",
		"- event:":                               "1:9: event takes an object, this is null",
		"- complete:":                            "1:12: complete needs a text activation",
		"- complete: {activation: 7}":            "1:26: activation must be text, this is a number",
		"- complete: {activation: a, out: {}}":   `1:34: complete has no member "out": there are activation, output, attempt, by`,
		"- fail: {activation: a, code: [1]}":     "1:31: code must be text, this is a list",
		"- timeOut: {activation: a, attempt: 0}": "1:37: attempt must be a number from 1",
		"- timeOut: {activation: a, attempt: 1.5}": "1:37: attempt must be a number from 1",
		"- cancel: x":         "1:11: cancel takes an object, this is text",
		"- abort: {phase: x}": `1:18: abort has no member "phase": there are code, message`,
		strings.Repeat("- cancel:\n", simulate.MaxSteps+1): "1001:3: the script has over 1000 steps",
	} {
		_, err := simulate.Read(parse(t, script))
		if err == nil || err.Error() != "script.yaml:"+want {
			t.Errorf("%.40s: %v, want %s", script, err, want)
		}
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := simulate.Run(ctx, define(t, action), read(t, "[{start: {ref: 1}}]"))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Run() = %v", err)
	}
}

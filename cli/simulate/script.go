package simulate

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/apitomy/axiom-operator/cli/source"
	"github.com/apitomy/axiom-operator/internal/engine"
)

// MaxSteps bounds a script. With every step the stored events are offered again.
const MaxSteps = 1_000

// A Verb is what a step of a script does.
type Verb string

// The verbs.
const (
	// VerbNow sets the clock.
	VerbNow Verb = "now"
	// VerbStart begins the run.
	VerbStart Verb = "start"
	// VerbComplete delivers the result of an action, a human task or a component.
	VerbComplete Verb = "complete"
	// VerbFail delivers their failure.
	VerbFail Verb = "fail"
	// VerbTimeOut says that the time of an activation is up.
	VerbTimeOut Verb = "timeOut"
	// VerbEvent lets an event arrive.
	VerbEvent Verb = "event"
	// VerbCancel ends the run at somebody's wish.
	VerbCancel Verb = "cancel"
	// VerbAbort fails the run as a whole.
	VerbAbort Verb = "abort"
)

// A Step is one step of a script. What of it counts goes by the verb.
type Step struct {
	Verb Verb
	// Now is the time of VerbNow.
	Now time.Time
	// Activation is whom a delivery is meant for. Attempt is that of an action;
	// 0 is the current one.
	Activation string
	Attempt    int
	// Values are the inputs of a run, the output of an activation, or an event.
	// Nil is no object.
	Values engine.Values
	// By is the user who completes an activation.
	By string
	// Failure is that of VerbFail and VerbAbort.
	Failure engine.Failure
	// Reason is that of VerbCancel.
	Reason string
}

// A Script is what happens in a run, in order.
type Script []Step

// Read reads a script: a list of objects with one member each, named by a verb.
// All of it is checked before any is played. The error is a *source.Error.
func Read(doc *source.Document) (Script, error) {
	list, ok := doc.Value.([]any)
	if !ok {
		return nil, doc.Errorf(nil, "a script is a list of steps, this is %s", source.Describe(doc.Value))
	}
	if len(list) > MaxSteps {
		return nil, doc.Errorf([]any{MaxSteps}, "the script has over %d steps", MaxSteps)
	}
	script := make(Script, 0, len(list))
	for i, entry := range list {
		step, err := readStep(doc, i, entry)
		if err != nil {
			return nil, err
		}
		script = append(script, step)
	}
	return script, nil
}

func readStep(doc *source.Document, index int, entry any) (Step, error) {
	object, ok := entry.(map[string]any)
	if !ok || len(object) != 1 {
		return Step{}, doc.Errorf([]any{index}, "step %d must be an object with one member", index+1)
	}
	name := slices.Collect(maps.Keys(object))[0]
	r := &reader{doc: doc, path: []any{index, name}, value: object[name]}
	read, ok := readers[Verb(name)]
	if !ok {
		return Step{}, doc.Errorf(r.path, "%q is no step: there are now, start, complete, fail, timeOut, event, cancel and abort", name)
	}
	step := read(r)
	step.Verb = Verb(name)
	return step, r.err
}

var readers = map[Verb]func(*reader) Step{
	VerbNow:      readNow,
	VerbStart:    readStart,
	VerbComplete: readComplete,
	VerbFail:     readFail,
	VerbTimeOut:  readTimeOut,
	VerbEvent:    readEvent,
	VerbCancel:   readCancel,
	VerbAbort:    readAbort,
}

func readNow(r *reader) Step {
	text, _ := r.value.(string)
	now, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		r.fail(nil, "now takes a time such as 2026-01-01T08:00:00Z")
	}
	return Step{Now: now.UTC()}
}

// readStart takes the inputs under the member inputs, or in its place.
func readStart(r *reader) Step {
	if r.value == nil {
		return Step{Values: engine.Values{}}
	}
	object := r.object(r.value, nil)
	inputs, isMember := object["inputs"]
	if !isMember || len(object) > 1 {
		return Step{Values: object}
	}
	switch inputs := inputs.(type) {
	case nil:
		return Step{Values: engine.Values{}}
	case map[string]any:
		return Step{Values: inputs}
	}
	return Step{Values: object}
}

func readComplete(r *reader) Step {
	r.members("activation", "output", "attempt", "by")
	step := Step{Activation: r.required("activation"), Attempt: r.attempt(), By: r.text("by")}
	output, isGiven := r.given["output"]
	if !isGiven {
		output = map[string]any{}
	}
	// Anything else is no object, which is for the engine to refuse.
	if object, ok := output.(map[string]any); ok {
		step.Values = object
	}
	return step
}

func readFail(r *reader) Step {
	r.members("activation", "code", "message", "attempt", "phase")
	return Step{
		Activation: r.required("activation"),
		Attempt:    r.attempt(),
		Failure:    engine.Failure{Phase: r.text("phase"), Code: r.text("code"), Message: r.text("message")},
	}
}

func readTimeOut(r *reader) Step {
	r.members("activation", "attempt")
	return Step{Activation: r.required("activation"), Attempt: r.attempt()}
}

func readEvent(r *reader) Step {
	return Step{Values: r.object(r.value, nil)}
}

func readCancel(r *reader) Step {
	r.members("reason")
	return Step{Reason: r.text("reason")}
}

func readAbort(r *reader) Step {
	r.members("code", "message")
	return Step{Failure: engine.Failure{Code: r.text("code"), Message: r.text("message")}}
}

// A reader reads one step. The first error counts.
type reader struct {
	doc   *source.Document
	path  []any
	value any
	given map[string]any
	err   error
}

func (r *reader) fail(member []any, format string, args ...any) {
	if r.err == nil {
		r.err = r.doc.Errorf(slices.Concat(r.path, member), format, args...)
	}
}

func (r *reader) object(v any, member []any) map[string]any {
	object, ok := v.(map[string]any)
	if !ok {
		r.fail(member, "%s takes an object, this is %s", r.path[1], source.Describe(v))
	}
	return object
}

// members makes the step an object of the named members; null is an empty one.
func (r *reader) members(names ...string) {
	if r.value == nil {
		return
	}
	r.given = r.object(r.value, nil)
	for _, name := range slices.Sorted(maps.Keys(r.given)) {
		if !slices.Contains(names, name) {
			r.fail([]any{name}, "%s has no member %q: there are %s", r.path[1], name, strings.Join(names, ", "))
		}
	}
}

func (r *reader) required(name string) string {
	text := r.text(name)
	if text == "" {
		r.fail(nil, "%s needs a text %s", r.path[1], name)
	}
	return text
}

func (r *reader) text(name string) string {
	text, ok := r.given[name].(string)
	if !ok && r.given[name] != nil {
		r.fail([]any{name}, "%s must be text, this is %s", name, source.Describe(r.given[name]))
	}
	return text
}

// attempt is 0 if none is given.
func (r *reader) attempt() int {
	v, isGiven := r.given["attempt"]
	if !isGiven || v == nil {
		return 0
	}
	n, ok := v.(int64)
	if !ok || n < 1 || n > math.MaxInt32 {
		r.fail([]any{"attempt"}, "attempt must be a number from 1")
	}
	return int(n)
}

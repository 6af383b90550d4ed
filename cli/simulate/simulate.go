package simulate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// Begin is the time at which every script begins.
var Begin = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// Run plays a script on a definition, valid or not, and returns an element for
// each of its steps. It is an error if the context ends.
func Run(ctx context.Context, definition *engine.Definition, script Script) ([]Element, error) {
	r := &run{definition: definition, now: Begin}
	elements := make([]Element, 0, len(script))
	for i, step := range script {
		element := r.play(ctx, step)
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("play step %d: %w", i+1, err)
		}
		element.Step = i + 1
		elements = append(elements, element)
	}
	return elements, nil
}

// A run is what a script is played on.
type run struct {
	definition *engine.Definition
	now        time.Time
	hasStarted bool
	instance   engine.Instance
	// events are those that arrived, in this order.
	events []engine.Event
}

// play makes one step.
func (r *run) play(ctx context.Context, step Step) Element {
	e := Element{Result: ResultOK, Opened: []string{}, Closed: []engine.Entry{}, Verb: step.Verb, About: step.Activation}
	if step.Verb == VerbEvent {
		e.About = typeOf(step.Values)
	}
	if refused := r.act(ctx, step, &e); refused != nil {
		e.Result, e.Error = ResultError, refused
	}
	if r.hasStarted {
		r.offerEvents(ctx, &e)
	}
	e.Now, e.Status = r.now, r.instance.Status
	e.Parked, e.Instance = parkedOf(r.definition, r.instance), struct{}{}
	if r.hasStarted {
		e.Instance = r.instance
	}
	return e
}

// act does what the step itself asks for.
func (r *run) act(ctx context.Context, step Step, e *Element) *Error {
	switch step.Verb {
	case VerbNow:
		return r.setClock(step.Now)
	case VerbEvent:
		r.store(step.Values)
		return nil
	case VerbStart:
		return r.start(ctx, step, e)
	default:
		return r.deliver(ctx, step, e)
	}
}

func (r *run) setClock(now time.Time) *Error {
	if now.Before(r.now) {
		return &Error{Code: CodeClockTurnedBack, Message: "it is " + r.now.Format(time.RFC3339Nano) + " already"}
	}
	r.now = now
	return nil
}

// store keeps an event. One of the same source and id is the same event, and
// the first counts.
func (r *run) store(event engine.Values) {
	id := identityOf(event)
	isKnown := func(e engine.Event) bool { return identityOf(e.Map) == id }
	if id[1] == "" || !slices.ContainsFunc(r.events, isKnown) {
		r.events = append(r.events, engine.Event{Map: event, Arrived: r.now})
	}
}

func identityOf(event engine.Values) [2]string {
	from, _ := event["eventSourceId"].(string)
	id, _ := event["id"].(string)
	return [2]string{from, id}
}

func typeOf(event engine.Values) string {
	text, _ := event["type"].(string)
	return text
}

func (r *run) start(ctx context.Context, step Step, e *Element) *Error {
	if r.hasStarted {
		return &Error{Code: CodeAlreadyStarted, Message: "the run has started already"}
	}
	started, err := engine.Start(ctx, r.definition, step.Values, r.now)
	if err != nil {
		return refusal(err)
	}
	r.hasStarted = true
	r.take(started, e)
	return nil
}

func (r *run) deliver(ctx context.Context, step Step, e *Element) *Error {
	if !r.hasStarted {
		return &Error{Code: CodeNotStarted, Message: "the run has not started"}
	}
	r.take(r.call(ctx, step), e)
	return nil
}

// call makes the call of the engine that the step stands for.
func (r *run) call(ctx context.Context, step Step) engine.Step {
	at := r.addressOf(step)
	switch step.Verb {
	case VerbComplete:
		return engine.Complete(ctx, r.definition, r.instance, at, step.Values, step.By, r.now)
	case VerbFail:
		return engine.Fail(ctx, r.definition, r.instance, at, step.Failure, r.now)
	case VerbTimeOut:
		return engine.TimeOut(ctx, r.definition, r.instance, at, r.now)
	case VerbCancel:
		return engine.Cancel(r.instance, step.Reason, r.now)
	default:
		return engine.Abort(r.instance, step.Failure, r.now)
	}
}

// addressOf takes the current attempt where the step names none.
func (r *run) addressOf(step Step) engine.Address {
	at := engine.Address{Activation: step.Activation, Attempt: step.Attempt}
	if at.Attempt > 0 {
		return at
	}
	for _, b := range r.instance.ActiveBranches {
		if b.Activation == at.Activation {
			at.Attempt = b.Attempt
		}
	}
	return at
}

// take goes on with the instance of a step, and tells of it.
func (r *run) take(step engine.Step, e *Element) {
	r.instance = step.Instance
	if !step.Applied {
		e.Result, e.Reason = ResultIgnored, step.Reason
		return
	}
	e.Opened = append(e.Opened, step.Opened...)
	e.Closed = append(e.Closed, r.definition.Describe(step.Closed)...)
	if step.Instance.Status.IsTerminal() {
		e.Ended, e.Outcome, e.Failure = true, r.definition.Outcome(step), step.Instance.Failure
	}
}

// offerEvents delivers stored events until no parked receiver takes one. Each
// one taken is known to its node from then on, so there is an end.
func (r *run) offerEvents(ctx context.Context, e *Element) {
	for {
		step, ok := r.nextDelivery(ctx)
		if !ok {
			return
		}
		r.take(step, e)
	}
}

// nextDelivery finds the oldest event that a receiver takes; of several receivers
// the first by name of the activation takes it first.
func (r *run) nextDelivery(ctx context.Context) (engine.Step, bool) {
	receivers := r.receivers()
	for _, event := range r.events {
		for _, receiver := range receivers {
			if receiver.eventType != typeOf(event.Map) {
				continue
			}
			step := engine.Deliver(ctx, r.definition, r.instance, engine.Address{Activation: receiver.activation}, event, r.now)
			if step.Applied {
				return step, true
			}
			r.instance = step.Instance // with the error of a match that failed
		}
	}
	return engine.Step{}, false
}

// A receiver is a parked activation that an event may complete.
type receiver struct {
	activation string
	eventType  string
}

func (r *run) receivers() []receiver {
	var receivers []receiver
	for _, p := range engine.Parked(r.definition, r.instance) {
		if p.Kind == workflow.KindReceiveEvent {
			eventType, _ := p.Config["eventType"].(string)
			receivers = append(receivers, receiver{activation: p.Activation, eventType: eventType})
		}
	}
	slices.SortFunc(receivers, func(a, b receiver) int { return strings.Compare(a.activation, b.activation) })
	return receivers
}

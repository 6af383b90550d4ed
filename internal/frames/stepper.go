package frames

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// A stepper makes one step on a copy of a state.
type stepper struct {
	// ctx is nil where nothing is evaluated.
	ctx    context.Context
	def    Definition
	before State
	state  State
	now    time.Time
	closed []Entry
	opened []string
	// calls and frames count what the step entered and opened.
	calls, frames int
	outputs       map[string]any
	outcome       string
	interrupted   bool
}

// A place is the root or a frame, as it stands.
type place struct {
	// path is empty for the root.
	path      string
	component Component
	instance  engine.Instance
}

func (p place) variables() map[string]any {
	return p.component.Engine().Visible(p.instance)
}

// branch is the open activation of an address within the place.
func (p place) branch(activation string) (engine.ActiveBranch, bool) {
	at := slices.IndexFunc(p.instance.ActiveBranches, func(b engine.ActiveBranch) bool { return b.Activation == activation })
	if at < 0 {
		return engine.ActiveBranch{}, false
	}
	return p.instance.ActiveBranches[at], true
}

func (p place) calls(b engine.ActiveBranch) bool {
	node, ok := p.component.Engine().Workflow().Node(b.Node)
	return ok && node.Kind() == workflow.KindComponent
}

func begin(ctx context.Context, def Definition, state State, now time.Time) *stepper {
	s := copyOf(def, state, now)
	s.ctx = ctx
	return s
}

// copyOf begins a step that evaluates nothing.
func copyOf(def Definition, state State, now time.Time) *stepper {
	return &stepper{def: def, before: state, state: state.copied(), now: now}
}

// refuse ends a step that does not apply.
func (s *stepper) refuse(reason engine.Reason) Step {
	return Step{State: s.before, Reason: reason}
}

// end ends a step that applies.
func (s *stepper) end() Step {
	if s.interrupted {
		return s.refuse(engine.ReasonInterrupted)
	}
	opened := slices.DeleteFunc(s.opened, func(activation string) bool {
		path, local := split(activation)
		p, _ := s.place(path)
		_, isOpen := p.branch(local)
		return !isOpen
	})
	return Step{
		State: s.state.compact(), Applied: true, Closed: s.closed, Opened: opened, Outputs: s.outputs, Outcome: s.outcome,
	}
}

// isOver tells whether the step has nothing more to do.
func (s *stepper) isOver() bool {
	return s.interrupted || s.state.Root.Status.IsTerminal()
}

// place finds the root or a live frame.
func (s *stepper) place(path string) (place, bool) {
	if path == "" {
		return place{component: s.def.Root, instance: s.state.Root}, true
	}
	at := s.state.frameAt(path)
	if at < 0 {
		return place{}, false
	}
	f := s.state.Frames[at]
	component := s.def.Components[f.Component]
	return place{path: path, component: component, instance: f.Instance}, component != nil
}

// put stores the instance of the root or a live frame.
func (s *stepper) put(path string, in engine.Instance) {
	if path == "" {
		s.state.Root = in
	} else if at := s.state.frameAt(path); at >= 0 {
		s.state.Frames[at].Instance = in
	}
}

// A sender makes the step of one instance.
type sender func(d *engine.Definition, in engine.Instance, at engine.Address) engine.Step

func (s *stepper) deliver(at engine.Address, send sender) Step {
	path, local := split(at.Activation)
	p, reason := s.find(path, local)
	if reason != "" {
		return s.refuse(reason)
	}
	step := send(p.component.Engine(), p.instance, engine.Address{Activation: local, Attempt: at.Attempt})
	if !step.Applied {
		refused := s.refuse(step.Reason)
		if step.Reason == engine.ReasonMatchError {
			s.put(path, step.Instance)
			refused.State = s.state.compact()
		}
		return refused
	}
	s.absorb(p, step)
	return s.end()
}

// find looks up for whose instance a delivery is meant, and says why there is none if so. Calls are not for others to
// complete.
func (s *stepper) find(path, local string) (p place, reason engine.Reason) {
	if s.state.Root.Status.IsTerminal() {
		return p, engine.ReasonTerminal
	}
	p, ok := s.place(path)
	switch {
	case ok:
	case s.state.hadFrame(path):
		return p, engine.ReasonStaleActivation
	default:
		return p, engine.ReasonUnknownActivation
	}
	if b, isOpen := p.branch(local); isOpen && p.calls(b) {
		return p, engine.ReasonWrongKind
	}
	return p, ""
}

// stop accepts a step that ended the root without looking at its definition.
func (s *stepper) stop(step engine.Step) Step {
	if !step.Applied {
		return s.refuse(step.Reason)
	}
	s.absorbEnd(step)
	return s.end()
}

func (s *stepper) absorbEnd(step engine.Step) {
	if s.def.Root != nil {
		step.Closed = s.def.Root.Engine().Describe(step.Closed)
	}
	s.absorb(place{component: s.def.Root}, step)
}

// absorb accepts the step of one instance and does what follows from it elsewhere: calls that were entered are made, and
// a frame that ended goes back to its caller.
func (s *stepper) absorb(p place, step engine.Step) {
	if !step.Applied {
		s.interrupted = true // a step of a node that is open has no other reason not to apply
		return
	}
	var result map[string]any
	if step.Instance.Status == engine.StatusCompleted {
		result = s.conclude(p, &step)
	}
	if s.interrupted {
		return
	}
	s.put(p.path, step.Instance)
	for _, e := range step.Closed {
		s.close(p.path, e)
	}
	if step.Instance.Status.IsTerminal() {
		s.leave(p, step, result)
		return
	}
	for _, activation := range step.Opened {
		s.enter(p.path, activation)
	}
}

// conclude evaluates the outputs of an instance that reached an end. Without outputs the end was not reached.
func (s *stepper) conclude(p place, step *engine.Step) map[string]any {
	p.instance = step.Instance
	result, failure := s.result(p)
	if failure == nil || s.interrupted {
		return result
	}
	step.Closed = slices.Clone(step.Closed)
	for i, e := range step.Closed {
		if e.Type == workflow.KindEnd {
			failure.Node, failure.Activation = e.Node, e.Activation
			step.Closed[i].Outcome, step.Closed[i].Error = engine.OutcomeFailed, failure
		}
	}
	step.Instance.Status, step.Instance.Failure = engine.StatusFailed, failure
	return nil
}

func (s *stepper) result(p place) (map[string]any, *engine.Failure) {
	result, err := p.component.EvaluateOutputs(s.ctx, p.variables())
	if err == nil {
		result, err = normalObject(result)
	}
	switch {
	case s.isInterrupted(err):
		return nil, nil
	case isExpressionError(err):
		return nil, &engine.Failure{Phase: engine.PhaseOutputMapping, Code: engine.CodeExpressionError, Message: "an output has no value"}
	case err != nil:
		return nil, &engine.Failure{Phase: engine.PhaseOutputValidation, Code: CodeOutputContract, Message: err.Error()}
	case jsonvalue.Size(result) > engine.MaxContextBytes:
		return nil, tooLarge()
	}
	return result, nil
}

// leave goes on from an instance that is over.
func (s *stepper) leave(p place, step engine.Step, result map[string]any) {
	if p.path == "" {
		if step.Instance.Status == engine.StatusCompleted {
			s.outputs, s.outcome = result, p.component.Engine().Outcome(step)
		}
		return
	}
	f := s.state.Frames[s.state.frameAt(p.path)]
	s.forget(p.path)
	c, ok := s.callOf(f.Call)
	switch {
	case !ok:
	case step.Instance.Failure != nil:
		s.fail(c, outward(*step.Instance.Failure, f))
	default:
		s.take(c, f, result)
	}
}

// outward is the failure of a frame as its caller knows it.
func outward(failure engine.Failure, f Frame) engine.Failure {
	if failure.Activation == "" {
		failure.Node = ""
		return failure
	}
	_, last := split(f.Path)
	failure.Activation = join(last, failure.Activation)
	return failure
}

// forget removes a frame, and what was counted within it.
func (s *stepper) forget(path string) {
	s.state.Frames = slices.DeleteFunc(s.state.Frames, func(f Frame) bool { return f.Path == path })
	for key := range s.state.Opened {
		if strings.HasPrefix(key, path+"/") {
			delete(s.state.Opened, key)
		}
	}
}

// close writes the history of an activation. What is still open of the call that it makes closes before it.
func (s *stepper) close(path string, e engine.Entry) {
	e.Activation = join(path, e.Activation)
	var why string
	if e.Error != nil {
		told := *e.Error
		if told.Activation != "" {
			told.Activation = join(path, told.Activation)
		}
		e.Error, why = &told, told.Message
	}
	s.cancelCall(e.Activation, why)
	s.record(Entry{Entry: e})
}

func (s *stepper) record(e Entry) {
	s.state.Entries++
	e.Seq = s.state.Entries
	s.closed = append(s.closed, e)
}

// cancelCall closes the live frame of a call, if there is one.
func (s *stepper) cancelCall(activation, why string) {
	s.state.Calls = slices.DeleteFunc(s.state.Calls, func(c CallState) bool { return c.Call == activation })
	at := slices.IndexFunc(s.state.Frames, func(f Frame) bool { return f.Call == activation })
	if at < 0 {
		return
	}
	f := s.state.Frames[at]
	step := engine.Cancel(f.Instance, why, s.now)
	if component := s.def.Components[f.Component]; component != nil {
		step.Closed = component.Engine().Describe(step.Closed)
	}
	for _, e := range step.Closed {
		s.close(f.Path, e)
	}
	s.forget(f.Path)
}

// isInterrupted notes that the context ended, whatever else an error says.
func (s *stepper) isInterrupted(err error) bool {
	if errors.Is(err, expression.ErrInterrupted) || s.ctx.Err() != nil {
		s.interrupted = true
	}
	return s.interrupted
}

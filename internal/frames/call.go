package frames

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

const (
	// MaxDepth is how deep frames may nest.
	MaxDepth = 8
	// MaxOpened is how many frames one step may open, and how many calls it may enter.
	MaxOpened = 100
)

// Codes of the failures of calls.
const (
	CodeInputContract  = "INPUT_CONTRACT"
	CodeOutputContract = "OUTPUT_CONTRACT"
	CodeRenderFailed   = "RENDER_FAILED"
	// CodeForEachLimit: the list has more items than its call allows.
	CodeForEachLimit = "FOREACH_LIMIT"
	// CodeNestingLimit: the frame would be deeper than MaxDepth.
	CodeNestingLimit = "NESTING_LIMIT"
	// CodeResultTooLarge: the outputs of a frame, or the results of a list, are together larger than a context.
	CodeResultTooLarge = "RESULT_TOO_LARGE"
	// CodeComponentUndeclared: there is no such component, or no such call.
	CodeComponentUndeclared = "COMPONENT_UNDECLARED"
)

// A call is one that an open activation makes.
type call struct {
	Call
	// caller is the root or the frame of the activation.
	caller place
	branch engine.ActiveBranch
}

func (c call) activation() string { return join(c.caller.path, c.branch.Activation) }

// enter takes up an activation that was opened, unless it closed in the meantime.
func (s *stepper) enter(path, activation string) {
	p, ok := s.place(path)
	if s.isOver() || !ok {
		return
	}
	b, isOpen := p.branch(activation)
	switch {
	case !isOpen:
	case p.calls(b):
		s.serve(call{caller: p, branch: b})
	default:
		s.opened = append(s.opened, join(path, activation))
	}
}

// callOf is the call that an open activation makes, as it stands now.
func (s *stepper) callOf(activation string) (call, bool) {
	path, local := split(activation)
	p, ok := s.place(path)
	if !ok || s.isOver() {
		return call{}, false
	}
	b, isOpen := p.branch(local)
	if !isOpen {
		return call{}, false
	}
	said, ok := p.component.Call(b.Node)
	return call{Call: said, caller: p, branch: b}, ok
}

// serve makes the first call of an activation.
func (s *stepper) serve(c call) {
	if s.calls++; s.calls > MaxOpened {
		s.exceed(c)
		return
	}
	var ok bool
	if c.Call, ok = c.caller.component.Call(c.branch.Node); !ok {
		s.fail(c, undeclared("the node calls nothing"))
		return
	}
	switch {
	case c.ForEach != nil:
		s.serveItems(c)
	case c.Repeat != nil:
		s.open(c, Frame{Iteration: 1})
	default:
		s.open(c, Frame{})
	}
}

func (s *stepper) serveItems(c call) {
	items, failure := s.items(c)
	switch {
	case s.interrupted:
	case failure != nil:
		s.fail(c, *failure)
	case len(items) == 0:
		s.finish(c, map[string]any{"items": []any{}})
	default:
		s.state.Calls = append(s.state.Calls, CallState{Call: c.activation(), Items: items})
		s.open(c, Frame{Item: 1})
	}
}

// open makes a call. The frame has the iteration or the item; all else is added.
func (s *stepper) open(c call, f Frame) {
	if s.frames++; s.frames > MaxOpened {
		s.exceed(c)
		return
	}
	callee := s.def.Components[c.Component]
	if callee == nil {
		s.fail(c, undeclared("there is no such component"))
		return
	}
	if depth(c.caller.path) >= MaxDepth {
		s.fail(c, engine.Failure{
			Phase: engine.PhaseExecution, Code: CodeNestingLimit, Message: fmt.Sprintf("calls are nested deeper than %d", MaxDepth),
		})
		return
	}
	inputs, failure := s.inputs(c, f.Item)
	if s.interrupted {
		return
	}
	if failure == nil {
		inputs, failure = admit(callee, inputs)
	}
	if failure != nil {
		s.fail(c, *failure)
		return
	}
	s.start(c, callee, f, inputs)
}

// admit holds the inputs of a call against what the component declares, and against what a context may hold: the history
// has them even if the frame cannot begin with them.
func admit(callee Component, inputs map[string]any) (map[string]any, *engine.Failure) {
	given, err := callee.Start(inputs)
	if err != nil {
		return nil, &engine.Failure{Phase: engine.PhaseInputResolution, Code: CodeInputContract, Message: err.Error()}
	}
	if size := jsonvalue.Size(given); size > engine.MaxContextBytes {
		return nil, &engine.Failure{
			Phase: engine.PhaseOutputMapping, Code: engine.CodeContextTooLarge,
			Message: fmt.Sprintf("the inputs have %d bytes, the limit is %d", size, engine.MaxContextBytes),
		}
	}
	return given, nil
}

func tooLarge() *engine.Failure {
	return &engine.Failure{
		Phase: engine.PhaseResultValidation, Code: CodeResultTooLarge,
		Message: fmt.Sprintf("the results are over %d bytes", engine.MaxContextBytes),
	}
}

func undeclared(message string) engine.Failure {
	return engine.Failure{Phase: engine.PhaseExecutorLookup, Code: CodeComponentUndeclared, Message: message}
}

// start opens a frame with its inputs.
func (s *stepper) start(c call, callee Component, f Frame, inputs map[string]any) {
	step, err := engine.StartRun(s.ctx, callee.Engine(), inputs, s.state.Root.StartedOn, s.now)
	var refused *engine.InputError
	switch {
	case err == nil:
	case s.isInterrupted(err):
		return
	case errors.As(err, &refused):
		s.fail(c, engine.Failure{Phase: engine.PhaseInputResolution, Code: CodeInputContract, Message: err.Error()})
		return
	default:
		s.fail(c, undeclared(err.Error()))
		return
	}
	key := join(c.caller.path, c.branch.Node)
	s.state.Opened[key]++
	f.Path = join(c.caller.path, segment(c.branch.Node, s.state.Opened[key]))
	f.Call, f.Component, f.Instance = c.activation(), c.Component, step.Instance
	s.state.Frames = append(s.state.Frames, f)
	s.recordCall(c, callee, f, inputs)
	s.absorb(place{path: f.Path, component: callee}, step)
}

// recordCall writes that a frame opened.
func (s *stepper) recordCall(c call, callee Component, f Frame, inputs map[string]any) {
	node, _ := c.caller.component.Engine().Workflow().Node(c.branch.Node)
	now := s.now.UTC().Round(0)
	s.record(Entry{
		Entry: engine.Entry{
			Activation: f.Call, Node: node.ID(), Name: node.Name(), Type: workflow.KindComponent, Branch: c.branch.Branch,
			Edge: c.branch.Edge, Condition: c.branch.Condition, EnteredOn: now, CompletedOn: now,
			Outcome: engine.OutcomeCompleted, Input: inputs,
		},
		Call: &CallEntry{
			Path: f.Path, Component: f.Component, SourcePath: callee.SourcePath(), SourceHash: callee.SourceHash(),
			Iteration: f.Iteration, Item: f.Item,
		},
	})
}

// take gives a call the result of its frame: it completes, or goes on with the next frame.
func (s *stepper) take(c call, f Frame, result map[string]any) {
	switch {
	case c.ForEach != nil:
		s.takeItem(c, f, result)
	case c.Repeat != nil:
		s.takeRound(c, f, result)
	default:
		s.finish(c, result)
	}
}

func (s *stepper) takeItem(c call, f Frame, result map[string]any) {
	at := s.state.callAt(f.Call)
	if at < 0 {
		s.fail(c, undeclared("the items of the call are lost"))
		return
	}
	state := &s.state.Calls[at]
	state.Results = append(slices.Clone(state.Results), result)
	switch {
	case jsonvalue.Size(state.Results) > engine.MaxContextBytes:
		s.fail(c, *tooLarge())
	case f.Item < len(state.Items):
		s.open(c, Frame{Item: f.Item + 1})
	default:
		s.finish(c, map[string]any{"items": state.Results})
	}
}

// Outcomes of repeated calls.
const (
	repeatBreak     = "break"
	repeatExhausted = "exhausted"
)

func (s *stepper) takeRound(c call, f Frame, result map[string]any) {
	result = maps.Clone(result)
	tell := func(outcome any) {
		result["repeat"] = map[string]any{"iterations": int64(f.Iteration), "outcome": outcome}
	}
	tell(nil)
	enough, failure := s.isEnough(c, result)
	switch {
	case s.interrupted:
	case failure != nil:
		s.fail(c, *failure)
	case enough:
		tell(repeatBreak)
		s.finish(c, result)
	case f.Iteration >= c.Repeat.Max:
		tell(repeatExhausted)
		s.finish(c, result)
	default:
		s.again(c, f, result)
	}
}

// again lets a result enter the caller's context, from which the inputs of the next round come.
func (s *stepper) again(c call, f Frame, result map[string]any) {
	values, failure := s.mapped(c, result)
	if s.interrupted {
		return
	}
	if failure != nil {
		s.fail(c, *failure)
		return
	}
	at := engine.Address{Activation: c.branch.Activation}
	s.absorb(c.caller, engine.Merge(s.ctx, c.caller.component.Engine(), c.caller.instance, at, values, s.now))
	if next, ok := s.callOf(f.Call); ok {
		s.open(next, Frame{Iteration: f.Iteration + 1})
	}
}

// finish completes the activation of a call.
func (s *stepper) finish(c call, result map[string]any) {
	values, failure := s.mapped(c, result)
	if s.interrupted {
		return
	}
	if failure != nil {
		s.fail(c, *failure)
		return
	}
	at := engine.Address{Activation: c.branch.Activation}
	s.absorb(c.caller, engine.Complete(s.ctx, c.caller.component.Engine(), c.caller.instance, at, values, "", s.now))
}

// fail fails the activation of a call.
func (s *stepper) fail(c call, f engine.Failure) {
	at := engine.Address{Activation: c.branch.Activation}
	s.absorb(c.caller, engine.Fail(s.ctx, c.caller.component.Engine(), c.caller.instance, at, f, s.now))
}

// exceed fails the run: an error edge could lead back to the call for ever.
func (s *stepper) exceed(c call) {
	s.absorbEnd(engine.Abort(s.state.Root, engine.Failure{
		Phase: engine.PhaseEdgeSelection, Code: engine.CodeMoveLimit, Node: c.branch.Node, Activation: c.activation(),
		Message: fmt.Sprintf("one step would make more than %d calls, a loop is likely", MaxOpened),
	}, s.now))
}

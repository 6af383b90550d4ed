package engine

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/apitomy/axiom-operator/internal/workflow"
)

// Fail delivers the failure of an action, a human task or a component. A failure without phase is one of execution.
//
//nolint:revive // a step gets all that it depends on as arguments
func Fail(ctx context.Context, d *Definition, in Instance, at Address, f Failure, now time.Time) Step {
	s := begin(ctx, d, in, now)
	index, node, reason := s.find(at, served...)
	if reason != "" {
		return s.refuse(reason)
	}
	if s.isInterrupted(nil) {
		return s.end()
	}
	if f.Phase == "" {
		f.Phase = PhaseExecution
	}
	s.failParked(index, node, f)
	return s.end()
}

// served are the kinds for which somebody else does the work.
var served = []workflow.Kind{workflow.KindAction, workflow.KindHumanTask, workflow.KindComponent}

// Abort fails the run as a whole.
func Abort(in Instance, f Failure, now time.Time) Step {
	s := copyOf(in, now)
	if s.Status.IsTerminal() {
		return s.refuse(ReasonTerminal)
	}
	s.failRun(f)
	return s.end()
}

// Cancel ends the run at somebody's wish. The reason, if there is one, stands in the entries of what was open.
func Cancel(in Instance, reason string, now time.Time) Step {
	s := copyOf(in, now)
	if s.Status.IsTerminal() {
		return s.refuse(ReasonTerminal)
	}
	var why *Failure
	if reason != "" {
		why = &Failure{Message: shorten(reason)}
	}
	s.closeAll(why)
	s.Status = StatusCancelled
	return s.end()
}

// failParked fails an open activation, or the attempt at it.
func (s *stepper) failParked(index int, node workflow.Node, f Failure) {
	b := &s.ActiveBranches[index]
	if node.Kind() != workflow.KindAction || !mayRetry(f.Phase) || b.Attempt >= node.Retry().MaxAttempts {
		s.failNode(s.take(index), f)
		return
	}
	f = located(f, *b)
	b.Attempt++
	b.NotBefore = s.now.Add(node.Retry().Delay(b.Attempt))
	s.setDeadline(b, node, b.NotBefore)
	b.LastError = &f
	b.Child = nil
}

// mayRetry tells whether another attempt might do better.
func mayRetry(p Phase) bool {
	return slices.Contains([]Phase{PhaseExecution, PhaseResultValidation, PhaseOutputValidation}, p)
}

// failNode closes an activation for good. Its error edge leads on, else the run ends.
func (s *stepper) failNode(b ActiveBranch, f Failure) {
	f = located(f, b)
	s.close(b, Entry{Outcome: OutcomeFailed, Error: &f})
	e, ok := s.def.flow.EdgeOf(b.Node, workflow.ClassError)
	if !ok {
		s.failRun(f)
		return
	}
	told := s.merge(Values{workflow.ErrorKey: map[string]any{
		"phase": f.Phase, "code": f.Code, "node": f.Node, "activation": f.Activation, "message": f.Message,
	}})
	if told != nil {
		told.Phase = PhaseErrorHandler
		s.failRun(located(*told, b))
		return
	}
	s.follow(e, b.Branch)
}

func (s *stepper) failRun(f Failure) {
	f.Message, f.Expression = shorten(f.Message), shorten(f.Expression)
	s.Failure = &f
	s.finish(StatusFailed)
}

// located says where a failure happened, unless the failure knows better: that of a component may have happened deep
// inside a call.
func located(f Failure, b ActiveBranch) Failure {
	if f.Node == "" {
		f.Node = b.Node
	}
	if f.Activation == "" {
		f.Activation = b.Activation
	}
	f.Message, f.Expression = shorten(f.Message), shorten(f.Expression)
	return f
}

// maxText bounds messages and expressions in a failure, in bytes, so that failures cannot fill the run's status.
const maxText = 2048

// shorten cuts a text between characters and makes it valid.
func shorten(text string) string {
	if len(text) > maxText {
		text = text[:maxText] + "…"
	}
	return strings.ToValidUTF8(text, "")
}

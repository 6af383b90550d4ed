package engine

import (
	"context"
	"time"

	"github.com/apitomy/axiom-operator/internal/workflow"
)

// TimeOut tells an activation that its time is up. For a human task, whose clock is elsewhere, that is so whenever it is
// called; all others look at their deadline.
func TimeOut(ctx context.Context, d *Definition, in Instance, at Address, now time.Time) Step {
	s := begin(ctx, d, in, now)
	index, node, reason := s.find(at, workflow.Kinds()...)
	if reason == "" {
		reason = s.whyNotUp(index, node)
	}
	if reason != "" {
		return s.refuse(reason)
	}
	if s.isInterrupted(nil) {
		return s.end()
	}
	s.timeOut(index, node)
	return s.end()
}

// whyNotUp says why the time of an activation cannot be up.
func (s *stepper) whyNotUp(index int, node workflow.Node) Reason {
	_, limited := node.Timeout()
	switch {
	case !limited && node.Kind() != workflow.KindWait:
		return ReasonNoTimeout
	case s.now.Before(s.ActiveBranches[index].Deadline): // a human task has none
		return ReasonNotDue
	}
	return ""
}

func (s *stepper) timeOut(index int, node workflow.Node) {
	edge, hasEdge := s.def.flow.EdgeOf(node.ID(), workflow.ClassTimeout)
	switch {
	case node.Kind() == workflow.KindWait:
		b := s.take(index)
		s.close(b, Entry{Outcome: OutcomeCompleted})
		s.leave(b)
	case node.Kind() == workflow.KindAction:
		s.failParked(index, node, Failure{
			Phase: PhaseExecution, Code: CodeAttemptTimeout, Message: "the attempt took longer than its timeout",
		})
	case hasEdge:
		b := s.take(index)
		s.close(b, Entry{Outcome: OutcomeTimedOut})
		s.follow(edge, b.Branch)
	default:
		s.failParked(index, node, Failure{
			Phase: PhaseExecution, Code: CodeTaskExpired, Message: "the time is up and no timeout edge leads on",
		})
	}
}

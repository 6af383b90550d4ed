package engine

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// leave moves a branch on from a node that completed.
func (s *stepper) leave(b ActiveBranch) {
	if s.isOver() {
		return
	}
	normal := s.def.flow.Normal(b.Node)
	if s.def.flow.IsFork(b.Node) {
		for i, e := range normal {
			s.follow(e, b.Branch+"."+strconv.Itoa(i))
		}
		return
	}
	if e, ok := s.choose(b, normal); ok {
		s.follow(e, b.Branch)
	}
}

// choose finds the edge to take, or fails the run.
func (s *stepper) choose(b ActiveBranch, normal []workflow.Edge) (taken workflow.Edge, ok bool) {
	for _, e := range normal {
		if e.IsDefault() {
			taken, ok = e, true
			continue
		}
		selected, err := s.selects(expression.ScopeEdgeCondition, e.Condition(), nil)
		if err != nil {
			s.failCondition(b, e, err)
			return taken, false
		}
		if selected {
			return e, true
		}
	}
	if !ok {
		s.failRun(Failure{
			Phase: PhaseEdgeSelection, Code: CodeNoMatchingEdge, Node: b.Node, Activation: b.Activation,
			Message: "no condition is true and there is no default edge",
		})
	}
	return taken, ok
}

func (s *stepper) failCondition(b ActiveBranch, e workflow.Edge, err error) {
	if s.isInterrupted(err) {
		return
	}
	s.failRun(Failure{
		Phase: PhaseEdgeCondition, Code: CodeExpressionError, Node: b.Node, Activation: b.Activation,
		Edge: e.ID(), Expression: e.Condition(), Message: s.valueless(err),
	})
}

// follow leads a branch along an edge into the node behind it.
func (s *stepper) follow(e workflow.Edge, branch string) {
	if s.isOver() {
		return
	}
	if s.moves == MaxMoves {
		s.failRun(Failure{
			Phase: PhaseEdgeSelection, Code: CodeMoveLimit, Node: e.Source(), Edge: e.ID(),
			Message: fmt.Sprintf("one step would follow more than %d edges, a loop is likely", MaxMoves),
		})
		return
	}
	s.moves++
	target := e.Target()
	if _, isJoin := s.def.joins[target]; isJoin {
		if !s.arrive(e) {
			return
		}
		branch = target + "#join"
	}
	s.enter(e, branch)
}

// arrive ends a branch at a join and tells whether it was the last one.
func (s *stepper) arrive(e workflow.Edge) (complete bool) {
	join := e.Target()
	arrived := slices.Clone(s.JoinArrivals[join])
	if at, found := slices.BinarySearch(arrived, e.ID()); !found {
		arrived = slices.Insert(arrived, at, e.ID())
	}
	if len(arrived) < len(s.def.flow.Incoming(join)) {
		s.JoinArrivals[join] = arrived
		return false
	}
	delete(s.JoinArrivals, join)
	return true
}

// enter visits the node behind an edge. What cannot be done at once is parked.
func (s *stepper) enter(e workflow.Edge, branch string) {
	node, ok := s.def.flow.Node(e.Target())
	if !ok {
		s.failRun(Failure{
			Phase: PhaseEdgeSelection, Code: CodeNoMatchingEdge, Node: e.Source(), Edge: e.ID(),
			Message: "the edge leads to no node",
		})
		return
	}
	b := s.visit(node, branch)
	b.Edge, b.Condition = e.ID(), e.Condition()
	if node.Kind() == workflow.KindEnd {
		s.close(b, Entry{Outcome: OutcomeCompleted})
		s.finish(StatusCompleted)
		return
	}
	failure := s.prepare(&b, node)
	switch {
	case s.interrupted:
	case failure != nil:
		s.failNode(b, *failure)
	default:
		s.ActiveBranches = append(s.ActiveBranches, b)
		s.opened = append(s.opened, b.Activation)
	}
}

func (s *stepper) visit(node workflow.Node, branch string) ActiveBranch {
	id := node.ID()
	s.Visits[id]++
	return ActiveBranch{
		Branch: branch, Node: id, Activation: id + "#" + strconv.Itoa(s.Visits[id]), EnteredOn: s.now,
	}
}

// close writes the history of an activation that is no longer among the active ones.
func (s *stepper) close(b ActiveBranch, e Entry) {
	s.entries++
	e.Seq = s.entries
	e.Activation, e.Node, e.Branch, e.Edge, e.Condition = b.Activation, b.Node, b.Branch, b.Edge, b.Condition
	e.EnteredOn, e.CompletedOn = b.EnteredOn, s.now
	e.Title, e.Attempts = b.Title, b.Attempt
	if e.Input == nil {
		e.Input = b.Input
	}
	if s.def != nil {
		if node, ok := s.def.flow.Node(b.Node); ok {
			e.Name, e.Type = node.Name(), node.Kind()
		}
	}
	s.closed = append(s.closed, e)
}

// take removes an open activation to close it or change it.
func (s *stepper) take(index int) ActiveBranch {
	b := s.ActiveBranches[index]
	s.ActiveBranches = slices.Delete(s.ActiveBranches, index, index+1)
	return b
}

// finish ends the run: whatever is still open closes.
func (s *stepper) finish(status Status) {
	s.closeAll(nil)
	s.Status = status
}

func (s *stepper) closeAll(why *Failure) {
	for _, b := range s.ActiveBranches {
		s.close(b, Entry{Outcome: OutcomeCancelled, Error: why})
	}
	s.ActiveBranches = []ActiveBranch{}
	s.JoinArrivals = map[string][]string{}
}

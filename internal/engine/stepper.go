package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

const (
	// MaxMoves is how many edges one step may follow.
	MaxMoves = 100
	// MaxContextBytes bounds the compact JSON of a run's context.
	MaxContextBytes = 256 << 10
)

const rootBranch = "root"

// A stepper makes one step on a copy of an instance.
type stepper struct {
	// ctx and def are nil where nothing is evaluated.
	ctx    context.Context
	def    *Definition
	before Instance
	Instance
	now    time.Time
	closed []Entry
	opened []string
	// entries counts the history entries of the run.
	entries int
	moves   int
	// seeded is what expressions see of the context, nil after it changed.
	seeded      map[string]any
	interrupted bool
}

func begin(ctx context.Context, d *Definition, in Instance, now time.Time) *stepper {
	s := copyOf(in, now)
	s.ctx, s.def = ctx, d
	return s
}

// copyOf begins a step that follows no edge.
func copyOf(in Instance, now time.Time) *stepper {
	s := &stepper{before: in, Instance: in.copied(), now: now.UTC().Round(0)}
	// Every activation is either open or in the history.
	for _, n := range in.Visits {
		s.entries += n
	}
	s.entries -= len(in.ActiveBranches)
	return s
}

// copied returns an instance whose maps and lists may be changed. Values in them are replaced, never changed.
func (in Instance) copied() Instance {
	in.Visits = copiedMap(in.Visits)
	in.JoinArrivals = copiedMap(in.JoinArrivals)
	in.Context = copiedMap(in.Context)
	in.Consumed = maps.Clone(in.Consumed)
	in.ContextRefs = maps.Clone(in.ContextRefs)
	in.ActiveBranches = append([]ActiveBranch{}, in.ActiveBranches...)
	return in
}

func copiedMap[M ~map[K]V, K comparable, V any](m M) M {
	if m == nil {
		return M{}
	}
	return maps.Clone(m)
}

// refuse ends a step that does not apply.
func (s *stepper) refuse(reason Reason) Step {
	return Step{Instance: s.before, Reason: reason}
}

// end ends a step that applies.
func (s *stepper) end() Step {
	if s.interrupted {
		return s.refuse(ReasonInterrupted)
	}
	if !s.Status.IsTerminal() && len(s.ActiveBranches) == 0 {
		s.failRun(Failure{Phase: PhaseEdgeSelection, Code: CodeDeadlock, Message: "nothing is active and no end was reached"})
	}
	s.Step++
	opened := slices.DeleteFunc(s.opened, func(activation string) bool { return s.indexOf(activation) < 0 })
	return Step{Instance: s.Instance, Applied: true, Closed: s.closed, Opened: opened}
}

// isOver tells whether the step has nothing more to do.
func (s *stepper) isOver() bool {
	return s.interrupted || s.Status.IsTerminal()
}

func (s *stepper) indexOf(activation string) int {
	return slices.IndexFunc(s.ActiveBranches, func(b ActiveBranch) bool { return b.Activation == activation })
}

// find looks up whom a delivery is meant for, and says why it cannot be delivered if so.
func (s *stepper) find(at Address, kinds ...workflow.Kind) (index int, node workflow.Node, reason Reason) {
	if s.Status.IsTerminal() {
		return 0, node, ReasonTerminal
	}
	id, ok := s.visited(at.Activation)
	if ok {
		node, ok = s.def.flow.Node(id)
	}
	if !ok {
		return 0, node, ReasonUnknownActivation
	}
	index = s.indexOf(at.Activation)
	switch {
	case index < 0:
		return 0, node, ReasonStaleActivation
	case node.Kind() == workflow.KindAction && at.Attempt != s.ActiveBranches[index].Attempt:
		return 0, node, ReasonStaleAttempt
	case !slices.Contains(kinds, node.Kind()):
		return 0, node, ReasonWrongKind
	}
	return index, node, ""
}

// visited splits an activation and tells whether the run has had it.
func (s *stepper) visited(activation string) (node string, ok bool) {
	at := strings.LastIndexByte(activation, '#')
	if at < 0 {
		return "", false
	}
	node, count := activation[:at], activation[at+1:]
	n, err := strconv.Atoi(count)
	return node, err == nil && n >= 1 && n <= s.Visits[node] && strconv.Itoa(n) == count
}

// isInterrupted notes that the context ended, whatever else an error says.
func (s *stepper) isInterrupted(err error) bool {
	if errors.Is(err, expression.ErrInterrupted) || s.ctx.Err() != nil {
		s.interrupted = true
	}
	return s.interrupted
}

// evaluate gives the value of an expression over the context and, in scopes that see one, an event.
func (s *stepper) evaluate(scope expression.Scope, text string, event Values) (any, error) {
	program, err := s.def.programs.Compile(scope, text)
	if err != nil {
		return nil, err
	}
	return program.Eval(s.ctx, expression.Variables{Context: s.variables(), Event: event})
}

// selects tells whether a condition or a match holds.
func (s *stepper) selects(scope expression.Scope, text string, event Values) (bool, error) {
	program, err := s.def.programs.Compile(scope, text)
	if err != nil {
		return false, err
	}
	return program.Selects(s.ctx, expression.Variables{Context: s.variables(), Event: event})
}

// valueless is the message of an expression's failure.
func (s *stepper) valueless(err error) string {
	if s.def.isDiscreet {
		return "the expression has no value that can be used"
	}
	return err.Error()
}

// variables is the context with every declared key.
func (s *stepper) variables() map[string]any {
	if s.seeded == nil {
		s.seeded = s.def.seeded(s.Context)
	}
	return s.seeded
}

// merge writes values into the context, all or none.
func (s *stepper) merge(values Values) *Failure {
	if len(values) == 0 {
		return nil
	}
	merged := maps.Clone(s.Context)
	maps.Copy(merged, values)
	refs := maps.Clone(s.ContextRefs)
	for key := range values {
		delete(refs, key)
	}
	size := jsonvalue.Size(map[string]any(merged))
	for _, ref := range refs {
		size += ref.Bytes
	}
	if size > MaxContextBytes {
		return &Failure{
			Phase: PhaseOutputMapping, Code: CodeContextTooLarge,
			Message: "the context would have " + strconv.Itoa(size) + " bytes, the limit is " + strconv.Itoa(MaxContextBytes),
		}
	}
	s.Context, s.ContextRefs, s.seeded = merged, refs, nil
	return nil
}

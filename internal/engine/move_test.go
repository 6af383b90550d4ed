package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/engine"
)

// choice is a start that leads to ends named by the edges "target {members}".
func choice(edges ...string) string {
	var nodes, lines strings.Builder
	nodes.WriteString("s " + from + "\n")
	for _, edge := range edges {
		target, _, _ := strings.Cut(edge, " ")
		nodes.WriteString(target + " end {outcome: " + target + "}\n")
		lines.WriteString("s " + edge + "\n")
	}
	return flow(nodes.String(), lines.String())
}

func TestChoice(t *testing.T) {
	tests := map[string]struct {
		edges  []string
		inputs string
		want   string
	}{
		"the only edge":                        {[]string{"a {}"}, "{}", "a"},
		"the first that is true":               {[]string{"a {condition: context.num > 1}", "b {condition: context.num > 0, priority: 1}", "c {isDefault: true}"}, "{num: 1}", "b"},
		"by priority and not as declared":      {[]string{"a {condition: 'true', priority: 2}", "b {condition: 'true', priority: -1}", "c {isDefault: true}"}, "{}", "b"},
		"as declared where priorities tie":     {[]string{"a {condition: 'true'}", "b {condition: 'true'}", "c {isDefault: true}"}, "{}", "a"},
		"the default when nothing else is":     {[]string{"a {isDefault: true, priority: -5}", "b {condition: context.num > 1}"}, "{num: 1}", "a"},
		"the default last whatever priority":   {[]string{"a {isDefault: true, priority: -5}", "b {condition: context.num > 0}"}, "{num: 1}", "b"},
		"the last of several defaults":         {[]string{"a {isDefault: true}", "b {isDefault: true}", "c {condition: 'false'}"}, "{}", "b"},
		"no default before what is true":       {[]string{"a {isDefault: true}", "b {isDefault: true, priority: 1}", "c {condition: 'true', priority: 2}"}, "{}", "c"},
		"a default though its condition fails": {[]string{"a {isDefault: true, condition: context.missing}", "b {condition: 'false'}"}, "{}", "a"},
		"true only if it is the boolean":       {[]string{"a {condition: context.num}", "b {isDefault: true}"}, "{num: 'true'}", "b"},
		"nothing behind what was taken":        {[]string{"a {condition: context.num == 1}", "b {condition: context.missing, priority: 1}", "c {isDefault: true}"}, "{num: 1}", "a"},
		"an int compared with a double":        {[]string{"a {condition: context.num == 1.0}", "b {isDefault: true}"}, "{num: 1}", "a"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := tell(t, choice(tc.edges...), tc.inputs)
			s.wantStatus(engine.StatusCompleted)
			if got := s.def.Outcome(s.last); got != tc.want {
				t.Errorf("reached %q, want %q", got, tc.want)
			}
		})
	}
}

func TestChoiceThatFails(t *testing.T) {
	t.Run("no edge matches", func(t *testing.T) {
		s := tell(t, choice("a {condition: 'false'}", "b {condition: context.num == 2, priority: 1}"), "{num: 1}")
		s.wantFailure(engine.PhaseEdgeSelection, engine.CodeNoMatchingEdge, "s#1")
		s.wantHistory("s#1 Completed")
	})
	t.Run("a condition has no value, default or not", func(t *testing.T) {
		s := tell(t, choice("a {condition: context.missing == 1}", "b {isDefault: true}"), "{}")
		f := s.wantFailure(engine.PhaseEdgeCondition, engine.CodeExpressionError, "s#1")
		if f.Node != "s" || f.Edge != "s-a" || f.Expression != "context.missing == 1" || !strings.Contains(f.Message, "no such key") {
			t.Errorf("failure = %+v", f)
		}
	})
}

// Declared keys are null until somebody writes them; all others are missing.
func TestDeclaredKeysAreNull(t *testing.T) {
	nodes := `
s start {inputs: [{name: input}]}
x action {actionType: a, inputs: {}, outputs: [{name: o, contextKey: output}]}
h human-task {description: D, outputs: [{name: answer}]}
r receive-event {eventType: t, outputs: [{contextKey: mapped, expression: event.id}]}
q receive-event {eventType: u}
c component {component: c, outputs: {bound: result}}
e end {}`
	edges := "s x {}\nx h {}\nx e {isError: true}\nh r {}\nr q {}\nq c {}\nc e {}\n"
	for _, key := range []string{"input", "output", "answer", "mapped", "event", "bound", "error"} {
		doc := strings.Replace(flow(nodes, edges), "source: 's', target: 'x'}", "source: 's', target: 'x', condition: context."+key+" == null}", 1)
		s := tell(t, doc, "{}")
		s.wantOpen("x#1")
		s.wantContext("{}")
	}
	for _, key := range []string{"o", "result", "s"} {
		doc := strings.Replace(flow(nodes, edges), "source: 's', target: 'x'}", "source: 's', target: 'x', condition: context."+key+" == null}", 1)
		tell(t, doc, "{}").wantFailure(engine.PhaseEdgeCondition, engine.CodeExpressionError, "s#1")
	}
}

const forkNodes = `
s start {inputs: []}
a action {actionType: a, inputs: {}, outputs: []}
b human-task {description: D, outputs: []}
c wait {duration: PT1H}
j wait {duration: PT0S}
e end {}`

const forkEdges = `
s c {priority: 3}
s b {priority: 2}
s a {priority: 1}
a j {}
b j {}
c j {}
j e {}`

func TestForkAndJoin(t *testing.T) {
	s := tell(t, flow(forkNodes, forkEdges), "{}")
	s.wantOpen("a#1", "b#1", "c#1")
	if diff := cmp.Diff([]string{"a#1", "b#1", "c#1"}, s.last.Opened); diff != "" {
		t.Errorf("opened (-want +got):\n%s", diff)
	}
	for i, activation := range []string{"a#1", "b#1", "c#1"} {
		if got, want := s.branch(activation).Branch, fmt.Sprintf("root.%d", i); got != want {
			t.Errorf("%s is on branch %s, want %s", activation, got, want)
		}
	}
	s.complete("b#1", "{}")
	s.wantOpen("a#1", "c#1")
	s.after(time.Hour).timeOut("c#1")
	if diff := cmp.Diff(map[string][]string{"j": {"b-j", "c-j"}}, s.in.JoinArrivals); diff != "" {
		t.Errorf("arrivals (-want +got):\n%s", diff)
	}
	s.complete("a#1", "{}")
	s.wantOpen("j#1")
	if b := s.branch("j#1"); b.Branch != "j#join" || b.Edge != "a-j" || len(s.in.JoinArrivals) != 0 {
		t.Errorf("join entered as %+v, arrivals %v", b, s.in.JoinArrivals)
	}
	s.timeOut("j#1")
	s.wantStatus(engine.StatusCompleted)
}

func TestForksInForks(t *testing.T) {
	s := tell(t, flow(`
s `+from+`
a `+act+`
b `+act+`
c `+act+`
d `+act+`
k `+act+`
j `+act+`
e end {}`, "s a {}\ns b {}\na c {}\na d {}\nc k {}\nd k {}\nk j {}\nb j {}\nj e {}"), "{}")
	s.wantOpen("a#1", "b#1")
	s.complete("a#1", "{}")
	s.wantOpen("b#1", "c#1", "d#1")
	if got := s.branch("d#1").Branch; got != "root.0.1" {
		t.Errorf("inner branch is %s", got)
	}
	s.complete("d#1", "{}")
	s.complete("b#1", "{}")
	s.complete("c#1", "{}")
	s.wantOpen("k#1")
	s.complete("k#1", "{}")
	s.wantOpen("j#1")
	s.complete("j#1", "{}")
	s.wantStatus(engine.StatusCompleted)
}

// A loop around a region enters its join once for each round.
func TestRegionInALoop(t *testing.T) {
	s := tell(t, flow(`
s `+from+`
f `+act+`
a `+act+`
b `+act+`
j action {actionType: a, inputs: {}, outputs: [{name: again}]}
e end {}`, "s f {}\nf a {}\nf b {}\na j {}\nb j {}\nj f {condition: context.again == true}\nj e {isDefault: true}"), "{}")
	for round := 1; round <= 3; round++ {
		s.complete(fmt.Sprintf("f#%d", round), "{}")
		s.complete(fmt.Sprintf("a#%d", round), "{}")
		s.complete(fmt.Sprintf("b#%d", round), "{}")
		s.wantOpen(fmt.Sprintf("j#%d", round))
		if got, want := s.branch(fmt.Sprintf("j#%d", round)).Branch, "j#join"; got != want {
			t.Errorf("join is on branch %s", got)
		}
		s.complete(fmt.Sprintf("j#%d", round), fmt.Sprintf("{again: %t}", round < 3))
	}
	s.wantStatus(engine.StatusCompleted)
	if s.in.Visits["j"] != 3 || s.in.Visits["a"] != 3 {
		t.Errorf("visits = %v", s.in.Visits)
	}
}

func TestForkWhoseBranchesAreEdgesToTheJoin(t *testing.T) {
	s := tell(t, flow("s "+from+"\na "+act+"\nj "+act+"\ne end {}", "s a {}\ns j {}\na j {}\nj e {}"), "{}")
	s.wantOpen("a#1")
	s.complete("a#1", "{}")
	s.wantOpen("j#1")
}

// An end that is no join ends the run for all branches.
func TestEndClosesWhatIsOpen(t *testing.T) {
	s := tell(t, flow(`
s `+from+`
f action {actionType: a, inputs: {}, outputs: []}
a `+act+`
b `+act+`
j end {}
lost end {}`, "s f {}\nf a {}\nf b {}\na j {}\nb j {}\nf lost {isError: true}"), "{}")
	s.complete("f#1", "{}")
	s.complete("a#1", "{}")
	s.wantOpen("b#1")
	s.complete("b#1", "{}")
	s.wantStatus(engine.StatusCompleted)
	if got := s.entry("j#1").Branch; got != "j#join" {
		t.Errorf("end entered on branch %s", got)
	}
}

func TestMoveLimit(t *testing.T) {
	t.Run("an error edge back onto its node", func(t *testing.T) {
		s := tell(t, flow("s "+from+"\nx action {actionType: a, inputs: {i: context.missing}, outputs: []}\ne end {}",
			"s x {}\nx e {}\nx x {isError: true}"), "{}")
		f := s.wantFailure(engine.PhaseEdgeSelection, engine.CodeMoveLimit, "")
		if !strings.Contains(f.Message, "a loop is likely") || f.Edge != "x-x" {
			t.Errorf("failure = %+v", f)
		}
		if got := s.in.Visits["x"]; got != engine.MaxMoves {
			t.Errorf("%d visits, want %d", got, engine.MaxMoves)
		}
	})
	fork := func(n int) string {
		var nodes, edges strings.Builder
		nodes.WriteString("s " + from + "\nj " + act + "\ne end {}\n")
		edges.WriteString("j e {}\n")
		for i := range n {
			fmt.Fprintf(&nodes, "b%d %s\n", i, act)
			fmt.Fprintf(&edges, "s b%d {}\nb%d j {}\n", i, i)
		}
		return flow(nodes.String(), edges.String())
	}
	t.Run("a fork of a hundred", func(t *testing.T) {
		s := tell(t, fork(engine.MaxMoves), "{}")
		s.wantStatus(engine.StatusWaiting)
		if len(s.last.Opened) != engine.MaxMoves {
			t.Errorf("opened %d", len(s.last.Opened))
		}
	})
	t.Run("a fork of a hundred and one", func(t *testing.T) {
		s := tell(t, fork(engine.MaxMoves+1), "{}")
		s.wantFailure(engine.PhaseEdgeSelection, engine.CodeMoveLimit, "")
		if len(s.last.Opened) != 0 || len(s.history) != engine.MaxMoves+1 {
			t.Errorf("opened %v, history has %d entries", s.last.Opened, len(s.history))
		}
	})
}

// No valid document gets here, but an instance may be handed to another document.
func TestNothingLeftIsADeadlock(t *testing.T) {
	s := tell(t, flow("s "+from+"\na "+act+"\nb "+act+"\nj "+act+"\ne end {}", "s a {}\ns b {}\na j {}\nb j {}\nj e {}"), "{}")
	s.in.ActiveBranches = s.in.ActiveBranches[:1]
	s.in.Visits["b"] = 0
	step := engine.Complete(t.Context(), s.def, s.in, s.at("a#1"), engine.Values{}, "", noon)
	if f := step.Instance.Failure; f == nil || f.Phase != engine.PhaseEdgeSelection || f.Code != engine.CodeDeadlock {
		t.Errorf("failure = %+v, want a deadlock", f)
	}
}

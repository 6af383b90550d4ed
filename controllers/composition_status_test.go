package controllers

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// brief is a condition without what every one has.
type brief struct{ Type, Status, Reason, Message string }

func briefs(conditions []metav1.Condition) map[string]brief {
	found := map[string]brief{}
	for _, c := range conditions {
		found[c.Type] = brief{c.Type, string(c.Status), c.Reason, c.Message}
	}
	return found
}

func TestCompositionConditions(t *testing.T) {
	session := func(phase api.SessionPhase, how ...func(*api.AgentSession)) *api.AgentSession {
		s := agentOf("c")
		s.Status.Phase = phase
		for _, f := range how {
			f(s)
		}
		return s
	}
	overLimit := func(s *api.AgentSession) {
		s.Status.Conditions = []metav1.Condition{{Type: api.ConditionWithinLimit, Status: metav1.ConditionFalse}}
	}
	broken := itemView{kind: api.ItemTool, name: "a", problems: []api.Problem{{Severity: "error", Path: "content", Code: "C", Message: "m"}}}
	warned := itemView{kind: api.ItemWorkflow, name: "w", problems: []api.Problem{{Severity: "warning", Code: "C"}}}
	manyBroken := itemView{kind: api.ItemWorkflow, name: "w", problems: many(api.SeverityError, 7)}

	for name, tc := range map[string]struct {
		items     []itemView
		session   *api.AgentSession
		turns     []api.Turn
		recordErr error
		want      []brief
	}{
		"a fresh draft": {
			items: []itemView{{kind: api.ItemWorkflow, name: "w"}},
			want: []brief{
				{"Valid", "True", "Valid", ""},
				{"AgentReady", "False", "NoSession", ""},
				{"TurnPending", "False", "None", ""},
				{"Reconciled", "True", "Reconciled", ""},
				{"Ready", "True", "Reconciled", ""},
			},
		},
		"a draft without a workflow": {
			items: []itemView{{kind: api.ItemTool, name: "a"}},
			want:  []brief{{"Valid", "False", "NoWorkflow", "the draft has no workflow yet"}, {"Ready", "True", "Reconciled", ""}},
		},
		"an invalid draft is healthy": {
			items: []itemView{warned, broken},
			want:  []brief{{"Valid", "False", "Problems", "tool/a content: C: m"}, {"Reconciled", "True", "Reconciled", ""}},
		},
		"warnings are no errors": {items: []itemView{warned}, want: []brief{{"Valid", "True", "Valid", ""}}},
		"the first of many problems": {
			items: []itemView{manyBroken},
			want: []brief{{
				"Valid", "False", "Problems",
				"workflow/w : 0: ; workflow/w : 1: ; workflow/w : 2: ; workflow/w : 3: ; workflow/w : 4: ; and 2 more",
			}},
		},
		"a history that cannot be written": {
			recordErr: errors.New("boom"),
			want: []brief{
				{"Reconciled", "False", "Error", "history could not be written; it is tried again"},
				{"Ready", "False", "Error", "history could not be written; it is tried again"},
			},
		},
		"a turn that waits": {
			turns: []api.Turn{*message("t-1", "c", inState(api.TurnAwaitingResolution))},
			want:  []brief{{"TurnPending", "True", "AwaitingResolution", "turn t-1 waits for a resolution"}},
		},
		"an agent that is ready":         {session: session(api.SessionReady), want: []brief{{"AgentReady", "True", "Ready", ""}}},
		"an agent that works":            {session: session(api.SessionWorking), want: []brief{{"AgentReady", "True", "Working", ""}}},
		"an agent that starts":           {session: session(api.SessionStarting), want: []brief{{"AgentReady", "False", "Starting", ""}}},
		"a session nobody looked at":     {session: session(""), want: []brief{{"AgentReady", "False", "Starting", ""}}},
		"an agent that is suspended":     {session: session(api.SessionSuspended), want: []brief{{"AgentReady", "False", "Suspended", "the next turn starts the agent again"}}},
		"an agent that failed":           {session: session(api.SessionFailed, func(s *api.AgentSession) { s.Status.LastFailure = "why" }), want: []brief{{"AgentReady", "False", "Failed", "why"}}},
		"an agent that waits for a slot": {session: session(api.SessionPending, overLimit), want: []brief{{"AgentReady", "False", "SessionLimit", "the agent waits for a free slot of the namespace"}}},
		"an agent that was stopped":      {session: session(api.SessionStopped), want: []brief{{"AgentReady", "False", "Stopped", ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			comp := draft("c")
			setCompositionStatus(compositionState{comp: comp, items: tc.items, session: tc.session, turns: tc.turns}, snapshotRecord{}, tc.recordErr)
			got := briefs(comp.Status.Conditions)
			if len(got) != 5 {
				t.Errorf("%d conditions, want 5", len(got))
			}
			for _, want := range tc.want {
				if diff := cmp.Diff(want, got[want.Type]); diff != "" {
					t.Errorf("condition differs (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestItemsTellTheirAuthor(t *testing.T) {
	comp := draft("c")
	newest := recorded(1, "", snapshotItem{Type: api.ItemWorkflow, Name: "w", ContentRevision: "r1", Author: api.AuthorAI, Turn: "t-1"},
		snapshotItem{Type: api.ItemTool, Name: "a", ContentRevision: "r2", Author: api.AuthorUser})
	newest.name = "snapshot"
	items := []itemView{{kind: api.ItemWorkflow, name: "w", revision: "r1"}, {kind: api.ItemTool, name: "a", revision: "r3"}}
	state := compositionState{comp: comp, items: items}

	setCompositionStatus(state, newest, nil)
	want := []api.ItemStatus{
		{Type: api.ItemWorkflow, Name: "w", ContentRevision: "r1", Valid: true, LastAuthor: api.AuthorAI, LastTurn: "t-1"},
		// Whoever made r3, the snapshot is not of it.
		{Type: api.ItemTool, Name: "a", ContentRevision: "r3", Valid: true},
	}
	if diff := cmp.Diff(want, comp.Status.Items, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("items differ (-want +got):\n%s", diff)
	}
	if comp.Status.Snapshot != "snapshot" || comp.Status.ObservedGeneration != 1 || comp.Status.WorkflowRevision != "r1" {
		t.Errorf("status is %+v", comp.Status)
	}
	// Status must not claim a history that was not written.
	comp.Generation = 2
	setCompositionStatus(state, newest, errors.New("boom"))
	if comp.Status.ObservedGeneration != 1 || comp.Status.Items[0].LastTurn != "t-1" {
		t.Errorf("status is %+v", comp.Status)
	}
}

func TestWhoHoldsTheComposition(t *testing.T) {
	deleted := func(turn *api.Turn) {
		now := metav1.NewTime(noon)
		turn.DeletionTimestamp, turn.Finalizers = &now, []string{"x/y"}
	}
	for name, tc := range map[string]struct {
		current *api.Turn
		claim   *api.Claim
		held    bool
	}{
		"a turn that works":                {message("t-1", "c", inState(api.TurnWorking)), &api.Claim{Turn: "t-1", UID: "uid-of-t-1"}, true},
		"a turn that claimed a moment ago": {message("t-1", "c", inState(api.TurnPending)), &api.Claim{Turn: "t-1", UID: "uid-of-t-1"}, true},
		"a turn that nobody looked at":     {message("t-1", "c"), &api.Claim{Turn: "t-1", UID: "uid-of-t-1"}, true},
		"a turn that is over":              {message("t-1", "c", inState(api.TurnFailed)), &api.Claim{Turn: "t-1", UID: "uid-of-t-1"}, false},
		"a turn that waits for a decision": {message("t-1", "c", inState(api.TurnAwaitingResolution)), &api.Claim{Turn: "t-1", UID: "uid-of-t-1"}, false},
		"a turn that is gone":              {nil, &api.Claim{Turn: "t-1", UID: "uid-of-t-1"}, false},
		"a turn that is being deleted":     {message("t-1", "c", inState(api.TurnWorking), deleted), &api.Claim{Turn: "t-1", UID: "uid-of-t-1"}, false},
		"another turn of that name":        {message("t-1", "c", inState(api.TurnWorking)), &api.Claim{Turn: "t-1", UID: "former"}, false},
		"a turn without a claim":           {message("t-1", "c", inState(api.TurnWorking)), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			comp := draft("c")
			comp.Status.TurnState, comp.Status.CurrentTurn, comp.Status.Claim = api.TurnStateWorking, "t-1", tc.claim
			setTurnStatus(compositionState{comp: comp, current: tc.current})
			held := comp.Status.TurnState == api.TurnStateWorking && comp.Status.CurrentTurn == "t-1" && comp.Status.Claim != nil
			released := comp.Status.TurnState == api.TurnStateIdle && comp.Status.CurrentTurn == "" && comp.Status.Claim == nil
			if held != tc.held || released == tc.held {
				t.Errorf("status is %+v, want held %t", comp.Status, tc.held)
			}
		})
	}
}

func TestPendingTurn(t *testing.T) {
	numbered := func(name string, number int64, state api.TurnPhase) api.Turn {
		return *message(name, "c", inState(state), func(turn *api.Turn) { turn.Status.Number = number })
	}
	waiting := api.TurnAwaitingResolution
	for name, tc := range map[string]struct {
		turns []api.Turn
		want  string
	}{
		"none":                      {nil, ""},
		"none that waits":           {[]api.Turn{numbered("a", 1, api.TurnApplied), numbered("b", 2, api.TurnWorking)}, ""},
		"the newest by its number":  {[]api.Turn{numbered("z", 1, waiting), numbered("a", 2, waiting)}, "a"},
		"in whatever order":         {[]api.Turn{numbered("a", 2, waiting), numbered("z", 1, waiting)}, "a"},
		"not one that is gone soon": {[]api.Turn{numbered("z", 1, waiting), *message("a", "c", inState(waiting), func(turn *api.Turn) { now := metav1.NewTime(noon); turn.DeletionTimestamp = &now })}, "z"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := pendingTurn(tc.turns); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestIsNewerIsAStrictOrder(t *testing.T) {
	early := metav1.NewTime(noon.Add(-time.Minute))
	ordered := []*api.Turn{
		message("b", "c", func(turn *api.Turn) { turn.CreationTimestamp = early }),
		message("a", "c"),
		message("b", "c"),
		message("a", "c", func(turn *api.Turn) { turn.Status.Number, turn.CreationTimestamp = 1, early }),
		message("z", "c", func(turn *api.Turn) { turn.Status.Number = 2 }),
		message("a", "c", func(turn *api.Turn) { turn.Status.Number = 3 }),
	}
	for i, a := range ordered {
		for j, b := range ordered {
			if isNewer(a, b) != (i > j) {
				t.Errorf("isNewer(%d, %d) is %t", i, j, isNewer(a, b))
			}
		}
	}
}

func TestSuperfluousSnapshots(t *testing.T) {
	record := func(generation int64) snapshotRecord {
		return snapshotRecord{name: fmt.Sprint("s", generation), data: snapshotData{Generation: generation}}
	}
	history := []snapshotRecord{record(1), record(3), record(4), record(6), record(9)}
	for name, tc := range map[string]struct {
		limit  int32
		status api.CompositionStatus
		want   []string
	}{
		"within the limit": {limit: 5, status: api.CompositionStatus{Snapshot: "s9"}},
		"the oldest first": {limit: 3, status: api.CompositionStatus{Snapshot: "s9"}, want: []string{"s1", "s3"}},
		"but not what a turn counts from": {
			limit: 3, status: api.CompositionStatus{Snapshot: "s9", LastTurnGeneration: 3}, want: []string{"s1"},
		},
		"even if that generation was layout only": {
			limit: 1, status: api.CompositionStatus{Snapshot: "s9", LastTurnGeneration: 5}, want: []string{"s1", "s3", "s6"},
		},
		"nor what the turn that starts still compares with": {
			limit:  1,
			status: api.CompositionStatus{Snapshot: "s9", LastTurnGeneration: 9, Claim: &api.Claim{SinceGeneration: 2}},
			want:   []string{"s3", "s4", "s6"},
		},
		"nor what status names": {limit: 1, status: api.CompositionStatus{Snapshot: "s4"}, want: []string{"s1", "s3", "s6"}},
		"never without a limit": {limit: 0, status: api.CompositionStatus{Snapshot: "s9"}},
	} {
		t.Run(name, func(t *testing.T) {
			comp := draft("c")
			comp.Spec.RevisionHistoryLimit, comp.Status = tc.limit, tc.status
			var got []string
			for _, record := range superfluousSnapshots(comp, history) {
				got = append(got, record.name)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("superfluous differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSuperfluousTurns(t *testing.T) {
	var all []api.Turn
	for i := range maxFinishedTurns + 3 {
		all = append(all, *message(fmt.Sprintf("t-%02d", i), "c", inState(api.TurnApplied), func(turn *api.Turn) {
			turn.CreationTimestamp = metav1.NewTime(noon.Add(time.Duration(-i) * time.Minute)) // the later in the list, the older
		}))
	}
	oldest := maxFinishedTurns + 2
	all[oldest].Status.State = api.TurnAwaitingResolution
	all[oldest-1].Status.State = api.TurnWorking
	if got := superfluousTurns(all); len(got) != 1 || got[0].Name != fmt.Sprintf("t-%02d", oldest-2) {
		t.Errorf("superfluous are %d turns, want the oldest finished one", len(got))
	}
	if got := superfluousTurns(all[1:]); len(got) != 0 {
		t.Errorf("superfluous are %d turns, want none", len(got))
	}
}

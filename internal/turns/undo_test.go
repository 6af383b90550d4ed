package turns_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// wrote is the record of a write that is in the draft.
func wrote(item turns.Item, before, after string) api.ItemWrite {
	return api.ItemWrite{Type: item.Type, Name: item.Name, Before: content(before), After: content(after), State: api.ItemWritten}
}

func staged(item turns.Item, before, after string) api.ItemWrite {
	write := wrote(item, before, after)
	write.Staged, write.State = true, api.ItemIntended
	return write
}

func TestPlanUndo(t *testing.T) {
	flow := turns.Item{Type: api.ItemWorkflow, Name: "w"}
	applied := func(resolution api.Resolution) func(*api.Turn) {
		return func(turn *api.Turn) {
			turn.Status.State, turn.Spec.Resolution = api.TurnApplied, resolution
			turn.Status.BaseRevision, turn.Status.ResultRevision = "0", "1"
			turn.Status.Base = &api.ContentRef{Digest: "digest of 0", Size: 3}
		}
	}
	withWrites := func(writes ...api.ItemWrite) func(*api.Turn) {
		return func(turn *api.Turn) { turn.Status.ItemWrites = writes }
	}
	in := func(state api.TurnPhase) func(*api.Turn) {
		return func(turn *api.Turn) { turn.Status.State = state }
	}
	before := &api.ContentRef{Digest: "digest of 0"}

	for name, tc := range map[string]struct {
		how       []func(*api.Turn)
		others    map[string]string
		automatic bool
		want      api.UndoReport
		restores  []string
	}{
		"nothing": {how: []func(*api.Turn){in(api.TurnCompleted)}},
		"a changed, a created and a removed tool": {
			how:      []func(*api.Turn){in(api.TurnCompleted), withWrites(wrote(tool("c"), "0", "1"), wrote(tool("b"), "", "1"), wrote(tool("a"), "0", ""))},
			want:     api.UndoReport{Restored: []string{"tool/a", "tool/c"}, Removed: []string{"tool/b"}},
			restores: []string{"tool/c 0", "tool/b ", "tool/a 0"},
		},
		"one that was edited since": {
			how:      []func(*api.Turn){in(api.TurnFailed), withWrites(wrote(tool("a"), "0", "1"), wrote(tool("b"), "0", "1"))},
			others:   map[string]string{"tool/a": ""},
			want:     api.UndoReport{Restored: []string{"tool/b"}, Skipped: []string{"tool/a"}},
			restores: []string{"tool/b 0"},
		},
		"one that a later turn wrote": {
			how:    []func(*api.Turn){in(api.TurnFailed), withWrites(wrote(tool("a"), "0", "1"))},
			others: map[string]string{"tool/a": "t-2"},
			want:   api.UndoReport{Skipped: []string{"tool/a"}},
		},
		"what was staged and rejected": {how: []func(*api.Turn){in(api.TurnRejected), withWrites(staged(tool("a"), "0", "1"))}},
		"what was staged and applied by a client": {
			how:  []func(*api.Turn){in(api.TurnApplied), withWrites(staged(tool("a"), "0", "1"))},
			want: api.UndoReport{ForClient: []string{"tool/a"}},
		},
		"an accepted workflow": {
			how:      []func(*api.Turn){applied(api.ResolutionAccepted)},
			want:     api.UndoReport{WorkflowBefore: before, WorkflowRestorable: true, WorkflowRestored: true},
			restores: []string{"workflow/w 0"},
		},
		"a workflow that a client applied": {
			how:  []func(*api.Turn){applied(api.ResolutionApplied)},
			want: api.UndoReport{WorkflowBefore: before, WorkflowRestorable: true},
		},
		"a workflow that was applied unasked, where the operator accepts": {
			how: []func(*api.Turn){applied("")}, automatic: true,
			want:     api.UndoReport{WorkflowBefore: before, WorkflowRestorable: true, WorkflowRestored: true},
			restores: []string{"workflow/w 0"},
		},
		"an accepted workflow that was edited since": {
			how: []func(*api.Turn){applied(api.ResolutionAccepted)}, others: map[string]string{"workflow/w": ""},
			want: api.UndoReport{WorkflowBefore: before, Skipped: []string{"workflow/w"}},
		},
		"an accepted workflow that the turn created": {
			how:      []func(*api.Turn){applied(api.ResolutionAccepted), withWrites(wrote(flow, "", "0"))},
			want:     api.UndoReport{WorkflowRestorable: true, WorkflowRestored: true},
			restores: []string{"workflow/w "},
		},
		"a workflow that the turn created and nobody accepted": {
			how:  []func(*api.Turn){in(api.TurnCompleted), withWrites(wrote(flow, "", "0"))},
			want: api.UndoReport{WorkflowRestorable: true},
		},
		"a result that still waits": {
			how:      []func(*api.Turn){applied(""), in(api.TurnAwaitingResolution), withWrites(wrote(tool("a"), "0", "1"))},
			want:     api.UndoReport{Restored: []string{"tool/a"}},
			restores: []string{"tool/a 0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			turn := turnOf()
			for _, f := range tc.how {
				f(turn)
			}
			plan := turns.PlanUndo(turns.Undoing{Turn: turn, IsAutomatic: tc.automatic, WorkflowName: "w", Whose: func(item turns.Item) string {
				if other, known := tc.others[item.String()]; known {
					return other
				}
				return turn.Name
			}})
			if diff := cmp.Diff(tc.want, plan.Report, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("report differs (-want +got):\n%s", diff)
			}
			var restores []string
			for _, restore := range plan.Restores {
				restores = append(restores, restore.Item.String()+" "+turns.RevisionOf(restore.Before))
			}
			if diff := cmp.Diff(tc.restores, restores); diff != "" {
				t.Errorf("restores differ (-want +got):\n%s", diff)
			}
			if got, want := turns.IsVain(&plan.Report), len(tc.restores) == 0 && len(tc.want.ForClient) == 0 && !tc.want.WorkflowRestorable; got != want {
				t.Errorf("in vain: %t, want %t", got, want)
			}
		})
	}
}

func TestWhatCannotBeRestoredIsSkipped(t *testing.T) {
	turn := turnOf()
	turn.Spec.Resolution, turn.Status.State, turn.Status.ResultRevision = api.ResolutionAccepted, api.TurnApplied, "1"
	turn.Status.ItemWrites = []api.ItemWrite{wrote(tool("b"), "0", "1"), wrote(tool("a"), "", "1")}
	plan := turns.PlanUndo(turns.Undoing{Turn: turn, WorkflowName: "w", Whose: func(turns.Item) string { return turn.Name }})
	for _, restore := range append([]turns.Restore(nil), plan.Restores...) {
		plan.Skip(restore.Item)
	}
	want := api.UndoReport{Skipped: []string{"tool/a", "tool/b", "workflow/w"}, WorkflowBefore: &api.ContentRef{Digest: "base"}}
	if diff := cmp.Diff(want, plan.Report, cmpopts.EquateEmpty()); diff != "" || len(plan.Restores) != 0 || !turns.IsVain(&plan.Report) {
		t.Errorf("restores %v; report differs (-want +got):\n%s", plan.Restores, diff)
	}
}

func TestChangedSomething(t *testing.T) {
	for name, tc := range map[string]struct {
		state  api.TurnPhase
		writes []api.ItemWrite
		want   bool
	}{
		"nothing":                        {api.TurnCompleted, nil, false},
		"a result":                       {api.TurnApplied, nil, true},
		"a result that waits":            {api.TurnAwaitingResolution, nil, false},
		"a tool":                         {api.TurnFailed, []api.ItemWrite{wrote(tool("a"), "", "1")}, true},
		"a tool that waits":              {api.TurnAwaitingResolution, []api.ItemWrite{staged(tool("a"), "", "1")}, false},
		"a tool that waits beside a new": {api.TurnAwaitingResolution, []api.ItemWrite{staged(tool("a"), "", "1"), wrote(tool("b"), "", "1")}, true},
	} {
		turn := turnOf()
		turn.Status.State, turn.Status.ItemWrites = tc.state, tc.writes
		if got := turns.ChangedSomething(turn); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// drafting is a model of a draft's tools, of a turn that writes them in between
// a person's edits, with a gateway that may die between two of its steps.
type drafting struct {
	random *rand.Rand
	turn   *api.Turn
	// live holds revisions by tool; whose the turn of each tool's latest change.
	live, start, whose map[string]string
	edits              int
}

func newDrafting(seed uint64) *drafting {
	d := &drafting{random: rand.New(rand.NewPCG(seed, 0)), turn: turnOf(), live: map[string]string{}, start: map[string]string{}, whose: map[string]string{}}
	d.turn.Name = "t"
	for _, name := range []string{"a", "b", "c"} {
		if d.random.IntN(2) == 0 {
			d.live[name] = "start of " + name
		}
		d.start[name] = d.live[name]
	}
	return d
}

func (d *drafting) pick() (name, revision string) {
	name = string(rune('a' + d.random.IntN(4)))
	if d.random.IntN(4) > 0 {
		d.edits++
		revision = fmt.Sprint(name, d.edits)
	}
	return name, revision
}

func (d *drafting) set(name, revision, whose string) {
	if d.live[name] != revision {
		d.live[name], d.whose[name] = revision, whose
	}
}

// agent writes a tool; the gateway gets as far as it gets.
func (d *drafting) agent(t *testing.T) {
	name, revision := d.pick()
	if d.live[name] == revision {
		return
	}
	if err := turns.Intend(&d.turn.Status, turns.Write{Item: tool(name), Live: content(d.live[name]), After: content(revision)}); err != nil {
		t.Fatal(err)
	}
	if d.random.IntN(4) == 0 {
		return
	}
	d.set(name, revision, "t")
	if d.random.IntN(4) > 0 {
		turns.Confirm(&d.turn.Status, tool(name))
	}
}

// settle is what the operator does with open intents at the end.
func (d *drafting) settle() {
	for _, item := range turns.Unsettled(&d.turn.Status) {
		write := turns.FindWrite(&d.turn.Status, item)
		switch turns.Judge(write, d.live[item.Name]) {
		case turns.VerdictWritten:
			turns.Confirm(&d.turn.Status, item)
		case turns.VerdictOpen:
			d.set(item.Name, turns.RevisionOf(write.After), "t")
			turns.Confirm(&d.turn.Status, item)
		case turns.VerdictLost:
			turns.Revoke(&d.turn.Status, item)
		}
	}
}

// A later undo restores exactly what nobody touched since, and never an item
// that the turn did not write, wherever the gateway died.
func TestAnUndoRestoresWhatNobodyTouched(t *testing.T) {
	for seed := range uint64(20000) {
		d := newDrafting(seed)
		for range 1 + d.random.IntN(6) {
			if d.random.IntN(3) == 0 {
				name, revision := d.pick()
				d.set(name, revision, "user")
				continue
			}
			d.agent(t)
		}
		d.settle()
		if left := turns.Unsettled(&d.turn.Status); len(left) > 0 {
			t.Fatalf("seed %d: still open: %v", seed, left)
		}
		d.turn.Status.State = api.TurnCompleted
		plan := turns.PlanUndo(turns.Undoing{Turn: d.turn, Whose: func(item turns.Item) string { return d.whose[item.Name] }})
		restored := map[string]bool{}
		for _, restore := range plan.Restores {
			name := restore.Item.Name
			restored[name] = true
			if d.whose[name] != "t" {
				t.Fatalf("seed %d: %s is restored, whose latest change is %q's", seed, name, d.whose[name])
			}
			firstBefore := d.start[name]
			if write := turns.FindWrite(&d.turn.Status, restore.Item); turns.RevisionOf(write.Before) != turns.RevisionOf(restore.Before) {
				t.Fatalf("seed %d: %s gets %q, not %q (%q at the start)", seed, name, turns.RevisionOf(restore.Before), turns.RevisionOf(write.Before), firstBefore)
			}
		}
		for name, whose := range d.whose {
			if whose == "t" && !restored[name] {
				t.Fatalf("seed %d: %s stays as the turn left it: %v", seed, name, writes(&d.turn.Status))
			}
		}
	}
}

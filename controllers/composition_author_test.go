package controllers

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// recorded is a snapshot in which an item is a turn's.
func recorded(generation int64, annotation string, items ...snapshotItem) snapshotRecord {
	return snapshotRecord{name: "s", data: snapshotData{Generation: generation, Turn: annotation, Items: items}}
}

func resolvedAs(resolution api.Resolution, by string) func(*api.Turn) {
	return func(turn *api.Turn) {
		turn.Spec.Resolution = resolution
		if by != "" {
			turn.Annotations[api.AnnotationResolvedBy] = by
		}
	}
}

func withResult(revision string) func(*api.Turn) {
	return func(turn *api.Turn) { turn.Status.ResultRevision = revision }
}

// withItem is a turn that wrote the tool w, or removed it if there is no revision.
func withItem(revision string) func(*api.Turn) {
	return func(turn *api.Turn) {
		write := api.ItemWrite{Type: api.ItemTool, Name: "w", State: api.ItemWritten}
		if revision != "" {
			write.After = &api.ItemContent{Revision: revision}
		}
		turn.Status.ItemWrites = []api.ItemWrite{write}
	}
}

func TestWhoMadeWhatIsNew(t *testing.T) {
	annotated := func(turn string) func(*api.Composition) {
		return func(comp *api.Composition) {
			comp.Annotations = map[string]string{api.AnnotationTurn: turn, api.AnnotationEditedBy: "ed"}
		}
	}
	// byOperator is what the operator's own write of a result leaves.
	byOperator := func(turn string) func(*api.Composition) {
		return func(comp *api.Composition) {
			annotated(turn)(comp)
			comp.Annotations[api.AnnotationWrite] = turns.MarkAccept(message(turn, "c"))
		}
	}
	edited := func(comp *api.Composition) { comp.Annotations = map[string]string{api.AnnotationEditedBy: "ed"} }
	user := attribution{author: api.AuthorUser, username: "ed"}
	ai := func(turn, username string) attribution {
		return attribution{author: api.AuthorAI, username: username, turn: turn}
	}
	waiting := inState(api.TurnAwaitingResolution)

	for name, tc := range map[string]struct {
		comp     func(*api.Composition)
		records  []snapshotRecord
		turns    []*api.Turn
		kind     api.ItemType
		revision string
		want     attribution
	}{
		"a user, when nothing says otherwise": {comp: edited, kind: api.ItemWorkflow, revision: "r", want: user},
		"a turn whose annotation the edit brought": {
			comp: annotated("t-1"), turns: []*api.Turn{message("t-1", "c", waiting, withResult("other"))},
			kind: api.ItemWorkflow, revision: "r", want: ai("t-1", "rita"),
		},
		"a turn of which only the name is left": {comp: annotated("t-1"), kind: api.ItemWorkflow, revision: "r", want: ai("t-1", "ed")},
		"a user, when the edit kept the annotation of the history": {
			comp: annotated("t-1"), records: []snapshotRecord{recorded(3, "t-1")}, kind: api.ItemTool, revision: "r", want: user,
		},
		"a user, when the edit kept an annotation that came without content": {
			comp: func(comp *api.Composition) { annotated("t-1")(comp); comp.Status.ObservedTurn = "t-1" },
			kind: api.ItemTool, revision: "r", want: user,
		},
		"a turn that waits, when its result is live by whatever hand": {
			comp: edited, turns: []*api.Turn{message("t-1", "c", waiting, withResult("r"))},
			kind: api.ItemWorkflow, revision: "r", want: ai("t-1", "rita"),
		},
		"a turn that was seen to be applied before history was written": {
			comp: edited, turns: []*api.Turn{message("t-1", "c", inState(api.TurnApplied), withResult("r"))},
			kind: api.ItemWorkflow, revision: "r", want: ai("t-1", "rita"),
		},
		"who accepted, before who asked": {
			comp:  annotated("t-1"),
			turns: []*api.Turn{message("t-1", "c", waiting, withResult("r"), resolvedAs(api.ResolutionAccepted, "ada"))},
			kind:  api.ItemWorkflow, revision: "r", want: ai("t-1", "ada"),
		},
		"a user who returns to a result that history has": {
			comp: edited, records: []snapshotRecord{recorded(3, "", snapshotItem{Type: api.ItemWorkflow, ContentRevision: "r", Turn: "t-1"})},
			turns: []*api.Turn{message("t-1", "c", inState(api.TurnApplied), withResult("r"))},
			kind:  api.ItemWorkflow, revision: "r", want: user,
		},
		"a user who makes by hand what was rejected": {
			comp: edited, turns: []*api.Turn{message("t-1", "c", inState(api.TurnRejected), withResult("r"))},
			kind: api.ItemWorkflow, revision: "r", want: user,
		},
		"a user who was faster than the look at what the operator wrote": {
			comp:  byOperator("t-1"),
			turns: []*api.Turn{message("t-1", "c", waiting, withResult("result"), resolvedAs(api.ResolutionAccepted, "ada"))},
			kind:  api.ItemWorkflow, revision: "edited", want: user,
		},
		"a user's tool beside the workflow that the operator wrote": {
			comp:  byOperator("t-1"),
			turns: []*api.Turn{message("t-1", "c", waiting, withResult("result"), resolvedAs(api.ResolutionAccepted, "ada"))},
			kind:  api.ItemTool, revision: "tool", want: user,
		},
		"a turn whose write the operator made, whoever edited something else since": {
			comp:  byOperator("t-1"),
			turns: []*api.Turn{message("t-1", "c", waiting, withResult("r"), resolvedAs(api.ResolutionAccepted, "ada"))},
			kind:  api.ItemWorkflow, revision: "r", want: ai("t-1", "ada"),
		},
		"a tool that a working turn wrote": {
			comp:  edited,
			turns: []*api.Turn{message("t-1", "c", inState(api.TurnWorking), withItem("r"))},
			kind:  api.ItemTool, revision: "r", want: ai("t-1", "rita"),
		},
		"a tool that a working turn removed": {
			comp:  edited,
			turns: []*api.Turn{message("t-1", "c", inState(api.TurnWorking), withItem(""))},
			kind:  api.ItemTool, revision: "", want: ai("t-1", "rita"),
		},
		"a user who returns to what a turn wrote": {
			comp:    edited,
			records: []snapshotRecord{recorded(3, "", snapshotItem{Type: api.ItemTool, Name: "w", ContentRevision: "r", Turn: "t-1"})},
			turns:   []*api.Turn{message("t-1", "c", inState(api.TurnWorking), withItem("r"))},
			kind:    api.ItemTool, revision: "r", want: user,
		},
		"a turn that wrote the same again": {
			comp: func(comp *api.Composition) {
				edited(comp)
				comp.Annotations[api.AnnotationWrite] = turns.MarkItem(message("t-1", "c"), 9)
			},
			records: []snapshotRecord{recorded(3, "", snapshotItem{Type: api.ItemTool, Name: "w", ContentRevision: "r", Turn: "t-1"})},
			turns:   []*api.Turn{message("t-1", "c", inState(api.TurnWorking), withItem("r"))},
			kind:    api.ItemTool, revision: "r", want: ai("t-1", "rita"),
		},
		"who asked for an undo, whosever content comes back": {
			comp: func(comp *api.Composition) {
				edited(comp)
				comp.Annotations[api.AnnotationWrite] = turns.MarkUndo(message("t-2", "c"))
			},
			turns: []*api.Turn{message("t-1", "c", waiting, withResult("r"))},
			kind:  api.ItemWorkflow, revision: "r", want: user,
		},
		"a turn, after an undo that history has": {
			comp: func(comp *api.Composition) {
				edited(comp)
				comp.Annotations[api.AnnotationWrite] = turns.MarkUndo(message("t-2", "c"))
			},
			records: []snapshotRecord{{name: "s", data: snapshotData{Generation: 3, Write: turns.MarkUndo(message("t-2", "c"))}}},
			turns:   []*api.Turn{message("t-1", "c", waiting, withResult("r"))},
			kind:    api.ItemWorkflow, revision: "r", want: ai("t-1", "rita"),
		},
		"a turn that a client names again": {
			comp:    annotated("t-1"),
			records: []snapshotRecord{recorded(3, "t-1", snapshotItem{Type: api.ItemWorkflow, ContentRevision: "r", Turn: "t-1"}), recorded(4, "t-2")},
			turns:   []*api.Turn{message("t-1", "c", inState(api.TurnApplied), withResult("r"), resolvedAs(api.ResolutionAccepted, "ada"))},
			kind:    api.ItemWorkflow, revision: "r", want: ai("t-1", "ada"),
		},
		"the turn that the edit named, of two with the same result": {
			comp:  annotated("t-1"),
			turns: []*api.Turn{message("t-1", "c", waiting, withResult("r")), message("t-2", "c", waiting, withResult("r"))},
			kind:  api.ItemWorkflow, revision: "r", want: ai("t-1", "rita"),
		},
		"the newer turn, of two with the same result": {
			comp: edited,
			turns: []*api.Turn{
				message("t-1", "c", waiting, withResult("r"), func(turn *api.Turn) { turn.Status.Number = 2 }),
				message("t-2", "c", waiting, withResult("r"), func(turn *api.Turn) { turn.Status.Number = 1 }),
			},
			kind: api.ItemWorkflow, revision: "r", want: ai("t-1", "rita"),
		},
		"a user who takes the workflow away": {
			comp: edited, turns: []*api.Turn{message("t-1", "c", waiting)}, kind: api.ItemWorkflow, revision: "", want: user,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var found []api.Turn
			for _, turn := range tc.turns {
				found = append(found, *turn)
			}
			got := authorshipOf(draft("c", tc.comp), tc.records, found).of(turns.Item{Type: tc.kind, Name: "w"}, tc.revision)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(attribution{})); diff != "" {
				t.Errorf("author differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNextSnapshot(t *testing.T) {
	view := func(kind api.ItemType, name, revision string) itemView {
		return itemView{kind: kind, name: name, revision: revision}
	}
	old := func(kind api.ItemType, name, revision string) snapshotItem {
		return snapshotItem{Type: kind, Name: name, ContentRevision: revision, Author: api.AuthorAI, Turn: "t-0", Generation: 3}
	}
	fresh := func(kind api.ItemType, name, revision string) snapshotItem {
		return snapshotItem{Type: kind, Name: name, ContentRevision: revision, Author: api.AuthorUser, Username: "ed", Generation: 7}
	}
	for name, tc := range map[string]struct {
		previous []snapshotItem
		items    []itemView
		want     []snapshotItem
		changed  bool
	}{
		"the first": {
			items:   []itemView{view(api.ItemWorkflow, "w", "r1")},
			want:    []snapshotItem{fresh(api.ItemWorkflow, "w", "r1")},
			changed: true,
		},
		"nothing but layout": {
			previous: []snapshotItem{old(api.ItemWorkflow, "w", "r1")},
			items:    []itemView{view(api.ItemWorkflow, "w", "r1")},
			want:     []snapshotItem{old(api.ItemWorkflow, "w", "r1")},
		},
		"one of two": {
			previous: []snapshotItem{old(api.ItemWorkflow, "w", "r1"), old(api.ItemTool, "a", "r2")},
			items:    []itemView{view(api.ItemWorkflow, "w", "r1"), view(api.ItemTool, "a", "r3")},
			want:     []snapshotItem{old(api.ItemWorkflow, "w", "r1"), fresh(api.ItemTool, "a", "r3")},
			changed:  true,
		},
		"a removal": {
			previous: []snapshotItem{old(api.ItemTool, "a", "r2")},
			want:     []snapshotItem{fresh(api.ItemTool, "a", "")},
			changed:  true,
		},
		"a removal is told once": {
			previous: []snapshotItem{old(api.ItemWorkflow, "w", "r1"), old(api.ItemTool, "a", "")},
			items:    []itemView{view(api.ItemWorkflow, "w", "r1")},
			want:     []snapshotItem{old(api.ItemWorkflow, "w", "r1")},
		},
		"what was removed comes back": {
			previous: []snapshotItem{old(api.ItemTool, "a", "")},
			items:    []itemView{view(api.ItemTool, "a", "r2")},
			want:     []snapshotItem{fresh(api.ItemTool, "a", "r2")},
			changed:  true,
		},
		"a tool and an action type of one name": {
			previous: []snapshotItem{old(api.ItemActionType, "a", "r1")},
			items:    []itemView{view(api.ItemActionType, "a", "r1"), view(api.ItemTool, "a", "r2")},
			want:     []snapshotItem{old(api.ItemActionType, "a", "r1"), fresh(api.ItemTool, "a", "r2")},
			changed:  true,
		},
		"a workflow under another name": {
			previous: []snapshotItem{old(api.ItemWorkflow, "w", "r1")},
			items:    []itemView{view(api.ItemWorkflow, "v", "r2")},
			want:     []snapshotItem{fresh(api.ItemWorkflow, "v", "r2"), fresh(api.ItemWorkflow, "w", "")},
			changed:  true,
		},
		"an empty draft": {want: []snapshotItem{}},
	} {
		t.Run(name, func(t *testing.T) {
			comp := draft("c", func(comp *api.Composition) {
				comp.Generation, comp.Annotations = 7, map[string]string{api.AnnotationEditedBy: "ed", api.AnnotationTurn: "t-0"}
			})
			previous := snapshotData{Generation: 3, Turn: "t-0", Items: tc.previous}
			state := compositionState{comp: comp, items: tc.items}
			got, changed := nextSnapshot(state, previous, authorshipOf(comp, []snapshotRecord{{data: previous}}, nil), noon)
			want := snapshotData{
				Workflow: comp.Spec.Workflow, Generation: 7, At: "2026-05-04T12:00:00Z", Turn: "t-0", Items: tc.want,
			}
			if diff := cmp.Diff(want, got); diff != "" || changed != tc.changed {
				t.Errorf("changed %t, want %t; snapshot differs (-want +got):\n%s", changed, tc.changed, diff)
			}
		})
	}
}

func TestASnapshotIsReadAsItWasWritten(t *testing.T) {
	comp := draft("c", func(comp *api.Composition) {
		comp.Spec.Workflow = rawOf(map[string]any{"id": "w", "x": "<&>"})
		comp.Spec.Tools = []api.NamedTool{{Name: "a", ToolSpec: api.ToolSpec{ScriptTemplate: "a <b> & c"}}}
	})
	data := snapshotData{Workflow: comp.Spec.Workflow, Tools: comp.Spec.Tools, Generation: 7, At: "2026-05-04T12:00:00Z", Items: []snapshotItem{}}
	object, err := snapshotObject(comp, data)
	if err != nil {
		t.Fatal(err)
	}
	if object.Revision != 7 || object.Labels[api.LabelComposition] != "c" || object.OwnerReferences[0].UID != comp.UID {
		t.Errorf("object is %+v", object.ObjectMeta)
	}
	record, err := readSnapshot(object)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := json2(t, data)
	got, text := json2(t, record.data)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("snapshot differs (-want +got):\n%s\n%s", diff, text)
	}
}

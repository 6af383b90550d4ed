package controllers

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/prompt"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

func TestOfTwoTurnsOneWorks(t *testing.T) {
	first, second := message("t-1", "c"), message("t-2", "c")
	b := newBench(t, draft("c"), first, second)
	b.settleDown()
	get(b, first)
	get(b, second)
	if first.Status.State != api.TurnWorking || second.Status.State != api.TurnRefused {
		t.Errorf("states %s and %s, want one Working, one Refused", first.Status.State, second.Status.State)
	}
	if want := "An AI turn is already running: t-1"; second.Status.Detail != want {
		t.Errorf("detail %q, want %q", second.Status.Detail, want)
	}
	for _, turn := range []*api.Turn{first, second} {
		if !isOwnedBy(turn, "uid-of-c") {
			t.Errorf("turn %s would outlive its composition", turn.Name)
		}
	}
	if refused := second.Status.Conditions; len(refused) != 5 {
		t.Errorf("a refused turn has conditions %v", refused)
	}
}

func TestAClaimIsTheTurnsOnly(t *testing.T) {
	comp, turn := draft("c"), message("t-1", "c")
	b := newBench(t, comp, turn)
	b.settleDown()
	want := &api.Claim{Turn: "t-1", UID: "uid-of-t-1", BaseRevision: revisionOf(t, workflow.Blank("c")), BaseDigest: get(b, turn).Status.Base.Digest}
	if diff := cmp.Diff(want, get(b, comp).Status.Claim); diff != "" {
		t.Errorf("claim differs (-want +got):\n%s", diff)
	}
	// The turn is deleted and made again under its name while the agent works.
	session := agentOf("c")
	b.delivers(session)
	if err := b.client.Delete(b.ctx, turn); err != nil {
		t.Fatal(err)
	}
	again := message("t-1", "c", func(turn *api.Turn) { turn.UID = "another" })
	if err := b.client.Create(b.ctx, again); err != nil {
		t.Fatal(err)
	}
	b.settleDown()
	if got := get(b, comp).Status.Claim; got.UID != "another" {
		t.Errorf("claim is of %s", got.UID)
	}
	if former := get(b, session).Status.Prompt; former.TurnUID != "uid-of-t-1" || !former.Cancel {
		t.Fatalf("the former turn's prompt is %+v, want it cancelled", former)
	}
	b.reports(session, api.PromptResult{Outcome: api.OutcomeCompleted, Reply: "of the former"})
	b.settleDown()
	if queued := get(b, session).Status.Prompt; queued.TurnUID != "another" || queued.Sequence != 2 || queued.State != api.PromptQueued {
		t.Errorf("prompt is %+v", queued)
	}
	if get(b, again); again.Status.State != api.TurnWorking || again.Status.Reply != "" {
		t.Errorf("the new turn is %s with reply %q", again.Status.State, again.Status.Reply)
	}
}

func TestADeletedTurnLetsGoOfEverything(t *testing.T) {
	for name, tc := range map[string]struct {
		play      func(b *bench, session *api.AgentSession)
		wantState api.PromptState
		cancelled bool
	}{
		"before the agent has the prompt": {
			play: func(*bench, *api.AgentSession) {}, wantState: api.PromptDone, cancelled: true,
		},
		"while the runner may just be fetching it": {
			play: func(b *bench, session *api.AgentSession) {
				note(b, session, func(s *api.AgentSession) { s.Status.ReadyAttempt = s.Status.Attempt })
			},
			wantState: api.PromptQueued, cancelled: true,
		},
		"while the agent works": {
			play: func(b *bench, session *api.AgentSession) { b.delivers(session) }, wantState: api.PromptDelivered, cancelled: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			comp, turn, session := draft("c"), message("t-1", "c"), agentOf("c")
			b := newBench(t, comp, turn)
			b.settleDown()
			tc.play(b, session)
			if err := b.client.Delete(b.ctx, turn); err != nil {
				t.Fatal(err)
			}
			b.settleDown()
			if get(b, comp); comp.Status.TurnState != api.TurnStateIdle || comp.Status.Claim != nil {
				t.Errorf("composition is held by %+v", comp.Status.Claim)
			}
			prompt := get(b, session).Status.Prompt
			if prompt.State != tc.wantState || prompt.Cancel != tc.cancelled {
				t.Errorf("prompt is %s, cancelled %t", prompt.State, prompt.Cancel)
			}
			// An agent that does not listen costs its pod, and no more.
			b.advance(cancelTimeout)
			b.settleDown()
			if prompt := get(b, session).Status.Prompt; prompt.State != api.PromptDone {
				t.Errorf("prompt is %s after its time", prompt.State)
			}
		})
	}
}

func TestATurnWaitsForHistory(t *testing.T) {
	comp, turn := draft("c"), message("t-1", "c")
	b := newBench(t, comp, turn)
	reconcileOne(b, b.turns(), turn)
	if get(b, turn); turn.Status.State != api.TurnPending {
		t.Errorf("state %s before the draft has a snapshot", turn.Status.State)
	}
	if get(b, comp); comp.Status.Claim != nil {
		t.Error("the composition is claimed already")
	}
	if len(turn.Status.Conditions) != 5 {
		t.Errorf("conditions %v", turn.Status.Conditions)
	}
	b.settleDown()
	if get(b, turn); turn.Status.State != api.TurnWorking {
		t.Errorf("state %s", turn.Status.State)
	}
}

func TestATurnThatCannotStart(t *testing.T) {
	for name, tc := range map[string]struct {
		turn       *api.Turn
		wantState  api.TurnPhase
		wantDetail string
	}{
		"its composition does not exist": {message("t", "none"), api.TurnRefused, `composition "none" does not exist`},
		"its composition is another one of that name": {
			message("t", "c", func(turn *api.Turn) {
				turn.OwnerReferences = []metav1.OwnerReference{{Kind: "Composition", Name: "c", UID: "former"}}
			}),
			api.TurnRefused, `composition "c" does not exist`,
		},
		"it was interrupted": {
			message("t", "c", func(turn *api.Turn) { turn.Spec.Interrupt = true }), api.TurnFailed, detailInterruptedBefore,
		},
		"its session does not exist": {
			message("t", "c", func(turn *api.Turn) {
				turn.Spec.CompositionRef, turn.Spec.SessionRef = nil, &api.LocalRef{Name: "s"}
			}),
			api.TurnRefused, `free-standing agent session "s" does not exist`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, draft("c"), tc.turn)
			b.settleDown()
			if get(b, tc.turn); tc.turn.Status.State != tc.wantState || tc.turn.Status.Detail != tc.wantDetail {
				t.Errorf("turn is %s: %q", tc.turn.Status.State, tc.turn.Status.Detail)
			}
			if comp := get(b, draft("c")); comp.Status.TurnState != api.TurnStateIdle {
				t.Errorf("composition is %s", comp.Status.TurnState)
			}
		})
	}
}

func TestATurnWithAControllerOfItsOwnIsOwnedTwice(t *testing.T) {
	turn := message("t-1", "c", func(turn *api.Turn) {
		turn.OwnerReferences = []metav1.OwnerReference{{APIVersion: "x/v1", Kind: "X", Name: "x", UID: "x", Controller: new(true)}}
	})
	b := newBench(t, draft("c"), turn)
	b.settleDown()
	get(b, turn)
	if len(turn.OwnerReferences) != 2 || !isOwnedBy(turn, "uid-of-c") || turn.OwnerReferences[1].Controller != nil {
		t.Errorf("owners are %+v", turn.OwnerReferences)
	}
}

func TestAClaimOnAnOlderDraftIsLost(t *testing.T) {
	comp, turn := draft("c"), message("t-1", "c")
	b := newBench(t, comp, turn)
	reconcileOne(b, b.compositions(), comp)
	r := b.turns()
	raced := false
	r.Direct = interceptor.NewClient(b.client.(client.WithWatch), interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, object client.Object, opts ...client.SubResourceUpdateOption) error {
			if _, isComp := object.(*api.Composition); isComp && !raced {
				raced = true
				edits(b, draft("c"), "Faster", "ada") // between the look and the claim
			}
			return c.SubResource(sub).Update(ctx, object, opts...)
		},
	})
	if _, err := r.Reconcile(b.ctx, get(b, turn)); !apierrors.IsConflict(err) {
		t.Fatalf("error %v, want a conflict", err)
	}
	if get(b, comp); comp.Status.Claim != nil {
		t.Error("the composition is claimed")
	}
	b.settleDown()
	if get(b, turn).Status.BaseRevision != get(b, comp).Status.WorkflowRevision {
		t.Error("the base is not what was live at the claim")
	}
}

func TestABaseThatIsLostFailsTheTurn(t *testing.T) {
	comp, turn := draft("c"), message("t-1", "c")
	b := newBench(t, comp, turn)
	reconcileOne(b, b.compositions(), comp)
	r := b.turns()
	r.Direct = interceptor.NewClient(b.client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			if strings.HasPrefix(key.Name, "axiom-content-") {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
			}
			return c.Get(ctx, key, object, opts...)
		},
	})
	if _, err := r.Reconcile(b.ctx, get(b, turn)); err != nil {
		t.Fatal(err)
	}
	if get(b, turn); turn.Status.State != api.TurnFailed || !strings.HasPrefix(turn.Status.Detail, "The turn could not be started: ") {
		t.Errorf("turn is %s: %q", turn.Status.State, turn.Status.Detail)
	}
	b.settleDown()
	if get(b, comp); comp.Status.TurnState != api.TurnStateIdle {
		t.Error("the composition is held")
	}
}

func TestThePromptTellsWhatPeopleEdited(t *testing.T) {
	comp, first := draft("c"), message("t-1", "c")
	b := newBench(t, comp, first)
	b.settleDown()
	store := content.Store{Client: b.client}
	text, err := store.Get(b.ctx, teamA, get(b, first).Status.Prompt.Digest)
	if err != nil {
		t.Fatal(err)
	}
	want := "[Workbench context]\nWorkflow content revision: " + first.Status.BaseRevision + "\n[End of workbench context]\n\nDo it."
	if string(text) != want {
		t.Errorf("first prompt is\n%s\nwant\n%s", text, want)
	}
	b.reports(agentOf("c"), api.PromptResult{Outcome: api.OutcomeCompleted})
	b.settleDown()
	edits(b, comp, "Finish", "ada")

	second := message("t-2", "c", func(turn *api.Turn) { turn.Spec.Selection = &api.Selection{Nodes: []string{"end-1"}} })
	if err := b.client.Create(b.ctx, second); err != nil {
		t.Fatal(err)
	}
	b.settleDown()
	if text, err = store.Get(b.ctx, teamA, get(b, second).Status.Prompt.Digest); err != nil {
		t.Fatal(err)
	}
	want = "[Workbench context]\nWorkflow content revision: " + second.Status.BaseRevision +
		"\n- workflow 'c': edited by the user\n  changed nodes: end-1\nThe user is looking at: nodes [end-1] edges []\n[End of workbench context]\n\nDo it."
	if string(text) != want {
		t.Errorf("second prompt is\n%s\nwant\n%s", text, want)
	}
}

func TestEditsBetween(t *testing.T) {
	doc := func(name string) map[string]any {
		d := workflow.Blank("w")
		d["nodes"].([]any)[1].(map[string]any)["name"] = name
		return d
	}
	item := func(kind api.ItemType, name, revision string, author api.Author, generation int64) snapshotItem {
		return snapshotItem{Type: kind, Name: name, ContentRevision: revision, Author: author, Generation: generation}
	}
	snap := func(generation int64, document map[string]any, items ...snapshotItem) snapshotRecord {
		record := snapshotRecord{name: fmt.Sprint("s", generation), data: snapshotData{Generation: generation, Items: items}}
		if document != nil {
			record.data.Workflow = rawOf(document)
		}
		return record
	}
	w := func(author api.Author, generation int64) snapshotItem {
		return item(api.ItemWorkflow, "w", fmt.Sprint("r", generation), author, generation)
	}
	user, ai := api.AuthorUser, api.AuthorAI
	for name, tc := range map[string]struct {
		records      []snapshotRecord
		since, until int64
		now          map[string]any
		want         []prompt.Edit
	}{
		"nothing": {records: []snapshotRecord{snap(2, doc("A"), w(user, 2))}, since: 2, until: 2, now: doc("A")},
		"a workflow": {
			records: []snapshotRecord{snap(2, doc("A"), w(user, 2)), snap(4, doc("B"), w(user, 4))}, since: 2, until: 4, now: doc("B"),
			want: []prompt.Edit{{Type: "workflow", Name: "w", Diff: "changed nodes: end-1"}},
		},
		"a workflow that was edited and led back": {
			records: []snapshotRecord{snap(2, doc("A"), w(user, 2)), snap(4, doc("B"), w(user, 4)), snap(5, doc("A"), w(user, 5))},
			since:   2, until: 5, now: doc("A"),
			want: []prompt.Edit{{Type: "workflow", Name: "w"}},
		},
		"a workflow that a turn wrote": {
			records: []snapshotRecord{snap(2, doc("A"), w(user, 2)), snap(4, doc("B"), w(ai, 4))}, since: 2, until: 4, now: doc("B"),
		},
		"a user's edit under a turn's": {
			records: []snapshotRecord{snap(2, doc("A"), w(user, 2)), snap(3, doc("B"), w(user, 3)), snap(4, doc("C"), w(ai, 4))},
			since:   2, until: 4, now: doc("C"),
			want: []prompt.Edit{{Type: "workflow", Name: "w", Diff: "changed nodes: end-1"}},
		},
		"what came after the claim is the next turn's": {
			records: []snapshotRecord{snap(2, doc("A"), w(user, 2)), snap(9, doc("B"), w(user, 9))}, since: 2, until: 4, now: doc("A"),
		},
		"a turn that started on a layout edit": {
			records: []snapshotRecord{snap(2, doc("A"), w(user, 2)), snap(6, doc("B"), w(user, 6))}, since: 5, until: 6, now: doc("B"),
			want: []prompt.Edit{{Type: "workflow", Name: "w", Diff: "changed nodes: end-1"}},
		},
		"a workflow that history has nothing before": {
			records: []snapshotRecord{snap(4, doc("B"), w(user, 4))}, since: 2, until: 4, now: doc("B"),
			want: []prompt.Edit{{Type: "workflow", Name: "w"}},
		},
		"the first workflow": {
			records: []snapshotRecord{snap(2, nil), snap(4, doc("B"), w(user, 4))}, since: 2, until: 4, now: doc("B"),
			want: []prompt.Edit{{Type: "workflow", Name: "w", Diff: "added nodes: start-1, end-1\nedges changed"}},
		},
		"items in the order of status, a removed one too": {
			records: []snapshotRecord{
				snap(2, doc("A"), w(user, 2), item(api.ItemTool, "z", "r", user, 2)),
				snap(3, doc("A"), w(user, 2), item(api.ItemTool, "b", "r", user, 3), item(api.ItemTool, "z", "", user, 3)),
				snap(4, doc("A"), w(user, 2), item(api.ItemActionType, "y", "r", user, 4), item(api.ItemTool, "b", "r", user, 3)),
			},
			since: 2, until: 4, now: doc("A"),
			want: []prompt.Edit{{Type: "action-type", Name: "y"}, {Type: "tool", Name: "b"}, {Type: "tool", Name: "z"}},
		},
		"a renamed workflow goes by its new name": {
			records: []snapshotRecord{
				snap(2, doc("A"), item(api.ItemWorkflow, "old", "r1", user, 2)),
				snap(3, doc("B"), item(api.ItemWorkflow, "w", "r2", user, 3), item(api.ItemWorkflow, "old", "", user, 3)),
			},
			since: 2, until: 3, now: doc("B"),
			want: []prompt.Edit{{Type: "workflow", Name: "w", Diff: "changed nodes: end-1"}},
		},
		"a workflow that was taken away": {
			records: []snapshotRecord{snap(2, doc("A"), w(user, 2)), snap(3, nil, item(api.ItemWorkflow, "w", "", user, 3))},
			since:   2, until: 3,
			want: []prompt.Edit{{Type: "workflow", Name: "w", Diff: "removed nodes: start-1, end-1\nedges changed"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := editsBetween(tc.records, tc.since, tc.until, tc.now)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("edits differ (-want +got):\n%s", diff)
			}
		})
	}
}

package controllers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/turns"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// edits changes the name of the blank workflow's end node.
func edits(b *bench, comp *api.Composition, name, user string) {
	b.t.Helper()
	change(b, comp, func(comp *api.Composition) {
		doc := workflow.Blank(comp.Name)
		doc["nodes"].([]any)[1].(map[string]any)["name"] = name
		comp.Spec.Workflow = rawOf(doc)
		if comp.Annotations == nil {
			comp.Annotations = map[string]string{}
		}
		comp.Annotations[api.AnnotationEditedBy] = user
	})
}

func (b *bench) history(comp *api.Composition) []snapshotRecord {
	b.t.Helper()
	records, err := listSnapshots(b.ctx, b.client, comp)
	if err != nil {
		b.t.Fatal(err)
	}
	return records
}

func TestHistoryNamesWhoEdited(t *testing.T) {
	comp := draft("c")
	b := newBench(t, comp)
	b.settleDown()
	edits(b, comp, "Two", "ada")
	b.settleDown()
	edits(b, comp, "Three", "bob")
	b.settleDown()
	change(b, comp, func(comp *api.Composition) { comp.Spec.Goal = "Better" }) // content of no item
	b.settleDown()

	var got []string
	for _, record := range b.history(get(b, comp)) {
		got = append(got, fmt.Sprintf("%d %s %s", record.data.Generation, record.data.Items[0].Author, record.data.Items[0].Username))
	}
	if diff := cmp.Diff([]string{"1 user ", "2 user ada", "3 user bob"}, got); diff != "" {
		t.Errorf("history differs (-want +got):\n%s", diff)
	}
	if comp.Status.ObservedGeneration != 4 || comp.Status.Snapshot != b.history(comp)[2].name {
		t.Errorf("status is %+v", comp.Status)
	}
}

// behind is a client whose cache does not show ControllerRevisions yet.
func behind(inner client.WithWatch) client.Client {
	return interceptor.NewClient(inner, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, isHistory := list.(*appsv1.ControllerRevisionList); isHistory {
				return nil
			}
			return c.List(ctx, list, opts...)
		},
	})
}

func TestACacheThatIsBehindBlamesNobodyWrongly(t *testing.T) {
	comp, turn := draft("c"), message("t-1", "c", inState(api.TurnApplied), resolvedAs(api.ResolutionApplied, "ada"))
	b := newBench(t, comp, turn)
	b.settleDown()
	edits(b, comp, "Result", "ada")
	change(b, comp, func(comp *api.Composition) { comp.Annotations[api.AnnotationTurn] = "t-1" })
	b.settleDown() // the turn's content has its snapshot
	change(b, comp, func(comp *api.Composition) {
		comp.Spec.Tools = []api.NamedTool{{Name: "a"}}
		comp.Annotations[api.AnnotationEditedBy] = "bob"
	})

	r := b.compositions()
	r.Client = behind(b.client.(client.WithWatch))
	if _, err := r.Reconcile(b.ctx, get(b, comp)); err != nil {
		t.Fatal(err)
	}
	records := b.history(comp)
	newest := records[len(records)-1].data
	wf, _ := newest.item(api.ItemWorkflow, "c")
	tool, _ := newest.item(api.ItemTool, "a")
	if wf.Author != api.AuthorAI || wf.Turn != "t-1" || tool.Author != api.AuthorUser || tool.Username != "bob" {
		t.Errorf("workflow by %s %s, tool by %s %s", wf.Author, wf.Turn, tool.Author, tool.Username)
	}
}

func TestASnapshotThatIsThereStands(t *testing.T) {
	comp := draft("c")
	b := newBench(t, comp)
	// An earlier life took it and said who made it, then it died.
	taken := snapshotData{Workflow: comp.Spec.Workflow, Generation: 1, Items: []snapshotItem{{
		Type: api.ItemWorkflow, Name: "c", ContentRevision: revisionOf(t, workflow.Blank("c")), Author: api.AuthorAI, Turn: "t-9", Generation: 1,
	}}}
	object, err := snapshotObject(comp, taken)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.client.Create(b.ctx, object); err != nil {
		t.Fatal(err)
	}
	b.settleDown()
	if got := get(b, comp).Status.Items[0].LastTurn; got != "t-9" {
		t.Errorf("last turn %q, want what the snapshot says", got)
	}
	// One that appears between the look and the writing stands too.
	r := b.compositions()
	r.Live = behind(b.client.(client.WithWatch))
	record, err := r.takeSnapshot(b.ctx, comp, snapshotData{Generation: 1})
	if err != nil || record.data.Items[0].Turn != "t-9" {
		t.Errorf("record %+v, error %v", record, err)
	}
}

func TestAForeignObjectIsNoSnapshot(t *testing.T) {
	comp := draft("c")
	b := newBench(t, comp, &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: snapshotName(comp, 1), Namespace: teamA}, Revision: 1})
	if _, err := b.compositions().Reconcile(b.ctx, get(b, comp)); err == nil {
		t.Error("a stranger's object was taken for history")
	}
	get(b, comp)
	if got := briefs(comp.Status.Conditions)["Reconciled"]; got.Status != "False" || got.Reason != "Error" || comp.Status.ObservedGeneration != 0 {
		t.Errorf("condition %+v, observed generation %d", got, comp.Status.ObservedGeneration)
	}
}

func TestHistoryIsPruned(t *testing.T) {
	comp := draft("c", func(comp *api.Composition) { comp.Spec.RevisionHistoryLimit = 2 })
	run := &api.WorkflowRun{ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: teamA}}
	run.Status.Definition = &api.RunDefinition{Snapshot: snapshotName(comp, 2)}
	b := newBench(t, comp, run)
	for i := range 6 {
		edits(b, comp, fmt.Sprint("Edit ", i), "ada")
		b.settleDown()
	}
	var got []int64
	for _, record := range b.history(comp) {
		got = append(got, record.data.Generation)
	}
	if diff := cmp.Diff([]int64{2, 6, 7}, got); diff != "" {
		t.Errorf("generations differ: the pinned one and the newest two (-want +got):\n%s", diff)
	}
}

// A cache that shows a turn in an older state than the composition's status
// must not make the composition take its word back.
func TestAPendingTurnDoesNotFlicker(t *testing.T) {
	comp, turn := draft("c"), message("t-1", "c", inState(api.TurnAwaitingResolution))
	turn.Status.ResultRevision = "sha256:other"
	b := newBench(t, comp, turn)
	b.settleDown()
	if get(b, comp).Status.PendingTurn != "t-1" {
		t.Fatalf("pending turn is %q", comp.Status.PendingTurn)
	}
	r := b.compositions()
	r.Client = interceptor.NewClient(b.client.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := c.List(ctx, list, opts...)
			if found, isTurns := list.(*api.TurnList); isTurns {
				for i := range found.Items {
					found.Items[i].Status.State = api.TurnWorking
				}
			}
			return err
		},
	})
	before := len(b.writes)
	if _, err := r.Reconcile(b.ctx, get(b, comp)); err != nil {
		t.Fatal(err)
	}
	if extra := b.writes[before:]; len(extra) > 0 {
		t.Errorf("writes %q, pending turn %q", extra, get(b, comp).Status.PendingTurn)
	}
}

func TestAHistoryThatCannotBeWrittenIsTriedAgain(t *testing.T) {
	comp := draft("c")
	b := newBench(t, comp)
	boom := errors.New("boom")
	r := b.compositions()
	r.Client = interceptor.NewClient(b.client.(client.WithWatch), interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return boom },
	})
	if _, err := r.Reconcile(b.ctx, get(b, comp)); !errors.Is(err, boom) {
		t.Errorf("error %v, want the failure", err)
	}
	if got := briefs(get(b, comp).Status.Conditions)["Ready"].Reason; got != "Error" {
		t.Errorf("reason %q", got)
	}
	b.settleDown()
	if got := briefs(get(b, comp).Status.Conditions)["Ready"].Reason; got != "Reconciled" {
		t.Errorf("reason %q after a retry", got)
	}
}

func TestAnOldViewOfADraftTakesNoSnapshot(t *testing.T) {
	comp := draft("c")
	b := newBench(t, comp)
	b.settleDown()
	edits(b, comp, "Two", "ada")
	old := get(b, comp).DeepCopy() // the controller saw it, and died before the snapshot
	edits(b, comp, "Three", "bob")
	b.settleDown()
	before := len(b.writes)
	_, err := b.compositions().Reconcile(b.ctx, old)
	for _, write := range b.writes[before:] {
		if write != "update status Composition c" { // which the API server refuses
			t.Errorf("wrote %q (%v)", write, err)
		}
	}
	if records := b.history(get(b, comp)); len(records) != 2 || newestOf(records).data.Generation != 3 {
		t.Errorf("history is %+v", records)
	}
}

// An annotation that came without content is an old one when content comes.
func TestAnEditThatKeepsTheAnnotationIsTheUsers(t *testing.T) {
	comp, turn := draft("c"), message("t-1", "c", inState(api.TurnApplied))
	b := newBench(t, comp, turn)
	b.settleDown()
	annotates(b, comp, turn)
	b.settleDown()
	edits(b, comp, "Two", "ada")
	b.settleDown()
	if item := get(b, comp).Status.Items[0]; item.LastAuthor != api.AuthorUser || item.LastTurn != "" {
		t.Errorf("last author is %s, turn %q", item.LastAuthor, item.LastTurn)
	}
	change(b, comp, func(comp *api.Composition) {
		comp.Spec.Tools = []api.NamedTool{{Name: "a"}}
		comp.Annotations[api.AnnotationTurn] = "t-2"
	})
	b.settleDown()
	if item := get(b, comp).Status.Items[1]; item.LastAuthor != api.AuthorAI || item.LastTurn != "t-2" {
		t.Errorf("last author is %s, turn %q", item.LastAuthor, item.LastTurn)
	}
}

func TestAStrangersSessionIsNotTheCompositions(t *testing.T) {
	comp, stranger := draft("c"), agentOf("c")
	b := newBench(t, comp, stranger)
	reconcileOne(b, b.compositions(), comp)
	if got := get(b, comp).Status.Session; got != "" {
		t.Errorf("session is %q", got)
	}
	// A turn cannot use it, and says so when its agent should be up.
	turn := message("t-1", "c")
	if err := b.client.Create(b.ctx, turn); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		reconcileOne(b, b.compositions(), comp)
		reconcileOne(b, b.turns(), turn)
	}
	if again := reconcileOne(b, b.turns(), turn); again != 5*time.Minute {
		t.Errorf("it looks again in %s", again)
	}
	b.advance(5 * time.Minute)
	reconcileOne(b, b.turns(), turn)
	want := "Could not start the workbench agent: agent session c-agent belongs to somebody else"
	if get(b, turn); turn.Status.State != api.TurnFailed || turn.Status.Detail != want {
		t.Errorf("turn is %s: %q", turn.Status.State, turn.Status.Detail)
	}
}

func TestFinishedTurnsArePruned(t *testing.T) {
	objects := []client.Object{draft("c"), message("other", "d", inState(api.TurnApplied))}
	for i := range maxFinishedTurns + 2 {
		objects = append(objects, message(fmt.Sprintf("t-%02d", i), "c", inState(api.TurnCompleted), func(turn *api.Turn) {
			turn.Status.Number = int64(i + 1)
			turn.CreationTimestamp = metav1.NewTime(noon.Add(time.Duration(i) * time.Minute))
		}))
	}
	b := newBench(t, objects...)
	reconcileOne(b, b.compositions(), draft("c"))
	reconcileOne(b, b.compositions(), draft("c"))
	var deleted []string
	for _, write := range b.writes {
		if strings.HasPrefix(write, "delete") {
			deleted = append(deleted, write)
		}
	}
	if diff := cmp.Diff([]string{"delete Turn t-00", "delete Turn t-01"}, deleted); diff != "" {
		t.Errorf("deleted differ (-want +got):\n%s", diff)
	}
}

// The turn that an edit names is looked for, even if the cache does not show it.
func TestANamedTurnIsNotMissed(t *testing.T) {
	comp := draft("c")
	turn := message("t-1", "c", inState(api.TurnAwaitingResolution), withResult("sha256:result"), resolvedAs(api.ResolutionAccepted, "ada"))
	b := newBench(t, comp, turn)
	reconcileOne(b, b.compositions(), comp)
	// The operator wrote the result, and bob edited it before anybody looked.
	edits(b, comp, "Edited", "bob")
	change(b, comp, func(comp *api.Composition) {
		comp.Annotations[api.AnnotationTurn], comp.Annotations[api.AnnotationWrite] = turn.Name, turns.MarkAccept(turn)
	})
	r := b.compositions()
	r.Client = interceptor.NewClient(b.client.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, isTurns := list.(*api.TurnList); isTurns {
				return nil
			}
			return c.List(ctx, list, opts...)
		},
	})
	if _, err := r.Reconcile(b.ctx, get(b, comp)); err != nil {
		t.Fatal(err)
	}
	if item := get(b, comp).Status.Items[0]; item.LastAuthor != api.AuthorUser {
		t.Errorf("last author is %s, turn %q; want bob", item.LastAuthor, item.LastTurn)
	}
}

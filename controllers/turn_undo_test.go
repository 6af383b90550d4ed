package controllers

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/content"
)

// refusing is a client whose API server takes no edit of a composition.
func refusing(inner client.Client) client.Client {
	return interceptor.NewClient(inner.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if _, isComp := object.(*api.Composition); isComp {
				return apierrors.NewInvalid(schema.GroupKind{Kind: "Composition"}, object.GetName(), nil)
			}
			return c.Patch(ctx, object, patch, opts...)
		},
	})
}

// undoes has una ask for the turn's undo.
func undoes(b *bench, _ *api.Composition, turn *api.Turn) {
	change(b, turn, func(turn *api.Turn) {
		turn.Spec.Undo = true
		turn.Annotations[api.AnnotationUndoneBy] = "una"
	})
}

// acceptedBench is one whose turn t-1 changed tool a, created tool n, removed
// tool b, and whose workflow was accepted.
func acceptedBench(t *testing.T, resolution api.Resolution, how ...func(*api.Composition)) (*bench, *api.Composition, *api.Turn) {
	t.Helper()
	how = append(how, withTools(toolOf("a", "0"), toolOf("b", "0"), toolOf("c", "0")))
	b, comp, turn, session := workingBench(t, how...)
	b.upserts(turn, toolItem("a"), toolOf("a", "1"), reachReceipt)
	b.upserts(turn, toolItem("n"), toolOf("n", "1"), reachReceipt)
	b.upserts(turn, toolItem("b"), nil, reachReceipt)
	b.upserts(turn, toolItem("a"), toolOf("a", "2"), reachReceipt)
	b.proposes(turn, rename("end-1", "Result"))
	b.reports(session, api.PromptResult{Outcome: api.OutcomeCompleted})
	b.settleDown()
	if resolution != "" {
		resolves(resolution)(b, comp, turn)
		b.settleDown()
	}
	if resolution == api.ResolutionApplied {
		edits(b, comp, "Result", "carl")
		b.settleDown()
	}
	return b, comp, turn
}

func TestUndo(t *testing.T) {
	type play = func(*bench, *api.Composition, *api.Turn)
	editsTool := func(name, script string) play {
		return func(b *bench, comp *api.Composition, _ *api.Turn) {
			change(b, comp, func(comp *api.Composition) {
				i := slices.IndexFunc(comp.Spec.Tools, func(tool api.NamedTool) bool { return tool.Name == name })
				comp.Spec.Tools[i].ScriptTemplate = script
				comp.Annotations[api.AnnotationEditedBy] = "bob"
			})
		}
	}
	automatic := func(comp *api.Composition) { comp.Spec.Agent.ChangeSetPolicy = api.ChangeSetAutomatic }
	before := func(turn *api.Turn) *api.ContentRef { return &api.ContentRef{Digest: turn.Status.Base.Digest} }

	for name, tc := range map[string]struct {
		how        []func(*api.Composition)
		resolution api.Resolution
		plays      []play
		want       api.UndoReport
		keepsFlow  bool
		tools, end string
		authors    []string
	}{
		"everything right after it was accepted": {
			resolution: "Accepted",
			want:       api.UndoReport{Restored: []string{"tool/a", "tool/b"}, Removed: []string{"tool/n"}, WorkflowRestorable: true, WorkflowRestored: true},
			tools:      "a=0 c=0 b=0", end: "End",
			authors: []string{"workflow/c: user una", "tool/a: user una", "tool/b: user una", "tool/n: user una"},
		},
		"everything that the operator accepted by itself": {
			how:   []func(*api.Composition){automatic},
			want:  api.UndoReport{Restored: []string{"tool/a", "tool/b"}, Removed: []string{"tool/n"}, WorkflowRestorable: true, WorkflowRestored: true},
			tools: "a=0 c=0 b=0", end: "End",
		},
		"a workflow that a client applied": {
			resolution: "Applied",
			want:       api.UndoReport{Restored: []string{"tool/a", "tool/b"}, Removed: []string{"tool/n"}, WorkflowRestorable: true},
			tools:      "a=0 c=0 b=0", end: "Result",
			authors: []string{"workflow/c: ai t-1 ada", "tool/a: user una"},
		},
		"what nobody edited since": {
			resolution: "Accepted", plays: []play{editsTool("a", "9"), looks, editsTo("Edited"), looks, editsTool("c", "9")},
			want:  api.UndoReport{Restored: []string{"tool/b"}, Removed: []string{"tool/n"}, Skipped: []string{"tool/a", "workflow/c"}},
			tools: "a=9 c=9 b=0", end: "Edited",
			authors: []string{"tool/a: user bob", "tool/b: user una"},
		},
		"an item that came back to the turn's content": {
			resolution: "Accepted", plays: []play{editsTool("a", "9"), looks, editsTool("a", "2")},
			want:  api.UndoReport{Restored: []string{"tool/b"}, Removed: []string{"tool/n"}, Skipped: []string{"tool/a"}, WorkflowRestorable: true, WorkflowRestored: true},
			tools: "a=2 c=0 b=0", end: "End",
		},
		"a result that waits goes with it": {
			want:      api.UndoReport{Restored: []string{"tool/a", "tool/b"}, Removed: []string{"tool/n"}},
			keepsFlow: true, tools: "a=0 c=0 b=0", end: "End",
		},
		"a rejected turn": {
			resolution: "Rejected", want: api.UndoReport{Restored: []string{"tool/a", "tool/b"}, Removed: []string{"tool/n"}},
			keepsFlow: true, tools: "a=0 c=0 b=0", end: "End",
		},
		"staged items and a workflow that a client applied": {
			how: []func(*api.Composition){stagedPolicy}, resolution: "Applied",
			plays: []play{func(b *bench, comp *api.Composition, turn *api.Turn) {
				change(b, comp, func(comp *api.Composition) {
					comp.Spec.Tools = []api.NamedTool{*toolOf("a", "2"), *toolOf("c", "0"), *toolOf("n", "1")}
					comp.Annotations[api.AnnotationEditedBy] = "carl"
				})
			}},
			want:  api.UndoReport{ForClient: []string{"tool/a", "tool/b", "tool/n"}, WorkflowRestorable: true},
			tools: "a=2 c=0 n=1", end: "Result",
		},
		"staged items that were accepted": {
			how: []func(*api.Composition){stagedPolicy}, resolution: "Accepted",
			want:  api.UndoReport{Restored: []string{"tool/a", "tool/b"}, Removed: []string{"tool/n"}, WorkflowRestorable: true, WorkflowRestored: true},
			tools: "a=0 c=0 b=0", end: "End",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, comp, turn := acceptedBench(t, tc.resolution, tc.how...)
			for _, play := range tc.plays {
				play(b, comp, turn)
			}
			b.settleDown()
			writes := len(b.writes)
			undoes(b, comp, turn)
			b.settleDown()
			get(b, turn)
			get(b, comp)
			if turn.Status.State != api.TurnUndone || turn.Status.Undo == nil {
				t.Fatalf("turn is %s: %s", turn.Status.State, turn.Status.Detail)
			}
			if !tc.keepsFlow {
				tc.want.WorkflowBefore = before(turn)
			}
			if diff := cmp.Diff(tc.want, *turn.Status.Undo, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("report differs (-want +got):\n%s", diff)
			}
			if got := toolsOf(comp); got != tc.tools || endName(t, comp) != tc.end {
				t.Errorf("the draft has %q and %q, want %q and %q", got, endName(t, comp), tc.tools, tc.end)
			}
			history := b.itemHistory(comp)
			for _, line := range tc.authors {
				if !strings.Contains(history, line) {
					t.Errorf("history lacks %q:\n%s", line, history)
				}
			}
			if n := count(b.writes[writes:], "patch Composition c"); n > 1 {
				t.Errorf("%d writes of the draft", n)
			}
			if comp.Status.PendingTurn != "" || turn.Status.ChangeSet != nil && tc.resolution == "" && len(tc.how) == 0 {
				t.Errorf("pending turn is %q, change set %v", comp.Status.PendingTurn, turn.Status.ChangeSet)
			}
		})
	}
}

func count(list []string, what string) int {
	n := 0
	for _, s := range list {
		if s == what {
			n++
		}
	}
	return n
}

func TestUndoIsInVain(t *testing.T) {
	b, comp, turn := acceptedBench(t, "Accepted")
	change(b, comp, func(comp *api.Composition) {
		comp.Spec.Tools = []api.NamedTool{*toolOf("a", "9"), *toolOf("b", "9"), *toolOf("n", "9")}
		comp.Annotations[api.AnnotationEditedBy] = "bob"
	})
	edits(b, comp, "Edited", "bob")
	b.settleDown()
	undoes(b, comp, turn)
	b.settleDown()
	get(b, turn)
	undone := briefs(turn.Status.Conditions)[api.ConditionUndone]
	if turn.Status.State != api.TurnApplied || undone.Status != "False" || undone.Reason != "Skipped" {
		t.Errorf("turn is %s, %+v", turn.Status.State, undone)
	}
	if diff := cmp.Diff([]string{"tool/a", "tool/b", "tool/n", "workflow/c"}, turn.Status.Undo.Skipped); diff != "" {
		t.Errorf("skipped differ (-want +got):\n%s", diff)
	}
	if got := toolsOf(get(b, comp)); got != "a=9 b=9 n=9" {
		t.Errorf("tools are %q", got)
	}
}

func TestUndoOfNothing(t *testing.T) {
	b, comp, turn, session := workingBench(t)
	b.reports(session, api.PromptResult{Outcome: api.OutcomeCompleted})
	b.settleDown()
	undoes(b, comp, turn) // where admission did not see it
	b.settleDown()
	get(b, turn)
	if undone := briefs(turn.Status.Conditions)[api.ConditionUndone]; turn.Status.State != api.TurnCompleted || undone.Reason != "NothingToUndo" {
		t.Errorf("turn is %s, %+v", turn.Status.State, undone)
	}
}

func TestUndoWaitsForATurn(t *testing.T) {
	b, comp, turn := acceptedBench(t, "Accepted")
	next := message("t-2", "c")
	if err := b.client.Create(b.ctx, next); err != nil {
		t.Fatal(err)
	}
	b.settleDown()
	undoes(b, comp, turn)
	b.settleDown()
	if get(b, turn); turn.Status.State != api.TurnApplied || turn.Status.Undo != nil {
		t.Fatalf("turn is %s, %+v", turn.Status.State, turn.Status.Undo)
	}
	if requests := b.turns().openTurnsOf(b.ctx, get(b, comp)); !slices.Contains(requests, requestFor(teamA, "t-1")) {
		t.Errorf("the composition wakes %v", requests)
	}
	b.delivers(agentOf("c"))
	b.reports(agentOf("c"), api.PromptResult{Outcome: api.OutcomeCompleted})
	b.settleDown()
	if get(b, turn); turn.Status.State != api.TurnUndone {
		t.Errorf("turn is %s", turn.Status.State)
	}
}

func TestUndoOfAnUndoIsAnEdit(t *testing.T) {
	b, comp, turn := acceptedBench(t, "Accepted")
	undoes(b, comp, turn)
	b.settleDown()
	change(b, comp, func(comp *api.Composition) { // by hand, what the turn had made
		comp.Spec.Tools = []api.NamedTool{*toolOf("a", "2"), *toolOf("c", "0"), *toolOf("n", "1")}
		comp.Annotations[api.AnnotationEditedBy] = "bob"
	})
	edits(b, comp, "Result", "bob")
	b.settleDown()
	get(b, comp)
	if got := toolsOf(comp); got != "a=2 c=0 n=1" || endName(t, comp) != "Result" {
		t.Errorf("the draft has %q and %q", got, endName(t, comp))
	}
	if history := b.itemHistory(comp); strings.Contains(history, "ai") || !strings.Contains(history, "workflow/c: user bob") {
		t.Errorf("history is\n%s", history)
	}
	if get(b, turn); turn.Status.State != api.TurnUndone {
		t.Errorf("turn is %s", turn.Status.State)
	}
	next := message("t-2", "c")
	if err := b.client.Create(b.ctx, next); err != nil {
		t.Fatal(err)
	}
	b.settleDown()
	text, err := content.Store{Client: b.client}.Get(b.ctx, teamA, get(b, next).Status.Prompt.Digest)
	if err != nil || !strings.Contains(string(text), "- tool 'a': edited by the user") {
		t.Errorf("the next prompt is %q (%v)", text, err)
	}
}

func TestWhatIsLostIsNotRestored(t *testing.T) {
	b, comp, turn := acceptedBench(t, "Accepted")
	lost := content.Name(get(b, turn).Status.ItemWrites[0].Before.Digest)
	if err := b.client.Delete(b.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: lost, Namespace: teamA}}); err != nil {
		t.Fatal(err)
	}
	undoes(b, comp, turn)
	b.settleDown()
	get(b, turn)
	if turn.Status.State != api.TurnUndone || !slices.Equal(turn.Status.Undo.Skipped, []string{"tool/a"}) {
		t.Errorf("turn is %s, %+v", turn.Status.State, turn.Status.Undo)
	}
	if got := toolsOf(get(b, comp)); got != "a=2 c=0 b=0" {
		t.Errorf("tools are %q", got)
	}
}

func TestARefusedUndoEnds(t *testing.T) {
	b, comp, turn := acceptedBench(t, "Accepted")
	undoes(b, comp, turn)
	r := b.turns()
	r.Direct = refusing(b.client)
	for range 4 {
		reconcileOne(b, r, turn)
	}
	writes := len(b.writes)
	reconcileOne(b, r, turn)
	get(b, turn)
	undone := briefs(turn.Status.Conditions)[api.ConditionUndone]
	if turn.Status.State != api.TurnApplied || undone.Reason != "UndoRefused" || len(b.writes) != writes {
		t.Errorf("turn is %s, %+v; wrote %q", turn.Status.State, undone, b.writes[writes:])
	}
	if got := endName(t, get(b, comp)); got != "Result" {
		t.Errorf("the draft has %q", got)
	}
}

// mortal is a client whose process ends at one of its writes.
func mortal(b *bench, deadly int, isApplied bool) client.Client {
	writes := 0
	check := func(do func() error) error {
		writes++
		if writes <= deadly || writes == deadly+1 && isApplied {
			if err := do(); err != nil || writes <= deadly {
				return err
			}
		}
		return errors.New("dead")
	}
	return interceptor.NewClient(b.client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
			return check(func() error { return c.Create(ctx, object, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return check(func() error { return c.Patch(ctx, object, patch, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, object client.Object, opts ...client.SubResourceUpdateOption) error {
			return check(func() error { return c.SubResource(sub).Update(ctx, object, opts...) })
		},
	})
}

// An operator that dies at any write of an undo is followed by one that brings
// it to the same end, also when somebody edits something else in between.
func TestAnUndoOutlivesItsOperator(t *testing.T) {
	for deadly := range 4 {
		for _, isApplied := range []bool{false, true} {
			b, comp, turn := acceptedBench(t, "Accepted")
			undoes(b, comp, turn)
			r := b.turns()
			r.Client = mortal(b, deadly, isApplied)
			r.Direct = r.Client
			for range 4 {
				_, _ = r.Reconcile(b.ctx, get(b, turn))
			}
			reconcileOne(b, b.compositions(), comp)
			change(b, comp, func(comp *api.Composition) {
				i := slices.IndexFunc(comp.Spec.Tools, func(tool api.NamedTool) bool { return tool.Name == "c" })
				comp.Spec.Tools[i].ScriptTemplate = "9"
				comp.Annotations[api.AnnotationEditedBy] = "bob"
			})
			b.settleDown()
			get(b, turn)
			want := api.UndoReport{
				Restored: []string{"tool/a", "tool/b"}, Removed: []string{"tool/n"}, WorkflowRestorable: true, WorkflowRestored: true,
				WorkflowBefore: &api.ContentRef{Digest: turn.Status.Base.Digest},
			}
			if diff := cmp.Diff(&want, turn.Status.Undo, cmpopts.EquateEmpty()); diff != "" || turn.Status.State != api.TurnUndone {
				t.Errorf("dying at write %d (%t): turn is %s; report differs (-want +got):\n%s", deadly, isApplied, turn.Status.State, diff)
			}
			if got := toolsOf(get(b, comp)); got != "a=0 c=9 b=0" || endName(t, comp) != "End" {
				t.Errorf("dying at write %d (%t): the draft has %q and %q", deadly, isApplied, got, endName(t, comp))
			}
		}
	}
}

package controllers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/turns"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// reach is how far the gateway gets with an item's write.
type reach int

const (
	reachIntent reach = iota
	reachDraft
	reachReceipt
)

func toolItem(name string) turns.Item { return turns.Item{Type: api.ItemTool, Name: name} }

// toolOf is a tool whose script is known.
func toolOf(name, script string) *api.NamedTool {
	return &api.NamedTool{Name: name, ToolSpec: api.ToolSpec{Description: "d", ScriptTemplate: script}}
}

func withTools(tools ...*api.NamedTool) func(*api.Composition) {
	return func(comp *api.Composition) {
		for _, tool := range tools {
			comp.Spec.Tools = append(comp.Spec.Tools, *tool)
		}
	}
}

// keeps stores a content for the turn, nil for none.
func (b *bench) keeps(turn *api.Turn, kind api.ItemType, value any) *api.ItemContent {
	b.t.Helper()
	if value == nil {
		return nil
	}
	found, err := turns.ContentOf(kind, value)
	if err != nil {
		b.t.Fatal(err)
	}
	ref, err := content.Store{Client: b.client}.Put(b.ctx, turn, found.Data)
	if err != nil {
		b.t.Fatal(err)
	}
	return &api.ItemContent{Revision: found.Revision, Digest: ref.Digest}
}

// upserts plays the gateway: the agent writes an item, or removes it if there
// is no value.
func (b *bench) upserts(turn *api.Turn, item turns.Item, value any, far reach) {
	b.t.Helper()
	comp := get(b, draft(turn.Spec.CompositionRef.Name))
	b.settleDown()
	get(b, comp)
	get(b, turn)
	write := turns.Write{Item: item, After: b.keeps(turn, item.Type, value), Staged: turn.Status.ItemPolicy == api.ItemStaged}
	if live, err := turns.Live(comp, item); err != nil {
		b.t.Fatal(err)
	} else if live != nil {
		write.Live = &api.ItemContent{Revision: live.Revision, Digest: content.Digest(live.Data)}
		if _, err := (content.Store{Client: b.client}).Put(b.ctx, turn, live.Data); err != nil {
			b.t.Fatal(err)
		}
	}
	note(b, turn, func(turn *api.Turn) {
		if err := turns.Intend(&turn.Status, write); err != nil {
			b.t.Fatal(err)
		}
	})
	if far == reachIntent || write.Staged {
		return
	}
	patch, err := turns.Patch(comp, turns.Edits{
		Mark: turns.MarkItem(turn, comp.Generation), By: turn.Annotations[api.AnnotationRequestedBy], Items: []turns.Edit{{Item: item, Value: value}},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.client.Patch(b.ctx, comp, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		b.t.Fatal(err)
	}
	if far == reachReceipt {
		note(b, turn, func(turn *api.Turn) { turns.Confirm(&turn.Status, item) })
	}
}

// tools of a draft, by name, as their scripts.
func toolsOf(comp *api.Composition) string {
	var found []string
	for _, tool := range comp.Spec.Tools {
		found = append(found, tool.Name+"="+tool.ScriptTemplate)
	}
	return strings.Join(found, " ")
}

// itemHistory is who made each item of the newest snapshot what it is.
func (b *bench) itemHistory(comp *api.Composition) string {
	b.t.Helper()
	var lines []string
	for _, item := range newestOf(b.history(comp)).data.Items {
		lines = append(lines, strings.Join(strings.Fields(fmt.Sprintf("%s/%s: %s %s %s", item.Type, item.Name, item.Author, item.Turn, item.Username)), " "))
	}
	return strings.Join(lines, "\n")
}

// workingBench is one whose turn t-1 of composition c works, its agent with the
// prompt.
func workingBench(t *testing.T, how ...func(*api.Composition)) (*bench, *api.Composition, *api.Turn, *api.AgentSession) {
	t.Helper()
	comp, turn, session := draft("c", how...), message("t-1", "c"), agentOf("c")
	b := newBench(t, comp, turn)
	b.settleDown()
	b.delivers(session)
	return b, comp, turn, session
}

func stagedPolicy(comp *api.Composition) { comp.Spec.Agent.ItemPolicy = api.ItemStaged }

func TestItemsAreTheirTurnsWork(t *testing.T) {
	b, comp, turn, session := workingBench(t, withTools(toolOf("a", "0"), toolOf("b", "0")))
	b.upserts(turn, toolItem("a"), toolOf("a", "1"), reachReceipt)
	b.upserts(turn, toolItem("c"), toolOf("c", "1"), reachReceipt)
	b.upserts(turn, toolItem("b"), nil, reachReceipt)
	b.settleDown()
	want := "workflow/c: user\ntool/a: ai t-1 rita\ntool/c: ai t-1 rita\ntool/b: ai t-1 rita"
	if diff := cmp.Diff(want, b.itemHistory(comp)); diff != "" {
		t.Errorf("history differs (-want +got):\n%s", diff)
	}
	get(b, comp)
	if item := comp.Status.Items[1]; item.LastAuthor != api.AuthorAI || item.LastTurn != "t-1" {
		t.Errorf("item is %+v", item)
	}
	b.reports(session, api.PromptResult{Outcome: api.OutcomeCompleted})
	b.settleDown()
	if get(b, turn); turn.Status.State != api.TurnCompleted {
		t.Errorf("turn is %s: %s", turn.Status.State, turn.Status.Detail)
	}
}

// What the gateway did not get to do is done, or forgotten, when the turn ends.
func TestOpenIntentsAreSettled(t *testing.T) {
	for name, tc := range map[string]struct {
		far     reach
		edit    string
		outcome api.PromptOutcome
		tools   string
		writes  int
		author  string
	}{
		"written, without a receipt":      {far: reachDraft, tools: "a=1", writes: 1, author: "ai t-1 rita"},
		"not written":                     {far: reachIntent, tools: "a=1", writes: 1, author: "ai t-1 rita"},
		"not written by one that failed":  {far: reachIntent, outcome: api.OutcomeFailed, tools: "a=1", writes: 1, author: "ai t-1 rita"},
		"not written, and edited since":   {far: reachIntent, edit: "2", tools: "a=2", author: "user bob"},
		"written, and edited since":       {far: reachDraft, edit: "2", tools: "a=2", author: "user bob"},
		"with a receipt and edited since": {far: reachReceipt, edit: "2", tools: "a=2", writes: 1, author: "user bob"},
	} {
		t.Run(name, func(t *testing.T) {
			b, comp, turn, session := workingBench(t, withTools(toolOf("a", "0")))
			b.upserts(turn, toolItem("a"), toolOf("a", "1"), tc.far)
			if tc.edit != "" {
				b.settleDown()
				change(b, comp, func(comp *api.Composition) {
					comp.Spec.Tools[0].ScriptTemplate, comp.Annotations = tc.edit, map[string]string{api.AnnotationEditedBy: "bob"}
				})
			}
			outcome := tc.outcome
			if outcome == "" {
				outcome = api.OutcomeCompleted
			}
			b.reports(session, api.PromptResult{Outcome: outcome})
			b.settleDown()
			get(b, turn)
			if got := toolsOf(get(b, comp)); got != tc.tools || len(turn.Status.ItemWrites) != tc.writes {
				t.Errorf("tools are %q, writes %+v", got, turn.Status.ItemWrites)
			}
			if open := turns.Unsettled(&turn.Status); len(open) > 0 || !turns.IsOver(turn.Status.State) {
				t.Errorf("turn is %s; open are %v", turn.Status.State, open)
			}
			if got := b.itemHistory(comp); !strings.Contains(got, "tool/a: "+tc.author) {
				t.Errorf("history is\n%s\nwant %s", got, tc.author)
			}
		})
	}
}

func TestAnIntentThatTheServerRefusesIsForgotten(t *testing.T) {
	b, comp, turn, session := workingBench(t, withTools(toolOf("a", "0")))
	b.upserts(turn, toolItem("a"), toolOf("a", "1"), reachIntent)
	b.reports(session, api.PromptResult{Outcome: api.OutcomeCompleted})
	r := b.turns()
	r.Direct = refusing(b.client)
	for range 3 {
		reconcileOne(b, r, turn)
	}
	if get(b, turn); turn.Status.State != api.TurnCompleted || len(turn.Status.ItemWrites) != 0 {
		t.Errorf("turn is %s with %+v", turn.Status.State, turn.Status.ItemWrites)
	}
	if got := toolsOf(get(b, comp)); got != "a=0" {
		t.Errorf("tools are %q", got)
	}
}

func TestALostIntentIsForgotten(t *testing.T) {
	b, _, turn, session := workingBench(t, withTools(toolOf("a", "0")))
	b.upserts(turn, toolItem("a"), toolOf("a", "1"), reachIntent)
	note(b, turn, func(turn *api.Turn) { turn.Status.ItemWrites[0].After.Digest = content.Digest([]byte("lost")) })
	b.reports(session, api.PromptResult{Outcome: api.OutcomeCompleted})
	b.settleDown()
	if get(b, turn); turn.Status.State != api.TurnCompleted || len(turn.Status.ItemWrites) != 0 {
		t.Errorf("turn is %s with %+v", turn.Status.State, turn.Status.ItemWrites)
	}
}

func TestStagedItemsWaitAndGoWithTheWorkflow(t *testing.T) {
	bob := func(how func(*api.Composition)) func(*bench, *api.Composition, *api.Turn) {
		return func(b *bench, comp *api.Composition, _ *api.Turn) {
			change(b, comp, func(comp *api.Composition) {
				how(comp)
				comp.Annotations = map[string]string{api.AnnotationEditedBy: "bob"}
			})
		}
	}
	editsTool := func(i int, script string) func(*bench, *api.Composition, *api.Turn) {
		return bob(func(comp *api.Composition) { comp.Spec.Tools[i].ScriptTemplate = script })
	}
	adds := bob(func(comp *api.Composition) { comp.Spec.Tools = append(comp.Spec.Tools, *toolOf("n", "new")) })
	const before, after = "a=0 b=0 c=0", "a=1 c=0 n=new"
	for name, tc := range map[string]struct {
		ops    bool
		plays  []func(*bench, *api.Composition, *api.Turn)
		state  api.TurnPhase
		reason string
		tools  string
		end    string
	}{
		"nobody decides": {ops: true, state: api.TurnAwaitingResolution, tools: before, end: "End"},
		"both accepted": {
			ops: true, plays: []func(*bench, *api.Composition, *api.Turn){resolves("Accepted")},
			state: api.TurnApplied, reason: "Accepted", tools: after, end: "Result",
		},
		"items alone, accepted on any workflow": {
			plays: []func(*bench, *api.Composition, *api.Turn){editsTo("Edited"), looks, resolves("Accepted")},
			state: api.TurnApplied, reason: "Accepted", tools: after, end: "Edited",
		},
		"accepted beside an edit of another tool": {
			plays: []func(*bench, *api.Composition, *api.Turn){editsTool(2, "9"), looks, resolves("Accepted")},
			state: api.TurnApplied, reason: "Accepted", tools: "a=1 c=9 n=new", end: "End",
		},
		"accepted after an edit of one": {
			ops: true, plays: []func(*bench, *api.Composition, *api.Turn){editsTool(0, "9"), looks, resolves("Accepted")},
			state: api.TurnStale, reason: "BaseChanged", tools: "a=9 b=0 c=0", end: "End",
		},
		"accepted when somebody else made one": {
			ops: true, plays: []func(*bench, *api.Composition, *api.Turn){bob(func(comp *api.Composition) {
				comp.Spec.Tools = append(comp.Spec.Tools, *toolOf("n", "other"))
			}), looks, resolves("Accepted")},
			state: api.TurnStale, reason: "BaseChanged", tools: "a=0 b=0 c=0 n=other", end: "End",
		},
		"accepted when a part is there": {
			ops: true, plays: []func(*bench, *api.Composition, *api.Turn){adds, looks, resolves("Accepted")},
			state: api.TurnApplied, reason: "Accepted", tools: after, end: "Result",
		},
		"applied unasked, by whatever hand": {
			plays: []func(*bench, *api.Composition, *api.Turn){editsTool(0, "1"), adds, bob(func(comp *api.Composition) {
				comp.Spec.Tools = append(comp.Spec.Tools[:1], comp.Spec.Tools[2:]...)
			})},
			state: api.TurnApplied, reason: "Detected", tools: after, end: "End",
		},
		"partly applied": {
			plays: []func(*bench, *api.Composition, *api.Turn){editsTool(0, "1"), adds},
			state: api.TurnAwaitingResolution, tools: "a=1 b=0 c=0 n=new", end: "End",
		},
		"rejected": {
			ops: true, plays: []func(*bench, *api.Composition, *api.Turn){resolves("Rejected")}, state: api.TurnRejected, reason: "Rejected", tools: before, end: "End",
		},
		"declared applied": {
			ops: true, plays: []func(*bench, *api.Composition, *api.Turn){resolves("Applied")}, state: api.TurnApplied, reason: "Declared", tools: before, end: "End",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, comp, turn, session := workingBench(t, stagedPolicy, withTools(toolOf("a", "0"), toolOf("b", "0"), toolOf("c", "0")))
			b.upserts(turn, toolItem("a"), toolOf("a", "1"), reachReceipt)
			b.upserts(turn, toolItem("b"), nil, reachReceipt)
			b.upserts(turn, toolItem("n"), toolOf("n", "new"), reachReceipt)
			if tc.ops {
				b.proposes(turn, rename("end-1", "Result"))
			}
			b.reports(session, api.PromptResult{Outcome: api.OutcomeCompleted})
			b.settleDown()
			writes := len(b.writes)
			for _, play := range tc.plays {
				play(b, comp, turn)
			}
			b.settleDown()
			get(b, turn)
			get(b, comp)
			if turn.Status.State != tc.state || tc.reason != "" && reasonOfCondition(turn, api.ConditionResolved) != tc.reason {
				t.Errorf("turn is %s for %s: %s", turn.Status.State, reasonOfCondition(turn, api.ConditionResolved), turn.Status.Detail)
			}
			if got := toolsOf(comp); got != tc.tools || endName(t, comp) != tc.end {
				t.Errorf("the draft has %q and %q, want %q and %q", got, endName(t, comp), tc.tools, tc.end)
			}
			if tc.state != api.TurnApplied || tc.reason != "Accepted" {
				return
			}
			patches := 0
			for _, write := range b.writes[writes:] {
				if write == "patch Composition c" {
					patches++
				}
			}
			if patches != 1 {
				t.Errorf("%d writes of the draft, want one: %q", patches, b.writes[writes:])
			}
			if len(turns.Staged(&turn.Status)) > 0 {
				t.Errorf("still staged: %+v", turn.Status.ItemWrites)
			}
			history := b.itemHistory(comp)
			for _, line := range []string{"tool/a: ai t-1 ada", "tool/b: ai t-1 ada"} {
				if !strings.Contains(history, line) {
					t.Errorf("history lacks %q:\n%s", line, history)
				}
			}
		})
	}
}

func reasonOfCondition(turn *api.Turn, kind string) string {
	return briefs(turn.Status.Conditions)[kind].Reason
}

func TestAWorkflowThatTheTurnCreates(t *testing.T) {
	flow := turns.Item{Type: api.ItemWorkflow, Name: "w"}
	none := func(comp *api.Composition) { comp.Spec.Workflow = nil }
	workflowOf := func(comp *api.Composition) string {
		if comp.Spec.Workflow == nil {
			return ""
		}
		return endName(t, comp)
	}
	for name, tc := range map[string]struct {
		how      []func(*api.Composition)
		ops      bool
		finished api.TurnPhase
		between  string
		accepted api.TurnPhase
		want     string
	}{
		"directly":                         {how: []func(*api.Composition){none}, finished: api.TurnCompleted, between: "End", want: "End"},
		"directly, with changes":           {how: []func(*api.Composition){none}, ops: true, finished: api.TurnAwaitingResolution, between: "End", accepted: api.TurnApplied, want: "Result"},
		"staged":                           {how: []func(*api.Composition){none, stagedPolicy}, finished: api.TurnAwaitingResolution, accepted: api.TurnApplied, want: "End"},
		"staged, with changes":             {how: []func(*api.Composition){none, stagedPolicy}, ops: true, finished: api.TurnAwaitingResolution, accepted: api.TurnApplied, want: "Result"},
		"staged, beside one that is there": {how: []func(*api.Composition){none, stagedPolicy}, ops: true, finished: api.TurnAwaitingResolution, accepted: api.TurnStale, want: "Mine"},
	} {
		t.Run(name, func(t *testing.T) {
			b, comp, turn, session := workingBench(t, tc.how...)
			b.upserts(turn, flow, workflow.Blank("w"), reachReceipt)
			if get(b, turn); turn.Status.BaseRevision == "" || turn.Status.WorkingRevision != turn.Status.BaseRevision {
				t.Fatalf("base is %q, working revision %q", turn.Status.BaseRevision, turn.Status.WorkingRevision)
			}
			if tc.ops {
				b.proposes(turn, rename("end-1", "Result"))
			}
			b.reports(session, api.PromptResult{Outcome: api.OutcomeCompleted})
			b.settleDown()
			if got := workflowOf(get(b, comp)); get(b, turn).Status.State != tc.finished || got != tc.between {
				t.Fatalf("turn is %s: %s; the draft has %q", turn.Status.State, turn.Status.Detail, got)
			}
			if tc.accepted == api.TurnStale {
				change(b, comp, func(comp *api.Composition) { comp.Spec.Workflow = draft("mine").Spec.Workflow })
				edits(b, comp, "Mine", "bob")
				b.settleDown()
			}
			if tc.accepted != "" {
				resolves("Accepted")(b, comp, turn)
				b.settleDown()
			}
			get(b, turn)
			if got := workflowOf(get(b, comp)); got != tc.want || tc.accepted != "" && turn.Status.State != tc.accepted {
				t.Errorf("turn is %s: %s; the draft has %q, want %q", turn.Status.State, turn.Status.Detail, got, tc.want)
			}
		})
	}
}

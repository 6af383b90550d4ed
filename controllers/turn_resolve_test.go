package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// waitingBench is one whose turn t-1 of composition c has a result that waits:
// the end node is named "Result".
func waitingBench(t *testing.T, how ...func(*api.Composition)) (*bench, *api.Composition, *api.Turn) {
	t.Helper()
	comp, turn, session := draft("c", how...), message("t-1", "c"), agentOf("c")
	b := newBench(t, comp, turn)
	b.settleDown()
	b.delivers(session)
	b.proposes(turn, rename("end-1", "Result"))
	b.reports(session, api.PromptResult{Outcome: api.OutcomeCompleted})
	reconcileOne(b, b.turns(), turn)
	reconcileOne(b, b.compositions(), comp)
	return b, comp, turn
}

// endName is what the draft's end node is called.
func endName(t *testing.T, comp *api.Composition) string {
	t.Helper()
	doc, _ := json2(t, comp.Spec.Workflow)
	return doc.(map[string]any)["nodes"].([]any)[1].(map[string]any)["name"].(string)
}

func resolves(resolution api.Resolution) func(*bench, *api.Composition, *api.Turn) {
	return func(b *bench, _ *api.Composition, turn *api.Turn) {
		change(b, turn, func(turn *api.Turn) {
			turn.Spec.Resolution = resolution
			turn.Annotations[api.AnnotationResolvedBy] = "ada"
		})
	}
}

func editsTo(name string) func(*bench, *api.Composition, *api.Turn) {
	return func(b *bench, comp *api.Composition, _ *api.Turn) { edits(b, comp, name, "bob") }
}

func annotates(b *bench, comp *api.Composition, turn *api.Turn) {
	b.t.Helper()
	get(b, comp)
	if comp.Annotations == nil {
		comp.Annotations = map[string]string{}
	}
	comp.Annotations[api.AnnotationTurn] = turn.Name
	if err := b.client.Update(b.ctx, comp); err != nil { // metadata alone raises no generation
		b.t.Fatal(err)
	}
}

func looks(b *bench, _ *api.Composition, _ *api.Turn) { b.settleDown() }

func TestWhatBecomesOfAResolution(t *testing.T) {
	type play = func(*bench, *api.Composition, *api.Turn)
	automatic := func(comp *api.Composition) { comp.Spec.Agent.ChangeSetPolicy = api.ChangeSetAutomatic }
	for name, tc := range map[string]struct {
		how        []func(*api.Composition)
		plays      []play
		wantState  api.TurnPhase
		wantReason string
		wantEnd    string
		wantAuthor string
	}{
		"nobody decides": {wantState: api.TurnAwaitingResolution, wantReason: "AwaitingResolution", wantEnd: "End", wantAuthor: "user"},
		"accepted on the base": {
			plays: []play{resolves("Accepted")}, wantState: api.TurnApplied, wantReason: "Accepted", wantEnd: "Result", wantAuthor: "ai t-1 ada",
		},
		"accepted after an edit": {
			plays: []play{editsTo("Edited"), resolves("Accepted")}, wantState: api.TurnStale, wantReason: "BaseChanged", wantEnd: "Edited", wantAuthor: "user  bob",
		},
		"accepted after an edit that was taken back": {
			plays: []play{editsTo("Edited"), looks, editsTo("End"), resolves("Accepted")}, wantState: api.TurnApplied, wantReason: "Accepted", wantEnd: "Result", wantAuthor: "ai t-1 ada",
		},
		"accepted when it is there already": {
			plays: []play{resolves("Accepted"), editsTo("Result")}, wantState: api.TurnApplied, wantReason: "Accepted", wantEnd: "Result", wantAuthor: "ai t-1 ada",
		},
		"accepted with the annotation and nothing else there": {
			plays: []play{annotates, looks, resolves("Accepted")}, wantState: api.TurnApplied, wantReason: "Accepted", wantEnd: "Result", wantAuthor: "ai t-1 ada",
		},
		"applied by the client": {
			plays: []play{resolves("Applied"), editsTo("Result")}, wantState: api.TurnApplied, wantReason: "Verified", wantEnd: "Result", wantAuthor: "ai t-1 ada",
		},
		"said to be applied, in other words": {
			plays: []play{editsTo("Similar"), resolves("Applied")}, wantState: api.TurnApplied, wantReason: "Declared", wantEnd: "Similar", wantAuthor: "user  bob",
		},
		"rejected":        {plays: []play{resolves("Rejected")}, wantState: api.TurnRejected, wantReason: "Rejected", wantEnd: "End", wantAuthor: "user"},
		"declared stale":  {plays: []play{resolves("Stale")}, wantState: api.TurnStale, wantReason: "Stale", wantEnd: "End", wantAuthor: "user"},
		"applied unasked": {plays: []play{editsTo("Result")}, wantState: api.TurnApplied, wantReason: "Detected", wantEnd: "Result", wantAuthor: "ai t-1 rita"},
		"only edited": {
			plays: []play{editsTo("Edited")}, wantState: api.TurnAwaitingResolution, wantReason: "AwaitingResolution", wantEnd: "Edited", wantAuthor: "user  bob",
		},
		"accepted by policy": {
			how: []func(*api.Composition){automatic}, wantState: api.TurnApplied, wantReason: "Accepted", wantEnd: "Result", wantAuthor: "ai t-1 rita",
		},
		"accepted by policy on another base": {
			how: []func(*api.Composition){automatic}, plays: []play{editsTo("Edited")},
			wantState: api.TurnStale, wantReason: "BaseChanged", wantEnd: "Edited", wantAuthor: "user  bob",
		},
		"rejected against the policy": {
			how: []func(*api.Composition){automatic}, plays: []play{resolves("Rejected")}, wantState: api.TurnRejected, wantReason: "Rejected", wantEnd: "End", wantAuthor: "user",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, comp, turn := waitingBench(t, tc.how...)
			for _, play := range tc.plays {
				play(b, comp, turn)
			}
			b.settleDown()
			get(b, turn)
			get(b, comp)
			resolved := apimeta.FindStatusCondition(turn.Status.Conditions, api.ConditionResolved)
			if turn.Status.State != tc.wantState || resolved.Reason != tc.wantReason {
				t.Errorf("turn is %s for %s: %q; want %s for %s", turn.Status.State, resolved.Reason, turn.Status.Detail, tc.wantState, tc.wantReason)
			}
			if got := endName(t, comp); got != tc.wantEnd {
				t.Errorf("the draft has %q, want %q", got, tc.wantEnd)
			}
			records := b.history(comp)
			newest, _ := records[len(records)-1].data.item(api.ItemWorkflow, "c")
			if got := strings.TrimSpace(fmt.Sprintf("%s %s %s", newest.Author, newest.Turn, newest.Username)); got != tc.wantAuthor {
				t.Errorf("author is %q, want %q", got, tc.wantAuthor)
			}
			isPending := comp.Status.PendingTurn == "t-1"
			if isPending != (tc.wantState == api.TurnAwaitingResolution) {
				t.Errorf("pending turn is %q", comp.Status.PendingTurn)
			}
		})
	}
}

// dying is a client whose process ends at a write: nothing gets through any
// more, and nobody hears of what did.
func dying(b *bench, at string, isApplied bool) client.Client {
	dead := errors.New("dead")
	isDead := false
	check := func(write string, do func() error) error {
		if isDead {
			return dead
		}
		if write != at {
			return do()
		}
		isDead = true
		if isApplied {
			if err := do(); err != nil {
				b.t.Error(err)
			}
		}
		return dead
	}
	return interceptor.NewClient(b.client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return check("patch", func() error { return c.Patch(ctx, object, patch, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, object client.Object, opts ...client.SubResourceUpdateOption) error {
			return check("status", func() error { return c.SubResource(sub).Update(ctx, object, opts...) })
		},
	})
}

// The write into the draft and the turn's receipt are two; what happens between
// them must neither apply the turn twice nor overwrite anybody.
func TestAnAcceptanceIsCarriedOutOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		at        string
		isApplied bool
		meanwhile func(*bench, *api.Composition, *api.Turn)
		wantState api.TurnPhase
		wantEnd   string
	}{
		"dead before the write":                     {"patch", false, nil, api.TurnApplied, "Result"},
		"dead after the write":                      {"patch", true, nil, api.TurnApplied, "Result"},
		"dead before the receipt":                   {"status", false, nil, api.TurnApplied, "Result"},
		"dead before the receipt, and then an edit": {"patch", true, editsTo("Edited"), api.TurnApplied, "Edited"},
		"dead before the write, and then an edit":   {"patch", false, editsTo("Edited"), api.TurnStale, "Edited"},
		"dead before the receipt, and then taken back": {"patch", true, func(b *bench, comp *api.Composition, turn *api.Turn) {
			reconcileOne(b, b.compositions(), comp)
			edits(b, comp, "End", "bob")
		}, api.TurnApplied, "End"},
	} {
		t.Run(name, func(t *testing.T) {
			b, comp, turn := waitingBench(t)
			resolves("Accepted")(b, comp, turn)
			r := b.turns()
			mortal := dying(b, tc.at, tc.isApplied)
			r.Client, r.Direct = mortal, mortal
			if _, err := r.Reconcile(b.ctx, get(b, turn)); err == nil {
				t.Fatal("it did not die")
			}
			if tc.meanwhile != nil {
				tc.meanwhile(b, comp, turn)
			}
			b.settleDown()
			if get(b, turn); turn.Status.State != tc.wantState {
				t.Errorf("turn is %s: %s", turn.Status.State, turn.Status.Detail)
			}
			if got := endName(t, get(b, comp)); got != tc.wantEnd {
				t.Errorf("the draft has %q, want %q", got, tc.wantEnd)
			}
		})
	}
}

func TestHowAWriteIntoTheDraftFails(t *testing.T) {
	resource := schema.GroupResource{Resource: "compositions"}
	for name, tc := range map[string]struct {
		err       error
		wantState api.TurnPhase
		wantErr   bool
	}{
		"refused as invalid":     {apierrors.NewInvalid(schema.GroupKind{Kind: "Composition"}, "c", nil), api.TurnFailed, false},
		"refused by admission":   {apierrors.NewForbidden(resource, "c", errors.New("no")), api.TurnFailed, false},
		"refused for its size":   {apierrors.NewRequestEntityTooLargeError("no"), api.TurnFailed, false},
		"somebody was faster":    {apierrors.NewConflict(resource, "c", errors.New("no")), api.TurnAwaitingResolution, true},
		"the server has trouble": {apierrors.NewInternalError(errors.New("no")), api.TurnAwaitingResolution, true},
		"the server is away":     {errors.New("connection refused"), api.TurnAwaitingResolution, true},
	} {
		t.Run(name, func(t *testing.T) {
			b, comp, turn := waitingBench(t)
			resolves("Accepted")(b, comp, turn)
			r := b.turns()
			r.Direct = interceptor.NewClient(b.client.(client.WithWatch), interceptor.Funcs{
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return tc.err
				},
			})
			if _, err := r.Reconcile(b.ctx, get(b, turn)); (err != nil) != tc.wantErr {
				t.Errorf("error %v", err)
			}
			if get(b, turn); turn.Status.State != tc.wantState {
				t.Errorf("turn is %s", turn.Status.State)
			}
		})
	}
}

// The draft's history must have what a result replaces, or nobody can undo it.
func TestWhatIsReplacedHasItsSnapshotFirst(t *testing.T) {
	b, comp, turn := waitingBench(t)
	change(b, comp, func(comp *api.Composition) { comp.Spec.Tools = []api.NamedTool{{Name: "a"}} })
	resolves("Accepted")(b, comp, turn)
	reconcileOne(b, b.turns(), turn)
	if get(b, turn); turn.Status.State != api.TurnAwaitingResolution {
		t.Fatalf("turn is %s", turn.Status.State)
	}
	b.settleDown()
	var generations []int64
	for _, record := range b.history(get(b, comp)) {
		generations = append(generations, record.data.Generation)
	}
	if get(b, turn); turn.Status.State != api.TurnApplied || !slices.Contains(generations, 2) {
		t.Errorf("turn is %s, history has generations %v, want 2 among them", turn.Status.State, generations)
	}
}

func TestAnAcceptanceKeepsWhatItDoesNotKnow(t *testing.T) {
	b, comp, turn := waitingBench(t, func(comp *api.Composition) {
		doc := workflow.Blank("c")
		doc["x-unknown"] = map[string]any{"n": int64(9007199254740993), "list": []any{nil, "<&>"}}
		doc["nodes"].([]any)[0].(map[string]any)["position"] = map[string]any{"x": 1.5}
		comp.Spec.Workflow = rawOf(doc)
		comp.Annotations = map[string]string{"example.com/mine": "kept"}
	})
	before, _ := json2(t, get(b, comp).Spec.Workflow)
	resolves("Accepted")(b, comp, turn)
	b.settleDown()
	after, _ := json2(t, get(b, comp).Spec.Workflow)
	before.(map[string]any)["nodes"].([]any)[1].(map[string]any)["name"] = "Result"
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("workflow differs in more than the turn changed (-want +got):\n%s", diff)
	}
	if comp.Annotations["example.com/mine"] != "kept" {
		t.Error("a person's annotation is gone")
	}
}

func TestANewerPendingTurnSupersedes(t *testing.T) {
	// The newer is made to sort before the older in all but its number.
	b, comp, older := waitingBench(t)
	newer := message("a-newer", "c")
	if err := b.client.Create(b.ctx, newer); err != nil {
		t.Fatal(err)
	}
	b.settleDown()
	if get(b, older); older.Status.State != api.TurnAwaitingResolution {
		t.Fatalf("the older is %s while the newer works", older.Status.State)
	}
	session := agentOf("c")
	b.delivers(session)
	b.proposes(newer, rename("end-1", "Newer"))
	b.reports(session, api.PromptResult{Outcome: api.OutcomeCompleted})
	b.settleDown()
	get(b, older)
	get(b, newer)
	resolved := apimeta.FindStatusCondition(older.Status.Conditions, api.ConditionResolved)
	if older.Status.State != api.TurnStale || resolved.Reason != api.ReasonSuperseded {
		t.Errorf("the older is %s for %s", older.Status.State, resolved.Reason)
	}
	if newer.Status.State != api.TurnAwaitingResolution || get(b, comp).Status.PendingTurn != "a-newer" {
		t.Errorf("the newer is %s, pending is %q", newer.Status.State, comp.Status.PendingTurn)
	}
}

func TestALostResultFailsTheTurn(t *testing.T) {
	b, comp, turn := waitingBench(t)
	note(b, turn, func(turn *api.Turn) { turn.Status.ChangeSet = nil })
	resolves("Accepted")(b, comp, turn)
	b.settleDown()
	if get(b, turn); turn.Status.State != api.TurnFailed || !strings.HasPrefix(turn.Status.Detail, "the result is lost: ") {
		t.Errorf("turn is %s: %q", turn.Status.State, turn.Status.Detail)
	}
	if got := endName(t, get(b, comp)); got != "End" {
		t.Errorf("the draft has %q", got)
	}
}

func TestATurnOfACompositionThatIsGone(t *testing.T) {
	b, comp, turn := waitingBench(t)
	if err := b.client.Delete(b.ctx, comp); err != nil {
		t.Fatal(err)
	}
	again := draft("c", func(comp *api.Composition) { comp.UID = "another" })
	if err := b.client.Create(b.ctx, again); err != nil {
		t.Fatal(err)
	}
	resolves("Accepted")(b, comp, turn)
	b.settleDown()
	if get(b, turn); turn.Status.State != api.TurnFailed {
		t.Errorf("turn is %s", turn.Status.State)
	}
	if got := endName(t, get(b, again)); got != "End" {
		t.Errorf("the turn was applied to another composition, which has %q", got)
	}
}

func TestPodLoss(t *testing.T) {
	for name, tc := range map[string]struct {
		play         func(b *bench, session *api.AgentSession, turn *api.Turn)
		wantState    api.TurnPhase
		wantDetail   string
		wantRestarts int32
		wantAttempt  int32
	}{
		"before the agent has the prompt": {
			play: func(b *bench, session *api.AgentSession, _ *api.Turn) { b.loses(session) }, wantState: api.TurnWorking, wantAttempt: 2,
		},
		"before it did anything": {
			play: func(b *bench, session *api.AgentSession, _ *api.Turn) {
				b.delivers(session)
				b.loses(session)
			},
			wantState: api.TurnWorking, wantRestarts: 1, wantAttempt: 2,
		},
		"twice before it did anything": {
			play: func(b *bench, session *api.AgentSession, _ *api.Turn) {
				for range 2 {
					b.delivers(session)
					b.loses(session)
					b.settleDown()
				}
			},
			wantState: api.TurnFailed, wantDetail: detailPodLost, wantRestarts: 1, wantAttempt: 2,
		},
		"after it did something": {
			play: func(b *bench, session *api.AgentSession, turn *api.Turn) {
				b.delivers(session)
				b.proposes(turn, rename("end-1", "Result"))
				b.loses(session)
			},
			wantState: api.TurnFailed, wantDetail: detailPodLost, wantAttempt: 1,
		},
		"after it did something that the cache does not show": {
			play: func(b *bench, session *api.AgentSession, turn *api.Turn) {
				b.delivers(session)
				old := get(b, turn).DeepCopy()
				b.proposes(turn, rename("end-1", "Result"))
				b.loses(session)
				reconcileOne(b, b.sessions(), session)
				if _, err := b.turns().Reconcile(b.ctx, old); err != nil && !apierrors.IsConflict(err) {
					b.t.Fatal(err)
				}
			},
			wantState: api.TurnFailed, wantDetail: detailPodLost, wantAttempt: 1,
		},
		"because the runner fell silent": {
			play: func(b *bench, session *api.AgentSession, _ *api.Turn) {
				b.delivers(session)
				note(b, session, func(s *api.AgentSession) { s.Status.LastHeartbeatAt = at(0) })
				b.advance(silenceTimeout)
			},
			wantState: api.TurnWorking, wantRestarts: 1, wantAttempt: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			turn, session := message("t-1", "c"), agentOf("c")
			b := newBench(t, draft("c"), turn)
			b.settleDown()
			tc.play(b, session, turn)
			b.settleDown()
			get(b, turn)
			if turn.Status.State != tc.wantState || turn.Status.Detail != tc.wantDetail || turn.Status.Restarts != tc.wantRestarts {
				t.Errorf("turn is %s: %q, restarts %d", turn.Status.State, turn.Status.Detail, turn.Status.Restarts)
			}
			if get(b, session).Status.Attempt != tc.wantAttempt {
				t.Errorf("attempt %d, want %d", session.Status.Attempt, tc.wantAttempt)
			}
			if tc.wantState == api.TurnWorking && (session.Status.Prompt.State != api.PromptQueued || session.Status.Prompt.Sequence != 1) {
				t.Errorf("prompt is %+v, want it with the next pod", session.Status.Prompt)
			}
		})
	}
}

func TestAnnouncements(t *testing.T) {
	b, comp, turn := waitingBench(t)
	resolves("Accepted")(b, comp, turn)
	b.settleDown()
	failing := message("t-2", "c")
	if err := b.client.Create(b.ctx, failing); err != nil {
		t.Fatal(err)
	}
	b.settleDown()
	b.reports(agentOf("c"), api.PromptResult{Outcome: api.OutcomeFailed, Detail: strings.Repeat("x", 4096)})
	b.settleDown()
	var got []string
	for len(b.recorder.Events) > 0 {
		event := <-b.recorder.Events
		if len(event) > maxEventNote+len("Normal AgentNotice ") {
			t.Errorf("a note of %d bytes", len(event))
		}
		got = append(got, event[:min(len(event), 60)])
	}
	want := []string{
		"Normal TurnStarted turn t-1 started", "Normal ChangeSetReady turn t-1 waits for a resolution", "Normal TurnApplied turn t-1 was applied",
		"Normal TurnStarted turn t-2 started", "Warning TurnFailed turn t-2 failed",
		"Normal AgentNotice The AI turn ended with an error: xxxxxxxx",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events differ (-want +got):\n%s", diff)
	}
}

func TestAnEditBetweenTheLookAndTheWriteWins(t *testing.T) {
	b, comp, turn := waitingBench(t)
	resolves("Accepted")(b, comp, turn)
	r := b.turns()
	r.Direct = interceptor.NewClient(b.client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			edits(b, comp, "Faster", "bob")
			return c.Patch(ctx, object, patch, opts...)
		},
	})
	if _, err := r.Reconcile(b.ctx, get(b, turn)); !apierrors.IsConflict(err) {
		t.Errorf("error %v, want a conflict", err)
	}
	b.settleDown()
	if got := endName(t, get(b, comp)); got != "Faster" || get(b, turn).Status.State != api.TurnStale {
		t.Errorf("the draft has %q, the turn is %s", got, turn.Status.State)
	}
}

// A cache that is behind shows a turn that waits, although it was settled.
func TestAnOldViewOfATurnDoesNothing(t *testing.T) {
	t.Run("accepting", func(t *testing.T) {
		b, comp, turn := waitingBench(t)
		resolves("Accepted")(b, comp, turn)
		old := get(b, turn).DeepCopy()
		edits(b, comp, "Edited", "bob")
		b.settleDown()
		if get(b, turn); turn.Status.State != api.TurnStale {
			t.Fatalf("turn is %s", turn.Status.State)
		}
		edits(b, comp, "End", "bob") // the base is back, but the turn is over
		reconcileOne(b, b.compositions(), comp)
		if _, err := b.turns().Reconcile(b.ctx, old); err != nil && !apierrors.IsConflict(err) {
			t.Error(err)
		}
		if got := endName(t, get(b, comp)); got != "End" {
			t.Errorf("the draft has %q", got)
		}
	})
	t.Run("claiming", func(t *testing.T) {
		comp, turn := draft("c"), message("t-1", "c")
		b := newBench(t, comp, turn)
		reconcileOne(b, b.turns(), turn) // it is owned, and waits
		old := get(b, turn).DeepCopy()
		b.settleDown()
		b.reports(agentOf("c"), api.PromptResult{Outcome: api.OutcomeCompleted})
		b.settleDown()
		if _, err := b.turns().Reconcile(b.ctx, old); err != nil && !apierrors.IsConflict(err) {
			t.Error(err)
		}
		if get(b, comp); comp.Status.Claim != nil || comp.Status.TurnCount != 1 {
			t.Errorf("claim %+v, count %d", comp.Status.Claim, comp.Status.TurnCount)
		}
	})
	t.Run("queuing", func(t *testing.T) {
		comp, turn := draft("c"), message("t-1", "c")
		b := newBench(t, comp, turn)
		reconcileOne(b, b.compositions(), comp)
		reconcileOne(b, b.turns(), turn)
		old := get(b, turn).DeepCopy()
		note(b, turn, func(turn *api.Turn) { turn.Status.State = api.TurnFailed })
		if _, err := b.turns().Reconcile(b.ctx, old); err != nil && !apierrors.IsConflict(err) {
			t.Error(err)
		}
		if prompt := get(b, agentOf("c")).Status.Prompt; prompt != nil {
			t.Errorf("prompt is %+v", prompt)
		}
	})
}

func TestTheNewerIsNotSupersededByTheOlder(t *testing.T) {
	b, comp, older := waitingBench(t)
	newer := message("t-2", "c")
	if err := b.client.Create(b.ctx, newer); err != nil {
		t.Fatal(err)
	}
	b.settleDown()
	session := agentOf("c")
	b.delivers(session)
	b.proposes(newer, rename("end-1", "Newer"))
	b.reports(session, api.PromptResult{Outcome: api.OutcomeCompleted})
	for range 3 { // before the composition says which one waits
		reconcileOne(b, b.turns(), newer)
	}
	if get(b, comp); comp.Status.PendingTurn != older.Name {
		t.Fatalf("pending turn is %q", comp.Status.PendingTurn)
	}
	if get(b, newer); newer.Status.State != api.TurnAwaitingResolution {
		t.Errorf("the newer is %s: %s", newer.Status.State, newer.Status.Detail)
	}
}

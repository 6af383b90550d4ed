package controllers

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// staleBench is one whose turn t-1 was accepted on another base, and so is
// stale.
func staleBench(t *testing.T) (*bench, *api.Composition, *api.Turn) {
	t.Helper()
	b, comp, turn := waitingBench(t)
	editsTo("Edited")(b, comp, turn)
	resolves("Accepted")(b, comp, turn)
	return b, comp, turn
}

// staleAgain plays the retry, whose result meets another edit.
func staleAgain(b *bench, comp *api.Composition, retry *api.Turn) {
	b.t.Helper()
	b.delivers(agentOf("c"))
	b.proposes(retry, rename("end-1", "Retried"))
	b.reports(agentOf("c"), api.PromptResult{Outcome: api.OutcomeCompleted})
	b.settleDown()
	edits(b, comp, "Edited again", "bob")
	resolves("Accepted")(b, comp, retry)
	b.settleDown()
}

func turnsIn(b *bench) []string {
	b.t.Helper()
	list := &api.TurnList{}
	if err := b.client.List(b.ctx, list); err != nil {
		b.t.Fatal(err)
	}
	var names []string
	for _, turn := range list.Items {
		names = append(names, turn.Name)
	}
	slices.Sort(names)
	return names
}

func TestAStaleTurnIsRepeatedOnce(t *testing.T) {
	b, comp, turn := staleBench(t)
	b.settleDown()
	retry := get(b, message("t-1-retry", "c"))
	if get(b, turn); turn.Status.Retry != "t-1-retry" || len(turn.Status.Notices) != 0 {
		t.Errorf("retry is %q, notices %q", turn.Status.Retry, turn.Status.Notices)
	}
	want := api.TurnSpec{CompositionRef: &api.LocalRef{Name: "c"}, Message: staleRetryPrompt, RetryOf: "t-1"}
	if diff := cmp.Diff(want, retry.Spec); diff != "" || retry.Annotations[api.AnnotationRequestedBy] != "rita" || !isOwnedBy(retry, comp.UID) {
		t.Errorf("retry for %q, owners %v, differs (-want +got):\n%s", retry.Annotations[api.AnnotationRequestedBy], retry.OwnerReferences, diff)
	}
	if retry.Status.State != api.TurnWorking {
		t.Fatalf("retry is %s: %s", retry.Status.State, retry.Status.Detail)
	}
	staleAgain(b, comp, retry)
	if get(b, retry); retry.Status.State != api.TurnStale || !slices.Equal(retry.Status.Notices, []string{secondStaleNotice}) {
		t.Errorf("retry is %s with %q", retry.Status.State, retry.Status.Notices)
	}
	if diff := cmp.Diff([]string{"t-1", "t-1-retry"}, turnsIn(b)); diff != "" {
		t.Errorf("turns differ (-want +got):\n%s", diff)
	}
}

func TestAStaleTurnThatSomebodyDeletesTheRetryOfIsNotRepeatedAgain(t *testing.T) {
	b, _, _ := staleBench(t)
	b.settleDown()
	if err := b.client.Delete(b.ctx, get(b, message("t-1-retry", "c"))); err != nil {
		t.Fatal(err)
	}
	b.settleDown()
	if diff := cmp.Diff([]string{"t-1"}, turnsIn(b)); diff != "" {
		t.Errorf("turns differ (-want +got):\n%s", diff)
	}
}

func TestAStaleTurnGivesWay(t *testing.T) {
	for name, play := range map[string]func(*bench){
		"to one that runs": func(b *bench) {
			if err := b.client.Create(b.ctx, message("t-2", "c")); err != nil {
				b.t.Fatal(err)
			}
			reconcileOne(b, b.compositions(), draft("c"))
			for range 2 {
				reconcileOne(b, b.turns(), message("t-2", "c"))
			}
		},
		"to one that has the retry's name": func(b *bench) {
			if err := b.client.Create(b.ctx, message("t-1-retry", "c", inState(api.TurnFailed))); err != nil {
				b.t.Fatal(err)
			}
		},
		"to a retry of a former turn of its name": func(b *bench) {
			former := message("t-1-retry", "c", inState(api.TurnFailed), func(turn *api.Turn) {
				turn.Spec.RetryOf, turn.CreationTimestamp = "t-1", metav1.NewTime(noon.Add(-1e9))
			})
			if err := b.client.Create(b.ctx, former); err != nil {
				b.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, _, turn := staleBench(t)
			play(b)
			b.settleDown()
			get(b, turn)
			if turn.Status.State != api.TurnStale || turn.Status.Retry != "" || !slices.Equal(turn.Status.Notices, []string{secondStaleNotice}) {
				t.Errorf("turn is %s, retry %q, notices %q", turn.Status.State, turn.Status.Retry, turn.Status.Notices)
			}
		})
	}
}

// The retry may exist, and even work, before its creation is recorded.
func TestARetryOutlivesItsOperator(t *testing.T) {
	for deadly := range 3 {
		for _, isApplied := range []bool{false, true} {
			b, _, turn := staleBench(t)
			r := b.turns()
			r.Client = mortal(b, deadly, isApplied)
			r.Direct = r.Client
			for range 3 {
				_, _ = r.Reconcile(b.ctx, get(b, turn))
			}
			if exists(b, message("t-1-retry", "c")) {
				reconcileOne(b, b.compositions(), draft("c"))
				for range 2 {
					reconcileOne(b, b.turns(), message("t-1-retry", "c"))
				}
			}
			b.settleDown()
			get(b, turn)
			if turn.Status.State != api.TurnStale || turn.Status.Retry != "t-1-retry" || len(turn.Status.Notices) != 0 {
				t.Errorf("dying at write %d (%t): turn is %s, retry %q, notices %q", deadly, isApplied, turn.Status.State, turn.Status.Retry, turn.Status.Notices)
			}
			if retry := get(b, message("t-1-retry", "c")); retry.Status.State != api.TurnWorking {
				t.Errorf("dying at write %d (%t): retry is %s", deadly, isApplied, retry.Status.State)
			}
		}
	}
}

func TestASupersededTurnIsNotRepeated(t *testing.T) {
	b, _, older := waitingBench(t)
	if err := b.client.Create(b.ctx, message("t-2", "c")); err != nil {
		t.Fatal(err)
	}
	b.settleDown()
	b.delivers(agentOf("c"))
	b.proposes(message("t-2", "c"), rename("end-1", "Newer"))
	b.reports(agentOf("c"), api.PromptResult{Outcome: api.OutcomeCompleted})
	b.settleDown()
	if get(b, older); older.Status.State != api.TurnStale || older.Status.Retry != "" || len(older.Status.Notices) != 0 {
		t.Errorf("the older is %s, retry %q, notices %q", older.Status.State, older.Status.Retry, older.Status.Notices)
	}
	if diff := cmp.Diff([]string{"t-1", "t-2"}, turnsIn(b)); diff != "" {
		t.Errorf("turns differ (-want +got):\n%s", diff)
	}
}

package controllers

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/turns"
)

func TestATurnFromMessageToResult(t *testing.T) {
	comp, turn := draft("triage"), message("t-1", "triage")
	b := newBench(t, comp, turn)
	session := agentOf("triage")

	b.settleDown()
	get(b, turn)
	if turn.Status.State != api.TurnWorking || turn.Status.Number != 1 {
		t.Fatalf("state %s, number %d, want the first to work", turn.Status.State, turn.Status.Number)
	}
	get(b, comp)
	if comp.Status.TurnState != api.TurnStateWorking || comp.Status.CurrentTurn != "t-1" || comp.Status.LastTurnGeneration != 1 {
		t.Errorf("composition is %+v", comp.Status)
	}
	if !exists(b, podOf(get(b, session))) {
		t.Error("no pod was made")
	}

	b.delivers(session)
	b.proposes(turn, rename("start-1", "Begin"))
	b.proposes(turn, rename("end-1", "Finish"))
	b.reports(session, api.PromptResult{Outcome: api.OutcomeCompleted, Reply: "Done."})
	b.settleDown()

	get(b, turn)
	want := api.TurnStatus{
		State: api.TurnAwaitingResolution, Ops: 2, Diff: "changed nodes: start-1, end-1", Reply: "Done.", ResultRevision: turn.Status.WorkingRevision,
	}
	if diff := cmp.Diff(want, api.TurnStatus{
		State: turn.Status.State, Ops: turn.Status.Ops, Diff: turn.Status.Diff, Reply: turn.Status.Reply, ResultRevision: turn.Status.ResultRevision,
	}); diff != "" {
		t.Errorf("turn differs (-want +got):\n%s", diff)
	}
	get(b, comp)
	if comp.Status.TurnState != api.TurnStateIdle || comp.Status.CurrentTurn != "" || comp.Status.Claim != nil || comp.Status.PendingTurn != "t-1" {
		t.Errorf("composition was not released: %+v", comp.Status)
	}

	change(b, turn, func(turn *api.Turn) {
		turn.Spec.Resolution = api.ResolutionAccepted
		turn.Annotations[api.AnnotationResolvedBy] = "ada"
	})
	b.settleDown()
	if get(b, turn); turn.Status.State != api.TurnApplied {
		t.Fatalf("state %s: %s", turn.Status.State, turn.Status.Detail)
	}
	get(b, comp)
	if live, _ := turns.LiveRevision(comp, turns.Item{Type: api.ItemWorkflow}); live != turn.Status.ResultRevision {
		t.Errorf("live revision %s, want the result %s", live, turn.Status.ResultRevision)
	}
	annotations := map[string]string{api.AnnotationTurn: "t-1", api.AnnotationEditedBy: "ada", api.AnnotationWrite: turns.MarkAccept(turn)}
	if diff := cmp.Diff(annotations, comp.Annotations); diff != "" {
		t.Errorf("annotations differ (-want +got):\n%s", diff)
	}
	if comp.Status.PendingTurn != "" {
		t.Errorf("turn %s is still pending", comp.Status.PendingTurn)
	}
}

// Every write may be the last. A reconciler that is repeated from any stored
// state goes on; so all that it stored before must not be asked for again.
func TestAQuietWorldIsNotWrittenTo(t *testing.T) {
	for name, tc := range map[string]func(b *bench, session *api.AgentSession, turn *api.Turn){
		"while the agent starts": func(*bench, *api.AgentSession, *api.Turn) {},
		"while the agent works":  func(b *bench, session *api.AgentSession, _ *api.Turn) { b.delivers(session) },
		"while a person decides": func(b *bench, session *api.AgentSession, turn *api.Turn) {
			b.delivers(session)
			b.proposes(turn, rename("end-1", "Finish"))
			b.reports(session, api.PromptResult{Outcome: api.OutcomeCompleted})
		},
		"after a failure": func(b *bench, session *api.AgentSession, _ *api.Turn) {
			b.reports(session, api.PromptResult{Outcome: api.OutcomeFailed})
		},
	} {
		t.Run(name, func(t *testing.T) {
			turn := message("t-1", "triage")
			b := newBench(t, draft("triage"), turn)
			b.settleDown()
			tc(b, agentOf("triage"), turn)
			b.settleDown()
			before := len(b.writes)
			for range 3 {
				b.pass()
			}
			if extra := b.writes[before:]; len(extra) > 0 {
				t.Errorf("writes in a quiet world: %q", extra)
			}
		})
	}
}

func TestEveryConditionIsAlwaysThere(t *testing.T) {
	comp, turn, session := draft("triage"), message("t-1", "triage"), agentOf("triage")
	b := newBench(t, comp, turn)
	check := func(when string) {
		t.Helper()
		for object, conditions := range map[string]struct {
			have []metav1.Condition
			want []string
		}{
			"composition": {get(b, comp).Status.Conditions, []string{"AgentReady", "Ready", "Reconciled", "TurnPending", "Valid"}},
			"turn":        {get(b, turn).Status.Conditions, []string{"AgentDone", "Ready", "Resolved", "Started", "Undone"}},
			"session":     {get(b, session).Status.Conditions, []string{"PodReady", "Ready", "WithinLimit"}},
		} {
			var names []string
			for _, condition := range conditions.have {
				names = append(names, condition.Type)
				if condition.ObservedGeneration != 1 || condition.Reason == "" {
					t.Errorf("%s: condition %s of the %s: %+v", when, condition.Type, object, condition)
				}
			}
			if diff := cmp.Diff(conditions.want, names, cmpopts.SortSlices(strings.Compare)); diff != "" {
				t.Errorf("%s: conditions of the %s (-want +got):\n%s", when, object, diff)
			}
		}
	}
	b.settleDown()
	check("working")
	b.reports(session, api.PromptResult{Outcome: api.OutcomeCompleted})
	b.settleDown()
	check("completed")
}

func TestHowATurnEnds(t *testing.T) {
	const failed = "The AI turn ended with an error: "
	const discarded = " Workflow changes from this turn were discarded; action type and tool changes were kept (use Undo AI turn to revert them)."
	for name, tc := range map[string]struct {
		play        func(b *bench, session *api.AgentSession, turn *api.Turn)
		wantState   api.TurnPhase
		wantDetail  string
		wantNotices []string
	}{
		"done without a change": {
			play: func(b *bench, session *api.AgentSession, _ *api.Turn) {
				b.reports(session, api.PromptResult{Outcome: api.OutcomeCompleted})
			},
			wantState: api.TurnCompleted,
		},
		"failed with a reason": {
			play: func(b *bench, session *api.AgentSession, _ *api.Turn) {
				b.reports(session, api.PromptResult{Outcome: api.OutcomeFailed, Detail: "The agent stopped: refusal"})
			},
			wantState: api.TurnFailed, wantDetail: "The agent stopped: refusal",
			wantNotices: []string{failed + "The agent stopped: refusal" + discarded},
		},
		"failed without a reason": {
			play: func(b *bench, session *api.AgentSession, _ *api.Turn) {
				b.reports(session, api.PromptResult{Outcome: api.OutcomeFailed})
			},
			wantState: api.TurnFailed, wantDetail: "The agent session ended",
			wantNotices: []string{failed + "The agent session ended" + discarded},
		},
		"failed with more to say than fits": {
			play: func(b *bench, session *api.AgentSession, _ *api.Turn) {
				b.reports(session, api.PromptResult{Outcome: api.OutcomeFailed, Detail: strings.Repeat("x", 4096)})
			},
			wantState: api.TurnFailed, wantDetail: strings.Repeat("x", 4096),
			wantNotices: []string{failed + strings.Repeat("x", 4096-len(failed)-len(discarded)-3) + "…" + discarded},
		},
		"failed on a staged composition": {
			play: func(b *bench, session *api.AgentSession, turn *api.Turn) {
				note(b, turn, func(turn *api.Turn) { turn.Status.ItemPolicy = api.ItemStaged })
				b.reports(session, api.PromptResult{Outcome: api.OutcomeFailed, Detail: "no"})
			},
			wantState: api.TurnFailed, wantDetail: "no", wantNotices: []string{failed + "no All changes from this turn were discarded."},
		},
		"failed on a composition that became staged meanwhile": {
			play: func(b *bench, session *api.AgentSession, _ *api.Turn) {
				change(b, draft("triage"), func(comp *api.Composition) { comp.Spec.Agent.ItemPolicy = api.ItemStaged })
				b.reports(session, api.PromptResult{Outcome: api.OutcomeFailed, Detail: "no"})
			},
			wantState: api.TurnFailed, wantDetail: "no", wantNotices: []string{failed + "no" + discarded},
		},
		"interrupted before the agent had it": {
			play: func(b *bench, _ *api.AgentSession, turn *api.Turn) {
				change(b, turn, func(turn *api.Turn) { turn.Spec.Interrupt = true })
			},
			wantState: api.TurnCompleted,
		},
		"interrupted, with what was accepted kept": {
			play: func(b *bench, session *api.AgentSession, turn *api.Turn) {
				b.delivers(session)
				b.proposes(turn, rename("end-1", "Finish"))
				change(b, turn, func(turn *api.Turn) { turn.Spec.Interrupt = true })
				b.settleDown()
				if !get(b, session).Status.Prompt.Cancel {
					b.t.Fatal("the agent was not asked to stop")
				}
				b.reports(session, api.PromptResult{Outcome: api.OutcomeInterrupted})
			},
			wantState: api.TurnAwaitingResolution,
		},
		"interrupted, but the agent goes on": {
			play: func(b *bench, session *api.AgentSession, turn *api.Turn) {
				b.delivers(session)
				b.proposes(turn, rename("end-1", "Finish"))
				change(b, turn, func(turn *api.Turn) { turn.Spec.Interrupt = true })
				b.settleDown()
				b.advance(cancelTimeout)
			},
			wantState: api.TurnFailed, wantDetail: detailIgnored, wantNotices: []string{failed + detailIgnored + discarded},
		},
		"too long, and the agent goes on": {
			play: func(b *bench, session *api.AgentSession, _ *api.Turn) {
				b.delivers(session)
				b.advance(defaultTurnTimeout + timeoutGrace)
				b.settleDown()
				if !get(b, session).Status.Prompt.Cancel {
					b.t.Fatal("the agent was not asked to stop")
				}
				b.advance(cancelTimeout)
			},
			wantState: api.TurnFailed, wantDetail: detailTimedOut, wantNotices: []string{failed + detailTimedOut + discarded},
		},
		"too long, and the agent stops when told": {
			play: func(b *bench, session *api.AgentSession, turn *api.Turn) {
				b.delivers(session)
				b.proposes(turn, rename("end-1", "Finish"))
				b.advance(defaultTurnTimeout + timeoutGrace)
				b.settleDown()
				b.reports(session, api.PromptResult{Outcome: api.OutcomeInterrupted})
			},
			wantState: api.TurnFailed, wantDetail: detailTimedOut, wantNotices: []string{failed + detailTimedOut + discarded},
		},
		"the session was stopped for good": {
			play: func(b *bench, session *api.AgentSession, _ *api.Turn) {
				b.delivers(session)
				change(b, session, func(session *api.AgentSession) { session.Spec.Stopped = true })
			},
			wantState: api.TurnFailed, wantDetail: detailSessionEnded, wantNotices: []string{failed + detailSessionEnded + discarded},
		},
		"the session was deleted after an effect": {
			play: func(b *bench, session *api.AgentSession, turn *api.Turn) {
				b.delivers(session)
				b.proposes(turn, rename("end-1", "Finish"))
				if err := b.client.Delete(b.ctx, get(b, session)); err != nil {
					b.t.Fatal(err)
				}
			},
			wantState: api.TurnFailed, wantDetail: detailPodLost, wantNotices: []string{failed + detailPodLost + discarded},
		},
		"an accepted change set was lost": {
			play: func(b *bench, session *api.AgentSession, turn *api.Turn) {
				b.delivers(session)
				note(b, turn, func(turn *api.Turn) {
					turn.Status.ChangeSets = []api.AcceptedChangeSet{{Ops: 1, Revision: "sha256:x", Ref: &api.ContentRef{Digest: "sha256:" + strings.Repeat("0", 64)}}}
				})
				b.reports(session, api.PromptResult{Outcome: api.OutcomeCompleted})
			},
			wantState: api.TurnFailed,
			wantDetail: "The turn's change sets cannot be combined: read change set 0 of turn t-1: read content sha256:" + strings.Repeat("0", 64) +
				": configmaps \"axiom-content-" + strings.Repeat("0", 40) + "\" not found",
		},
		"the working revision is not what the change sets give": {
			play: func(b *bench, session *api.AgentSession, turn *api.Turn) {
				b.delivers(session)
				b.proposes(turn, rename("end-1", "Finish"))
				note(b, turn, func(turn *api.Turn) { turn.Status.WorkingRevision = "sha256:other" })
				b.reports(session, api.PromptResult{Outcome: api.OutcomeCompleted})
			},
			wantState: api.TurnFailed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			comp, turn, session := draft("triage"), message("t-1", "triage"), agentOf("triage")
			b := newBench(t, comp, turn)
			b.settleDown()
			tc.play(b, session, turn)
			b.settleDown()
			get(b, turn)
			if turn.Status.State != tc.wantState || tc.wantDetail != "" && turn.Status.Detail != tc.wantDetail {
				t.Errorf("turn is %s: %q, want %s: %q", turn.Status.State, turn.Status.Detail, tc.wantState, tc.wantDetail)
			}
			if tc.wantNotices != nil {
				if diff := cmp.Diff(tc.wantNotices, turn.Status.Notices); diff != "" {
					t.Errorf("notices differ (-want +got):\n%s", diff)
				}
			}
			get(b, comp)
			if comp.Status.TurnState != api.TurnStateIdle || comp.Status.Claim != nil {
				t.Errorf("composition is still held: %+v", comp.Status.Claim)
			}
			if apimeta.IsStatusConditionTrue(comp.Status.Conditions, api.ConditionTurnPending) != (tc.wantState == api.TurnAwaitingResolution) {
				t.Errorf("pending turn is %q", comp.Status.PendingTurn)
			}
		})
	}
}

func TestAnAgentThatDoesNotComeUp(t *testing.T) {
	for name, tc := range map[string]struct {
		play       func(b *bench, session *api.AgentSession)
		wantDetail string
	}{
		"not within five minutes": {
			play:       func(b *bench, _ *api.AgentSession) { b.advance(5 * time.Minute) },
			wantDetail: "Could not start the workbench agent: the agent was not ready within 5m0s",
		},
		"because its pod cannot be scheduled": {
			play: func(b *bench, session *api.AgentSession) {
				note(b, podOf(get(b, session)), func(pod *corev1.Pod) {
					pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "no nodes"}}
				})
				b.settleDown()
				b.advance(5 * time.Minute)
			},
			wantDetail: "Could not start the workbench agent: the agent was not ready within 5m0s: the pod cannot be scheduled: no nodes",
		},
		"in three starts": {
			play: func(b *bench, session *api.AgentSession) {
				for range 3 {
					note(b, podOf(get(b, session)), func(pod *corev1.Pod) {
						pod.Status.Phase = corev1.PodFailed
						pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
							Name: "agent", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error"}},
						}}
					})
					b.settleDown()
				}
			},
			wantDetail: "Could not start the workbench agent: container agent ended with exit code 3",
		},
		"although it is ready, since it never takes the prompt": {
			play: func(b *bench, session *api.AgentSession) {
				for range 3 {
					note(b, session, func(s *api.AgentSession) { s.Status.ReadyAttempt = s.Status.Attempt })
					b.loses(session)
					b.settleDown()
				}
			},
			wantDetail: "Could not start the workbench agent: the agent pod was deleted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			turn, session := message("t-1", "triage"), agentOf("triage")
			b := newBench(t, draft("triage"), turn)
			b.settleDown()
			tc.play(b, session)
			b.settleDown()
			get(b, turn)
			if turn.Status.State != api.TurnFailed || turn.Status.Detail != tc.wantDetail {
				t.Errorf("turn is %s: %q, want Failed: %q", turn.Status.State, turn.Status.Detail, tc.wantDetail)
			}
		})
	}
}

func TestWhenNoPodIsPossible(t *testing.T) {
	for name, tc := range map[string]struct {
		how  func(*api.Composition)
		want string
	}{
		"without an agent": {
			how:  func(*api.Composition) {},
			want: "no agent is configured: set `agent.runtime.command` or `agent.runtime.playbookRef` of the composition, or the operator's default runtime",
		},
		"without its template": {
			how:  func(comp *api.Composition) { comp.Spec.Agent.Template = "mine" },
			want: `session template "mine" does not exist`,
		},
		"with a Secret that is not meant for pods": {
			how: func(comp *api.Composition) {
				comp.Spec.Agent.Runtime.Image, comp.Spec.Agent.Runtime.Command = "i", []string{"c"}
				comp.Spec.Agent.ModelSecretRef = &api.LocalRef{Name: "private"}
			},
			want: `secret "private" does not exist or lacks the label axiom.apitomy.io/credential=true`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			turn := message("t-1", "triage")
			b := newBench(t, draft("triage", tc.how), turn, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "private", Namespace: teamA}})
			options := workbenchOptions()
			options.DefaultRuntime = api.RuntimeSpec{}
			b.options = &options
			b.settleDown()
			get(b, turn)
			if want := startFailurePrefix + tc.want; turn.Status.State != api.TurnFailed || turn.Status.Detail != want {
				t.Errorf("turn is %s: %q, want %q", turn.Status.State, turn.Status.Detail, want)
			}
			session := get(b, agentOf("triage"))
			if session.Status.Phase != api.SessionFailed || session.Status.TokenHash != "" {
				t.Errorf("session is %s with token hash %q", session.Status.Phase, session.Status.TokenHash)
			}
		})
	}
}

func TestWhenATurnLooksAgain(t *testing.T) {
	turn, session := message("t-1", "triage"), agentOf("triage")
	b := newBench(t, draft("triage"), turn)
	b.settleDown()
	for _, step := range []struct {
		when string
		play func()
		want time.Duration
	}{
		{"while the agent starts, when it must be up", func() {}, 5 * time.Minute},
		{"a while later, the sooner", func() { b.advance(2 * time.Minute) }, 3 * time.Minute},
		{"while the agent works, at the end of its time", func() { b.delivers(session) }, 29 * time.Minute},
		{"after a short limit was set", func() {
			change(b, draft("triage"), func(comp *api.Composition) {
				comp.Spec.Agent.TurnTimeout = &metav1.Duration{Duration: 10 * time.Minute}
			})
			b.settleDown()
		}, 9 * time.Minute},
		{"once it was asked to stop, when something happens", func() {
			change(b, turn, func(turn *api.Turn) { turn.Spec.Interrupt = true })
			b.settleDown()
		}, 0},
	} {
		step.play()
		if again := reconcileOne(b, b.turns(), turn); again != step.want {
			t.Errorf("%s: in %s, want %s", step.when, again, step.want)
		}
	}
}

func TestAnInterruptBeforeThePromptIsQueued(t *testing.T) {
	comp, turn, session := draft("triage"), message("t-1", "triage"), agentOf("triage")
	b := newBench(t, comp, turn)
	reconcileOne(b, b.compositions(), comp)
	reconcileOne(b, b.turns(), turn) // it works, and its prompt comes with the next look
	change(b, turn, func(turn *api.Turn) { turn.Spec.Interrupt = true })
	reconcileOne(b, b.turns(), turn)
	if get(b, turn); turn.Status.State != api.TurnCompleted {
		t.Errorf("turn is %s: %s", turn.Status.State, turn.Status.Detail)
	}
	if prompt := get(b, session).Status.Prompt; prompt != nil {
		t.Errorf("prompt is %+v", prompt)
	}
}

// The prompt before is with an agent that nobody can reach any more.
func TestATurnDoesNotWaitForEver(t *testing.T) {
	comp, former, session := draft("triage"), message("t-1", "triage"), agentOf("triage")
	b := newBench(t, comp, former)
	b.settleDown()
	b.delivers(session)
	if err := b.client.Delete(b.ctx, former); err != nil {
		t.Fatal(err)
	}
	reconcileOne(b, b.compositions(), comp)
	turn := message("t-2", "triage")
	if err := b.client.Create(b.ctx, turn); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		reconcileOne(b, b.turns(), turn)
	}
	if prompt := get(b, session).Status.Prompt; prompt.ID != "t-1" || !prompt.Cancel {
		t.Fatalf("the former prompt is %+v", prompt)
	}
	if again := reconcileOne(b, b.turns(), turn); again != defaultTurnTimeout+timeoutGrace {
		t.Errorf("it looks again in %s", again)
	}
	b.advance(defaultTurnTimeout + timeoutGrace)
	reconcileOne(b, b.turns(), turn)
	if get(b, turn); turn.Status.State != api.TurnFailed || turn.Status.Detail != detailTimedOut {
		t.Errorf("turn is %s: %q", turn.Status.State, turn.Status.Detail)
	}
}

func TestAStartThatNobodyCouldReportIsNotHeldAgainstTheAgent(t *testing.T) {
	turn := message("t-1", "triage")
	b := newBench(t, draft("triage"), turn)
	b.settleDown()
	b.advance(20 * time.Minute)
	r := b.turns()
	r.since = b.clock.Now().Add(-time.Minute)
	result, err := r.Reconcile(b.ctx, get(b, turn))
	if err != nil || result.RequeueAfter != 4*time.Minute {
		t.Errorf("it looks again in %s (%v)", result.RequeueAfter, err)
	}
}

func TestALongReplyIsTheTurnsToo(t *testing.T) {
	turn, session := message("t-1", "triage"), agentOf("triage")
	b := newBench(t, draft("triage"), turn)
	b.settleDown()
	ref, err := content.Store{Client: b.client}.Put(b.ctx, get(b, session), []byte(strings.Repeat("long ", 2000)))
	if err != nil {
		t.Fatal(err)
	}
	b.reports(session, api.PromptResult{Outcome: api.OutcomeCompleted, ReplyRef: &ref})
	b.settleDown()
	if get(b, turn); turn.Status.ReplyRef == nil || *turn.Status.ReplyRef != ref {
		t.Fatalf("reply is %+v", turn.Status.ReplyRef)
	}
	object := get(b, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: content.Name(ref.Digest), Namespace: teamA}})
	if !isOwnedBy(object, turn.UID) || !isOwnedBy(object, session.UID) {
		t.Errorf("owners are %+v", object.OwnerReferences)
	}
}

func TestALostReplyIsNoFailure(t *testing.T) {
	turn, session := message("t-1", "triage"), agentOf("triage")
	b := newBench(t, draft("triage"), turn)
	b.settleDown()
	b.reports(session, api.PromptResult{Outcome: api.OutcomeCompleted, ReplyRef: &api.ContentRef{Digest: content.Digest([]byte("lost"))}})
	b.settleDown()
	if get(b, turn); turn.Status.State != api.TurnCompleted || turn.Status.ReplyRef != nil {
		t.Errorf("turn is %s, reply %+v", turn.Status.State, turn.Status.ReplyRef)
	}
}

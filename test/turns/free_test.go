package turns

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// helper has alice create a free-standing session.
func (w *world) helper(name string, how ...func(*api.AgentSession)) *api.AgentSession {
	GinkgoHelper()
	session := &api.AgentSession{ObjectMeta: w.meta(name)}
	session.Spec.TemplateRef.Name = "general-assistant"
	for _, f := range how {
		f(session)
	}
	Expect(alice.Create(w.ctx, session)).To(Succeed())
	return session
}

// tells is a turn of a free-standing session, which nobody created yet.
func (w *world) tells(name string, session *api.AgentSession) *api.Turn {
	return &api.Turn{ObjectMeta: w.meta(name), Spec: api.TurnSpec{
		SessionRef: &api.LocalRef{Name: session.Name}, Message: "  What is a run?\n",
	}}
}

// asksHelper has bob create such a turn.
func (w *world) asksHelper(name string, session *api.AgentSession, how ...func(*api.Turn)) *api.Turn {
	GinkgoHelper()
	turn := w.tells(name, session)
	for _, f := range how {
		f(turn)
	}
	Expect(bob.Create(w.ctx, turn)).To(Succeed())
	return turn
}

// text is the stored prompt of a turn that works.
func (w *world) text(turn *api.Turn) string {
	GinkgoHelper()
	w.reaches(turn, api.TurnWorking)
	return w.told(turn)
}

// isFree waits until no turn holds the session.
func (w *world) isFree(session *api.AgentSession) {
	GinkgoHelper()
	sees(w, session, func(g Gomega, session *api.AgentSession) { g.Expect(session.Status.CurrentTurn).To(BeEmpty()) })
}

var stopSession = client.RawPatch(types.MergePatchType, []byte(`{"spec":{"stopped":true}}`))

var _ = Describe("A free-standing session", func() {
	var w *world

	BeforeEach(func() { w = newWorld() })

	It("has a pod at once, and no capabilities", func() {
		w.operate()
		session := w.helper("helper")
		w.pod(session, 1)
		Expect(session.Status.Phase).To(Equal(api.SessionStarting))
		Expect(session.Status.Capabilities).To(Equal([]string{}))
		w.notes(session, func(status *api.AgentSessionStatus) { status.ReadyAttempt = 1 })
		sees(w, session, func(g Gomega, session *api.AgentSession) {
			g.Expect(session.Status.Phase).To(Equal(api.SessionReady))
			g.Expect(isTrue(session.Status.Conditions, "Ready")).To(BeTrue())
		})
		w.advance(30*time.Minute, session)
		sees(w, session, func(g Gomega, session *api.AgentSession) {
			g.Expect(session.Status.Phase).To(Equal(api.SessionSuspended))
			g.Expect(session.Status.TokenHash).To(BeEmpty())
		})
		w.touch(session)
		Consistently(func() int32 { return fresh(w, session).Status.Attempt }, "300ms").Should(Equal(int32(1)), "it sleeps until somebody speaks")
	})

	It("waits for a slot like any other", func() {
		w.operate()
		for i := range 3 {
			w.pod(w.helper(fmt.Sprint("helper-", i)), 1)
		}
		fourth := w.helper("fourth")
		sees(w, fourth, func(g Gomega, session *api.AgentSession) {
			g.Expect(reasonOf(session.Status.Conditions, "WithinLimit")).To(Equal("SessionLimit"))
			g.Expect(session.Status.Phase).To(Equal(api.SessionPending))
		})
		Expect(alice.Delete(w.ctx, &api.AgentSession{ObjectMeta: w.meta("helper-1")})).To(Succeed())
		w.pod(fourth, 1)
	})

	It("gives up after three failed starts, and tries again with the next turn", func() {
		w.operate()
		session := w.helper("helper")
		for attempt := int32(1); attempt <= 3; attempt++ {
			w.fails(w.pod(session, attempt))
		}
		sees(w, session, func(g Gomega, session *api.AgentSession) {
			g.Expect(session.Status.Phase).To(Equal(api.SessionFailed))
			g.Expect(session.Status.LastFailure).To(Equal("container agent ended with exit code 7"))
		})
		turn := w.asksHelper("t-1", session)
		w.works(turn, session)
		w.reaches(turn, api.TurnCompleted)
		Expect(fresh(w, session).Status.Attempt).To(Equal(int32(4)))
	})

	It("says why it has no pod when none is possible", func() {
		w.operate()
		session := w.helper("helper", func(s *api.AgentSession) { s.Spec.TemplateRef.Name = "mine" })
		sees(w, session, func(g Gomega, session *api.AgentSession) {
			g.Expect(session.Status.Phase).To(Equal(api.SessionFailed))
			g.Expect(session.Status.LastFailure).To(Equal(`session template "mine" does not exist`))
		})
	})

	It("answers turns with their message alone, one after the other", func() {
		w.operate()
		session := w.helper("helper")
		turn := w.asksHelper("t-1", session)
		Expect(w.text(turn)).To(Equal("  What is a run?\n"))
		w.takes(session)
		Expect(session.Status.CurrentTurn).To(Equal("t-1"))
		Expect(session.Status.Phase).To(Or(Equal(api.SessionWorking), Equal(api.SessionReady), Equal(api.SessionStarting)))

		err := bob.Create(w.ctx, w.tells("t-2", session))
		Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring("An AI turn is already running: t-1")))

		usage := &api.Usage{InputTokens: 7, CostUSD: "0.01"}
		w.ends(session, api.PromptResult{Outcome: api.OutcomeCompleted, Reply: "An execution.", Usage: usage})
		w.reaches(turn, api.TurnCompleted)
		Expect(turn.Status.Reply).To(Equal("An execution."))
		Expect(turn.Status.Usage).To(Equal(usage))
		Expect(isTrue(turn.Status.Conditions, "Ready")).To(BeTrue())
		Expect(turn.OwnerReferences).To(HaveLen(1))
		Expect(turn.OwnerReferences[0].UID).To(Equal(session.UID))

		// Whoever saw the end may go on at once.
		next := w.asksHelper("t-2", session, func(turn *api.Turn) { turn.Spec.NewConversation = true })
		w.hasPrompt(session, next)
		Expect(session.Status.Prompt.NewConversation).To(BeTrue())
		Expect(session.Status.Prompt.Sequence).To(Equal(int64(2)))
		w.works(next, session)
		w.reaches(next, api.TurnCompleted)
		w.isFree(session)
	})

	It("has one turn at a time: of two at once one works and the other is refused", func() {
		session := w.helper("helper")
		both := []*api.Turn{w.asksHelper("t-1", session), w.asksHelper("t-2", session)}
		w.operate()
		Eventually(func(g Gomega) {
			states := []api.TurnPhase{fresh(w, both[0]).Status.State, fresh(w, both[1]).Status.State}
			g.Expect(states).To(ConsistOf(api.TurnWorking, api.TurnRefused))
		}).WithTimeout(patience).Should(Succeed())
		for i, turn := range both {
			if turn.Status.State == api.TurnRefused {
				Expect(turn.Status.Detail).To(Equal("An AI turn is already running: " + both[1-i].Name))
				Expect(turn.Status.StartedAt).To(BeNil())
			}
		}
	})

	It("fails a turn with a notice that says why", func() {
		w.operate()
		session := w.helper("helper")
		turn := w.asksHelper("t-1", session)
		w.reaches(turn, api.TurnWorking)
		w.takes(session)
		w.ends(session, api.PromptResult{Outcome: api.OutcomeFailed, Detail: "The agent stopped: refusal"})
		w.reaches(turn, api.TurnFailed)
		Expect(turn.Status.Notices).To(Equal([]string{"The AI turn ended with an error: The agent stopped: refusal"}))
		w.isFree(session)
	})

	It("is about its subject, which the first prompt of a conversation tells", func() {
		comp := w.compose("triage", func(comp *api.Composition) { comp.Spec.Goal = "Triage new issues" })
		w.operate()
		w.rests(comp, "")
		session := w.helper("helper", func(s *api.AgentSession) {
			s.Spec.TemplateRef.Name = "subject-assistant"
			s.Spec.Subject = &api.Subject{Kind: "Composition", Name: comp.Name}
		})
		first := w.asksHelper("t-1", session)
		Expect(w.text(first)).To(And(
			HavePrefix("[Subject]\napiVersion: axiom.apitomy.io/v1alpha1\nkind: Composition\n"),
			ContainSubstring("\n  goal: Triage new issues\n"),
			ContainSubstring("\n  workflowRevision: "+comp.Status.WorkflowRevision),
			Not(ContainSubstring("managedFields")),
			HaveSuffix("[End of subject]\n\n  What is a run?\n"),
		))
		w.works(first, session)
		w.reaches(first, api.TurnCompleted)
		second := w.asksHelper("t-2", session)
		Expect(w.text(second)).To(Equal("  What is a run?\n"))
		w.works(second, session)
		w.reaches(second, api.TurnCompleted)
		third := w.asksHelper("t-3", session, func(turn *api.Turn) { turn.Spec.NewConversation = true })
		Expect(w.text(third)).To(HavePrefix("[Subject]\n"))
	})

	It("refuses a turn when its subject is gone", func() {
		w.operate()
		session := w.helper("helper", func(s *api.AgentSession) { s.Spec.Subject = &api.Subject{Kind: "Tool", Name: "none"} })
		turn := w.asksHelper("t-1", session)
		w.reaches(turn, api.TurnRefused)
		Expect(turn.Status.Detail).To(Equal(`the session's subject Tool "none" does not exist`))
		w.isFree(session)
	})

	It("is free again when its turn is deleted", func() {
		w.operate()
		session := w.helper("helper")
		turn := w.asksHelper("t-1", session)
		w.reaches(turn, api.TurnWorking)
		w.takes(session)
		Expect(alice.Delete(w.ctx, turn)).To(Succeed())
		sees(w, session, func(g Gomega, session *api.AgentSession) {
			g.Expect(session.Status.CurrentTurn).To(BeEmpty())
			g.Expect(session.Status.Prompt.Cancel).To(BeTrue())
		})
		// The next turn waits until the agent has let go of the deleted one's prompt.
		next := w.asksHelper("t-2", session)
		w.reaches(next, api.TurnWorking)
		Expect(fresh(w, session).Status.Prompt.ID).To(Equal("t-1"))
		w.ends(session, api.PromptResult{Outcome: api.OutcomeInterrupted})
		w.works(next, session)
		w.reaches(next, api.TurnCompleted)
	})

	It("refuses turns once it is gone, and fails the one that works", func() {
		session := w.helper("helper")
		pending := w.asksHelper("t-1", session)
		Expect(alice.Delete(w.ctx, session)).To(Succeed())
		w.operate()
		w.reaches(pending, api.TurnRefused)
		Expect(pending.Status.Detail).To(Equal(`free-standing agent session "helper" does not exist`))

		other := w.helper("other")
		working := w.asksHelper("t-2", other)
		w.reaches(working, api.TurnWorking)
		Expect(alice.Delete(w.ctx, other)).To(Succeed())
		w.touch(working)
		w.reaches(working, api.TurnFailed)
		Expect(working.Status.Detail).To(Equal("The agent session is gone"))

		err := bob.Create(w.ctx, w.tells("t-3", other))
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
	})

	It("keeps its journal when it is stopped, but neither pod nor token", func() {
		w.operate()
		session := w.helper("helper")
		pod := w.pod(session, 1)
		turn := w.asksHelper("t-1", session)
		w.reaches(turn, api.TurnWorking)
		journal := &corev1.ConfigMap{ObjectMeta: w.meta("helper-journal-1")}
		Expect(gateway.Create(w.ctx, journal)).To(Succeed())
		Expect(alice.Patch(w.ctx, session, stopSession)).To(Succeed())
		w.reaches(turn, api.TurnFailed)
		Expect(turn.Status.Detail).To(Equal("The agent session ended"))
		sees(w, session, func(g Gomega, session *api.AgentSession) {
			g.Expect(session.Status.Phase).To(Equal(api.SessionStopped))
			g.Expect(session.Status.TokenHash).To(BeEmpty())
			g.Expect(session.Status.CurrentTurn).To(BeEmpty())
		})
		Expect(w.isGone(pod)).To(BeTrue())
		Expect(w.isGone(&corev1.Secret{ObjectMeta: w.meta("helper-1")})).To(BeTrue())
		fresh(w, journal)
		err := bob.Create(w.ctx, w.tells("t-2", session))
		Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
	})

	It("has nothing to undo in its turns", func() {
		w.operate()
		session := w.helper("helper")
		turn := w.asksHelper("t-1", session)
		w.reaches(turn, api.TurnWorking)
		err := w.undoes(bob, turn)
		Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring("Wait for the AI turn to finish before undoing")))
		w.works(turn, session)
		w.reaches(turn, api.TurnCompleted)
		err = w.undoes(bob, turn)
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
	})
})

package turns

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

const (
	retryPrompt = "Your workflow changes from the last turn could not be applied because the user changed the workflow while you were working. " +
		"Call get_composition to see the current workflow, then resubmit the workflow changes that still make sense."
	secondStale = "The workflow changed again before my changes could be applied, so I stopped. Ask me to try again when you are ready."
)

var _ = Describe("A stale turn", func() {
	var (
		w       *world
		comp    *api.Composition
		session *api.AgentSession
	)

	BeforeEach(func() {
		w = newWorld()
		comp = w.compose("triage")
		session = w.session(comp)
		w.operate()
	})

	// outdated has a turn's result meet an edit, and be accepted.
	outdated := func(turn *api.Turn, name, edit string) {
		GinkgoHelper()
		w.works(turn, session, name)
		w.reaches(turn, api.TurnAwaitingResolution)
		w.rests(comp, turn.Name)
		w.edits(alice, comp, "start-1", edit)
		w.rests(fresh(w, comp), turn.Name)
		Expect(w.decides(turn, api.ResolutionAccepted)).To(Succeed())
		w.reaches(turn, api.TurnStale)
	}

	It("workbench 17: Stale → one retry with the fixed prompt; its Stale → the notice, no third prompt; Stale while a turn runs → the notice", func() {
		first := w.asks("t-1", comp)
		outdated(first, "First", "Edit 1")
		sees(w, first, func(g Gomega, turn *api.Turn) { g.Expect(turn.Status.Retry).To(Equal("t-1-retry")) })
		retry := fresh(w, w.turn("t-1-retry", comp))
		Expect(retry.Spec.Message).To(Equal(retryPrompt))
		Expect(retry.Spec.RetryOf).To(Equal("t-1"))
		Expect(retry.Annotations).To(HaveKeyWithValue(api.AnnotationRequestedBy, "bob"))
		w.reaches(retry, api.TurnWorking)
		Expect(w.told(retry)).To(HaveSuffix("\n\n" + retryPrompt))

		outdated(retry, "Second", "Edit 2")
		sees(w, retry, func(g Gomega, turn *api.Turn) { g.Expect(turn.Status.Notices).To(Equal([]string{secondStale})) })
		w.rests(fresh(w, comp), "")
		w.hears(comp, "AgentNotice", secondStale)
		list := &api.TurnList{}
		Expect(admin.List(w.ctx, list, inNamespace(w))).To(Succeed())
		Expect(list.Items).To(HaveLen(2))

		By("while another runs")
		third := w.asks("t-3", comp)
		w.works(third, session, "Third")
		w.reaches(third, api.TurnAwaitingResolution)
		w.rests(comp, "t-3")
		running := w.asks("t-4", comp)
		w.reaches(running, api.TurnWorking)
		Expect(w.decides(third, api.ResolutionStale)).To(Succeed())
		sees(w, third, func(g Gomega, turn *api.Turn) {
			g.Expect(turn.Status.State).To(Equal(api.TurnStale))
			g.Expect(turn.Status.Notices).To(Equal([]string{secondStale}))
		})
		Expect(third.Status.Retry).To(BeEmpty())
	})
})

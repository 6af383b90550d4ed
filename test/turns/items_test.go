package turns

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/turns"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// onStaged has the composition keep its agent's items in the turn.
func onStaged(comp *api.Composition) { comp.Spec.Agent.ItemPolicy = api.ItemStaged }

// onAutomatic has the operator accept by itself.
func onAutomatic(comp *api.Composition) { comp.Spec.Agent.ChangeSetPolicy = api.ChangeSetAutomatic }

var _ = Describe("The items of a turn", func() {
	var (
		w       *world
		comp    *api.Composition
		session *api.AgentSession
		turn    *api.Turn
	)

	// begin has a turn work on a composition with the tools a and b.
	begin := func(how ...func(*api.Composition)) {
		GinkgoHelper()
		comp = w.compose("triage", append(how, withTools("a", "0", "b", "0"))...)
		session = w.session(comp)
		turn = w.asks("t-1", comp)
		w.reaches(turn, api.TurnWorking)
		w.takes(session)
	}

	BeforeEach(func() {
		w = newWorld()
		w.operate()
	})

	It("are live at once, and the agent's work", func() {
		begin()
		w.upserts(turn, toolItem("a"), toolOf("a", "1"))
		w.upserts(turn, toolItem("n"), toolOf("n", "1"))
		w.upserts(turn, toolItem("b"), nil)
		w.upserts(turn, toolItem("n"), toolOf("n", "2"))
		sees(w, comp, func(g Gomega, comp *api.Composition) {
			g.Expect(scripts(comp)).To(Equal("a=1 n=2"))
			for _, name := range []string{"a", "n"} {
				g.Expect(comp.Status.Items).To(ContainElement(And(
					HaveField("Name", name), HaveField("LastAuthor", api.AuthorAI), HaveField("LastTurn", "t-1"),
				)))
			}
		})
		w.ends(session, api.PromptResult{Outcome: api.OutcomeCompleted})
		w.reaches(turn, api.TurnCompleted)
		w.rests(fresh(w, comp), "")
		Expect(w.history(comp)).To(Equal([]entry{
			{1, "workflow/triage", "user alice"},
			{1, "tool/a", "user alice"},
			{1, "tool/b", "user alice"},
			{2, "tool/a", "ai t-1 bob"},
			{3, "tool/n", "ai t-1 bob"},
			{4, "tool/b", "ai t-1 bob"},
			{5, "tool/n", "ai t-1 bob"},
		}))
		Expect(turn.Status.ItemWrites).To(HaveLen(3))
	})

	It("that the gateway left half done are finished with the turn", func() {
		begin()
		w.writes(turn, toolItem("a"), toolOf("a", "1"), func(step int) bool { return step == 1 })
		w.writes(turn, toolItem("b"), toolOf("b", "1"), func(step int) bool { return step == 2 })
		Expect(scripts(fresh(w, comp))).To(Equal("a=0 b=1"))
		w.ends(session, api.PromptResult{Outcome: api.OutcomeCompleted})
		w.reaches(turn, api.TurnCompleted)
		w.rests(fresh(w, comp), "")
		Expect(scripts(comp)).To(Equal("a=1 b=1"))
		Expect(turns.Unsettled(&turn.Status)).To(BeEmpty())
		Expect(turn.Status.ItemWrites).To(HaveLen(2))
		Expect(w.history(comp)).To(ContainElements(entry{comp.Generation - 1, "tool/b", "ai t-1 bob"}, entry{comp.Generation, "tool/a", "ai t-1 bob"}))
	})

	It("that wait go into the draft with the workflow, or not at all", func() {
		begin(onStaged)
		w.upserts(turn, toolItem("a"), toolOf("a", "1"))
		w.upserts(turn, toolItem("n"), toolOf("n", "1"))
		w.upserts(turn, toolItem("b"), nil)
		w.proposes(turn, renameTo("end-1", "Result"))
		Expect(fresh(w, comp).Generation).To(Equal(int64(1)))
		w.ends(session, api.PromptResult{Outcome: api.OutcomeCompleted})
		w.reaches(turn, api.TurnAwaitingResolution)
		w.rests(fresh(w, comp), "t-1")

		Expect(w.decides(turn, api.ResolutionAccepted)).To(Succeed())
		w.reaches(turn, api.TurnApplied)
		w.rests(fresh(w, comp), "")
		Expect(comp.Generation).To(Equal(int64(2)), "one update")
		Expect(scripts(comp)).To(Equal("a=1 n=1"))
		Expect(nodeName(comp, "end-1")).To(Equal("Result"))
		Expect(w.history(comp)[3:]).To(ConsistOf(
			entry{2, "workflow/triage", "ai t-1 bob"}, entry{2, "tool/a", "ai t-1 bob"}, entry{2, "tool/n", "ai t-1 bob"}, entry{2, "tool/b", "ai t-1 bob"},
		))
	})

	It("that wait for a draft which somebody edited are stale as a whole", func() {
		begin(onStaged)
		w.upserts(turn, toolItem("a"), toolOf("a", "1"))
		w.proposes(turn, renameTo("end-1", "Result"))
		w.ends(session, api.PromptResult{Outcome: api.OutcomeCompleted})
		w.reaches(turn, api.TurnAwaitingResolution)
		w.changes(alice, comp, func(comp *api.Composition) { comp.Spec.Tools[0].ScriptTemplate = "9" })
		w.rests(fresh(w, comp), "t-1")
		Expect(w.decides(turn, api.ResolutionAccepted)).To(Succeed())
		w.reaches(turn, api.TurnStale)
		Expect(turn.Status.Detail).To(HavePrefix("the live revision of the tool/a is "))
		Expect(scripts(fresh(w, comp))).To(Equal("a=9 b=0"))
		Expect(nodeName(comp, "end-1")).To(Equal("End"))
	})

	It("that wait are applied unasked once all of them are live", func() {
		begin(onStaged)
		w.upserts(turn, toolItem("a"), toolOf("a", "1"))
		w.upserts(turn, toolItem("b"), nil)
		w.ends(session, api.PromptResult{Outcome: api.OutcomeCompleted})
		w.reaches(turn, api.TurnAwaitingResolution)
		w.changes(alice, comp, func(comp *api.Composition) { comp.Spec.Tools[0].ScriptTemplate = "1" })
		w.rests(fresh(w, comp), "t-1")
		Consistently(func() api.TurnPhase { return fresh(w, turn).Status.State }, "300ms").Should(Equal(api.TurnAwaitingResolution))
		w.changes(alice, comp, func(comp *api.Composition) { comp.Spec.Tools = comp.Spec.Tools[:1] })
		w.reaches(turn, api.TurnApplied)
		Expect(reasonOf(turn.Status.Conditions, "Resolved")).To(Equal("Detected"))
	})

	It("may be a first workflow, which waits too where items do", func() {
		begin(onStaged, func(comp *api.Composition) { comp.Spec.Workflow = nil })
		doc := workflow.Blank("triage")
		w.upserts(turn, turns.Item{Type: api.ItemWorkflow, Name: "triage"}, doc)
		Expect(turn.Status.BaseRevision).To(And(Not(BeEmpty()), Equal(turn.Status.WorkingRevision)))
		w.proposes(turn, renameTo("end-1", "Result"))
		w.ends(session, api.PromptResult{Outcome: api.OutcomeCompleted})
		w.reaches(turn, api.TurnAwaitingResolution)
		Expect(fresh(w, comp).Spec.Workflow).To(BeNil())
		Expect(w.decides(turn, api.ResolutionAccepted)).To(Succeed())
		w.reaches(turn, api.TurnApplied)
		Expect(nodeName(fresh(w, comp), "end-1")).To(Equal("Result"))
	})

	It("of an agent that failed are kept, or discarded where they waited", func() {
		const detail = "no more tokens"
		begin()
		w.upserts(turn, toolItem("a"), toolOf("a", "1"))
		w.ends(session, api.PromptResult{Outcome: api.OutcomeFailed, Detail: detail})
		w.reaches(turn, api.TurnFailed)
		Expect(turn.Status.Notices).To(Equal([]string{failed + detail + discarded}))
		Expect(scripts(fresh(w, comp))).To(Equal("a=1 b=0"))

		waiting := w.compose("waiting", onStaged, withTools("a", "0"))
		second := w.asks("t-2", waiting)
		w.reaches(second, api.TurnWorking)
		w.takes(w.session(waiting))
		w.upserts(second, toolItem("a"), toolOf("a", "1"))
		w.ends(w.session(waiting), api.PromptResult{Outcome: api.OutcomeFailed, Detail: detail})
		w.reaches(second, api.TurnFailed)
		w.rests(fresh(w, waiting), "")
		Expect(second.Status.Notices).To(Equal([]string{failed + detail + " All changes from this turn were discarded."}))
		Expect(scripts(waiting)).To(Equal("a=0"))
	})
})

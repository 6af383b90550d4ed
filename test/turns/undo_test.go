package turns

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/edit"
	"github.com/apitomy/axiom-operator/internal/turns"
)

var _ = Describe("Undo", func() {
	var (
		w       *world
		comp    *api.Composition
		session *api.AgentSession
	)

	// wrote has a turn write the tools a and n, and come to a result.
	wrote := func(name string, how ...func(*api.Composition)) *api.Turn {
		GinkgoHelper()
		comp = w.compose("triage", append(how, withTools("a", "0", "b", "0"))...)
		session = w.session(comp)
		turn := w.asks(name, comp)
		w.reaches(turn, api.TurnWorking)
		w.takes(session)
		w.upserts(turn, toolItem("a"), toolOf("a", "1"))
		w.upserts(turn, toolItem("n"), toolOf("n", "1"))
		w.upserts(turn, toolItem("a"), toolOf("a", "2"))
		w.upserts(turn, toolItem("b"), toolOf("b", "1"))
		w.proposes(turn, renameTo("end-1", "Result"))
		w.ends(session, api.PromptResult{Outcome: api.OutcomeCompleted})
		return w.reaches(turn, api.TurnAwaitingResolution)
	}

	BeforeEach(func() {
		w = newWorld()
		w.operate()
	})

	It("workbench 22: restores a changed tool to its first revision, removes a created one, skips one edited later, reports the workflow; 409 while working; 404 when nothing changed", func() {
		turn := wrote("t-1")
		w.edits(alice, comp, "end-1", "Result")
		w.reaches(turn, api.TurnApplied)
		w.changes(alice, comp, func(comp *api.Composition) { comp.Spec.Tools[1].ScriptTemplate = "9" })
		w.rests(fresh(w, comp), "")
		Expect(w.undoes(bob, turn)).To(Succeed())
		w.reaches(turn, api.TurnUndone)
		Expect(turn.Status.Undo).To(HaveValue(Equal(api.UndoReport{
			Restored: []string{"tool/a"}, Removed: []string{"tool/n"}, Skipped: []string{"tool/b"},
			WorkflowBefore: &api.ContentRef{Digest: turn.Status.Base.Digest}, WorkflowRestorable: true,
		})))
		Expect(isTrue(turn.Status.Conditions, "Undone")).To(BeTrue())
		w.rests(fresh(w, comp), "")
		Expect(scripts(comp)).To(Equal("a=0 b=9"))
		Expect(nodeName(comp, "end-1")).To(Equal("Result"))
		Expect(w.history(comp)[len(w.history(comp))-2:]).To(ConsistOf(
			entry{comp.Generation, "tool/a", "user bob"}, entry{comp.Generation, "tool/n", "user bob"},
		))
		w.hears(comp, "TurnUndone", "turn t-1 was undone")

		next := w.asks("t-2", comp)
		w.reaches(next, api.TurnWorking)
		err := w.undoes(bob, next.DeepCopy())
		Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring("Wait for the AI turn to finish before undoing")))
		w.works(next, session)
		w.reaches(next, api.TurnCompleted)
		err = w.undoes(bob, next)
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
	})

	It("is a conflict, and no refusal, on a version whose items are gone by now", func() {
		comp = w.compose("triage", withTools("a", "0", "b", "0"))
		turn := w.asks("t-1", comp)
		w.reaches(turn, api.TurnWorking)
		before := fresh(w, comp).DeepCopy()
		w.changes(alice, comp, func(comp *api.Composition) { comp.Spec.Tools = nil })
		operator, err := env.Client(env.Operator)
		Expect(err).NotTo(HaveOccurred())
		write := func(comp *api.Composition, value any) error {
			return edit.Write(w.ctx, operator, comp, turns.Edits{Mark: turns.MarkUndo(turn), By: "bob", Items: []turns.Edit{{Item: toolItem("b"), Value: value}}})
		}
		Expect(write(before, nil)).To(Satisfy(apierrors.IsConflict))
		onLive := func(value any) func() error { return func() error { return write(fresh(w, comp), value) } }
		Eventually(onLive(map[string]any{"name": "B"})).Should(Satisfy(apierrors.IsInvalid))
		Eventually(onLive(map[string]any{"name": "b", "description": "B", "scriptTemplate": "1"})).Should(Succeed())
	})

	It("workbench 23: restores the workflow after Accepted, only reports it after a client's Applied; an undone undo is an edit", func() {
		turn := wrote("t-1")
		Expect(w.decides(turn, api.ResolutionAccepted)).To(Succeed())
		w.reaches(turn, api.TurnApplied)
		w.rests(fresh(w, comp), "")
		manifest := fresh(w, comp).DeepCopy()
		Expect(w.undoes(bob, turn)).To(Succeed())
		w.reaches(turn, api.TurnUndone)
		Expect(turn.Status.Undo.WorkflowRestored).To(BeTrue())
		w.rests(fresh(w, comp), "")
		Expect(nodeName(comp, "end-1")).To(Equal("End"))
		Expect(scripts(comp)).To(Equal("a=0 b=0"))
		Expect(comp.Status.WorkflowRevision).To(Equal(turn.Status.BaseRevision))

		By("undoing the undo")
		w.changes(alice, comp, func(comp *api.Composition) { comp.Spec = manifest.Spec })
		w.rests(fresh(w, comp), "")
		Expect(nodeName(comp, "end-1")).To(Equal("Result"))
		Expect(w.history(comp)).To(ContainElements(
			entry{comp.Generation, "workflow/triage", "user alice"}, entry{comp.Generation, "tool/a", "user alice"}, entry{comp.Generation, "tool/n", "user alice"},
		))
		Expect(fresh(w, turn).Status.State).To(Equal(api.TurnUndone))
		next := w.asks("t-2", comp)
		w.reaches(next, api.TurnWorking)
		text, err := content.Store{Client: gateway}.Get(w.ctx, w.namespace, next.Status.Prompt.Digest)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).To(ContainSubstring("- tool 'n': edited by the user\n"))
		w.works(next, session, "Client")
		w.reaches(next, api.TurnAwaitingResolution)

		By("undoing what a client applied")
		w.edits(alice, comp, "end-1", "Client")
		w.reaches(next, api.TurnApplied)
		w.rests(fresh(w, comp), "")
		generation := comp.Generation
		Expect(w.undoes(bob, next)).To(Succeed())
		w.reaches(next, api.TurnUndone)
		Expect(next.Status.Undo).To(HaveValue(Equal(api.UndoReport{
			WorkflowBefore: &api.ContentRef{Digest: next.Status.Base.Digest}, WorkflowRestorable: true,
		})))
		Expect(fresh(w, comp).Generation).To(Equal(generation))
	})

	It("drops a result that waits, and frees the composition", func() {
		turn := wrote("t-1")
		Expect(w.undoes(bob, turn)).To(Succeed())
		w.reaches(turn, api.TurnUndone)
		w.rests(fresh(w, comp), "")
		Expect(turn.Status.ChangeSet).To(BeNil())
		Expect(scripts(comp)).To(Equal("a=0 b=0"))
		Expect(nodeName(comp, "end-1")).To(Equal("End"))
		w.edits(alice, comp, "end-1", "Result")
		w.rests(fresh(w, comp), "")
		Expect(w.history(comp)).To(ContainElement(entry{comp.Generation, "workflow/triage", "user alice"}))
	})

	It("restores all revisions right after the operator applied a turn, the workflow's too where it accepts by itself", func() {
		for _, how := range [][]func(*api.Composition){{onAutomatic}, {onStaged, onAutomatic}} {
			w = newWorld()
			w.operate()
			comp = w.compose("triage", append(how, withTools("a", "0", "b", "0"))...)
			session = w.session(comp)
			w.rests(comp, "")
			before := comp.Status.Items
			turn := w.asks("t-1", comp)
			w.reaches(turn, api.TurnWorking)
			w.takes(session)
			w.upserts(turn, toolItem("a"), nil)
			w.upserts(turn, toolItem("n"), toolOf("n", "1"))
			w.proposes(turn, renameTo("end-1", "Result"))
			w.ends(session, api.PromptResult{Outcome: api.OutcomeCompleted})
			w.reaches(turn, api.TurnApplied)
			w.rests(fresh(w, comp), "")
			Expect(nodeName(comp, "end-1")).To(Equal("Result"))
			Expect(w.undoes(bob, turn)).To(Succeed())
			w.reaches(turn, api.TurnUndone)
			w.rests(fresh(w, comp), "")
			Expect(comp.Status.Items).To(HaveLen(len(before)))
			for _, item := range before {
				Expect(comp.Status.Items).To(ContainElement(And(
					HaveField("Name", item.Name), HaveField("ContentRevision", item.ContentRevision), HaveField("LastAuthor", api.AuthorUser),
				)))
			}
		}
	})
})

var _ = Describe("A turn", func() {
	It("workbench 24: without update on the composition: no accept, no undo, no Direct turn (403)", func() {
		w := newWorld()
		w.operate()
		comp := w.compose("triage", onStaged)
		turn := w.turn("t-1", comp)
		Expect(carol.Create(w.ctx, turn)).To(Succeed())
		w.works(turn, w.session(comp), "Result")
		w.reaches(turn, api.TurnAwaitingResolution)
		w.rests(comp, "t-1")
		accept := func(who person) error { return w.resolves(who, turn.DeepCopy(), api.ResolutionAccepted) }
		Expect(apierrors.IsForbidden(accept(carol))).To(BeTrue())
		Expect(accept(bob)).To(Succeed())
		w.reaches(turn, api.TurnApplied)
		Expect(apierrors.IsForbidden(w.undoes(carol, turn.DeepCopy()))).To(BeTrue())
		Expect(w.undoes(bob, turn)).To(Succeed())
		w.reaches(turn, api.TurnUndone)

		for name, how := range map[string]func(*api.Composition){
			"direct": func(*api.Composition) {}, "automatic": func(comp *api.Composition) { onStaged(comp); onAutomatic(comp) },
		} {
			other := w.compose(name, how)
			Expect(apierrors.IsForbidden(carol.Create(w.ctx, w.turn("by-carol-"+name, other)))).To(BeTrue(), name)
			Expect(bob.Create(w.ctx, w.turn("by-bob-"+name, other))).To(Succeed())
		}
	})
})

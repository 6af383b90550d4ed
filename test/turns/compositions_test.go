package turns

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

var _ = Describe("A composition", func() {
	var w *world

	BeforeEach(func() {
		w = newWorld()
		w.operate()
	})

	It("workbench 5: is idle when it is fresh, no current or pending turn, all conditions with observedGeneration", func() {
		comp := w.compose("triage")
		w.rests(comp, "")
		for _, kind := range []string{"Ready", "Valid", "AgentReady", "TurnPending", "Reconciled"} {
			Expect(comp.Status.Conditions).To(ContainElement(And(
				HaveField("Type", kind), HaveField("ObservedGeneration", comp.Generation), HaveField("Reason", Not(BeEmpty())),
			)), kind)
		}
		Expect(comp.Status.Conditions).To(HaveLen(5))
		Expect(isTrue(comp.Status.Conditions, "Ready")).To(BeTrue())
		Expect(reasonOf(comp.Status.Conditions, "AgentReady")).To(Equal("NoSession"))
		Expect(comp.Status.Items).To(ConsistOf(And(
			HaveField("Type", api.ItemWorkflow), HaveField("Name", "triage"), HaveField("Valid", true), HaveField("LastAuthor", api.AuthorUser),
		)))
		out, err := alice.kubectl.Run(w.ctx, "", "get", "comp", "-n", w.namespace)
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(MatchRegexp(`NAME +VALID +TURN +PENDING +REVISION +AGE\ntriage +True +idle +sha256:[0-9a-f]{64} `))
	})

	It("is healthy while its draft is invalid", func() {
		comp := w.compose("triage", func(comp *api.Composition) { comp.Spec.Workflow = &runtime.RawExtension{Raw: []byte(`{"nodes":[]}`)} })
		w.rests(comp, "")
		Expect(reasonOf(comp.Status.Conditions, "Valid")).To(Equal("Problems"))
		Expect(isTrue(comp.Status.Conditions, "Reconciled")).To(BeTrue())
		Expect(comp.Status.Items[0].Problems).NotTo(BeEmpty())
	})

	It("is healthy without a workflow", func() {
		comp := w.compose("triage", func(comp *api.Composition) { comp.Spec.Workflow = nil })
		w.rests(comp, "")
		Expect(reasonOf(comp.Status.Conditions, "Valid")).To(Equal("NoWorkflow"))
		Expect(comp.Status.WorkflowRevision).To(BeEmpty())
	})

	It("remembers who edited what, whatever annotations they send", func() {
		comp := w.compose("triage")
		w.rests(comp, "")
		w.changes(bob, comp, func(comp *api.Composition) { // layout only
			doc := workflow.Blank("triage")
			doc["nodes"].([]any)[0].(map[string]any)["position"] = map[string]any{"x": 7}
			comp.Spec.Workflow = rawOf(doc)
		})
		w.rests(fresh(w, comp), "")
		w.changes(bob, comp, func(comp *api.Composition) {
			comp.Spec.Tools = []api.NamedTool{{Name: "find-logs", ToolSpec: api.ToolSpec{Description: "Finds logs", ScriptTemplate: "echo hi"}}}
			comp.Annotations[api.AnnotationEditedBy] = "somebody else"
		})
		w.rests(fresh(w, comp), "")
		w.changes(alice, comp, func(comp *api.Composition) { comp.Spec.Tools = nil })
		w.rests(fresh(w, comp), "")
		Expect(w.history(comp)).To(Equal([]entry{
			{1, "workflow/triage", "user alice"}, {3, "tool/find-logs", "user bob"}, {4, "tool/find-logs", "user alice"},
		}))
	})

	It("workbench 3: attributes an edit to the turn that it names anew, and not a later one that keeps the name; 422 for an unknown turn", func() {
		comp := w.compose("triage")
		turn := w.asks("t-1", comp)
		w.works(turn, w.session(comp))
		w.reaches(turn, api.TurnCompleted)
		w.rests(fresh(w, comp), "")

		w.changes(bob, comp, func(comp *api.Composition) {
			comp.Spec.Tools = []api.NamedTool{{Name: "a"}}
			comp.Annotations[api.AnnotationTurn] = "t-1"
		})
		w.rests(fresh(w, comp), "")
		w.changes(bob, comp, func(comp *api.Composition) { comp.Spec.Tools = []api.NamedTool{{Name: "a"}, {Name: "b"}} })
		w.rests(fresh(w, comp), "")
		Expect(w.history(comp)).To(Equal([]entry{
			{1, "workflow/triage", "user alice"}, {2, "tool/a", "ai t-1 bob"}, {3, "tool/b", "user bob"},
		}))
		fresh(w, comp)
		Expect(comp.Status.Items).To(ContainElements(
			And(HaveField("Name", "a"), HaveField("LastAuthor", api.AuthorAI), HaveField("LastTurn", "t-1")),
			And(HaveField("Name", "b"), HaveField("LastAuthor", api.AuthorUser), HaveField("LastTurn", "")),
		))
		comp.Annotations[api.AnnotationTurn] = "nobody"
		Expect(apierrors.IsInvalid(bob.Update(w.ctx, comp))).To(BeTrue())
	})

	It("workbench 7: keeps as much history as it shall, and the snapshots that a run pins", func() {
		comp := w.compose("triage", func(comp *api.Composition) { comp.Spec.RevisionHistoryLimit = 2 })
		w.rests(comp, "")
		pinned := comp.Status.Snapshot
		run := &api.WorkflowRun{ObjectMeta: w.meta("run-1")}
		run.Spec.CompositionRef.Name = "triage"
		Expect(alice.Create(w.ctx, run)).To(Succeed())
		run.Status.Definition = &api.RunDefinition{Snapshot: pinned}
		Expect(gateway.Status().Update(w.ctx, run)).To(Succeed())
		for i := range 4 {
			w.edits(alice, comp, "end-1", fmt.Sprint("Edit ", i))
			w.rests(fresh(w, comp), "")
		}
		Eventually(func(g Gomega) {
			list := &appsv1.ControllerRevisionList{}
			g.Expect(admin.List(w.ctx, list, client.InNamespace(w.namespace))).To(Succeed())
			var generations []int64
			for _, object := range list.Items {
				generations = append(generations, object.Revision)
			}
			g.Expect(generations).To(ConsistOf(int64(1), int64(4), int64(5)))
		}).WithTimeout(patience).Should(Succeed())
	})
})

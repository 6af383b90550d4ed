package turns

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/turns"
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

	It("workbench 6: names the figure when it is too large, and is healthy while its draft is invalid", func() {
		for reason, grow := range map[string]func(*api.Composition){
			"524288": func(comp *api.Composition) {
				comp.Spec.Workflow = rawOf(map[string]any{"id": strings.Repeat("x", 512<<10)})
			},
			"1000":   func(comp *api.Composition) { comp.Spec.Workflow = rawOf(map[string]any{"nodes": make([]any, 1001)}) },
			"131072": withTools("big", strings.Repeat("x", 128<<10)),
			"262144": withTools("a", strings.Repeat("x", 100<<10), "b", strings.Repeat("x", 100<<10), "c", strings.Repeat("x", 100<<10)),
			"100": func(comp *api.Composition) {
				for i := range 101 {
					comp.Spec.Tools = append(comp.Spec.Tools, *toolOf(fmt.Sprint("t", i), "0"))
				}
			},
			"52": func(comp *api.Composition) { comp.Name = strings.Repeat("n", 53) },
		} {
			comp := &api.Composition{ObjectMeta: w.meta("large")}
			grow(comp)
			err := alice.Create(w.ctx, comp)
			Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%s: %v", reason, err)
			Expect(err).To(MatchError(ContainSubstring(reason)))
		}

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

	It("workbench 1: keeps unknown keys at every depth through create, patch, apply and accept, and its revision whatever the positions", func() {
		const known = `{"id":"triage","name":"triage","x-flow":{"deep":[{"x":1}]},"nodes":[` +
			`{"id":"start-1","type":"start","name":"Start","x-node":[null,{"y":0.5}],"config":{"inputs":[],"x-config":{"z":"é"}},"position":{"x":1,"y":2}},` +
			`{"id":"end-1","type":"end","name":"End","config":{"x-end":true}}],` +
			`"edges":[{"id":"edge-1","source":"start-1","target":"end-1","priority":0,"isDefault":true,"x-edge":{"n":9007199254740993}}]}`
		comp := w.compose("triage", func(comp *api.Composition) { comp.Spec.Workflow = &runtime.RawExtension{Raw: []byte(known)} })
		keeps := func(step string, changed func(doc map[string]any)) {
			GinkgoHelper()
			want, err := turns.Document(&runtime.RawExtension{Raw: []byte(known)})
			Expect(err).NotTo(HaveOccurred())
			changed(want)
			Expect(documentOf(fresh(w, comp))).To(Equal(want), step)
		}
		same := func(map[string]any) {}
		keeps("create", same)
		w.rests(comp, "")
		revision := comp.Status.WorkflowRevision

		By("a patch of another field, and one of the layout")
		Expect(alice.Patch(w.ctx, comp, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"goal":"Close issues"}}`)))).To(Succeed())
		keeps("patch", same)
		moved := strings.Replace(known, `{"x":1,"y":2}`, `{"x":70}`, 1)
		text := fmt.Sprintf(`{"apiVersion":"axiom.apitomy.io/v1alpha1","kind":"Composition","metadata":{"name":"triage","namespace":%q},"spec":{"workflow":%s}}`, w.namespace, moved)
		out, err := alice.kubectl.Run(w.ctx, text, "apply", "--server-side", "--force-conflicts", "-f", "-")
		Expect(err).NotTo(HaveOccurred(), out)
		move := func(doc map[string]any) {
			doc["nodes"].([]any)[0].(map[string]any)["position"] = map[string]any{"x": int64(70)}
		}
		keeps("apply", move)
		w.rests(comp, "")
		Expect(comp.Status.WorkflowRevision).To(Equal(revision))

		By("a turn that is accepted")
		turn := w.asks("t-1", comp)
		w.works(turn, w.session(comp), "Result")
		w.reaches(turn, api.TurnAwaitingResolution)
		Expect(w.decides(turn, api.ResolutionAccepted)).To(Succeed())
		w.reaches(turn, api.TurnApplied)
		keeps("accept", func(doc map[string]any) {
			move(doc)
			doc["nodes"].([]any)[1].(map[string]any)["name"] = "Result"
		})
	})

	It("workbench 2: has no history of a layout edit, and of others who made them, whatever annotations they send", func() {
		comp := w.compose("triage")
		w.rests(comp, "")
		w.changes(bob, comp, func(comp *api.Composition) { // layout only
			doc := workflow.Blank("triage")
			doc["nodes"].([]any)[0].(map[string]any)["position"] = map[string]any{"x": 7}
			comp.Spec.Workflow = rawOf(doc)
		})
		w.rests(fresh(w, comp), "")
		Expect(w.history(comp)).To(HaveLen(1))
		w.changes(bob, comp, func(comp *api.Composition) {
			comp.Spec.Tools = []api.NamedTool{{Name: "find-logs", ToolSpec: api.ToolSpec{Description: "Finds logs", ScriptTemplate: "echo hi"}}}
			comp.Annotations[api.AnnotationEditedBy] = "somebody else"
		})
		w.rests(fresh(w, comp), "")
		w.changes(alice, comp, func(comp *api.Composition) { comp.Spec.Tools = nil })
		w.rests(fresh(w, comp), "")
		w.edits(bob, comp, "end-1", "Renamed")
		w.rests(fresh(w, comp), "")
		Expect(w.history(comp)).To(Equal([]entry{
			{1, "workflow/triage", "user alice"},
			{3, "tool/find-logs", "user bob"},
			{4, "tool/find-logs", "user alice"},
			{5, "workflow/triage", "user bob"},
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

package turns

import (
	"encoding/json"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/changeset"
)

var _ = Describe("A result", func() {
	var (
		w       *world
		comp    *api.Composition
		session *api.AgentSession
		turn    *api.Turn
	)

	// proposed has a turn come to a result.
	proposed := func(name, endName string) *api.Turn {
		GinkgoHelper()
		turn := w.asks(name, comp)
		w.works(turn, session, endName)
		return turn
	}

	BeforeEach(func() {
		w = newWorld()
		comp = w.compose("triage")
		session = w.session(comp)
		w.operate()
		turn = proposed("t-1", "Result")
		w.reaches(turn, api.TurnAwaitingResolution)
		w.rests(comp, "t-1")
	})

	It("workbench 16: is applied when it is accepted on its base, as the work of the agent for who accepted", func() {
		Expect(w.decides(turn, api.ResolutionAccepted)).To(Succeed())
		w.reaches(turn, api.TurnApplied)
		w.rests(fresh(w, comp), "")
		Expect(comp.Status.WorkflowRevision).To(Equal(turn.Status.ResultRevision))
		Expect(nodeName(comp, "end-1")).To(Equal("Result"))
		Expect(w.history(comp)).To(Equal([]entry{{1, "workflow/triage", "user alice"}, {2, "workflow/triage", "ai t-1 bob"}}))
		Expect(comp.Annotations).To(And(
			HaveKeyWithValue(api.AnnotationTurn, "t-1"), HaveKeyWithValue(api.AnnotationEditedBy, "bob"),
			HaveKeyWithValue(api.AnnotationBaseRevision, turn.Status.ResultRevision),
		))
		Expect(comp.Status.Items[0]).To(And(HaveField("LastAuthor", api.AuthorAI), HaveField("LastTurn", "t-1")))
		Expect(isTrue(turn.Status.Conditions, "Ready")).To(BeTrue())
		w.hears(comp, "TurnApplied", "turn t-1 was applied")
	})

	It("workbench 16: is stale when it is accepted on another base, and the draft stays", func() {
		w.edits(alice, comp, "start-1", "Begin")
		w.rests(fresh(w, comp), "t-1")
		generation := comp.Generation
		Expect(w.decides(turn, api.ResolutionAccepted)).To(Succeed())
		w.reaches(turn, api.TurnStale)
		Expect(fresh(w, comp).Generation).To(Equal(generation))
		Expect(reasonOf(turn.Status.Conditions, "Resolved")).To(Equal("BaseChanged"))
		Expect(turn.Status.Detail).To(And(ContainSubstring(turn.Status.BaseRevision), ContainSubstring(comp.Status.WorkflowRevision)))
		w.hears(comp, "TurnStale", "turn t-1 no longer fits the workflow")
	})

	It("is applied on a base whose layout was edited, and keeps the layout", func() {
		w.changes(alice, comp, func(comp *api.Composition) {
			doc := documentOf(comp)
			doc["nodes"].([]any)[1].(map[string]any)["position"] = map[string]any{"x": int64(7)}
			doc["nodes"].([]any)[1].(map[string]any)["x-mine"] = "kept"
			delete(doc["nodes"].([]any)[1].(map[string]any), "x-mine")
			comp.Spec.Workflow = rawOf(doc)
		})
		w.rests(fresh(w, comp), "t-1")
		Expect(w.decides(turn, api.ResolutionAccepted)).To(Succeed())
		w.reaches(turn, api.TurnApplied)
		node := documentOf(fresh(w, comp))["nodes"].([]any)[1].(map[string]any)
		Expect(node).To(And(HaveKeyWithValue("name", "Result"), HaveKeyWithValue("position", map[string]any{"x": int64(7)})))
	})

	It("changes nothing when it is rejected", func() {
		Expect(w.decides(turn, api.ResolutionRejected)).To(Succeed())
		w.reaches(turn, api.TurnRejected)
		w.rests(fresh(w, comp), "")
		Expect(comp.Generation).To(Equal(int64(1)))
		w.hears(comp, "TurnRejected", "turn t-1 was rejected")
	})

	It("is taken at its word when a client says that it applied it", func() {
		w.edits(alice, comp, "end-1", "Similar")
		Expect(w.decides(turn, api.ResolutionApplied)).To(Succeed())
		w.reaches(turn, api.TurnApplied)
		w.rests(fresh(w, comp), "")
		Expect(reasonOf(turn.Status.Conditions, "Resolved")).To(Equal("Declared"))
	})

	It("workbench 18: is decided on once: Applied clears what is pending, and a decision elsewhere is 409 and changes no other turn", func() {
		Expect(w.decides(turn, api.ResolutionApplied)).To(Succeed())
		w.reaches(turn, api.TurnApplied)
		w.rests(fresh(w, comp), "")
		other := w.asks("t-2", comp)
		w.reaches(other, api.TurnWorking)
		err := w.decides(other.DeepCopy(), api.ResolutionAccepted)
		Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring("Working")))
		Expect(w.decides(turn.DeepCopy(), api.ResolutionAccepted)).NotTo(Succeed())
		Expect(fresh(w, turn).Status.State).To(Equal(api.TurnApplied))
		Expect(fresh(w, other).Status.State).To(Equal(api.TurnWorking))
	})

	It("workbench 19: is applied unasked when kubectl applies it", func() {
		manifest := func(endName string) string {
			doc := documentOf(comp)
			doc["nodes"].([]any)[1].(map[string]any)["name"] = endName
			text, err := json.Marshal(map[string]any{
				"apiVersion": "axiom.apitomy.io/v1alpha1", "kind": "Composition",
				"metadata": map[string]any{"name": "triage", "namespace": w.namespace}, "spec": map[string]any{"workflow": doc},
			})
			Expect(err).NotTo(HaveOccurred())
			return string(text)
		}
		out, err := alice.kubectl.Run(w.ctx, manifest("Something else"), "apply", "-f", "-")
		Expect(err).NotTo(HaveOccurred(), out)
		w.rests(fresh(w, comp), "t-1")
		out, err = alice.kubectl.Run(w.ctx, manifest("Result"), "apply", "-f", "-")
		Expect(err).NotTo(HaveOccurred(), out)
		w.reaches(turn, api.TurnApplied)
		w.rests(fresh(w, comp), "")
		Expect(reasonOf(turn.Status.Conditions, "Resolved")).To(Equal("Detected"))
		// bob asked, so the turn is his, although alice applied it.
		Expect(w.history(comp)).To(ContainElement(entry{comp.Generation, "workflow/triage", "ai t-1 bob"}))
	})

	It("workbench 20: gives way to a newer one, as superseded and without a retry", func() {
		newer := proposed("a-newer", "Newer")
		w.reaches(newer, api.TurnAwaitingResolution)
		w.reaches(turn, api.TurnStale)
		w.rests(comp, "a-newer")
		Expect(reasonOf(turn.Status.Conditions, "Resolved")).To(Equal("Superseded"))
		list := &api.TurnList{}
		Expect(admin.List(w.ctx, list, client.InNamespace(w.namespace))).To(Succeed())
		for _, other := range list.Items {
			Expect(strings.HasSuffix(other.Name, "-retry")).To(BeFalse(), other.Name)
		}
		Expect(w.decides(newer, api.ResolutionAccepted)).To(Succeed())
		w.reaches(newer, api.TurnApplied)
	})

	It("workbench 21: is applied by the operator where the policy says so, and only on its base", func() {
		Expect(w.decides(turn, api.ResolutionRejected)).To(Succeed())
		w.rests(comp, "")
		w.changes(alice, comp, func(comp *api.Composition) { comp.Spec.Agent.ChangeSetPolicy = api.ChangeSetAutomatic })
		w.rests(fresh(w, comp), "")
		auto := proposed("t-2", "Automatic")
		w.reaches(auto, api.TurnApplied)
		w.rests(fresh(w, comp), "")
		Expect(nodeName(comp, "end-1")).To(Equal("Automatic"))
		Expect(w.history(comp)).To(ContainElement(entry{comp.Generation, "workflow/triage", "ai t-2 bob"}))

		late := w.asks("t-3", comp)
		w.reaches(late, api.TurnWorking)
		w.edits(alice, comp, "start-1", "Begin")
		w.works(late, session, "Late")
		w.reaches(late, api.TurnStale)
		Expect(nodeName(fresh(w, comp), "end-1")).To(Equal("Automatic"))
	})

	It("can be walked to with kubectl alone", func() {
		run := func(who person, stdin string, args ...string) string {
			GinkgoHelper()
			out, err := who.kubectl.Run(w.ctx, stdin, append([]string{"-n", w.namespace}, args...)...)
			Expect(err).NotTo(HaveOccurred(), out)
			return out
		}
		run(bob, "", "patch", "turn", "t-1", "--type", "merge", "-p", `{"spec":{"resolution":"Rejected"}}`)
		w.rests(comp, "")
		run(bob, `{"apiVersion":"axiom.apitomy.io/v1alpha1","kind":"Turn","metadata":{"name":"triage-x7k2p"},
			"spec":{"compositionRef":{"name":"triage"},"message":"Wait an hour before closing.","selection":{"nodes":["end-1"]}}}`, "create", "-f", "-")
		walked := &api.Turn{ObjectMeta: w.meta("triage-x7k2p")}
		w.works(walked, session, "Walked")
		run(bob, "", "wait", "turn/triage-x7k2p", "--for=condition=AgentDone", "--timeout=30s")
		Expect(run(bob, "", "get", "turn", "triage-x7k2p", "-o", "jsonpath={.status.diff}")).To(Equal("changed nodes: end-1"))
		Expect(run(bob, "", "get", "turns")).To(MatchRegexp(`(?m)^NAME +FOR +STATE +OPS +AGE$[\s\S]*^triage-x7k2p +triage +AwaitingResolution +1 `))
		run(bob, "", "patch", "turn", "triage-x7k2p", "--type", "merge", "-p", `{"spec":{"resolution":"Accepted"}}`)
		run(bob, "", "wait", "turn/triage-x7k2p", "--for=condition=Ready", "--timeout=30s")
		Expect(run(bob, "", "get", "comp", "triage", "-o", "jsonpath={.spec.workflow.nodes[1].name}")).To(Equal("Walked"))
	})

	It("has the revision that its change set gives on its base", func() {
		var combined changeset.ChangeSet
		Expect(json.Unmarshal(turn.Status.ChangeSet.Raw, &combined)).To(Succeed())
		result, rejection := changeset.Apply(documentOf(comp), combined.Ops)
		Expect(rejection).To(BeNil())
		Expect(changeset.Revision(result)).To(Equal(turn.Status.ResultRevision))
	})
})

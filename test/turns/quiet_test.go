package turns

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// reconciles are how often each controller has had a look, over all operators
// of the suite.
func reconciles() map[string]float64 {
	GinkgoHelper()
	families, err := metrics.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	counts := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "controller" {
					counts[label.GetValue()] += metric.GetCounter().GetValue()
				}
			}
		}
	}
	return counts
}

// isQuiet makes the controllers look at the objects several times, and wants
// them to write nothing.
func (w *world) isQuiet(objects ...client.Object) {
	GinkgoHelper()
	const looks = 3
	// What is on its way is let through first: nothing was written between two looks.
	Eventually(func(g Gomega) {
		before := len(w.traffic.seen())
		w.look(g, objects)
		g.Expect(w.traffic.seen()).To(HaveLen(before))
	}).WithTimeout(patience).Should(Succeed())
	before := w.traffic.seen()
	for range looks {
		w.look(Default, objects)
	}
	Expect(w.traffic.seen()[len(before):]).To(BeEmpty(), "writes although nothing changed")
}

// look touches the objects and waits until each controller has had a look.
func (w *world) look(g Gomega, objects []client.Object) {
	before := reconciles()
	for _, object := range objects {
		w.touch(object)
	}
	g.Eventually(func(g Gomega) {
		now := reconciles()
		for _, controller := range []string{"composition", "turn", "agentsession"} {
			g.Expect(now[controller]).To(BeNumerically(">", before[controller]), controller)
		}
	}).WithTimeout(patience).Should(Succeed())
}

var _ = Describe("The operator", func() {
	It("writes nothing when nothing changed", func() {
		w := newWorld()
		comp := w.compose("triage")
		session := w.session(comp)
		w.operate()
		turn := w.asks("t-1", comp)
		w.reaches(turn, api.TurnWorking)
		all := []client.Object{comp, turn, session}

		By("while the agent starts")
		w.pod(session, 1)
		w.isQuiet(all...)
		By("while it works")
		w.takes(session)
		w.proposes(turn, renameTo("end-1", "Result"))
		w.isQuiet(all...)
		By("while a person decides")
		w.ends(session, api.PromptResult{Outcome: api.OutcomeCompleted})
		w.reaches(turn, api.TurnAwaitingResolution)
		w.rests(comp, "t-1")
		w.isQuiet(all...)
		By("after it was applied")
		Expect(w.decides(turn, api.ResolutionAccepted)).To(Succeed())
		w.reaches(turn, api.TurnApplied)
		w.rests(fresh(w, comp), "")
		w.isQuiet(all...)
		By("after an edit of the layout, which has no snapshot")
		w.changes(alice, comp, func(comp *api.Composition) {
			doc := documentOf(comp)
			doc["nodes"].([]any)[0].(map[string]any)["position"] = map[string]any{"x": 1.5}
			comp.Spec.Workflow = rawOf(doc)
		})
		w.rests(fresh(w, comp), "")
		w.isQuiet(all...)
	})

	It("takes up where another stopped, at any time", func() {
		w := newWorld()
		comp := w.compose("triage")
		session := w.session(comp)
		stop := w.operate()
		turn := w.asks("t-1", comp)
		w.reaches(turn, api.TurnWorking)
		w.takes(session)
		stop()
		w.proposes(turn, renameTo("end-1", "Result")) // while no controller runs
		w.ends(session, api.PromptResult{Outcome: api.OutcomeCompleted})
		stop = w.operate()
		w.reaches(turn, api.TurnAwaitingResolution)
		w.rests(comp, "t-1")
		stop()
		Expect(w.decides(turn, api.ResolutionAccepted)).To(Succeed())
		w.operate()
		w.reaches(turn, api.TurnApplied)
		Expect(fresh(w, session).Status.Attempt).To(Equal(int32(1)))
	})
})

package events

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	dto "github.com/prometheus/client_model/go"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// numbered waits for an event whose payload has its number.
const numbered = `
id: numbered
name: Numbered
nodes:
- {id: start, type: start, name: Start, config: {inputs: [{name: "n", required: true}]}}
- id: told
  type: receive-event
  name: Told
  config: {eventType: told, correlationKey: {subscriptionKey: context.n, eventKey: event.payload.number}}
- {id: done, type: end, name: Done}
edges:
- {id: e1, source: start, target: told}
- {id: e2, source: told, target: done}
`

// based waits for an event about its pull request whose payload names a base.
const based = `
id: based
name: Based
nodes:
- {id: start, type: start, name: Start, config: {inputs: [{name: ref, required: true}]}}
- id: merged
  type: receive-event
  name: Merged
  config:
    eventType: pr.merged
    match: ["event.payload.base == 'main'"]
    correlationKey: {subscriptionKey: context.ref, eventKey: event.ref}
- {id: done, type: end, name: Done}
edges:
- {id: e1, source: start, target: merged}
- {id: e2, source: merged, target: done}
`

var _ = Describe("An event that cannot be matched", func() {
	It("says so, and so does the run that it is about", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("based", based, "")
		run := w.run("based-1", "based", `{"ref":"pr-7"}`)
		other := w.run("based-2", "based", `{"ref":"pr-8"}`)
		w.opens(run, "merged#1")
		w.opens(other, "merged#1")
		e := w.event("bad", "pr.merged", "pr-7", `{"sha":"1"}`)
		Eventually(func(g Gomega) {
			g.Expect(deliveriesOf(fresh(w, e))).To(Equal([]string{"based-1 merged#1 Error"}))
			failure := branchOf(fresh(w, run), "merged#1").LastError
			g.Expect(failure).NotTo(BeNil())
			g.Expect(failure.Field).To(Equal("match[0]"))
			g.Expect(failure.Code).To(Equal("EXPRESSION_ERROR"))
		}).Should(Succeed())
		Expect(e.Status.Deliveries[0].Message).To(ContainSubstring("no such key: base"))
		Expect(branchOf(fresh(w, other), "merged#1").LastError).To(BeNil())

		By("matching the next one")
		w.event("good", "pr.merged", "pr-7", `{"base":"main"}`)
		w.reaches(run, api.RunCompleted)
		Expect(by(run, "merged#1")).To(Equal("good"))
	})

	It("says so when it cannot be told what it is about", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("numbered", numbered, "")
		run := w.run("numbered-1", "numbered", `{"n":1}`)
		w.opens(run, "told#1")
		e := w.event("bad", "told", "", `{}`)
		Eventually(func(g Gomega) {
			g.Expect(deliveriesOf(fresh(w, e))).To(Equal([]string{"numbered-1 told#1 Error"}))
			failure := branchOf(fresh(w, run), "told#1").LastError
			g.Expect(failure).NotTo(BeNil())
			g.Expect(failure.Field).To(Equal("eventKey"))
		}).Should(Succeed())
		w.event("good", "told", "", `{"number":1.0}`)
		w.reaches(run, api.RunCompleted)
	})

	It("costs no more than fifty writes however many wait, and none when the operator starts again", func(ctx SpecContext) {
		w := newWorld(ctx)
		first := &tally{}
		stop := w.operate(process{after: first.count})
		w.compose("numbered", numbered, "")
		const waiting = 70
		for i := range waiting {
			w.run(fmt.Sprintf("numbered-%03d", i), "numbered", fmt.Sprintf(`{"n":%d}`, i))
		}
		Eventually(func(g Gomega) {
			for _, run := range w.runs() {
				g.Expect(run.Status.Phase).To(Equal(api.RunWaiting))
			}
		}).Should(Succeed())
		runsBefore, eventsBefore := first.runs.Load(), first.events.Load()
		e := w.event("bad", "told", "", `{}`)
		noted := func() int {
			n := 0
			for _, run := range w.runs() {
				if branchOf(&run, "told#1").LastError != nil {
					n++
				}
			}
			return n
		}
		Eventually(noted).Should(Equal(api.MaxDeliveries))
		Consistently(func() int64 { return first.runs.Load() - runsBefore }, "1s").Should(Equal(int64(api.MaxDeliveries)))
		Expect(first.events.Load() - eventsBefore).To(BeNumerically("<=", api.MaxDeliveries+1))
		Expect(fresh(w, e).Status.Deliveries).To(HaveLen(api.MaxDeliveries))

		By("starting again")
		stop()
		second := &tally{}
		visits := reconciles("workflowrun")
		w.operate(process{after: second.count})
		Eventually(func() int { return reconciles("workflowrun") - visits }).Should(BeNumerically(">=", waiting))
		Consistently(func() int64 { return second.runs.Load() + second.events.Load() }, "1s").Should(BeZero())
		Expect(reconciles("workflowrun")-visits).To(BeNumerically("<", 2*waiting), "no run is looked at over and over")
	})
})

var _ = Describe("An event for one of many", func() {
	It("costs a visit of that one", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("merge", merge, "")
		for i := range 30 {
			w.run(fmt.Sprintf("merge-%02d", i), "merge", fmt.Sprintf(`{"ref":"pr-%d"}`, i))
		}
		Eventually(func(g Gomega) {
			for _, run := range w.runs() {
				g.Expect(run.Status.Phase).To(Equal(api.RunWaiting))
			}
		}).Should(Succeed())
		visits := 0
		Eventually(func() bool { // until the runs are at rest
			before := visits
			visits = reconciles("workflowrun")
			return before == visits
		}, "5s", "300ms").Should(BeTrue())
		w.isObserved(w.event("nobody", "pr.merged", "pr-99", ""))
		Consistently(func() int { return reconciles("workflowrun") - visits }, "300ms").Should(BeZero())
		w.event("one", "pr.merged", "pr-7", "")
		run := &api.WorkflowRun{ObjectMeta: w.meta("merge-07")}
		w.reaches(run, api.RunCompleted)
		Consistently(func() int { return reconciles("workflowrun") - visits }, "500ms").
			Should(BeNumerically("<=", 3), "its delivery, its end, and what its clean-up may wake")
	})
})

// reconciles of a controller of this process, as its metrics count them.
func reconciles(controller string) int {
	GinkgoHelper()
	families, err := metrics.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	total := 0.0
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			if hasLabel(m, "controller", controller) {
				total += m.GetCounter().GetValue()
			}
		}
	}
	return int(total)
}

func hasLabel(m *dto.Metric, name, value string) bool {
	for _, label := range m.GetLabel() {
		if label.GetName() == name && strings.EqualFold(label.GetValue(), value) {
			return true
		}
	}
	return false
}

package events

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// merge waits at once for its pull request to be merged.
const merge = `
id: merge
name: Merge
nodes:
- {id: start, type: start, name: Start, config: {inputs: [{name: ref, required: true}]}}
- id: merged
  type: receive-event
  name: Merged
  config:
    eventType: pr.merged
    correlationKey: {subscriptionKey: context.ref, eventKey: event.ref}
    outputs: [{contextKey: sha, expression: "event.?payload.?sha.orValue(null)"}]
- {id: done, type: end, name: Done}
edges:
- {id: e1, source: start, target: merged}
- {id: e2, source: merged, target: done}
`

// gated asks a person first.
const gated = `
id: gated
name: Gated
nodes:
- {id: start, type: start, name: Start, config: {inputs: [{name: ref, required: true}]}}
- {id: ask, type: human-task, name: Ask}
- id: merged
  type: receive-event
  name: Merged
  config:
    eventType: pr.merged
    correlationKey: {subscriptionKey: context.ref, eventKey: event.ref}%s
- {id: done, type: end, name: Done}
edges:
- {id: e1, source: start, target: ask}
- {id: e2, source: ask, target: merged}
- {id: e3, source: merged, target: done}
`

// timed gives up after an hour.
const timed = `
id: timed
name: Timed
nodes:
- {id: start, type: start, name: Start, config: {inputs: [{name: ref}]}}
- id: merged
  type: receive-event
  name: Merged
  config:
    eventType: pr.merged
    correlationKey: {subscriptionKey: context.ref, eventKey: event.ref}
    timeout: PT1H
- {id: done, type: end, name: Done, config: {outcome: merged}}
- {id: late, type: end, name: Late, config: {outcome: late}}
edges:
- {id: e1, source: start, target: merged}
- {id: e2, source: merged, target: done}
- {id: e3, source: merged, target: late, isTimeout: true}
`

// looped takes three events with one node.
const looped = `
id: looped
name: Looped
nodes:
- {id: start, type: start, name: Start, config: {inputs: [{name: "n"}]}}
- id: comment
  type: receive-event
  name: Comment
  config: {eventType: commented, outputs: [{contextKey: "n", expression: "(context.n == null ? 0 : context.n) + 1"}]}
- {id: done, type: end, name: Done}
edges:
- {id: e1, source: start, target: comment}
- {id: e2, source: comment, target: done, condition: context.n >= %d}
- {id: e3, source: comment, target: comment, isDefault: true}
`

var _ = Describe("An event", func() {
	It("completes a run that waits for it", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("merge", merge, "")
		run := w.run("merge-1", "merge", `{"ref":"pr-7"}`)
		w.opens(run, "merged#1")
		e := w.event("e1", "pr.merged", "pr-7", `{"sha":"c0ffee"}`)
		w.reaches(run, api.RunCompleted)
		Expect(contextOf(run)).To(HaveKeyWithValue("sha", "c0ffee"))
		Expect(by(run, "merged#1")).To(Equal("e1"))
		Eventually(func() []string { return deliveriesOf(fresh(w, e)) }).Should(Equal([]string{"merge-1 merged#1 Completed"}))
		Expect(e.Status.Deliveries[0].UID).To(Equal(string(run.UID)))
	})

	It("that came before the wait is delivered alike", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("gated", fmt.Sprintf(gated, ""), "")
		run := w.run("gated-1", "gated", `{"ref":"pr-7"}`)
		w.opens(run, "ask#1")
		e := w.event("early", "pr.merged", "pr-7", "")
		w.isObserved(e)
		w.answer(run, "ask#1")
		w.reaches(run, api.RunCompleted)
		Expect(by(run, "merged#1")).To(Equal("early"))
		Eventually(func() []string { return deliveriesOf(fresh(w, e)) }).Should(HaveLen(1))
	})

	It("that comes together with the wait is delivered alike", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("gated", fmt.Sprintf(gated, ""), "")
		var runs []*api.WorkflowRun
		for i := range 12 {
			runs = append(runs, w.run(fmt.Sprintf("gated-%d", i), "gated", fmt.Sprintf(`{"ref":"pr-%d"}`, i)))
		}
		for _, run := range runs {
			w.opens(run, "ask#1")
		}
		for i, run := range runs {
			answered := make(chan struct{})
			go func() {
				defer GinkgoRecover()
				defer close(answered)
				w.answer(run, "ask#1")
			}()
			w.event(fmt.Sprintf("e%d", i), "pr.merged", fmt.Sprintf("pr-%d", i), "")
			<-answered
		}
		for i, run := range runs {
			w.reaches(run, api.RunCompleted)
			Expect(by(run, "merged#1")).To(Equal(fmt.Sprintf("e%d", i)))
			Expect(outcomes(run)).To(Equal([]string{"start#1 Completed", "ask#1 Completed", "merged#1 Completed", "done#1 Completed"}))
		}
	})

	It("completes many runs, and each activation once", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("merge", merge, "")
		var runs []*api.WorkflowRun
		for i := range 5 {
			runs = append(runs, w.run(fmt.Sprintf("merge-%d", i), "merge", `{"ref":"pr-7"}`))
		}
		other := w.run("other", "merge", `{"ref":"pr-8"}`)
		for _, run := range append(runs, other) {
			w.opens(run, "merged#1")
		}
		e := w.event("e1", "pr.merged", "pr-7", `{"sha":"1"}`)
		for _, run := range runs {
			w.reaches(run, api.RunCompleted)
			Expect(outcomes(run)).To(Equal([]string{"start#1 Completed", "merged#1 Completed", "done#1 Completed"}))
		}
		Eventually(func() []string { return deliveriesOf(fresh(w, e)) }).Should(ConsistOf(
			"merge-0 merged#1 Completed", "merge-1 merged#1 Completed", "merge-2 merged#1 Completed",
			"merge-3 merged#1 Completed", "merge-4 merged#1 Completed",
		))
		w.stays(other, "merged#1")
	})

	It("counts once among equal ones, whatever their objects are called", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("looped", fmt.Sprintf(looped, 2), "")
		run := w.run("looped-1", "looped", `{}`)
		w.opens(run, "comment#1")
		w.event("first", "commented", "", "")
		w.opens(run, "comment#2")
		twin := &api.StreamEvent{ObjectMeta: w.meta("twin")}
		twin.Spec = api.StreamEventSpec{ID: "first", Type: "commented", EventSourceID: "hand"}
		Expect(admin.Create(ctx, twin)).To(Succeed())
		w.isObserved(twin)
		w.stays(run, "comment#2")
		namesake := &api.StreamEvent{ObjectMeta: w.meta("namesake")}
		namesake.Spec = api.StreamEventSpec{ID: "first", Type: "commented", EventSourceID: "another-hand"}
		Expect(admin.Create(ctx, namesake)).To(Succeed())
		w.reaches(run, api.RunCompleted)
	})

	It("is taken in the order of arrival, each by one activation of a node", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.compose("looped", fmt.Sprintf(looped, 70), "")
		run := w.run("looped-1", "looped", `{}`)
		for i := range 70 {
			w.event(fmt.Sprintf("e%02d", i), "commented", "", "")
		}
		w.operate(process{})
		w.reaches(run, api.RunCompleted)
		Expect(contextOf(run)).To(HaveKeyWithValue("n", BeNumerically("==", 70)))
		Expect(run.Status.Instance.Visits).To(HaveKeyWithValue("comment", int64(70)))
		Expect(by(run, "comment#70")).To(Equal("e69"))
		Expect(run.Status.Instance.Consumed["comment"].Floor).NotTo(BeEmpty())
	})

	It("beats a deadline that passed while nobody looked", func(ctx SpecContext) {
		w := newWorld(ctx)
		stop := w.operate(process{})
		w.compose("timed", timed, "")
		run := w.run("timed-1", "timed", `{"ref":"pr-7"}`)
		idle := w.run("timed-2", "timed", `{"ref":"pr-8"}`)
		w.opens(run, "merged#1")
		w.opens(idle, "merged#1")
		stop()
		w.event("e1", "pr.merged", "pr-7", "")
		w.clock.Step(2 * time.Hour)
		w.operate(process{})
		w.reaches(run, api.RunCompleted)
		Expect(run.Status.Outcome).To(Equal("merged"))
		w.reaches(idle, api.RunCompleted)
		Expect(idle.Status.Outcome).To(Equal("late"))
	})

	It("is held until a resume request where that is the policy", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("merge", merge, "")
		run := w.run("merge-1", "merge", `{"ref":"pr-7"}`, func(run *api.WorkflowRun) { run.Spec.ResumePolicy = api.ResumeExplicit })
		w.opens(run, "merged#1")
		w.event("e1", "pr.merged", "pr-7", `{"sha":"1"}`)
		Eventually(func(g Gomega) {
			waiting := apimeta.FindStatusCondition(fresh(w, run).Status.Conditions, api.ConditionWaiting)
			g.Expect(waiting.Reason).To(Equal(api.ReasonResume))
			g.Expect(waiting.Message).To(Equal("merged#1; answered: merged#1"))
		}).Should(Succeed())
		w.stays(run, "merged#1")
		w.patch(run, `{"spec":{"resumeRequests":1}}`)
		w.reaches(run, api.RunCompleted)
	})
})

var _ = Describe("How far a wait looks back", func() {
	// late enters the wait two hours after the run began.
	late := func(w *world, lookback string) *api.WorkflowRun {
		GinkgoHelper()
		w.compose("gated", fmt.Sprintf(gated, "\n    lookback: "+lookback), "")
		run := w.run("gated-1", "gated", `{"ref":"pr-7"}`)
		w.opens(run, "ask#1")
		w.event("old", "pr.merged", "pr-7", "")
		w.clock.Step(2 * time.Hour)
		w.answer(run, "ask#1")
		return run
	}
	DescribeTable("an event that is two hours old", func(ctx SpecContext, lookback string, taken bool) {
		w := newWorld(ctx)
		w.operate(process{})
		run := late(w, lookback)
		if taken {
			w.reaches(run, api.RunCompleted)
			return
		}
		w.opens(run, "merged#1")
		w.stays(run, "merged#1")
	},
		Entry("counts since the run began", "run-start", true),
		Entry("counts within three hours, but not from before the run", "PT3H", true),
		Entry("does not count within one hour", "PT1H", false),
		Entry("does not count where only the wait does", "none", false),
	)

	It("counts the second in which it began as a whole", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("gated", fmt.Sprintf(gated, "\n    lookback: none"), "")
		run := w.run("gated-1", "gated", `{"ref":"pr-7"}`)
		w.opens(run, "ask#1")
		e := w.event("same-second", "pr.merged", "pr-7", "")
		// The wait begins at the end of the second in which the event arrived.
		w.clock.SetTime(e.CreationTimestamp.Add(999 * time.Millisecond))
		w.answer(run, "ask#1")
		w.reaches(run, api.RunCompleted)
	})

	It("never reaches behind the creation of the run", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("merge", merge, "")
		w.event("before", "pr.merged", "pr-7", "")
		Eventually(time.Now).Should(BeTemporally(">", time.Now().Truncate(time.Second).Add(time.Second)))
		run := w.run("merge-1", "merge", `{"ref":"pr-7"}`)
		w.opens(run, "merged#1")
		w.stays(run, "merged#1")
	})
})

package events

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// reviewed ends at once with what it is given.
const reviewed = `
id: reviewed
name: Reviewed
nodes:
- {id: start, type: start, name: Start, config: {inputs: [{name: ref, required: true}]}}
- {id: done, type: end, name: Done, config: {outcome: reviewed}}
edges:
- {id: e1, source: start, target: done}
`

const onIssue = `
- name: issue
  eventType: issue.created
  filter: event.payload.label == 'bug'
  inputs: {ref: event.ref, depth: 2, title: "'Issue ' + event.ref"}
`

// triggered waits until a trigger made something of the event.
func (w *world) triggered(e *api.StreamEvent, want ...string) *api.StreamEvent {
	GinkgoHelper()
	Eventually(func() []string { return triggersOf(fresh(w, e)) }).Should(Equal(want))
	return e
}

var _ = Describe("A trigger", func() {
	It("starts a run for each event that it is meant for", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		comp := w.compose("review", reviewed, onIssue)
		bug := w.triggered(w.event("bug", "issue.created", "i-7", `{"label":"bug"}`), "review/issue Started")
		w.triggered(w.event("wish", "issue.created", "i-8", `{"label":"wish"}`), "review/issue NotMatched")
		w.isObserved(w.event("other", "issue.closed", "i-7", `{"label":"bug"}`))

		Expect(w.runs()).To(HaveLen(1))
		run := &w.runs()[0]
		Expect(bug.Status.Triggers[0].Run).To(Equal(run.Name))
		Expect(run.Name).To(HavePrefix("review-issue-"))
		Expect(metav1.IsControlledBy(run, comp)).To(BeTrue())
		Expect(run.Labels).To(HaveKeyWithValue(api.LabelComposition, "review"))
		Expect(run.Annotations).To(HaveKeyWithValue(api.AnnotationEvent, "bug"))
		Expect(run.Annotations).To(HaveKeyWithValue(api.AnnotationTrigger, "issue"))
		w.reaches(run, api.RunCompleted)
		Expect(contextOf(run)).To(Equal(map[string]any{"ref": "i-7", "depth": 2.0, "title": "Issue i-7"}))
		Eventually(func() bool {
			return apimeta.IsStatusConditionTrue(fresh(w, comp).Status.Conditions, api.ConditionTriggersReady)
		}).Should(BeTrue())
		Expect(comp.Status.Triggers[0].Since).NotTo(BeNil())
	})

	It("gives its runs the settings that it has for them", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("merge", merge, `[{name: issue, eventType: issue.created, inputs: {ref: event.ref},
			run: {resumePolicy: Explicit, activeDeadline: PT1H, ttlSecondsAfterFinished: 60}}]`)
		w.triggered(w.event("bug", "issue.created", "i-7", ""), "merge/issue Started")
		spec := w.runs()[0].Spec
		Expect(spec.ResumePolicy).To(Equal(api.ResumeExplicit))
		Expect(spec.ActiveDeadline).To(Equal("PT1H"))
		Expect(spec.TTLSecondsAfterFinished).To(HaveValue(Equal(int32(60))))
	})

	It("starts no second run, also when the first is deleted and everything starts again", func(ctx SpecContext) {
		w := newWorld(ctx)
		stop := w.operate(process{})
		w.compose("review", reviewed, onIssue)
		bug := w.event("bug", "issue.created", "i-7", `{"label":"bug"}`)
		w.triggered(bug, "review/issue Started")
		Expect(admin.Delete(ctx, &w.runs()[0])).To(Succeed())
		Eventually(w.runs).Should(BeEmpty())
		stop()
		writes := &tally{}
		w.operate(process{after: writes.count})
		twin := &api.StreamEvent{ObjectMeta: w.meta("twin"), Spec: bug.Spec}
		Expect(admin.Create(ctx, twin)).To(Succeed())
		w.triggered(twin, "review/issue Duplicate")
		Consistently(w.runs, "500ms").Should(BeEmpty())
		Expect(writes.creations.Load()).To(BeZero())
	})

	It("keeps a run that is over at once until its event tells of it", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("review", reviewed, `[{name: issue, eventType: issue.created, inputs: {ref: event.ref}, run: {ttlSecondsAfterFinished: 0}}]`)
		var all []*api.StreamEvent
		for i := range 5 {
			all = append(all, w.event(fmt.Sprintf("e%d", i), "issue.created", "i", ""))
		}
		for _, e := range all {
			w.triggered(e, "review/issue Started")
		}
		Eventually(w.runs).Should(BeEmpty())
	})

	It("starts one run for the events of one key", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("review", reviewed, `[{name: issue, eventType: issue.created, dedupeKey: event.ref, inputs: {ref: event.ref}}]`)
		w.triggered(w.event("e1", "issue.created", "i-7", ""), "review/issue Started")
		w.triggered(w.event("e2", "issue.created", "i-7", ""), "review/issue Duplicate")
		w.triggered(w.event("e3", "issue.created", "i-8", ""), "review/issue Started")
		Expect(w.runs()).To(HaveLen(2))
	})

	It("starts one run with two operators at once", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.operate(process{silent: true})
		w.compose("review", reviewed, onIssue)
		w.compose("merge", merge, strings.ReplaceAll(onIssue, "issue\n", "second\n"))
		var all []*api.StreamEvent
		for i := range 10 {
			all = append(all, w.event(fmt.Sprintf("e%d", i), "issue.created", fmt.Sprintf("i-%d", i), `{"label":"bug"}`))
		}
		for _, e := range all {
			w.triggered(e, "merge/second Started", "review/issue Started")
		}
		Expect(w.runs()).To(HaveLen(20))
	})

	It("does not look at events that came before it", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		old := w.isObserved(w.event("old", "issue.created", "i-7", `{"label":"bug"}`))
		Eventually(time.Now).Should(BeTemporally(">", old.CreationTimestamp.Add(time.Second)))
		comp := w.compose("review", reviewed, onIssue)
		w.triggered(w.event("new", "issue.created", "i-8", `{"label":"bug"}`), "review/issue Started")
		Expect(fresh(w, old).Status.Triggers).To(BeEmpty())

		By("nor at those that came while it was suspended")
		w.edit(comp, func() { comp.Spec.Triggers[0].Suspend = true })
		Eventually(func() *metav1.Time { return fresh(w, comp).Status.Triggers[0].Since }).Should(BeNil())
		missed := w.isObserved(w.event("missed", "issue.created", "i-9", `{"label":"bug"}`))
		Eventually(time.Now).Should(BeTemporally(">", missed.CreationTimestamp.Add(time.Second)))
		w.edit(comp, func() { comp.Spec.Triggers[0].Suspend = false })
		w.triggered(w.event("late", "issue.created", "i-10", `{"label":"bug"}`), "review/issue Started")
		Expect(fresh(w, missed).Status.Triggers).To(BeEmpty())
		Expect(w.runs()).To(HaveLen(2))
	})

	It("looks at events that came while nobody operated, as it stands now", func(ctx SpecContext) {
		w := newWorld(ctx)
		comp := w.compose("review", reviewed, onIssue)
		bug := w.event("bug", "issue.created", "i-7", `{"label":"bug"}`)
		wish := w.event("wish", "issue.created", "i-8", `{"label":"wish"}`)
		w.edit(comp, func() { comp.Spec.Triggers[0].Filter = "event.payload.label == 'wish'" })
		w.operate(process{})
		w.triggered(bug, "review/issue NotMatched")
		w.triggered(wish, "review/issue Started")

		By("and not again when it is edited")
		w.edit(comp, func() { comp.Spec.Triggers[0].Filter = "" })
		w.triggered(w.event("next", "issue.created", "i-9", ""), "review/issue Started")
		Expect(triggersOf(fresh(w, bug))).To(Equal([]string{"review/issue NotMatched"}))
	})

	It("cannot be told since when it is active by anybody but admission", func(ctx SpecContext) {
		w := newWorld(ctx)
		comp := w.compose("review", reviewed, onIssue)
		noted := comp.Annotations[api.AnnotationTriggersSince]
		Expect(noted).To(ContainSubstring(`"issue":"20`))
		w.patch(comp, `{"metadata":{"annotations":{"`+api.AnnotationTriggersSince+`":"{\"issue\":\"2001-01-01T00:00:00Z\"}"}}}`)
		Expect(fresh(w, comp).Annotations).To(HaveKeyWithValue(api.AnnotationTriggersSince, noted))
		w.patch(comp, `{"metadata":{"annotations":null}}`)
		Expect(fresh(w, comp).Annotations).To(HaveKeyWithValue(api.AnnotationTriggersSince, noted))
	})

	It("shows what it failed at, until it is mended", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		comp := w.compose("review", reviewed, `[{name: issue, eventType: issue.created, inputs: {ref: event.payload.page}}]`)
		bad := w.triggered(w.event("bad", "issue.created", "", `{}`), "review/issue Failed")
		Expect(bad.Status.Triggers[0].Message).To(And(HavePrefix("inputs.ref: "), ContainSubstring("no such key: page")))
		Eventually(func(g Gomega) {
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(comp), comp)).To(Succeed())
			ready := apimeta.FindStatusCondition(comp.Status.Conditions, api.ConditionTriggersReady)
			g.Expect(ready).NotTo(BeNil())
			g.Expect(ready.Status).To(Equal(metav1.ConditionFalse))
			g.Expect(ready.Reason).To(Equal(api.ReasonTriggerFailed))
			g.Expect(ready.Message).To(HavePrefix("trigger issue, event bad: inputs.ref: "))
			g.Expect(comp.Status.Triggers[0].Failures).To(HaveLen(1))
		}).Should(Succeed())
		for i := range 6 {
			w.triggered(w.event(fmt.Sprintf("bad-%d", i), "issue.created", "", `{}`), "review/issue Failed")
		}
		Eventually(func() []api.TriggerFailure { return fresh(w, comp).Status.Triggers[0].Failures }).Should(HaveLen(api.MaxTriggerFailures))
		w.edit(comp, func() { comp.Spec.Triggers[0].Inputs = rawYAML("{ref: event.id}") })
		Eventually(func() bool {
			return apimeta.IsStatusConditionTrue(fresh(w, comp).Status.Conditions, api.ConditionTriggersReady)
		}).Should(BeTrue())
		Expect(w.runs()).To(BeEmpty())
	})

	It("does not take over a run of its name", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("review", reviewed, onIssue)
		first := w.triggered(w.event("bug", "issue.created", "i-7", `{"label":"bug"}`), "review/issue Started")
		name := first.Status.Triggers[0].Run
		Expect(admin.Delete(ctx, &w.runs()[0])).To(Succeed())
		Expect(admin.Delete(ctx, first)).To(Succeed())
		Eventually(w.runs).Should(BeEmpty())
		w.run(name, "review", `{"ref":"mine"}`)
		again := w.triggered(w.event("bug", "issue.created", "i-7", `{"label":"bug"}`), "review/issue Failed")
		Expect(again.Status.Triggers[0].Message).To(HavePrefix("NAME_TAKEN"))
	})

	It("is admitted only with expressions that compile", func(ctx SpecContext) {
		w := newWorld(ctx)
		refuse := func(triggers string, want ...string) {
			GinkgoHelper()
			comp := &api.Composition{ObjectMeta: w.meta("review")}
			comp.Spec.Workflow = rawYAML(reviewed)
			Expect(yaml.Unmarshal([]byte(triggers), &comp.Spec.Triggers)).To(Succeed())
			err := admin.Create(ctx, comp)
			for _, text := range want {
				Expect(err).To(MatchError(ContainSubstring(text)))
			}
		}
		refuse(`[{name: a, eventType: t, filter: "event.x =="}]`, "spec.triggers[a].filter: Invalid value: must be an expression over event: 1:")
		refuse(`[{name: a, eventType: t, filter: "'x'"}]`, "spec.triggers[a].filter: Invalid value: must be a condition, and is of type string")
		refuse(`[{name: a, eventType: t, inputs: {ref: context.ref}}]`, "spec.triggers[a].inputs[ref]: Invalid value", "undeclared reference to 'context'")
		refuse(`[{name: a, eventType: t, dedupeKey: "1 +"}, {name: b, eventType: t, inputs: {x: " "}}]`,
			"spec.triggers[a].dedupeKey: Invalid value", "spec.triggers[b].inputs[x]: Invalid value: must not be blank")
		refuse(`[{name: a, eventType: t, run: {activeDeadline: soon}}]`, "spec.triggers[a].run.activeDeadline")
		refuse(`[{name: A b, eventType: t}]`, "spec.triggers[0].name")
		refuse(`[{name: a, eventType: ""}]`, "spec.triggers[0].eventType")
		refuse(`[{name: a, eventType: t}, {name: a, eventType: u}]`, "Duplicate value")
		Expect(w.runs()).To(BeEmpty())
	})
})

// edit changes a composition as a person would.
func (w *world) edit(comp *api.Composition, change func()) {
	GinkgoHelper()
	Eventually(func() error {
		if err := admin.Get(w.ctx, client.ObjectKeyFromObject(comp), comp); err != nil {
			return err
		}
		change()
		return admin.Update(w.ctx, comp)
	}).Should(Succeed())
}

package runs

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// both asks a person and runs a script at the same time.
const both = `
id: both
name: Both
nodes:
- {id: start, type: start, name: Start}
- {id: ask, type: human-task, name: Ask, config: {outputs: [{name: ok, type: boolean}]}}
- {id: work, type: action, name: Work, config: {actionType: work, retry: {maxAttempts: 2, backoff: {initial: PT1S}}}}
- {id: join, type: wait, name: Join, config: {duration: PT0S}}
- {id: done, type: end, name: Done}
edges:
- {id: e1, source: start, target: ask}
- {id: e2, source: start, target: work}
- {id: e3, source: ask, target: join}
- {id: e4, source: work, target: join}
- {id: e5, source: join, target: done}
`

const work = `[{name: work, description: Works., mode: script, script: {scriptTemplate: "true"}}]`

const pause = `
id: pause
name: Pause
nodes:
- {id: start, type: start, name: Start}
- {id: rest, type: wait, name: Rest, config: {duration: PT8H}}
- {id: done, type: end, name: Done}
edges:
- {id: e1, source: start, target: rest}
- {id: e2, source: rest, target: done}
`

func activeDeadline(text string) func(*api.WorkflowRun) {
	return func(run *api.WorkflowRun) { run.Spec.ActiveDeadline = text }
}

var _ = Describe("A run with several branches", func() {
	It("ends when all have come together", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("both", both, work)
		run := w.run("both-1", "both")
		task, pod := &api.HumanTask{}, &corev1.Pod{}
		w.opens(run, "ask#1", task)
		w.opens(run, "work#1", pod)
		Expect(w.fresh(run).Status.Phase).To(Equal(api.RunRunning))
		w.answer(task, `{"ok":true}`)
		Eventually(func() *api.ActiveBranch { return branchOf(w.fresh(run), "ask#1") }).Should(BeNil())
		Expect(w.reports(pod, `{"exitCode":0}`)).To(Succeed())
		w.reaches(run, api.RunCompleted)
		w.leavesNothing(run)
	})

	It("closes everything when it is cancelled", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("both", both, work)
		run := w.run("both-1", "both")
		task := &api.HumanTask{}
		w.opens(run, "ask#1", task)
		w.opens(run, "work#1", &corev1.Pod{})
		Expect(admin.Patch(ctx, run, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"cancel":true}}`)))).To(Succeed())
		w.reaches(run, api.RunCancelled)
		w.leavesNothing(run)
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(task), task)).To(Succeed())
		Expect(task.Status.Phase).To(Equal(api.TaskCancelled))
		Expect(task.Status.Closed.Message).To(Equal("run cancelled"))
		for _, entry := range run.Status.History.Entries[1:] {
			Expect(entry.Outcome).To(Equal("Cancelled"))
			Expect(entry.Type).NotTo(BeEmpty())
		}
	})

	It("fails as a whole past its deadline", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("both", both, work)
		run := w.run("both-1", "both", activeDeadline("PT1H"))
		task := &api.HumanTask{}
		w.opens(run, "ask#1", task)
		w.opens(run, "work#1", &corev1.Pod{})
		w.advance(time.Hour+time.Second, run)
		w.reaches(run, api.RunFailed)
		Expect(run.Status.Instance.Failure.Code).To(Equal("DEADLINE_EXCEEDED"))
		w.leavesNothing(run)
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(task), task)).To(Succeed())
		Expect(task.Status.Closed.Message).To(Equal("run failed: DEADLINE_EXCEEDED"))
	})
})

var _ = Describe("A run that waits for a time", func() {
	It("goes on when it has come, and is deleted when its time to live is over", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("pause", pause, "")
		run := w.run("pause-1", "pause", func(run *api.WorkflowRun) { run.Spec.TTLSecondsAfterFinished = new(int32(3600)) })
		w.opens(run, "rest#1", nil)
		Expect(w.reaches(run, api.RunWaiting).Status.CurrentNode).To(Equal("rest"))
		Expect(reasonOf(run, api.ConditionWaiting)).To(Equal(api.ReasonTimer))
		w.advance(7*time.Hour, run)
		Consistently(func() api.RunPhase { return w.fresh(run).Status.Phase }, "300ms").Should(Equal(api.RunWaiting))
		w.advance(time.Hour+time.Second, run)
		w.reaches(run, api.RunCompleted)
		w.advance(time.Hour, run)
		Eventually(w.isGone(run)).Should(BeTrue())
	})

	It("waits for a resume request where that is its policy", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("release", approval, "")
		run := w.run("release-1", "release", inputs(`{"ref":"r"}`), func(run *api.WorkflowRun) { run.Spec.ResumePolicy = api.ResumeExplicit })
		task := &api.HumanTask{}
		w.opens(run, "approve#1", task)
		w.reaches(run, api.RunSuspended)
		w.answer(task, `{"approved":true}`)
		Eventually(func(g Gomega) {
			waiting := apimeta.FindStatusCondition(w.fresh(run).Status.Conditions, api.ConditionWaiting)
			g.Expect(waiting.Reason).To(Equal(api.ReasonResume))
			g.Expect(waiting.Message).To(Equal("approve#1; answered: approve#1"))
		}).Should(Succeed())
		Expect(admin.Patch(ctx, run, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"resumeRequests":1}}`)))).To(Succeed())
		w.reaches(run, api.RunCompleted)
		Expect(run.Status.ObservedResumeRequests).To(Equal(int64(1)))
	})
})

var _ = Describe("A run that may not start", func() {
	It("waits for its composition", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		run := w.run("pause-1", "pause")
		w.reaches(run, api.RunPending)
		Expect(reasonOf(run, api.ConditionAccepted)).To(Equal(api.ReasonDefinitionNotFound))
		w.compose("pause", pause, "")
		w.opens(run, "rest#1", nil)
	})

	DescribeTable("is refused for good",
		func(ctx SpecContext, workflow string, change func(*api.WorkflowRun), reason string) {
			w := newWorld(ctx)
			w.operate(process{})
			w.compose("c", workflow, "")
			run := w.run("r", "c", change)
			w.reaches(run, api.RunFailed)
			Expect(reasonOf(run, api.ConditionAccepted)).To(Equal(reason))
			Expect(run.Status.FinishedAt).NotTo(BeNil())
			Expect(run.Status.Instance).To(BeNil())
		},
		Entry("for an unknown revision", pause, func(run *api.WorkflowRun) {
			run.Spec.CompositionRef.Revision = "sha256:" + strings.Repeat("0", 64)
		}, api.ReasonRevisionMismatch),
		Entry("for an invalid workflow", strings.Replace(pause, "PT8H", "8 hours", 1), func(*api.WorkflowRun) {}, api.ReasonInvalidDefinition),
		Entry("for a built-in action", strings.Replace(both, "actionType: work", "actionType: git.commit", 1),
			func(*api.WorkflowRun) {}, api.ReasonInvalidDefinition),
		Entry("for a missing input", approval, func(*api.WorkflowRun) {}, api.ReasonInvalidInputs),
		Entry("for a deadline that is none", pause, activeDeadline("1h"), api.ReasonInvalidInputs),
	)

	It("ends at once when it is cancelled before it began", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		run := w.run("r", "c", func(run *api.WorkflowRun) { run.Spec.Cancel = true })
		w.reaches(run, api.RunCancelled)
	})

	It("never starts over after its status was lost", func(ctx SpecContext) {
		w := newWorld(ctx)
		stop := w.operate(process{})
		w.compose("release", approval, "")
		run := w.run("release-1", "release", inputs(`{"ref":"r"}`))
		w.opens(run, "approve#1", &api.HumanTask{})
		stop()
		w.fresh(run).Status = api.WorkflowRunStatus{}
		Expect(admin.Status().Update(ctx, run)).To(Succeed())
		w.operate(process{})
		Eventually(func() string { return reasonOf(w.fresh(run), api.ConditionStalled) }).Should(Equal(api.ReasonStatusLost))
		Expect(run.Status.Instance).To(BeNil())
	})
})

var _ = Describe("A run whose definition somebody deleted", func() {
	It("says so and can be ended", func(ctx SpecContext) {
		w := newWorld(ctx)
		stop := w.operate(process{})
		w.compose("release", approval, "")
		run := w.run("release-1", "release", inputs(`{"ref":"r"}`))
		w.opens(run, "approve#1", &api.HumanTask{})
		stop()
		snapshot := &appsv1.ControllerRevision{ObjectMeta: w.meta(run.Status.Definition.Snapshot)}
		Expect(admin.Delete(ctx, snapshot)).To(Succeed())
		comp := &api.Composition{ObjectMeta: w.meta("release")}
		Expect(admin.Delete(ctx, comp)).To(Succeed())
		w.operate(process{})
		Eventually(func() string { return reasonOf(w.fresh(run), api.ConditionAccepted) }).Should(Equal(api.ReasonDefinitionNotFound))
		Expect(admin.Patch(ctx, run, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"cancel":true}}`)))).To(Succeed())
		w.reaches(run, api.RunCancelled)
		w.leavesNothing(run)
	})
})

var _ = Describe("A child's name", func() {
	It("fails the node when it belongs to somebody else", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.compose("release", approval, "")
		run := w.run("release-1", "release", inputs(`{"ref":"r"}`))
		foreign := &api.HumanTask{ObjectMeta: w.meta(childName(run, "approve#1"))}
		foreign.Spec.HumanContext.Title = "Mine"
		Expect(admin.Create(ctx, foreign)).To(Succeed())
		w.operate(process{})
		w.reaches(run, api.RunFailed)
		Expect(run.Status.Instance.Failure.Code).To(Equal("NAME_TAKEN"))
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(foreign), foreign)).To(Succeed())
		Expect(foreign.Status.Closed).To(BeNil())
	})

	It("is taken over where an earlier life made the child unseen", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.compose("risk", assessment, assess)
		run := w.run("risk-1", "risk", inputs(`{"ref":"r"}`))
		By("having made the Secret without the label that the cache looks for")
		secret := &corev1.Secret{ObjectMeta: w.meta(childName(run, "assess#1") + "-a1"), Data: map[string][]byte{"token": []byte("earlier")}}
		secret.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(run, api.GroupVersion.WithKind("WorkflowRun"))}
		Expect(admin.Create(ctx, secret)).To(Succeed())
		w.operate(process{})
		pod := &corev1.Pod{}
		w.opens(run, "assess#1", pod)
		Expect(pod.Annotations[api.AnnotationTokenHash]).To(Equal(hashOf([]byte("earlier"))))
		Expect(w.reports(pod, `{"exitCode":0,"outputs":{"score":3}}`)).To(Succeed())
		w.reaches(run, api.RunCompleted)
		Eventually(w.isGone(secret)).Should(BeTrue())
	})
})

var _ = Describe("A commit", func() {
	It("is computed again when somebody else was faster", func(ctx SpecContext) {
		w := newWorld(ctx)
		run := &api.WorkflowRun{ObjectMeta: w.meta("pause-1")}
		var writes atomic.Int32
		w.operate(process{before: func(req *http.Request) {
			if req.Method == http.MethodPut && strings.HasSuffix(req.URL.Path, "/pause-1/status") && writes.Add(1) == 1 {
				Expect(w.touch(run)).To(Succeed())
			}
		}})
		w.compose("pause", pause, "")
		run = w.run("pause-1", "pause")
		w.opens(run, "rest#1", nil)
		Expect(writes.Load()).To(Equal(int32(2)))
		Expect(w.fresh(run).Status.Instance.Step).To(Equal(int64(1)))
	})

	It("is one write for each step, and none where nothing changed", func(ctx SpecContext) {
		w := newWorld(ctx)
		var statuses, tasks atomic.Int32
		w.operate(process{after: func(req *http.Request, code int) {
			switch {
			case code == http.StatusOK && req.Method == http.MethodPut && strings.HasSuffix(req.URL.Path, "/release-1/status"):
				statuses.Add(1)
			case code == http.StatusCreated && strings.HasSuffix(req.URL.Path, "/humantasks"):
				tasks.Add(1)
			}
		}})
		w.compose("release", approval, "")
		comp := &api.Composition{}
		Eventually(func(g Gomega) {
			g.Expect(admin.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "release"}, comp)).To(Succeed())
			g.Expect(comp.Status.Snapshot).NotTo(BeEmpty())
		}).Should(Succeed())
		run := w.run("release-1", "release", inputs(`{"ref":"r"}`))
		task := &api.HumanTask{}
		w.opens(run, "approve#1", task)
		for range 3 {
			w.advance(time.Second, run)
		}
		w.answer(task, `{"approved":true}`)
		w.reaches(run, api.RunCompleted)
		w.advance(time.Second, run)
		Consistently(statuses.Load, "500ms").Should(Equal(int32(2)))
		Expect(tasks.Load()).To(Equal(int32(1)))
	})

	It("keeps large values outside and the old history in pages", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("loop", loop, "")
		text := strings.Repeat("x", 5000)
		run := w.run("loop-1", "loop", inputs(fmt.Sprintf(`{"text":%q,"small":1}`, text)))
		task := &api.HumanTask{}
		w.opens(run, "ask#1", task)
		By("referring to the value")
		Expect(run.Status.Instance.ContextRefs).To(HaveKey("text"))
		Expect(string(run.Status.Instance.Context.Raw)).To(MatchJSON(`{"small":1}`))
		Expect(branchOf(run, "ask#1").InputRef).NotTo(BeNil())

		Expect(task.Spec.HumanContext.Details).To(Equal([]api.LabelledValue{{Label: "V", Value: text}}))

		By("asking again and again")
		for i := 2; i <= 36; i++ {
			w.answer(task, fmt.Sprintf(`{"count":%d}`, i))
			task = &api.HumanTask{}
			w.opens(run, fmt.Sprintf("ask#%d", i), task)
		}
		w.answer(task, `{"count":0}`)
		w.reaches(run, api.RunCompleted)

		By("having lost nothing")
		Expect(len(run.Status.History.Entries)).To(BeNumerically("<=", 64))
		Expect(w.history(run)).To(HaveLen(int(run.Status.History.Total)))
		for i, entry := range w.history(run) {
			Expect(entry.Seq).To(Equal(int64(i + 1)))
		}
	})
})

const loop = `
id: loop
name: Loop
nodes:
- {id: start, type: start, name: Start, config: {inputs: [{name: text}]}}
- {id: ask, type: human-task, name: Ask, config: {inputs: {V: context.text}, outputs: [{name: count, type: number}]}}
- {id: breathe, type: wait, name: Breathe, config: {duration: PT0S}}
- {id: done, type: end, name: Done}
edges:
- {id: e1, source: start, target: ask}
- {id: e2, source: ask, target: done, condition: context.count == 0 && size(context.text) == 5000}
- {id: e3, source: ask, target: breathe, isDefault: true}
- {id: e4, source: breathe, target: ask}
`

// history reads the entries of all pages and of the status.
func (w *world) history(run *api.WorkflowRun) []api.HistoryEntry {
	GinkgoHelper()
	entries := run.Status.History.Entries
	for name := run.Status.History.Page; name != ""; {
		config := &corev1.ConfigMap{}
		Expect(admin.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, config)).To(Succeed())
		Expect(*config.Immutable).To(BeTrue())
		var page struct {
			Previous string
			From, To int64
			Entries  []api.HistoryEntry
		}
		Expect(json.Unmarshal(config.BinaryData["content"], &page)).To(Succeed())
		Expect(page.Entries[0].Seq).To(Equal(page.From))
		Expect(page.Entries[len(page.Entries)-1].Seq).To(Equal(page.To))
		entries = append(page.Entries, entries...)
		name = page.Previous
	}
	return entries
}

var _ = Describe("Deleting a run", func() {
	It("lets go of the pods whose end it would have recorded", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("risk", assessment, assess)
		run := w.run("risk-1", "risk", inputs(`{"ref":"r"}`))
		pod := &corev1.Pod{}
		w.opens(run, "assess#1", pod)
		Expect(admin.Delete(ctx, run)).To(Succeed())
		Expect(admin.Delete(ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())
		Eventually(w.isGone(pod)).Should(BeTrue())
	})
})

var _ = Describe("A task of nobody's run", func() {
	It("expires by itself", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		task := &api.HumanTask{ObjectMeta: w.meta("ad-hoc")}
		task.Spec.HumanContext.Title, task.Spec.ExpiresAfter = "Coffee?", "PT5M"
		Expect(admin.Create(ctx, task)).To(Succeed())
		phase := func() api.TaskPhase {
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(task), task)).To(Succeed())
			return task.Status.Phase
		}
		Eventually(phase).Should(Equal(api.TaskAwaitingInput))
		w.advance(6*time.Minute, task)
		Eventually(phase).Should(Equal(api.TaskExpired))
		Expect(task.Status.Closed.Reason).To(Equal(api.CloseExpired))
	})
})

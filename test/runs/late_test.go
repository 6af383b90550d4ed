package runs

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/testing/crash"
)

var _ = Describe("A cache that does not know yet", func() {
	DescribeTable("makes no run do anything twice",
		func(ctx SpecContext, hides string) {
			w := newWorld(ctx)
			curtain := &crash.Curtain{Resource: hides}
			made := &tally{}
			w.operate(process{curtain: curtain, after: made.count})
			DeferCleanup(curtain.Raise)
			By("being up")
			w.compose("pause", pause, "")
			w.opens(w.run("pause-1", "pause"), "rest#1", nil)
			By("seeing no more than that there is a run")
			w.compose("both", both, work)
			if hides != "workflowruns" {
				curtain.Lower()
			}
			run := w.run("both-1", "both")
			task, pod := &api.HumanTask{}, &corev1.Pod{}
			w.opens(run, "ask#1", task)
			curtain.Lower()
			w.attempts(run, "work#1", 1, pod)
			for range 3 {
				w.advance(time.Second, run)
				w.advance(time.Second, task)
			}
			Expect(w.reports(pod, `{"exitCode":0}`)).To(Succeed())
			if hides != "configmaps" && hides != "workflowruns" {
				w.closes(run, "work#1")
			}
			By("looking at the answer before it sees the rest")
			looks := reconciles("workflowrun")
			w.answer(task, `{"ok":true}`)
			if hides != "humantasks" {
				Eventually(reconciles).WithArguments("workflowrun").WithTimeout(patience).Should(BeNumerically(">", looks))
			}
			curtain.Raise()
			w.reaches(run, api.RunCompleted)
			w.leavesNothing(run)
			Expect(made.of("pods")).To(Equal(1))
			Expect(made.of("humantasks")).To(Equal(1))
			Expect(made.of("secrets")).To(Equal(1))
			Expect(run.Status.History.Total).To(Equal(int64(5)))
		},
		Entry("that there is a pod", "pods"),
		Entry("that there is a task", "humantasks"),
		Entry("that the run went on", "workflowruns"),
		Entry("that there is a result", "configmaps"),
	)
})

var _ = Describe("What is late", func() {
	It("does not resume another branch or a later visit", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("loop", loop, "")
		run := w.run("loop-1", "loop", inputs(`{"text":"t"}`))
		first, second := &api.HumanTask{}, &api.HumanTask{}
		w.opens(run, "ask#1", first)
		w.answer(first, `{"count":1}`)
		w.opens(run, "ask#2", second)
		step := run.Status.Instance.Step
		By("answering the task of the first visit again")
		w.answer(first, `{"count":0}`)
		w.advance(time.Second, first)
		w.staysAt(run, "ask#2")
		Expect(run.Status.Instance.Step).To(Equal(step))
		Expect(string(run.Status.Instance.Context.Raw)).To(MatchJSON(`{"text":"t","count":1}`))
	})

	It("is no result of a later attempt", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("risk", assessment, assess)
		run := w.run("risk-1", "risk", inputs(`{"ref":"r"}`))
		first, second := &corev1.Pod{}, &corev1.Pod{}
		w.attempts(run, "assess#1", 1, first)
		w.advance(11*time.Minute, run)
		w.awaits(run, "assess#1", 2)
		w.advance(2*time.Minute, run)
		w.attempts(run, "assess#1", 2, second)
		Expect(w.reports(first, `{"exitCode":0,"outputs":{"score":1}}`)).To(Succeed())
		w.staysAt(run, "assess#1")
		Expect(w.reports(second, `{"exitCode":0,"outputs":{"score":2}}`)).To(Succeed())
		w.reaches(run, api.RunCompleted)
		Expect(string(run.Status.Instance.Context.Raw)).To(MatchJSON(`{"ref":"r","risk":2}`))
		w.leavesNothing(run)
	})

	It("flips no run that is over", func(ctx SpecContext) {
		w := newWorld(ctx)
		stop := w.operate(process{})
		w.compose("release", approval, "")
		w.compose("pause", pause, "")
		failed := w.run("release-1", "release", inputs(`{"ref":"r"}`), activeDeadline("PT1H"))
		cancelled, completed := w.run("pause-1", "pause"), w.run("pause-2", "pause", activeDeadline("PT10H"))
		task := &api.HumanTask{}
		w.opens(failed, "approve#1", task)
		w.patchTask(task, map[string]any{"failure": map[string]any{"reason": "no"}})
		w.opens(cancelled, "rest#1", nil)
		w.cancels(cancelled)
		w.opens(completed, "rest#1", nil)
		w.advance(9*time.Hour, completed)
		over := map[*api.WorkflowRun]api.RunPhase{failed: api.RunFailed, cancelled: api.RunCancelled, completed: api.RunCompleted}
		before := map[*api.WorkflowRun]*api.WorkflowRunStatus{}
		for run, phase := range over {
			before[run] = w.reaches(run, phase).Status.DeepCopy()
		}
		By("starting again when every deadline has passed, with an answer and a wish to cancel")
		stop()
		w.clock.SetTime(w.clock.Now().Add(240 * time.Hour))
		w.answer(task, `{"approved":true}`)
		w.cancels(completed)
		w.operate(process{})
		for run := range over {
			Expect(w.touch(run)).To(Succeed())
			Eventually(func() int64 { return w.fresh(run).Status.ObservedGeneration }).WithTimeout(patience).Should(Equal(run.Generation))
			Expect(unobserved(run.Status)).To(Equal(unobserved(*before[run])))
		}
	})
})

// unobserved is a status without the generation that it is about.
func unobserved(status api.WorkflowRunStatus) api.WorkflowRunStatus {
	status = *status.DeepCopy()
	status.ObservedGeneration = 0
	for i := range status.Conditions {
		status.Conditions[i].ObservedGeneration = 0
	}
	return status
}

var _ = Describe("A suspended run", func() {
	It("lets its time run out and acts on it when it is resumed", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("pause", pause, "")
		run := w.run("pause-1", "pause", explicitly)
		w.opens(run, "rest#1", nil)
		w.advance(9*time.Hour, run)
		w.saysWaiting(run, "rest#1; answered: rest#1")
		Expect(run.Status.Phase).To(Equal(api.RunSuspended))
		w.resumes(run, 1)
		w.reaches(run, api.RunCompleted)
	})

	It("takes the end of a task's time for what it is, however late the answer", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("release", approval, "")
		run := w.run("release-1", "release", inputs(`{"ref":"r"}`), explicitly)
		task := &api.HumanTask{}
		w.opens(run, "approve#1", task)
		w.advance(49*time.Hour, task)
		w.saysWaiting(run, "approve#1; answered: approve#1")
		w.resumes(run, 1)
		w.reaches(run, api.RunFailed)
		Expect(run.Status.Instance.Failure.Code).To(Equal("TASK_EXPIRED"))
	})
})

var _ = Describe("Two runs of one name", func() {
	It("one after the other, have nothing of each other's", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("both", both, work)
		first := w.run("both-1", "both")
		oldTask, oldPod := &api.HumanTask{}, &corev1.Pod{}
		w.opens(first, "ask#1", oldTask)
		w.opens(first, "work#1", oldPod)
		Expect(admin.Delete(ctx, first)).To(Succeed())

		second := w.run("both-1", "both")
		task, pod := &api.HumanTask{}, &corev1.Pod{}
		w.opens(second, "ask#1", task)
		w.opens(second, "work#1", pod)
		Expect(second.UID).NotTo(Equal(first.UID))
		Expect(task.Name).NotTo(Equal(oldTask.Name))
		By("answering what the first one asked")
		w.answer(oldTask, `{"ok":false}`)
		Expect(client.IgnoreAlreadyExists(w.reports(oldPod, `{"exitCode":1}`))).To(Succeed())
		w.staysAt(second, "ask#1")
		w.answer(task, `{"ok":true}`)
		Expect(w.reports(pod, `{"exitCode":0}`)).To(Succeed())
		w.reaches(second, api.RunCompleted)
		Expect(string(second.Status.Instance.Context.Raw)).To(MatchJSON(`{"ok":true}`))
		w.leavesNothing(second)
	})

	It("are not deleted for each other's time to live", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("both", both, work)
		shortly := func(run *api.WorkflowRun) { run.Spec.TTLSecondsAfterFinished = new(int32(0)) }
		first := w.run("both-1", "both", shortly)
		w.opens(first, "ask#1", &api.HumanTask{})
		pod := &corev1.Pod{}
		w.opens(first, "work#1", pod)
		w.cancels(first)
		Eventually(w.isGone(first)).WithTimeout(patience).Should(BeTrue())
		By("having left nothing when it went")
		Expect(w.isClean(first)).To(Succeed())
		second := w.run("both-1", "both", shortly)
		w.opens(second, "ask#1", &api.HumanTask{})
		w.staysAt(second, "ask#1")
	})
})

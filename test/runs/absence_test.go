package runs

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

var _ = Describe("While nobody operates", func() {
	It("an answer is not lost", func(ctx SpecContext) {
		w := newWorld(ctx)
		stop := w.operate(process{})
		w.compose("release", approval, "")
		run := w.run("release-1", "release", inputs(`{"ref":"r"}`))
		task := &api.HumanTask{}
		w.opens(run, "approve#1", task)
		stop()
		w.answer(task, `{"approved":true}`)
		By("being late for the task's own end, which nobody noticed either")
		w.clock.SetTime(w.clock.Now().Add(72 * time.Hour))
		w.operate(process{})
		w.reaches(run, api.RunCompleted)
		Expect(run.Status.History.Entries[1].By).To(Equal("ada"))
	})

	It("a result that came beats the deadline that passed", func(ctx SpecContext) {
		w := newWorld(ctx)
		stop := w.operate(process{})
		w.compose("risk", once, assess)
		run := w.run("risk-1", "risk", inputs(`{"ref":"r"}`))
		pod := &corev1.Pod{}
		w.opens(run, "assess#1", pod)
		stop()
		Expect(w.reports(pod, `{"exitCode":0,"outputs":{"score":3}}`)).To(Succeed())
		w.clock.SetTime(w.clock.Now().Add(time.Hour))
		w.operate(process{})
		w.reaches(run, api.RunCompleted)
	})

	It("the deadline of the whole run passes all the same", func(ctx SpecContext) {
		w := newWorld(ctx)
		stop := w.operate(process{})
		w.compose("both", both, work)
		run := w.run("both-1", "both", activeDeadline("PT1H"))
		w.opens(run, "ask#1", &api.HumanTask{})
		w.opens(run, "work#1", &corev1.Pod{})
		stop()
		w.clock.SetTime(w.clock.Now().Add(2 * time.Hour))
		w.operate(process{})
		w.reaches(run, api.RunFailed)
		Expect(run.Status.Instance.Failure.Code).To(Equal("DEADLINE_EXCEEDED"))
		w.leavesNothing(run)
	})

	It("a run may be deleted, and its pods are let go", func(ctx SpecContext) {
		w := newWorld(ctx)
		stop := w.operate(process{})
		w.compose("risk", assessment, assess)
		run := w.run("risk-1", "risk", inputs(`{"ref":"r"}`))
		pod := &corev1.Pod{}
		w.opens(run, "assess#1", pod)
		stop()
		Expect(admin.Delete(ctx, run)).To(Succeed())
		Expect(admin.Delete(ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())
		w.operate(process{})
		Eventually(w.isGone(pod)).WithTimeout(patience).Should(BeTrue())
	})
})

var _ = Describe("A clock that is wrong", func() {
	DescribeTable("makes a run neither end early nor do anything twice",
		func(ctx SpecContext, skew time.Duration) {
			w := newWorld(ctx)
			made := &tally{}
			stop := w.operate(process{after: made.count})
			w.compose("both", both, work)
			run := w.run("both-1", "both", activeDeadline("PT5H"))
			task, pod := &api.HumanTask{}, &corev1.Pod{}
			w.opens(run, "ask#1", task)
			w.opens(run, "work#1", pod)
			By("going on with an operator whose clock differs")
			stop()
			w.clock.SetTime(w.clock.Now().Add(skew))
			w.operate(process{after: made.count})
			w.answer(task, `{"ok":true}`)
			w.closes(run, "ask#1")
			Expect(w.reports(pod, `{"exitCode":0}`)).To(Succeed())
			w.reaches(run, api.RunCompleted)
			w.leavesNothing(run)
			Expect(made.of("pods") + made.of("humantasks")).To(Equal(2))
		},
		Entry("when it is an hour behind", -time.Hour),
		Entry("when it is an hour ahead", time.Hour),
	)
})

var _ = Describe("An answer and a wish to cancel at once", func() {
	It("end in cancellation", func(ctx SpecContext) {
		w := newWorld(ctx)
		stop := w.operate(process{})
		w.compose("release", approval, "")
		run := w.run("release-1", "release", inputs(`{"ref":"r"}`))
		task := &api.HumanTask{}
		w.opens(run, "approve#1", task)
		stop()
		w.answer(task, `{"approved":true}`)
		w.cancels(run)
		w.operate(process{})
		w.reaches(run, api.RunCancelled)
		Expect(run.Status.History.Entries[1].Outcome).To(Equal("Cancelled"))
	})
})

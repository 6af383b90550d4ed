package runs

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

var _ = Describe("A definition that is edited", func() {
	It("does not change a run that has begun", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("release", approval, "")
		run := w.run("release-1", "release", inputs(`{"ref":"r"}`))
		task := &api.HumanTask{}
		w.opens(run, "approve#1", task)
		comp := &api.Composition{ObjectMeta: w.meta("release")}
		w.changes(comp, `{"spec":{"workflow":`+asJSON(strings.Replace(approval, "outcome: released", "outcome: edited", 1))+`}}`)
		Eventually(func(g Gomega) {
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(comp), comp)).To(Succeed())
			g.Expect(comp.Status.Snapshot).NotTo(Equal(run.Status.Definition.Snapshot))
		}).WithTimeout(patience).Should(Succeed())
		w.answer(task, `{"approved":true}`)
		w.reaches(run, api.RunCompleted)
		Expect(run.Status.Outcome).To(Equal("released"))
	})
})

var _ = Describe("A quota that refuses a pod", func() {
	It("is no failure: the run goes on when it is lifted", func(ctx SpecContext) {
		w := newWorld(ctx)
		limit := &corev1.LimitRange{ObjectMeta: w.meta("tiny")}
		limit.Spec.Limits = []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m")},
		}}
		Expect(admin.Create(ctx, limit)).To(Succeed())
		refused := &tally{}
		w.operate(process{after: refused.countForbidden})
		w.compose("risk", assessment, assess)
		run := w.run("risk-1", "risk", inputs(`{"ref":"r"}`))
		Eventually(refused.of).WithArguments("pods").WithTimeout(patience).Should(BeNumerically(">=", 2))
		Expect(branchOf(w.fresh(run), "assess#1").Attempt).To(Equal(int32(1)))
		Expect(admin.Delete(ctx, limit)).To(Succeed())
		w.attempts(run, "assess#1", 1, &corev1.Pod{})
	})
})

var _ = Describe("A result that is none", func() {
	It("fails the attempt and not the operator", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("risk", once, assess)
		run := w.run("risk-1", "risk", inputs(`{"ref":"r"}`))
		pod := &corev1.Pod{}
		w.opens(run, "assess#1", pod)
		Expect(w.reports(pod, `{"exitCode":`)).To(Succeed())
		w.reaches(run, api.RunFailed)
		Expect(run.Status.Instance.Failure.Code).To(Equal("INVALID_RESULT"))
		w.leavesNothing(run)
	})
})

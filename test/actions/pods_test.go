package actions

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/testing/kubelet"
)

// job does one piece of work, at most twice, and says what came of it.
const job = `
id: job
name: Job
nodes:
- {id: start, type: start, name: Start, config: {inputs: [{name: ref}]}}
- id: work
  type: action
  name: Work
  config:
    actionType: work
    inputs: {ref: context.ref}
    outputs: [{name: score, type: number}]
    retry: {maxAttempts: 2, backoff: {initial: PT1M}}
- {id: done, type: end, name: Done, config: {outcome: done}}
- {id: broken, type: end, name: Broken, config: {outcome: broken}}
edges:
- {id: e1, source: start, target: work}
- {id: e2, source: work, target: done}
- {id: e3, source: work, target: broken, isError: true}
`

// once is the job without a second chance.
var once = strings.Replace(job, "maxAttempts: 2", "maxAttempts: 1", 1)

const work = `
- name: work
  description: Works.
  mode: script
  script: {scriptTemplate: "echo '{\"score\": 1}' > $AXIOM_OUTPUTS"}
  env: [{name: DB_PASSWORD, secretKeyRef: {name: db, key: password}}, {name: GREETING, value: hello}]
  inputs: [{name: ref, type: string, required: true}]
  outputs: [{name: score, type: number}]
`

// grants creates the Secret that the work refers to.
func (w *world) grants(change ...func(*corev1.Secret)) *corev1.Secret {
	GinkgoHelper()
	secret := &corev1.Secret{ObjectMeta: w.meta("db"), StringData: map[string]string{"password": "correct-horse"}}
	secret.Labels = map[string]string{api.LabelCredential: "true"}
	for _, f := range change {
		f(secret)
	}
	Expect(admin.Create(w.ctx, secret)).To(Succeed())
	return secret
}

var _ = Describe("The pod of an action", func() {
	It("meets the restricted standard and knows secrets by reference only", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate()
		w.grants()
		w.compose("job", job, work)
		pod := &corev1.Pod{}
		w.opens(w.run("job-1", "job", inputs(`{"ref":"r"}`)), "work#1", 1, pod)
		Expect(show(pod)).NotTo(ContainSubstring("correct-horse"))
		env := map[string]corev1.EnvVar{}
		for _, v := range pod.Spec.Containers[0].Env {
			env[v.Name] = v
		}
		Expect(env["DB_PASSWORD"].ValueFrom.SecretKeyRef.Name).To(Equal("db"))
		Expect(env["AXIOM_SECRET_ENV"].Value).To(Equal("DB_PASSWORD"))
		Expect(pod.Spec.Containers[0].Resources.Limits).To(HaveKey(corev1.ResourceMemory))
	})

	// Each end of a pod without a result is told in its own way.
	DescribeTable("tells how it ended:",
		func(ctx SpecContext, happens func(w *world, run *api.WorkflowRun, pod *corev1.Pod), code, message string) {
			w := newWorld(ctx)
			w.operate()
			w.grants()
			w.compose("job", once, work)
			run := w.run("job-1", "job", inputs(`{"ref":"r"}`))
			pod := &corev1.Pod{}
			w.opens(run, "work#1", 1, pod)
			happens(w, run, pod)
			w.reaches(run, api.RunCompleted)
			Expect(run.Status.Outcome).To(Equal("broken"))
			Expect(failureOf(run, "work#1").Code).To(Equal(code))
			Expect(failureOf(run, "work#1").Message).To(Equal(message))
			w.leavesNothing(run)
		},
		Entry("killed for want of memory", func(w *world, run *api.WorkflowRun, pod *corev1.Pod) {
			w.becomes(pod, kubelet.OutOfMemory)
			w.advance(31*time.Second, run)
		}, "RESULT_MISSING", "the pod ended without a result: OOMKilled: container script ended with exit code 137 (SIGKILL)"),
		Entry("its result was lost on the way", func(w *world, run *api.WorkflowRun, pod *corev1.Pod) {
			w.becomes(pod, kubelet.Ends(1))
			w.advance(31*time.Second, run)
		}, "RESULT_MISSING", "the pod ended without a result: container script ended with exit code 1"),
		Entry("evicted", func(w *world, _ *api.WorkflowRun, pod *corev1.Pod) {
			w.becomes(pod, kubelet.Evicted("The node was low on resource: memory."))
		}, "POD_LOST", "the pod was lost: Evicted: The node was low on resource: memory."),
		Entry("preempted", func(w *world, _ *api.WorkflowRun, pod *corev1.Pod) {
			w.becomes(pod, kubelet.Preempted)
			w.becomes(pod, kubelet.Ends(143))
		}, "POD_LOST", "the pod was lost: PreemptionByScheduler: default-scheduler: preempting to accommodate a higher priority pod"),
		Entry("on a node that was lost", func(w *world, run *api.WorkflowRun, pod *corev1.Pod) {
			w.becomes(pod, kubelet.NodeLost)
			Expect(admin.Delete(w.ctx, pod)).To(Succeed())
			// Nobody ends it there: its time to go passes, and some more.
			w.advance(2*time.Minute, run)
		}, "POD_LOST", "the pod was lost: DeletionByTaintManager: Taint manager: deleting due to NoExecute taint"),
		Entry("collected as garbage", func(w *world, _ *api.WorkflowRun, pod *corev1.Pod) {
			w.becomes(pod, kubelet.Collected)
			Expect(admin.Delete(w.ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())
		}, "POD_LOST", "the pod was lost: DeletionByPodGC: PodGC: node no longer exists"),
		Entry("forgotten by its node", func(w *world, _ *api.WorkflowRun, pod *corev1.Pod) {
			w.becomes(pod, kubelet.Forgotten)
		}, "POD_LOST", "the pod was lost: ContainerStatusUnknown: its node lost track of container script"),
		Entry("deleted by somebody", func(w *world, run *api.WorkflowRun, pod *corev1.Pod) {
			Expect(admin.Delete(w.ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())
			w.advance(31*time.Second, run)
		}, "POD_LOST", "the pod was lost: it was deleted"),
		Entry("without a node", func(w *world, run *api.WorkflowRun, pod *corev1.Pod) {
			w.becomes(pod, kubelet.Unschedulable("0/3 nodes are available: 3 Insufficient memory."))
			w.saysOf(run, "work#1: Unschedulable")
			w.advance(startTimeout, run)
		}, "POD_LOST", "the pod could not start within 5m0s: Unschedulable: 0/3 nodes are available: 3 Insufficient memory."),
		Entry("with an image that cannot be pulled", func(w *world, run *api.WorkflowRun, pod *corev1.Pod) {
			w.becomes(pod, kubelet.Waits("ErrImagePull", "not found"))
			w.saysOf(run, "work#1: ImagePullBackOff (image bash)")
			w.becomes(pod, kubelet.Waits("ImagePullBackOff", `Back-off pulling image "bash"`))
			w.advance(startTimeout, run)
		}, "POD_LOST", `the pod could not start within 5m0s: ImagePullBackOff (image bash): Back-off pulling image "bash"`),
		Entry("with what is no image", func(w *world, _ *api.WorkflowRun, pod *corev1.Pod) {
			w.becomes(pod, kubelet.Waits("InvalidImageName", "invalid reference format"))
		}, "POD_LOST", "the pod cannot start: InvalidImageName (image bash): invalid reference format"),
		Entry("with a Secret that went after it was looked at", func(w *world, run *api.WorkflowRun, pod *corev1.Pod) {
			Expect(admin.Delete(w.ctx, &corev1.Secret{ObjectMeta: w.meta("db")})).To(Succeed())
			w.becomes(pod, kubelet.Waits("CreateContainerConfigError", `secret "db" not found`))
			w.advance(startTimeout, run)
		}, "SECRET_UNUSABLE", `the pod could not start within 5m0s: CreateContainerConfigError: secret "db" not found`),
	)

	It("is not pulled for, again and again, for ever", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate()
		w.grants()
		w.compose("job", job, work)
		run := w.run("job-1", "job", inputs(`{"ref":"r"}`))
		for attempt := range int32(2) {
			pod := &corev1.Pod{}
			w.opens(run, "work#1", attempt+1, pod)
			w.becomes(pod, kubelet.Waits("ImagePullBackOff", "no such image"))
			w.advance(startTimeout+time.Second, run)
			Eventually(func() bool { return w.isGone(pod) }).Should(BeTrue())
			w.advance(time.Minute, run)
		}
		w.reaches(run, api.RunCompleted)
		Expect(failureOf(run, "work#1").Code).To(Equal("POD_LOST"))
		Expect(run.Status.History.Entries[1].Attempts).To(Equal(int32(2)))
		w.leavesNothing(run)
	})

	It("may start late if somebody mends what kept it from starting", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate()
		w.grants()
		w.compose("job", once, work)
		run := w.run("job-1", "job", inputs(`{"ref":"r"}`))
		pod := &corev1.Pod{}
		w.opens(run, "work#1", 1, pod)
		w.becomes(pod, kubelet.Waits("ErrImagePull", "not found"))
		w.advance(startTimeout-15*time.Second, run)
		w.saysOf(run, "work#1: ImagePullBackOff (image bash)")
		w.becomes(pod, func(pod *corev1.Pod, _ time.Time) {
			pod.Status.Phase, pod.Status.ContainerStatuses = corev1.PodRunning, nil
		})
		w.advance(time.Hour, run)
		w.saysOf(run, "")
		w.posts(pod, `{"exitCode":0,"outputs":{"score":7}}`, 204)
		w.reaches(run, api.RunCompleted)
		Expect(outputOf(run, "work#1")).To(MatchJSON(`{"score":7}`))
	})
})

// saysOf waits until the run says of itself what keeps it.
func (w *world) saysOf(run *api.WorkflowRun, message string) {
	GinkgoHelper()
	sees(w, run, func(g Gomega, run *api.WorkflowRun) {
		reconciling := apimeta.FindStatusCondition(run.Status.Conditions, api.ConditionReconciling)
		g.Expect(reconciling).NotTo(BeNil())
		g.Expect(reconciling.Message).To(Equal(message))
	})
}

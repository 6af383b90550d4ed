package runs

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

const approval = `
id: approval
name: Approval
nodes:
- {id: start, type: start, name: Start, config: {inputs: [{name: ref, required: true}]}}
- id: approve
  type: human-task
  name: Approve
  config:
    title: "'Release ' + context.ref"
    description: Decide.
    inputs: {Change: context.ref, Link: "'https://example.invalid/' + context.ref"}
    outputs:
    - {name: approved, type: boolean, required: true}
    assignees: {groups: [managers]}
    timeout: P2D
- {id: done, type: end, name: Done, config: {outcome: released}}
- {id: refused, type: end, name: Refused, config: {outcome: refused}}
edges:
- {id: e1, source: start, target: approve}
- {id: e2, source: approve, target: done, condition: context.approved == true}
- {id: e3, source: approve, target: refused, isDefault: true}
`

const assessment = `
id: assessment
name: Assessment
nodes:
- {id: start, type: start, name: Start, config: {inputs: [{name: ref}]}}
- id: assess
  type: action
  name: Assess
  config:
    actionType: assess
    inputs: {ref: context.ref}
    outputs: [{name: score, type: number, required: true, contextKey: risk}]
    timeout: PT10M
    retry: {maxAttempts: 2, backoff: {initial: PT1M}}
- {id: done, type: end, name: Done}
edges:
- {id: e1, source: start, target: assess}
- {id: e2, source: assess, target: done}
`

// once is the assessment with one attempt of twenty minutes.
var once = strings.NewReplacer("maxAttempts: 2", "maxAttempts: 1", "PT10M", "PT20M").Replace(assessment)

const assess = `
- name: assess
  description: Scores a change.
  mode: script
  script: {scriptTemplate: "echo '{\"score\": 1}' > $AXIOM_OUTPUTS"}
  env: [{name: GREETING, value: "$(HOME)"}]
  inputs: [{name: ref, required: true}]
  outputs: [{name: score, type: number, required: true}]
`

var _ = Describe("A run that asks a person", func() {
	It("goes the way that the answer says", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("release", approval, "")
		run := w.run("release-1", "release", inputs(`{"ref":"r-17"}`))

		By("creating the task under the name that its status promised")
		task := &api.HumanTask{}
		open := w.opens(run, "approve#1", task)
		Expect(open.Child.Name).To(Equal(childName(run, "approve#1")))
		Expect(task.Spec.HumanContext).To(Equal(api.HumanContext{
			Title: "Release r-17", Description: "Decide.",
			Details: []api.LabelledValue{
				{Label: "Change", Value: "r-17"}, {Label: "Link", Value: "https://example.invalid/r-17"},
			},
			References: []api.LabelledURL{{Label: "Link", URL: "https://example.invalid/r-17"}},
		}))
		Expect(task.Spec.Assignees).To(Equal(&api.Assignees{Groups: []string{"managers"}}))
		Expect(task.Spec.ExpiresAfter).To(Equal("P2D"))
		Expect(metav1.IsControlledBy(task, run)).To(BeTrue())

		By("saying what it waits for")
		w.reaches(run, api.RunWaiting)
		Expect(reasonOf(run, api.ConditionAccepted)).To(Equal(api.ReasonPinned))
		Expect(reasonOf(run, api.ConditionWaiting)).To(Equal(api.ReasonHumanTask))
		Expect(apimeta.IsStatusConditionTrue(run.Status.Conditions, api.ConditionReconciling)).To(BeTrue())
		Expect(run.Status.CurrentNode).To(Equal("approve"))
		Eventually(func(g Gomega) {
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(task), task)).To(Succeed())
			g.Expect(task.Status.Phase).To(Equal(api.TaskAwaitingInput))
		}).Should(Succeed())

		By("taking the answer in the form's types")
		w.answer(task, `{"approved":"true","note":"go"}`)
		w.reaches(run, api.RunCompleted)
		Expect(run.Status.Outcome).To(Equal("released"))
		Expect(string(run.Status.Instance.Context.Raw)).To(MatchJSON(`{"ref":"r-17","approved":true,"note":"go"}`))
		Expect(apimeta.IsStatusConditionTrue(run.Status.Conditions, api.ConditionReady)).To(BeTrue())
		Expect(run.Status.FinishedAt).NotTo(BeNil())

		By("keeping the history")
		Expect(run.Status.History.Total).To(Equal(int64(3)))
		closed := run.Status.History.Entries[1]
		Expect(closed.Activation).To(Equal("approve#1"))
		Expect(closed.By).To(Equal("ada"))
		Expect(closed.Edge).To(Equal("e1"))
		Expect(string(closed.Output.Raw)).To(MatchJSON(`{"approved":true,"note":"go"}`))
	})

	It("takes the default edge when no condition holds", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("release", approval, "")
		run := w.run("release-1", "release", inputs(`{"ref":"r-18"}`))
		task := &api.HumanTask{}
		w.opens(run, "approve#1", task)
		w.answer(task, `{"approved":false}`)
		w.reaches(run, api.RunCompleted)
		Expect(run.Status.Outcome).To(Equal("refused"))
	})

	It("fails where the person says that it cannot be done", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("release", approval, "")
		run := w.run("release-1", "release", inputs(`{"ref":"r-18"}`))
		task := &api.HumanTask{}
		w.opens(run, "approve#1", task)
		w.patchTask(task, map[string]any{"failure": map[string]any{"reason": "wrong ref"}})
		w.reaches(run, api.RunFailed)
		Expect(run.Status.Instance.Failure.Code).To(Equal("TASK_FAILED"))
		Expect(reasonOf(run, api.ConditionStalled)).To(Equal("Failed"))
		Expect(apimeta.FindStatusCondition(run.Status.Conditions, api.ConditionReady).Message).NotTo(ContainSubstring("wrong ref"))
	})

	It("fails when nobody answers in time", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("release", approval, "")
		run := w.run("release-1", "release", inputs(`{"ref":"r-18"}`))
		task := &api.HumanTask{}
		w.opens(run, "approve#1", task)
		w.advance(49*time.Hour, task)
		w.reaches(run, api.RunFailed)
		Expect(run.Status.Instance.Failure.Code).To(Equal("TASK_EXPIRED"))
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(task), task)).To(Succeed())
		Expect(task.Status.Phase).To(Equal(api.TaskExpired))
	})
})

var _ = Describe("A run that runs a script", func() {
	It("gives it its inputs and takes its outputs", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("risk", assessment, assess)
		run := w.run("risk-1", "risk", inputs(`{"ref":"r-17"}`))

		By("making a restricted pod with a token of its own")
		pod := &corev1.Pod{}
		w.opens(run, "assess#1", pod)
		w.reaches(run, api.RunRunning)
		Expect(pod.Name).To(Equal(childName(run, "assess#1") + "-a1"))
		Expect(pod.Finalizers).To(ConsistOf(api.FinalizerCollect))
		Expect(pod.Annotations).To(HaveKeyWithValue(api.AnnotationTokenHash, HavePrefix("sha256:")))
		Expect(pod.Labels).To(HaveKeyWithValue(api.LabelComponent, api.ComponentAction))
		Expect(*pod.Spec.AutomountServiceAccountToken).To(BeFalse())
		Expect(envOf(pod, "GREETING").Value).To(Equal("$$(HOME)"))
		Expect(envOf(pod, "AXIOM_ATTEMPT_ID").Value).To(Equal(w.namespace + "/" + pod.Name))
		Expect(envOf(pod, "AXIOM_ATTEMPT_TOKEN").ValueFrom.SecretKeyRef.Name).To(Equal(pod.Name))
		secret := &corev1.Secret{}
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(pod), secret)).To(Succeed())
		Expect(pod.Annotations[api.AnnotationTokenHash]).To(Equal(hashOf(secret.Data["token"])))
		given := &corev1.ConfigMap{}
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: pod.Name + "-in"}, given)).To(Succeed())
		Expect(given.Data["inputs.json"]).To(MatchJSON(`{"ref":"r-17"}`))

		By("taking the result")
		Expect(w.reports(pod, `{"exitCode":0,"outputs":{"score":3}}`)).To(Succeed())
		w.reaches(run, api.RunCompleted)
		Expect(string(run.Status.Instance.Context.Raw)).To(MatchJSON(`{"ref":"r-17","risk":3}`))
		Expect(run.Status.History.Entries[1].Attempts).To(Equal(int32(1)))
		w.leavesNothing(run)
	})

	It("is tried again after its backoff, and no more often than it may be", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("risk", assessment, assess)
		run := w.run("risk-1", "risk", inputs(`{"ref":"r-17"}`))
		first := &corev1.Pod{}
		w.opens(run, "assess#1", first)
		Expect(w.reports(first, `{"exitCode":3}`)).To(Succeed())

		By("waiting for the backoff")
		Eventually(func(g Gomega) {
			open := branchOf(w.fresh(run), "assess#1")
			g.Expect(open.Attempt).To(Equal(int32(2)))
			g.Expect(open.LastError.Code).To(Equal("EXIT_CODE"))
		}).Should(Succeed())
		Eventually(w.isGone(first)).Should(BeTrue())
		second := &corev1.Pod{ObjectMeta: w.meta(childName(run, "assess#1") + "-a2")}
		Expect(w.isGone(second)()).To(BeTrue())

		By("trying once more")
		w.advance(61*time.Second, run)
		w.opens(run, "assess#1", second)
		Expect(w.reports(second, `{"exitCode":4}`)).To(Succeed())
		w.reaches(run, api.RunFailed)
		Expect(run.Status.Instance.Failure.Code).To(Equal("EXIT_CODE"))
		Expect(run.Status.History.Entries[1].Attempts).To(Equal(int32(2)))
		w.leavesNothing(run)
	})

	DescribeTable("fails by what became of its pod",
		func(ctx SpecContext, happens func(w *world, run *api.WorkflowRun, pod *corev1.Pod), code string) {
			w := newWorld(ctx)
			w.operate(process{})
			w.compose("risk", once, assess)
			run := w.run("risk-1", "risk", inputs(`{"ref":"r-17"}`))
			pod := &corev1.Pod{}
			w.opens(run, "assess#1", pod)
			happens(w, run, pod)
			w.reaches(run, api.RunFailed)
			Expect(run.Status.Instance.Failure.Code).To(Equal(code))
			w.leavesNothing(run)
		},
		Entry("the script's exit code", func(w *world, _ *api.WorkflowRun, pod *corev1.Pod) {
			Expect(w.reports(pod, `{"exitCode":1}`)).To(Succeed())
		}, "EXIT_CODE"),
		Entry("outputs that break the contract", func(w *world, _ *api.WorkflowRun, pod *corev1.Pod) {
			Expect(w.reports(pod, `{"exitCode":0,"outputs":{"score":"high"}}`)).To(Succeed())
		}, "OUTPUT_CONTRACT"),
		Entry("no object as output", func(w *world, _ *api.WorkflowRun, pod *corev1.Pod) {
			Expect(w.reports(pod, `{"exitCode":0,"error":{"code":"INVALID_RESULT","message":"a list"}}`)).To(Succeed())
		}, "INVALID_RESULT"),
		Entry("its eviction", func(w *world, run *api.WorkflowRun, pod *corev1.Pod) {
			pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted"
			Expect(admin.Status().Update(w.ctx, pod)).To(Succeed())
			w.advance(time.Minute, run)
		}, "POD_LOST"),
		Entry("somebody who deleted it", func(w *world, _ *api.WorkflowRun, pod *corev1.Pod) {
			w.podEnds(pod, 137)
			Expect(admin.Delete(w.ctx, pod)).To(Succeed())
		}, "POD_LOST"),
		Entry("its end without a result", func(w *world, run *api.WorkflowRun, pod *corev1.Pod) {
			w.podEnds(pod, 1)
			w.advance(31*time.Second, run)
		}, "RESULT_MISSING"),
		Entry("its timeout", func(w *world, run *api.WorkflowRun, _ *corev1.Pod) {
			w.advance(21*time.Minute, run)
		}, "ATTEMPT_TIMEOUT"),
		Entry("an image that cannot be pulled", func(w *world, run *api.WorkflowRun, pod *corev1.Pod) {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: "script", Image: "nowhere/none", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}},
			}}
			Expect(admin.Status().Update(w.ctx, pod)).To(Succeed())
			Eventually(func(g Gomega) {
				reconciling := apimeta.FindStatusCondition(w.fresh(run).Status.Conditions, api.ConditionReconciling)
				g.Expect(reconciling.Message).To(Equal("assess#1: ImagePullBackOff (image nowhere/none)"))
			}).Should(Succeed())
			w.advance(11*time.Minute, run)
		}, "POD_LOST"),
	)

	DescribeTable("fails before it makes a pod",
		func(ctx SpecContext, actionTypes, given, code string) {
			w := newWorld(ctx)
			w.operate(process{})
			w.compose("risk", assessment, actionTypes)
			run := w.run("risk-1", "risk", inputs(given))
			w.reaches(run, api.RunFailed)
			Expect(run.Status.Instance.Failure.Code).To(Equal(code))
			w.leavesNothing(run)
		},
		Entry("for want of the action type", "", `{"ref":"a"}`, "UNKNOWN_ACTION_TYPE"),
		Entry("for an action type with errors", `[{name: assess, mode: script}]`, `{"ref":"a"}`, "INVALID_ACTION_TYPE"),
		Entry("for inputs that break the contract", assess, `{}`, "INPUT_CONTRACT"),
		Entry("for an input of the wrong type", assess, `{"ref":{}}`, "INPUT_CONTRACT"),
		Entry("for a Secret without the label",
			strings.Replace(assess, `value: "$(HOME)"`, "secretKeyRef: {name: unlabelled, key: k}", 1), `{"ref":"a"}`, "SECRET_UNUSABLE"),
	)

	It("finds library action types of its namespace", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		library := &api.ActionType{ObjectMeta: w.meta("assess")}
		library.Spec.Mode, library.Spec.Script.ScriptTemplate, library.Spec.Script.Image = api.ModeNode, "true", "example.invalid/own:1"
		Expect(admin.Create(ctx, library)).To(Succeed())
		w.compose("risk", assessment, "")
		run := w.run("risk-1", "risk", inputs(`{"ref":"a"}`))
		pod := &corev1.Pod{}
		w.opens(run, "assess#1", pod)
		Expect(pod.Spec.Containers[0].Image).To(Equal("example.invalid/own:1"))
	})
})

func childName(run *api.WorkflowRun, activation string) string {
	sum := sha256.Sum256([]byte(string(run.UID) + "/" + activation))
	return run.Name[:min(len(run.Name), 42)] + "-" + hex.EncodeToString(sum[:])[:16]
}

func hashOf(token []byte) string {
	sum := sha256.Sum256(token)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func envOf(pod *corev1.Pod, name string) corev1.EnvVar {
	for _, v := range pod.Spec.Containers[0].Env {
		if v.Name == name {
			return v
		}
	}
	return corev1.EnvVar{}
}

func reasonOf(run *api.WorkflowRun, condition string) string {
	if c := apimeta.FindStatusCondition(run.Status.Conditions, condition); c != nil {
		return c.Reason
	}
	return ""
}

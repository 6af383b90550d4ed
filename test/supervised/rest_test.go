package supervised

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

var _ = Describe("A suspended run", func() {
	It("supervised 21: is suspended only when its pods are gone", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.settles()
		w.operate()
		w.teaches("planner", says("You said", "All is well.")+says("", `{"passed":true}`))
		run := w.starts("assessment", w.defines(map[string]string{"flows/start.md": assess}), map[string]any{"agent": "planner"})

		By("keeping the agent's pod from going")
		held := w.pod()
		const hold = `{"metadata":{"finalizers":["example.com/hold"]}}`
		Expect(admin.Patch(ctx, held, client.RawPatch(types.MergePatchType, []byte(hold)))).To(Succeed())

		sees(w, run, func(g Gomega, run *api.WorkflowRun) {
			g.Expect(run.Status.Intents).To(HaveLen(1))
			g.Expect(run.Status.Intents[0].Task).NotTo(BeEmpty())
			g.Expect(condition(run, api.ConditionReconciling)).To(HaveSuffix(" PodsTerminating"))
		})
		Eventually(func(g Gomega) {
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(held), held)).To(Succeed())
			g.Expect(held.DeletionTimestamp).NotTo(BeNil())
		}).Should(Succeed())
		Expect(run.Status.Phase).To(Equal(api.RunRunning))

		By("letting it go")
		Expect(admin.Patch(ctx, held, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		w.checkpoint(run)
		var pods corev1.PodList
		Expect(admin.List(ctx, &pods, client.InNamespace(w.namespace))).To(Succeed())
		Expect(pods.Items).To(BeEmpty())
	})

	DescribeTable("supervised 25: takes no answer that was forged past admission",
		func(ctx SpecContext, answer string, forge func(*world, *api.HumanTask)) {
			w := newWorld(ctx)
			stop := w.operate()
			run := w.publishes("notes", "All is well.\n")
			task := w.checkpoint(run)
			stop()
			done, executions := activations(run), len(run.Status.Executions)
			forge(w, task)
			task.Status.Answer = &runtime.RawExtension{Raw: []byte(answer)}
			task.Status.AnsweredBy = &api.Answerer{Username: "mallory"}
			now := metav1.Now().Rfc3339Copy()
			task.Status.AnsweredAt = &now
			if answer == byNobody {
				task.Status.AnsweredBy = nil
			}
			w.forges(task)
			w.resumes(run)

			w.operate()
			sees(w, run, func(g Gomega, run *api.WorkflowRun) {
				g.Expect(condition(run, api.ConditionAnswerRefused)).To(Equal("True AnswerRefused"))
			})
			Expect(run.Status.Phase).To(Equal(api.RunSuspended))
			Expect(run.Status.Executions).To(HaveLen(executions))
			Expect(activations(run)).To(Equal(done))
			Expect(run.Status.ObservedResumeRequests).To(BeZero(), "the request stays")
			data, err := json.Marshal(run.Status.Conditions)
			Expect(err).NotTo(HaveOccurred())
			Expect(string(data)).NotTo(ContainSubstring("forged"))

			By("asking again, once the task is deleted")
			Expect(admin.Delete(ctx, task)).To(Succeed())
			uid := task.UID
			sees(w, task, func(g Gomega, task *api.HumanTask) { g.Expect(task.UID).NotTo(Equal(uid)) })
			w.answers(task, `{"proceed":true}`)
			w.resumes(run)
			w.reaches(run, api.RunCompleted)
			Expect(condition(run, api.ConditionAnswerRefused)).To(HavePrefix("False"))
		},
		Entry("of another type", `{"proceed":"forged"}`, asked),
		Entry("with a member more", `{"proceed":true,"more":"forged"}`, asked),
		Entry("by nobody", byNobody, asked),
		Entry("with a secret in it", `{"proceed":true,"note":"Bearer abcdefghijklmnopqrstuvwxyz0123456789"}`, asked),
		Entry("to another question", `{"proceed":true}`, func(w *world, task *api.HumanTask) {
			w.supplants(task, func(other *api.HumanTask) { other.Spec.Fingerprint = "sha256:" + strings.Repeat("0", 64) })
		}),
		Entry("for another activation", `{"proceed":true}`, func(w *world, task *api.HumanTask) {
			w.supplants(task, func(other *api.HumanTask) { other.Spec.RunRef.Activation = "gate[2]/ask#1" })
		}),
	)
})

// byNobody is an answer that nobody is said to have given.
const byNobody = `{"proceed": true}`

// asked is a task as the run asked it.
func asked(*world, *api.HumanTask) {}

// supplants a task with one that the run did not ask.
func (w *world) supplants(task *api.HumanTask, change func(*api.HumanTask)) {
	GinkgoHelper()
	other := &api.HumanTask{ObjectMeta: w.meta(task.Name), Spec: *task.Spec.DeepCopy()}
	other.Labels, other.OwnerReferences = task.Labels, task.OwnerReferences
	change(other)
	Expect(admin.Delete(w.ctx, task)).To(Succeed())
	Expect(operatorPerson().Create(w.ctx, other)).To(Succeed())
	other.DeepCopyInto(task)
}

// pod is the only one, once it is there.
func (w *world) pod() *corev1.Pod {
	GinkgoHelper()
	var pods corev1.PodList
	Eventually(func(g Gomega) {
		g.Expect(admin.List(w.ctx, &pods, client.InNamespace(w.namespace))).To(Succeed())
		g.Expect(pods.Items).To(HaveLen(1))
	}).Should(Succeed())
	return &pods.Items[0]
}

// forges writes to a task's status what admission keeps everybody from writing, while
// it does not look at the world's namespace.
func (w *world) forges(task *api.HumanTask) {
	GinkgoHelper()
	var mutating admissionv1.MutatingWebhookConfigurationList
	var validating admissionv1.ValidatingWebhookConfigurationList
	Expect(admin.List(w.ctx, &mutating)).To(Succeed())
	Expect(admin.List(w.ctx, &validating)).To(Succeed())
	blind := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{w.namespace}},
	}}
	var looks []func()
	for i := range mutating.Items {
		config := &mutating.Items[i]
		looks = append(looks, w.changes(config, func() {
			for j := range config.Webhooks {
				config.Webhooks[j].NamespaceSelector = blind
			}
		}))
	}
	for i := range validating.Items {
		config := &validating.Items[i]
		looks = append(looks, w.changes(config, func() {
			for j := range config.Webhooks {
				config.Webhooks[j].NamespaceSelector = blind
			}
		}))
	}
	operator := operatorPerson()
	Eventually(func() error { return operator.Status().Update(w.ctx, task.DeepCopy()) }).Should(Succeed())
	for _, look := range looks {
		look()
	}
	Eventually(func() error { return operator.Status().Update(w.ctx, task.DeepCopy(), client.DryRunAll) }).ShouldNot(Succeed())
}

// changes an object until the returned function is called, or the spec ends.
func (w *world) changes(object client.Object, change func()) (restore func()) {
	GinkgoHelper()
	before := object.DeepCopyObject().(client.Object)
	change()
	Expect(admin.Patch(w.ctx, object, client.MergeFrom(before))).To(Succeed())
	after := object.DeepCopyObject().(client.Object)
	restore = sync.OnceFunc(func() {
		before.SetResourceVersion(after.GetResourceVersion())
		Expect(admin.Patch(context.Background(), before, client.MergeFrom(after))).To(Succeed())
	})
	DeferCleanup(restore)
	return restore
}

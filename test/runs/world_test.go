package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/testing/testenv"
)

const patience = 20 * time.Second

// world is a namespace with everybody in it but the operator.
type world struct {
	ctx       context.Context
	namespace string
	clock     *clocktesting.FakePassiveClock
}

// newWorld makes a namespace whose clock stands still until it is advanced.
func newWorld(ctx context.Context) *world {
	GinkgoHelper()
	w, err := makeWorld(ctx)
	Expect(err).NotTo(HaveOccurred())
	return w
}

func makeWorld(ctx context.Context) (*world, error) {
	ns := testenv.Namespace("runs")
	if err := admin.Create(ctx, ns); err != nil {
		return nil, err
	}
	return &world{ctx: ctx, namespace: ns.Name, clock: clocktesting.NewFakePassiveClock(time.Now())}, nil
}

// operate starts the operator for the world and stops it with the spec, or
// when the returned function is called.
func (w *world) operate(p process) (stop func()) {
	p.clock = w.clock
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() { ended <- p.start(ctx, env.Operator, w.namespace) }()
	stop = sync.OnceFunc(func() {
		cancel()
		Expect(<-ended).To(Succeed())
	})
	DeferCleanup(stop)
	return stop
}

// compose creates a composition from a workflow and action types in YAML.
func (w *world) compose(name, workflow, actionTypes string) {
	comp := &api.Composition{ObjectMeta: w.meta(name)}
	doc, err := yaml.YAMLToJSON([]byte(workflow))
	Expect(err).NotTo(HaveOccurred())
	comp.Spec.Workflow = &runtime.RawExtension{Raw: doc}
	Expect(yaml.Unmarshal([]byte(actionTypes), &comp.Spec.ActionTypes)).To(Succeed())
	Expect(admin.Create(w.ctx, comp)).To(Succeed())
}

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.namespace, Name: name}
}

// run creates a run of a composition.
func (w *world) run(name, composition string, change ...func(*api.WorkflowRun)) *api.WorkflowRun {
	run := &api.WorkflowRun{ObjectMeta: w.meta(name)}
	run.Spec.CompositionRef.Name = composition
	for _, f := range change {
		f(run)
	}
	Expect(admin.Create(w.ctx, run)).To(Succeed())
	return run
}

func inputs(text string) func(*api.WorkflowRun) {
	return func(run *api.WorkflowRun) { run.Spec.Inputs = &runtime.RawExtension{Raw: []byte(text)} }
}

// fresh reads the run again.
func (w *world) fresh(run *api.WorkflowRun) *api.WorkflowRun {
	GinkgoHelper()
	Expect(admin.Get(w.ctx, client.ObjectKeyFromObject(run), run)).To(Succeed())
	return run
}

// reaches waits until the run is in the phase.
func (w *world) reaches(run *api.WorkflowRun, phase api.RunPhase) *api.WorkflowRun {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(w.ctx, client.ObjectKeyFromObject(run), run)).To(Succeed())
		g.Expect(run.Status.Phase).To(Equal(phase), "%s", show(run.Status))
	}).WithTimeout(patience).Should(Succeed())
	return run
}

// opens waits until the activation is open and its child exists, into which it
// is read.
func (w *world) opens(run *api.WorkflowRun, activation string, child client.Object) *api.ActiveBranch {
	GinkgoHelper()
	var open *api.ActiveBranch
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(w.ctx, client.ObjectKeyFromObject(run), run)).To(Succeed())
		open = branchOf(run, activation)
		g.Expect(open).NotTo(BeNil(), "%s", show(run.Status))
		if child != nil {
			g.Expect(open.Child).NotTo(BeNil())
			g.Expect(admin.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: open.Child.Name}, child)).To(Succeed())
		}
	}).WithTimeout(patience).Should(Succeed())
	return open
}

// awaits waits until the activation is at an attempt.
func (w *world) awaits(run *api.WorkflowRun, activation string, attempt int32) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		open := branchOf(w.fresh(run), activation)
		g.Expect(open).NotTo(BeNil(), "%s", show(run.Status))
		g.Expect(open.Attempt).To(Equal(attempt))
	}).WithTimeout(patience).Should(Succeed())
}

// attempts waits until the activation is at an attempt whose pod exists, into
// which it is read.
func (w *world) attempts(run *api.WorkflowRun, activation string, attempt int32, pod *corev1.Pod) {
	GinkgoHelper()
	w.awaits(run, activation, attempt)
	w.opens(run, activation, pod)
}

// closes waits until the activation is not open any more.
func (w *world) closes(run *api.WorkflowRun, activation string) {
	GinkgoHelper()
	Eventually(func() *api.ActiveBranch { return branchOf(w.fresh(run), activation) }).WithTimeout(patience).Should(BeNil())
}

// staysAt wants the activation to be open for a while.
func (w *world) staysAt(run *api.WorkflowRun, activation string) {
	GinkgoHelper()
	Consistently(func() *api.ActiveBranch { return branchOf(w.fresh(run), activation) }).WithTimeout(300 * time.Millisecond).ShouldNot(BeNil())
}

// hasTask tells whether the task of an open activation exists.
func (w *world) hasTask(run *api.WorkflowRun, activation string) bool {
	open := branchOf(run, activation)
	return open != nil && open.Child != nil && admin.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: open.Child.Name}, &api.HumanTask{}) == nil
}

// saysWaiting waits until the condition Waiting has a message.
func (w *world) saysWaiting(run *api.WorkflowRun, message string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		waiting := apimeta.FindStatusCondition(w.fresh(run).Status.Conditions, api.ConditionWaiting)
		g.Expect(waiting).NotTo(BeNil())
		g.Expect(waiting.Message).To(Equal(message))
	}).WithTimeout(patience).Should(Succeed())
}

func (w *world) cancels(run *api.WorkflowRun) {
	GinkgoHelper()
	w.changes(run, `{"spec":{"cancel":true}}`)
}

func (w *world) resumes(run *api.WorkflowRun, requests int) {
	GinkgoHelper()
	w.changes(run, fmt.Sprintf(`{"spec":{"resumeRequests":%d}}`, requests))
}

func (w *world) changes(object client.Object, patch string) {
	GinkgoHelper()
	Expect(admin.Patch(w.ctx, object, client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
}

func explicitly(run *api.WorkflowRun) { run.Spec.ResumePolicy = api.ResumeExplicit }

func branchOf(run *api.WorkflowRun, activation string) *api.ActiveBranch {
	if run.Status.Instance == nil {
		return nil
	}
	for i := range run.Status.Instance.ActiveBranches {
		if b := &run.Status.Instance.ActiveBranches[i]; b.Activation == activation {
			return b
		}
	}
	return nil
}

// answer answers a task as ada would, with the stamp of admission.
func (w *world) answer(task *api.HumanTask, answer string) {
	GinkgoHelper()
	w.patchTask(task, map[string]any{
		"answer": json.RawMessage(answer), "answeredBy": map[string]any{"username": "ada"}, "answeredAt": w.now(),
	})
}

func (w *world) now() string {
	return w.clock.Now().UTC().Format(time.RFC3339)
}

func (w *world) patchTask(task *api.HumanTask, status map[string]any) {
	GinkgoHelper()
	patch, err := json.Marshal(map[string]any{"status": status})
	Expect(err).NotTo(HaveOccurred())
	Expect(admin.Status().Patch(w.ctx, task, client.RawPatch("application/merge-patch+json", patch))).To(Succeed())
}

// podEnds plays the kubelet: the container of the pod ends now.
func (w *world) podEnds(pod *corev1.Pod, exitCode int32) {
	GinkgoHelper()
	pod.Status.Phase = corev1.PodSucceeded
	if exitCode != 0 {
		pod.Status.Phase = corev1.PodFailed
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "script", Image: "i", ImageID: "i",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: exitCode, Reason: "Ended", FinishedAt: metav1.NewTime(w.clock.Now()),
		}},
	}}
	Expect(admin.Status().Update(w.ctx, pod)).To(Succeed())
}

// reports plays the gateway: it stores the result of the pod's attempt.
func (w *world) reports(pod *corev1.Pod, result string) error {
	config := &corev1.ConfigMap{
		ObjectMeta: w.meta(pod.Name), Immutable: new(true), Data: map[string]string{"result.json": result},
	}
	config.Labels = map[string]string{api.LabelRun: pod.Labels[api.LabelRun]}
	config.OwnerReferences = pod.OwnerReferences
	return admin.Create(w.ctx, config)
}

// advance moves the clock on and makes the operator look at the object.
func (w *world) advance(d time.Duration, object client.Object) {
	GinkgoHelper()
	w.clock.SetTime(w.clock.Now().Add(d))
	Expect(client.IgnoreNotFound(w.touch(object))).To(Succeed())
}

func (w *world) touch(object client.Object) error {
	patch := []byte(`{"metadata":{"annotations":{"test/looked-at":"` + w.clock.Now().Format(time.RFC3339Nano) + `"}}}`)
	return admin.Patch(w.ctx, object, client.RawPatch("application/merge-patch+json", patch))
}

// leavesNothing waits until no pod, Secret, ConfigMap or open task of the run
// is left.
func (w *world) leavesNothing(run *api.WorkflowRun) {
	GinkgoHelper()
	Eventually(w.isClean).WithArguments(run).WithTimeout(patience).Should(Succeed())
}

func (w *world) isClean(run *api.WorkflowRun) error {
	own := []client.ListOption{client.InNamespace(w.namespace), client.MatchingLabels{api.LabelRun: string(run.UID)}}
	var pods corev1.PodList
	var secrets corev1.SecretList
	var configs corev1.ConfigMapList
	var tasks api.HumanTaskList
	err := errors.Join(
		admin.List(w.ctx, &pods, own...), admin.List(w.ctx, &secrets, own...),
		admin.List(w.ctx, &configs, own...), admin.List(w.ctx, &tasks, own...))
	switch {
	case err != nil:
		return err
	case len(pods.Items)+len(secrets.Items)+len(configs.Items) > 0:
		return errors.New("a pod, Secret or ConfigMap is left")
	}
	for i := range tasks.Items {
		if tasks.Items[i].Status.Phase == api.TaskAwaitingInput || tasks.Items[i].Status.Phase == "" {
			return errors.New("a task is open")
		}
	}
	return nil
}

func (w *world) isGone(object client.Object) func() bool {
	return func() bool {
		return apierrors.IsNotFound(admin.Get(w.ctx, client.ObjectKeyFromObject(object), object))
	}
}

// asJSON turns YAML into JSON.
func asJSON(text string) string {
	GinkgoHelper()
	data, err := yaml.YAMLToJSON([]byte(text))
	Expect(err).NotTo(HaveOccurred())
	return string(data)
}

func show(v any) string {
	text, err := yaml.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

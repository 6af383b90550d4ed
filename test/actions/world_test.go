package actions

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/testing/kubelet"
	"github.com/apitomy/axiom-operator/internal/testing/testenv"
)

// world is a namespace with everybody in it but the operator. Its pods must be
// restricted.
type world struct {
	ctx       context.Context
	namespace string
	address   string
	clock     clock.Clock
	// still is the clock if it stands still until it is advanced, else nil.
	still *clocktesting.FakeClock
}

// newWorld makes a namespace whose clock stands still until it is advanced.
func newWorld(ctx context.Context) *world {
	GinkgoHelper()
	w := newLivelyWorld(ctx)
	w.still = clocktesting.NewFakeClock(time.Now())
	w.clock = w.still
	return w
}

// newLivelyWorld makes a namespace in which time passes.
func newLivelyWorld(ctx context.Context) *world {
	GinkgoHelper()
	ns := testenv.Namespace("actions")
	ns.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	Expect(admin.Create(ctx, ns)).To(Succeed())
	address, err := findAddress()
	Expect(err).NotTo(HaveOccurred())
	return &world{ctx: ctx, namespace: ns.Name, address: address, clock: clock.RealClock{}}
}

// operate starts the operator for the world and stops it with the spec, or when
// the returned function is called.
func (w *world) operate(how ...func(*process)) (stop func()) {
	p := process{namespace: w.namespace, address: w.address, clock: w.clock}
	for _, f := range how {
		f(&p)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() { ended <- p.run(ctx, env.Operator) }()
	stop = sync.OnceFunc(func() {
		cancel()
		Expect(<-ended).To(Succeed())
	})
	DeferCleanup(stop)
	return stop
}

// settles starts a node for the world, which runs pods as local processes.
func (w *world) settles() *kubelet.Kubelet {
	node := &kubelet.Kubelet{Client: admin, Namespace: w.namespace, Programs: programs, Volumes: GinkgoT().TempDir(), Log: GinkgoWriter}
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() { ended <- node.Run(ctx) }()
	DeferCleanup(func() {
		cancel()
		Expect(<-ended).To(Succeed())
	})
	return node
}

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.namespace, Name: name}
}

func (w *world) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: w.namespace, Name: name}
}

// compose creates a composition from a workflow and action types in YAML.
func (w *world) compose(name, workflow, actionTypes string) {
	GinkgoHelper()
	comp := &api.Composition{ObjectMeta: w.meta(name)}
	doc, err := yaml.YAMLToJSON([]byte(workflow))
	Expect(err).NotTo(HaveOccurred())
	comp.Spec.Workflow = &runtime.RawExtension{Raw: doc}
	Expect(yaml.UnmarshalStrict([]byte(actionTypes), &comp.Spec.ActionTypes)).To(Succeed())
	Expect(bob.Create(w.ctx, comp)).To(Succeed())
}

// apply creates an object of the API from YAML.
func apply[T client.Object](w *world, object T, text string) T {
	GinkgoHelper()
	Expect(yaml.UnmarshalStrict([]byte(text), object)).To(Succeed())
	object.SetNamespace(w.namespace)
	Expect(bob.Create(w.ctx, object)).To(Succeed())
	return object
}

// run creates a run of a composition.
func (w *world) run(name, composition string, change ...func(*api.WorkflowRun)) *api.WorkflowRun {
	GinkgoHelper()
	run := &api.WorkflowRun{ObjectMeta: w.meta(name)}
	run.Spec.CompositionRef.Name = composition
	for _, f := range change {
		f(run)
	}
	Expect(bob.Create(w.ctx, run)).To(Succeed())
	return run
}

func inputs(text string) func(*api.WorkflowRun) {
	return func(run *api.WorkflowRun) { run.Spec.Inputs = &runtime.RawExtension{Raw: []byte(text)} }
}

// sees waits until an object is as it should be.
func sees[T client.Object](w *world, object T, check func(g Gomega, object T)) T {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(w.ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		check(g, object)
	}).Should(Succeed())
	return object
}

// reaches waits until the run is in the phase.
func (w *world) reaches(run *api.WorkflowRun, phase api.RunPhase) *api.WorkflowRun {
	GinkgoHelper()
	return sees(w, run, func(g Gomega, run *api.WorkflowRun) {
		g.Expect(run.Status.Phase).To(Equal(phase), "%s", show(run.Status))
	})
}

// opens waits until the activation is open at an attempt and its child exists,
// into which it is read.
func (w *world) opens(run *api.WorkflowRun, activation string, attempt int32, child client.Object) *api.ActiveBranch {
	GinkgoHelper()
	var open *api.ActiveBranch
	sees(w, run, func(g Gomega, run *api.WorkflowRun) {
		open = branchOf(run, activation)
		g.Expect(open).NotTo(BeNil(), "%s", show(run.Status))
		g.Expect(open.Attempt).To(Equal(attempt), "%s", show(run.Status))
		g.Expect(open.Child).NotTo(BeNil())
		g.Expect(admin.Get(w.ctx, w.key(open.Child.Name), child)).To(Succeed())
	})
	return open
}

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

// failureOf is the error in the history of an activation.
func failureOf(run *api.WorkflowRun, activation string) *api.RunFailure {
	for _, entry := range run.Status.History.Entries {
		if entry.Activation == activation {
			return entry.Error
		}
	}
	return nil
}

// outputOf is the output in the history of an activation.
func outputOf(run *api.WorkflowRun, activation string) string {
	for _, entry := range run.Status.History.Entries {
		if entry.Activation == activation && entry.Output != nil {
			return string(entry.Output.Raw)
		}
	}
	return ""
}

// becomes plays the node: the pod's status changes now.
func (w *world) becomes(pod *corev1.Pod, changes ...kubelet.Change) {
	GinkgoHelper()
	w.catchUp()
	Expect(kubelet.Write(w.ctx, admin, pod, w.clock.Now(), changes...)).To(Succeed())
}

// catchUp moves a clock that stands still beyond what the API server has dated so
// far: nothing comes to pass before its object was made.
func (w *world) catchUp() {
	if now := time.Now().Add(time.Second); w.still != nil && w.clock.Now().Before(now) {
		w.still.SetTime(now)
	}
}

// advance moves the clock on and makes the operator look at the objects.
func (w *world) advance(d time.Duration, objects ...client.Object) {
	GinkgoHelper()
	w.catchUp()
	w.still.Step(d)
	for _, object := range objects {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"test/looked-at":%q}}}`, w.clock.Now().Format(time.RFC3339Nano))
		Expect(admin.Patch(w.ctx, object, merge(patch))).To(Succeed())
	}
}

func merge(patch string) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(patch))
}

// leavesNothing waits until no pod, Secret, ConfigMap or open task of the run is
// left, and no session of it has a token.
func (w *world) leavesNothing(run *api.WorkflowRun) {
	GinkgoHelper()
	Eventually(func() error { return w.leftOf(run) }).Should(Succeed())
}

func (w *world) leftOf(run *api.WorkflowRun) error {
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
		return fmt.Errorf("%d pods, %d Secrets and %d ConfigMaps are left", len(pods.Items), len(secrets.Items), len(configs.Items))
	}
	for i := range tasks.Items {
		if tasks.Items[i].Status.Phase == api.TaskAwaitingInput || tasks.Items[i].Status.Phase == "" {
			return errors.New("a task is open")
		}
	}
	return nil
}

func (w *world) isGone(object client.Object) bool {
	return apierrors.IsNotFound(admin.Get(w.ctx, client.ObjectKeyFromObject(object), object))
}

func show(v any) string {
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

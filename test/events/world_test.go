package events

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/testing/testenv"
)

const patience = 30 * time.Second

// world is a namespace with everybody in it but the operator.
type world struct {
	ctx       context.Context
	namespace string
	clock     *clocktesting.FakeClock
}

// newWorld makes a namespace whose clock stands still until it is advanced.
func newWorld(ctx context.Context) *world {
	GinkgoHelper()
	// A world that is made before a spec lives as long as the spec.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(cancel)
	w := &world{ctx: ctx, clock: clocktesting.NewFakeClock(time.Now())}
	ns := testenv.Namespace("events")
	Expect(admin.Create(ctx, ns)).To(Succeed())
	w.namespace = ns.Name
	return w
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

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.namespace, Name: name}
}

// compose creates a composition from a workflow and triggers in YAML.
func (w *world) compose(name, workflow, triggers string) *api.Composition {
	GinkgoHelper()
	comp := &api.Composition{ObjectMeta: w.meta(name)}
	comp.Spec.Workflow = rawYAML(workflow)
	Expect(yaml.Unmarshal([]byte(triggers), &comp.Spec.Triggers)).To(Succeed())
	Expect(admin.Create(w.ctx, comp)).To(Succeed())
	return comp
}

func rawYAML(text string) *runtime.RawExtension {
	GinkgoHelper()
	data, err := yaml.YAMLToJSON([]byte(text))
	Expect(err).NotTo(HaveOccurred())
	return &runtime.RawExtension{Raw: data}
}

// run creates a run of a composition.
func (w *world) run(name, composition, inputs string, change ...func(*api.WorkflowRun)) *api.WorkflowRun {
	GinkgoHelper()
	run := &api.WorkflowRun{ObjectMeta: w.meta(name)}
	run.Spec.CompositionRef.Name = composition
	run.Spec.Inputs = &runtime.RawExtension{Raw: []byte(inputs)}
	for _, f := range change {
		f(run)
	}
	Expect(admin.Create(w.ctx, run)).To(Succeed())
	return run
}

// event stores an event as kubectl would.
func (w *world) event(name, eventType, ref, payload string) *api.StreamEvent {
	GinkgoHelper()
	e := &api.StreamEvent{ObjectMeta: w.meta(name)}
	e.Spec = api.StreamEventSpec{ID: name, Type: eventType, EventSourceID: "hand", Ref: ref}
	if payload != "" {
		e.Spec.Payload = &runtime.RawExtension{Raw: []byte(payload)}
	}
	Expect(admin.Create(w.ctx, e)).To(Succeed())
	return e
}

// fresh reads an object again.
func fresh[T client.Object](w *world, object T) T {
	GinkgoHelper()
	Expect(admin.Get(w.ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
	return object
}

// reaches waits until the run is in the phase.
func (w *world) reaches(run *api.WorkflowRun, phase api.RunPhase) *api.WorkflowRun {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(w.ctx, client.ObjectKeyFromObject(run), run)).To(Succeed())
		g.Expect(run.Status.Phase).To(Equal(phase), "%s", show(run.Status))
	}).Should(Succeed())
	return run
}

// opens waits until the activation is open.
func (w *world) opens(run *api.WorkflowRun, activation string) *api.ActiveBranch {
	GinkgoHelper()
	var open *api.ActiveBranch
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(w.ctx, client.ObjectKeyFromObject(run), run)).To(Succeed())
		open = branchOf(run, activation)
		g.Expect(open).NotTo(BeNil(), "%s", show(run.Status))
	}).Should(Succeed())
	return open
}

// stays checks that the run does not move for a while.
func (w *world) stays(run *api.WorkflowRun, activation string) {
	GinkgoHelper()
	Consistently(func(g Gomega) {
		g.Expect(admin.Get(w.ctx, client.ObjectKeyFromObject(run), run)).To(Succeed())
		g.Expect(branchOf(run, activation)).NotTo(BeNil(), "%s", show(run.Status))
	}, "500ms").Should(Succeed())
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

// answer answers the task of an activation with nothing.
func (w *world) answer(run *api.WorkflowRun, activation string) {
	GinkgoHelper()
	w.answerWith(run, activation, `{}`)
}

func (w *world) answerWith(run *api.WorkflowRun, activation, answer string) {
	GinkgoHelper()
	task := &api.HumanTask{}
	Eventually(func(g Gomega) {
		open := branchOf(fresh(w, run), activation)
		g.Expect(open).NotTo(BeNil())
		g.Expect(open.Child).NotTo(BeNil())
		g.Expect(admin.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: open.Child.Name}, task)).To(Succeed())
	}).Should(Succeed())
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"answer":`+answer+`}}`))
	Expect(admin.Status().Patch(w.ctx, task, patch)).To(Succeed())
}

func (w *world) patch(object client.Object, patch string) {
	GinkgoHelper()
	Expect(admin.Patch(w.ctx, object, client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
}

// outcomes are the closed activations with their outcomes, in order.
func outcomes(run *api.WorkflowRun) []string {
	var words []string
	for _, entry := range run.Status.History.Entries {
		words = append(words, entry.Activation+" "+entry.Outcome)
	}
	return words
}

// by is who closed an activation.
func by(run *api.WorkflowRun, activation string) string {
	for _, entry := range run.Status.History.Entries {
		if entry.Activation == activation {
			return entry.By
		}
	}
	return ""
}

// contextOf is what the run knows.
func contextOf(run *api.WorkflowRun) map[string]any {
	GinkgoHelper()
	var values map[string]any
	Expect(json.Unmarshal(run.Status.Instance.Context.Raw, &values)).To(Succeed())
	return values
}

// deliveriesOf are the deliveries of an event in words.
func deliveriesOf(e *api.StreamEvent) []string {
	var words []string
	for _, d := range e.Status.Deliveries {
		words = append(words, fmt.Sprintf("%s %s %s", d.Run, d.Activation, d.Outcome))
	}
	return words
}

// triggersOf are what triggers made of an event, in words.
func triggersOf(e *api.StreamEvent) []string {
	var words []string
	for _, t := range e.Status.Triggers {
		words = append(words, fmt.Sprintf("%s/%s %s", t.Composition, t.Trigger, t.Outcome))
	}
	return words
}

// isObserved waits until all triggers have seen the event.
func (w *world) isObserved(e *api.StreamEvent) *api.StreamEvent {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(w.ctx, client.ObjectKeyFromObject(e), e)).To(Succeed())
		g.Expect(apimeta.IsStatusConditionTrue(e.Status.Conditions, api.ConditionReady)).To(BeTrue(), "%s", show(e.Status))
	}).Should(Succeed())
	return e
}

// runs of the namespace.
func (w *world) runs() []api.WorkflowRun {
	GinkgoHelper()
	var list api.WorkflowRunList
	Expect(admin.List(w.ctx, &list, client.InNamespace(w.namespace))).To(Succeed())
	return list.Items
}

// tally counts the writes of a process by what they are about.
type tally struct {
	runs, events, creations atomic.Int64
}

func (t *tally) count(req *http.Request, code int) {
	if code >= 300 || req.Method == http.MethodGet {
		return
	}
	switch path := req.URL.Path; {
	case strings.Contains(path, "/workflowruns/") && strings.HasSuffix(path, "/status"):
		t.runs.Add(1)
	case strings.Contains(path, "/streamevents/") && strings.HasSuffix(path, "/status"):
		t.events.Add(1)
	case strings.HasSuffix(path, "/workflowruns"):
		t.creations.Add(1)
	}
}

func show(v any) string {
	text, err := yaml.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

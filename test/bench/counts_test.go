package bench

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/testing/testenv"
)

const (
	nodes    = 12
	patience = 2 * time.Minute
	moment   = 2 * time.Second
)

var _ = Describe("A chain of people", func() {
	It("costs one write of the run and one new task for each answer, and nothing while it waits or after a restart", func(ctx SpecContext) {
		counted, stop := operate(ctx)
		comp := compose(ctx)

		By("being answered to its end")
		before, woken, asked := counted.now(), reconciles("workflowrun"), reconciles("humantask")
		run := begin(ctx, comp, "answered")
		for i := 1; i <= nodes; i++ {
			answer(ctx, run, i)
		}
		Eventually(func() api.RunPhase { return fresh(ctx, run).Status.Phase }, patience).Should(Equal(api.RunCompleted))
		Expect(run.Status.TraceID).To(MatchRegexp("^[0-9a-f]{32}$"))
		settles(counted)
		spent := counted.since(before)
		Expect(spent["PUT workflowruns/status"]).To(BeNumerically("<=", 1.05*(nodes+1)), "%v", spent)
		Expect(spent["POST humantasks"]).To(Equal(nodes), "%v", spent)
		Expect(spent).NotTo(HaveKey("PUT humantasks/status"))
		// Only at its start a run is read anew; each commit says how it stands.
		Expect(spent["GET workflowruns"]).To(BeNumerically("<=", 2), "%v", spent)
		Expect(reconciles("humantask")-asked).To(BeZero(), "tasks without an end of their time need nobody to come after them")
		Expect(spent["POST events"]+spent["PATCH events"]).To(BeNumerically("<=", 0.2*nodes), "%v", spent)
		Expect(reconciles("workflowrun")-woken).To(BeNumerically("<=", 1.2*(nodes+1)), "%v", spent)

		By("waiting")
		for i := range 5 {
			waits := begin(ctx, comp, fmt.Sprintf("waiting-%d", i))
			Eventually(func() string { return fresh(ctx, waits).Status.CurrentNode }, patience).Should(Equal("n1"))
		}
		settles(counted)
		before = counted.now()
		Consistently(func() map[string]int { return writesAndReads(counted.since(before)) }, moment).Should(BeEmpty())

		By("being looked at by a new operator")
		stop()
		woken = reconciles("workflowrun")
		counted, _ = operate(ctx)
		Eventually(func() int { return reconciles("workflowrun") - woken }, patience).Should(BeNumerically(">=", 6))
		settles(counted)
		for key := range counted.now() {
			Expect(key).To(Or(HavePrefix("GET"), Equal("other")))
		}
	})
})

// writesAndReads leaves out watches, which begin anew from time to time.
func writesAndReads(counts map[string]int) map[string]int {
	delete(counts, "other")
	return counts
}

// settles waits until the operator asks nothing for a while.
func settles(counted *counter) {
	GinkgoHelper()
	last, since := counted.now(), time.Now()
	Eventually(func() bool {
		if grown := writesAndReads(counted.since(last)); len(grown) > 0 {
			last, since = counted.now(), time.Now()
		}
		return time.Since(since) > moment/2
	}, patience, "50ms").Should(BeTrue())
}

func compose(ctx context.Context) *api.Composition {
	GinkgoHelper()
	ns := testenv.Namespace("bench")
	Expect(admin.Create(ctx, ns)).To(Succeed())
	var text strings.Builder
	text.WriteString("id: chain\nname: Chain\nnodes:\n- {id: start, type: start, name: Start}\n- {id: end, type: end, name: End}\n")
	for i := 1; i <= nodes; i++ {
		fmt.Fprintf(&text, "- {id: n%d, type: human-task, name: Ask, config: {outputs: [{name: ok, type: boolean}]}}\n", i)
	}
	text.WriteString("edges:\n- {id: e0, source: start, target: n1}\n")
	for i := 1; i < nodes; i++ {
		fmt.Fprintf(&text, "- {id: e%d, source: n%d, target: n%d}\n", i, i, i+1)
	}
	fmt.Fprintf(&text, "- {id: e%d, source: n%d, target: end}\n", nodes, nodes)
	document, err := yaml.YAMLToJSON([]byte(text.String()))
	Expect(err).NotTo(HaveOccurred())
	comp := &api.Composition{}
	comp.Namespace, comp.Name = ns.Name, "chain"
	comp.Spec.Workflow = &runtime.RawExtension{Raw: document}
	Eventually(func() error { return admin.Create(ctx, comp) }, patience).Should(Succeed())
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(comp), comp)).To(Succeed())
		g.Expect(comp.Status.Snapshot).NotTo(BeEmpty())
	}, patience).Should(Succeed())
	return comp
}

func begin(ctx context.Context, comp *api.Composition, name string) *api.WorkflowRun {
	GinkgoHelper()
	run := &api.WorkflowRun{}
	run.Namespace, run.Name = comp.Namespace, name
	run.Spec.CompositionRef.Name = comp.Name
	Expect(admin.Create(ctx, run)).To(Succeed())
	return run
}

func fresh(ctx context.Context, run *api.WorkflowRun) *api.WorkflowRun {
	GinkgoHelper()
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(run), run)).To(Succeed())
	return run
}

// answer answers the task of the i-th node when it is there.
func answer(ctx context.Context, run *api.WorkflowRun, i int) {
	GinkgoHelper()
	task := &api.HumanTask{}
	Eventually(func(g Gomega) {
		branches := fresh(ctx, run).Status.Instance
		g.Expect(branches).NotTo(BeNil())
		g.Expect(branches.ActiveBranches).To(HaveLen(1))
		g.Expect(branches.ActiveBranches[0].Activation).To(Equal(fmt.Sprintf("n%d#1", i)))
		g.Expect(admin.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: branches.ActiveBranches[0].Child.Name}, task)).To(Succeed())
	}, patience).Should(Succeed())
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"answer":{"ok":true}}}`))
	Expect(admin.Status().Patch(ctx, task, patch)).To(Succeed())
}

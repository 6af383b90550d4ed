package fuzz

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/controllers"
	"github.com/apitomy/axiom-operator/internal/operator"
	"github.com/apitomy/axiom-operator/internal/testing/testenv"
)

// operate runs the operator's loops for a namespace until the spec ends.
func operate(ns string) {
	GinkgoHelper()
	caches := operator.CacheOptions()
	caches.DefaultNamespaces = map[string]cache.Config{ns: {}}
	shutdown := 5 * time.Second
	mgr, err := ctrl.NewManager(rest.CopyConfig(env.Operator), ctrl.Options{
		Scheme: operator.NewScheme(), Cache: caches, Client: operator.ClientOptions(),
		Metrics: metricsserver.Options{BindAddress: "0"}, GracefulShutdownTimeout: &shutdown,
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	Expect(err).NotTo(HaveOccurred())
	gateway := controllers.GatewayOptions{
		URL: "https://gateway.example.invalid/api/v1", CA: func() []byte { return []byte("certificates") }, Namespace: "axiom-system", Port: 8443,
	}
	Expect(operator.SetupLoops(mgr, operator.Options{
		Username: testenv.OperatorUser,
		Sessions: controllers.SessionOptions{
			OperatorImage: "example.invalid/operator", Gateway: gateway, PullPolicy: corev1.PullNever, MaxPerNamespace: 3, StartTimeout: 5 * time.Minute,
		},
		Runs: controllers.RunOptions{
			OperatorImage: "example.invalid/operator", ScriptImages: map[string]string{"bash": "example.invalid/bash"}, Gateway: gateway, PullPolicy: corev1.PullNever,
		},
	})).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	DeferCleanup(func() {
		cancel()
		Expect(<-ended).To(Succeed())
	})
}

// counted sums a counter of the controllers up.
func counted(name string) float64 {
	GinkgoHelper()
	families, err := metrics.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	sum := 0.0
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == name {
				sum += metric.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// compose creates the composition that runs ask a person with.
func compose(ctx context.Context, ns string) {
	GinkgoHelper()
	comp := &api.Composition{}
	comp.Namespace, comp.Name = ns, "asks"
	spec, err := yaml.YAMLToJSON([]byte("{workflow: " + flow + "}"))
	Expect(err).NotTo(HaveOccurred())
	Expect(json.Unmarshal(spec, &comp.Spec)).To(Succeed())
	Expect(admin.Create(ctx, comp)).To(Succeed())
}

// asks creates a run, and waits for the person's task that it makes.
func asks(ctx context.Context, ns, name string) (*api.WorkflowRun, *api.HumanTask) {
	GinkgoHelper()
	run := &api.WorkflowRun{}
	run.Namespace, run.Name, run.Spec.CompositionRef.Name = ns, name, "asks"
	Expect(admin.Create(ctx, run)).To(Succeed())
	task := &api.HumanTask{}
	Eventually(func(g Gomega) {
		list := &api.HumanTaskList{}
		g.Expect(admin.List(ctx, list, client.InNamespace(ns))).To(Succeed())
		for i := range list.Items {
			if ref := list.Items[i].Spec.RunRef; ref != nil && ref.Name == name && list.Items[i].Status.Phase == api.TaskAwaitingInput {
				*task = list.Items[i]
			}
		}
		g.Expect(task.Name).NotTo(BeEmpty())
	}).WithTimeout(patience).Should(Succeed())
	return run, task
}

func answers(ctx context.Context, task *api.HumanTask) error {
	return admin.Status().Patch(ctx, task, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"answer":{"ok":true}}}`)))
}

func completes(ctx context.Context, run *api.WorkflowRun) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(run), run)).To(Succeed())
		g.Expect(run.Status.Phase).To(Equal(api.RunCompleted))
	}).WithTimeout(patience).Should(Succeed())
}

var _ = Describe("The operator", func() {
	It("survives the random objects that admission let through", func(ctx SpecContext) {
		ns := testenv.Namespace("survives")
		Expect(admin.Create(ctx, ns)).To(Succeed())
		accepted := 0
		for _, k := range kinds {
			f := newFuzzer(k)
			f.url = fmt.Sprintf("/apis/axiom.apitomy.io/v1alpha1/namespaces/%s/%s", ns.Name, k.plural)
			for n := range min(cases, 60) {
				d := newDice(fmt.Sprintf("survives/%s/%d", k.name, n))
				object := f.draw(d, strconv.Itoa(n))
				if metadata, isObject := object["metadata"].(map[string]any); isObject {
					metadata["namespace"] = ns.Name
				}
				if !isRefused(f.try(ctx, k.name, alice, request{http.MethodPost, f.url, "application/json", encode(object)}).code) {
					accepted++
				}
			}
		}
		Expect(accepted).To(BeNumerically(">", len(kinds)), "objects for the operator to stumble over")
		panics := counted("controller_runtime_reconcile_panics_total")
		operate(ns.Name)
		By("still doing its work among them")
		compose(ctx, ns.Name)
		run, task := asks(ctx, ns.Name, "good")
		Expect(answers(ctx, task)).To(Succeed())
		completes(ctx, run)
		Expect(counted("controller_runtime_reconcile_panics_total")).To(Equal(panics), "panics")
	})

	It("is not kept from its work for good when its own admission is away", func(ctx SpecContext) {
		ns := testenv.Namespace("alone")
		Expect(admin.Create(ctx, ns)).To(Succeed())
		operate(ns.Name)
		compose(ctx, ns.Name)
		answered, first := asks(ctx, ns.Name, "answered")
		asked, second := asks(ctx, ns.Name, "asked")
		Expect(answers(ctx, first)).To(Succeed())
		closeDoors()
		DeferCleanup(func() {
			closeDoors()
			openDoors()
		})
		By("refusing people what cannot be judged")
		Expect(answers(ctx, second)).NotTo(Succeed())
		By("letting runs wait that need a write which is judged")
		late := &api.WorkflowRun{}
		late.Namespace, late.Name, late.Spec.CompositionRef.Name = ns.Name, "late", "asks"
		Expect(admin.Create(ctx, late)).NotTo(Succeed())
		openDoors()
		completes(ctx, answered)
		Eventually(answers).WithArguments(ctx, second).WithTimeout(patience).Should(Succeed())
		completes(ctx, asked)
	})
})

package supervised

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/controllers"
	"github.com/apitomy/axiom-operator/internal/operator"
	"github.com/apitomy/axiom-operator/internal/testing/gitserver"
	"github.com/apitomy/axiom-operator/internal/testing/kubelet"
	"github.com/apitomy/axiom-operator/internal/testing/testenv"
)

// world is a namespace, and a Git server with the definitions and the project that
// runs in it are about.
type world struct {
	ctx       context.Context
	namespace string
	address   string
	git       *gitserver.Server
	// definitions and project are repositories of the server.
	definitions, project *gitserver.Repository
	cache                string
}

func newWorld(ctx context.Context) *world {
	GinkgoHelper()
	ns := testenv.Namespace("supervised")
	ns.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	Expect(admin.Create(ctx, ns)).To(Succeed())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	Expect(listener.Close()).To(Succeed())

	server := gitserver.Start(GinkgoTB())
	w := &world{ctx: ctx, namespace: ns.Name, address: listener.Addr().String(), git: server, cache: GinkgoT().TempDir()}
	w.definitions, w.project = server.Create(GinkgoTB(), "team/workflows"), server.Create(GinkgoTB(), "team/app")
	host, err := url.Parse(server.URL)
	Expect(err).NotTo(HaveOccurred())
	Expect(admin.Create(ctx, &corev1.ConfigMap{ObjectMeta: w.meta("axiom-remotes"), Data: map[string]string{
		"git": fmt.Sprintf("- {host: %q, private: true}\n", host.Host),
	}})).To(Succeed())
	Expect(admin.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: "git", Labels: map[string]string{api.LabelCredential: "true"},
			Annotations: map[string]string{"axiom.apitomy.io/hosts": host.Host},
		},
		StringData: map[string]string{"username": gitserver.Username, "password": gitserver.Password},
	})).To(Succeed())
	return w
}

func (w *world) self() *world { return w }

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.namespace, Name: name}
}

// process is an operator for one world.
type process struct {
	w *world
	// wrap looks at each request to the API server; may be nil.
	wrap func(http.RoundTripper) http.RoundTripper
	// metrics takes those of the operator; nil: there are none.
	metrics prometheus.Registerer
	// isAlone says that no agent is asked: the gateway is not served, and two
	// processes may run at a time.
	isAlone bool
	// leadership is the lease that it is to hold; the zero value: none.
	leadership controllers.Leadership
}

func (p process) run(ctx context.Context, cfg *rest.Config) error {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	if p.wrap != nil {
		cfg.Wrap(p.wrap)
	}
	caches := operator.CacheOptions()
	caches.DefaultNamespaces = map[string]cache.Config{p.w.namespace: {}}
	shutdown := 5 * time.Second
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: operator.NewScheme(), Cache: caches, Client: operator.ClientOptions(),
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress:  "0",
		GracefulShutdownTimeout: &shutdown,
		Controller:              config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		return fmt.Errorf("create manager: %w", err)
	}
	if err := operator.SetupLoops(mgr, p.options()); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func (p process) options() operator.Options {
	gateway := controllers.GatewayOptions{
		URL: "https://" + p.w.address + "/api/v1", CA: keeper.CA, Namespace: "axiom-system",
		PodLabels: map[string]string{"control-plane": "controller-manager"}, Port: 8443,
	}
	serves := p.w.address
	if p.isAlone {
		serves = ""
	}
	return operator.Options{
		Username: testenv.OperatorUser,
		Sessions: controllers.SessionOptions{
			OperatorImage: "operator", Gateway: gateway, PullPolicy: corev1.PullNever, MaxPerNamespace: 4, StartTimeout: 5 * time.Minute,
		},
		Runs: controllers.RunOptions{
			OperatorImage: "operator", ScriptImages: map[string]string{"bash": "bash", "node": "node", "python": "python"},
			Gateway: gateway, PullPolicy: corev1.PullNever, StartTimeout: 5 * time.Minute,
		},
		Supervised: operator.SupervisedOptions{
			SupervisedOptions: controllers.SupervisedOptions{
				Remotes: types.NamespacedName{Namespace: p.w.namespace, Name: "axiom-remotes"}, Workers: 4, Leadership: p.leadership,
			},
			CacheDir: p.w.cache, CacheBytes: 1 << 30, Authorities: p.w.git.Authority,
		},
		Metrics:        p.metrics,
		GatewayAddress: serves,
		GetCertificate: keeper.GetCertificate,
	}
}

// operate starts the operator for the world and stops it with the spec, or when
// the returned function is called.
func (w *world) operate(how ...func(*process)) (stop func()) {
	p := process{w: w}
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

// node of the world, whose persistent volumes are in a directory.
func (w *world) node(volumes string) *kubelet.Kubelet {
	return &kubelet.Kubelet{Client: admin, Namespace: w.namespace, Programs: programs, Volumes: volumes, Log: GinkgoWriter}
}

// settles starts a node for the world, which runs pods as local processes.
func (w *world) settles() {
	node := w.node(GinkgoT().TempDir())
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() { ended <- node.Run(ctx) }()
	DeferCleanup(func() {
		cancel()
		Expect(<-ended).To(Succeed())
	})
}

// teaches has an agent of role Prompt play a playbook.
func (w *world) teaches(agent, book string) {
	GinkgoHelper()
	Expect(admin.Create(w.ctx, &corev1.ConfigMap{ObjectMeta: w.meta(agent + "-playbook"), Data: map[string]string{"playbook.yaml": "memory: home\nturns:\n" + book}})).To(Succeed())
	template := &api.SessionTemplate{}
	Expect(yaml.UnmarshalStrict(fmt.Appendf(nil, `
spec:
  role: Prompt
  systemPrompt: You help.
  runtime: {playbookRef: {name: %s-playbook, key: playbook.yaml}}
`, agent), template)).To(Succeed())
	template.ObjectMeta = w.meta(agent)
	Expect(bob.Create(w.ctx, template)).To(Succeed())
}

// defines commits documents, by path.
func (w *world) defines(documents map[string]string) string {
	GinkgoHelper()
	files := map[string]gitserver.FileSpec{}
	for path, text := range documents {
		files[path] = gitserver.FileSpec{Content: text}
	}
	return w.definitions.Commit("main", files)
}

// starts a run of flows/start.md at a commit.
func (w *world) starts(name, commit string, inputs map[string]any, change ...func(*api.WorkflowRun)) *api.WorkflowRun {
	GinkgoHelper()
	run := &api.WorkflowRun{ObjectMeta: w.meta(name)}
	run.Spec.Git = &api.GitSource{URL: w.definitions.URL, Commit: commit, Path: "flows/start.md", CredentialsRef: &api.LocalRef{Name: "git"}}
	run.Spec.Credentials = []api.RunCredential{{Name: "project", SecretRef: api.LocalRef{Name: "git"}}}
	data, err := json.Marshal(inputs)
	Expect(err).NotTo(HaveOccurred())
	run.Spec.Inputs = &runtime.RawExtension{Raw: data}
	for _, f := range change {
		f(run)
	}
	Expect(bob.Create(w.ctx, run)).To(Succeed())
	return run
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

func show(v any) string {
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// checkpoint is the one open task of a suspended run.
func (w *world) checkpoint(run *api.WorkflowRun) *api.HumanTask {
	GinkgoHelper()
	sees(w, run, func(g Gomega, run *api.WorkflowRun) {
		g.Expect(run.Status.Phase).To(Equal(api.RunSuspended), "%s", show(run.Status))
		g.Expect(run.Status.ObservedResumeRequests).To(Equal(run.Spec.ResumeRequests), "a resume is under way")
	})
	Expect(run.Status.Intents).To(HaveLen(1), "%s", show(run.Status))
	task := &api.HumanTask{ObjectMeta: w.meta(run.Status.Intents[0].Task)}
	Expect(admin.Get(w.ctx, client.ObjectKeyFromObject(task), task)).To(Succeed())
	return task
}

// answers as a person does with kubectl.
func (w *world) answers(task *api.HumanTask, answer string) {
	GinkgoHelper()
	out, err := bob.kubectl.Run(w.ctx, "", "-n", w.namespace, "patch", "humantask", task.Name, "--subresource=status", "--type=merge", "-p", `{"status":{"answer":`+answer+`}}`)
	Expect(err).NotTo(HaveOccurred(), out)
}

// unable tells that a person cannot answer.
func (w *world) unable(task *api.HumanTask, why string) {
	GinkgoHelper()
	out, err := bob.kubectl.Run(w.ctx, "", "-n", w.namespace, "patch", "humantask", task.Name, "--subresource=status", "--type=merge", "-p", fmt.Sprintf(`{"status":{"failure":{"reason":%q}}}`, why))
	Expect(err).NotTo(HaveOccurred(), out)
}

// resumes asks for a resume as bob.
func (w *world) resumes(run *api.WorkflowRun) {
	GinkgoHelper()
	Expect(admin.Get(w.ctx, client.ObjectKeyFromObject(run), run)).To(Succeed())
	patch := fmt.Sprintf(`{"spec":{"resumeRequests":%d}}`, run.Spec.ResumeRequests+1)
	Expect(bob.Patch(w.ctx, run, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
}

// activations of the run's history, frames left out.
func activations(run *api.WorkflowRun) []string {
	var all []string
	for _, entry := range run.Status.History.Entries {
		if entry.Call == nil {
			all = append(all, entry.Activation+" "+entry.Outcome)
		}
	}
	return all
}

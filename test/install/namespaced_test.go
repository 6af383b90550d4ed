package install

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/controllers"
	"github.com/apitomy/axiom-operator/internal/operator"
	"github.com/apitomy/axiom-operator/internal/servingcert"
	"github.com/apitomy/axiom-operator/internal/testing/testenv"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// refusals counts what the API server forbids somebody.
type refusals struct{ forbidden atomic.Int64 }

func (r *refusals) count(base http.RoundTripper) http.RoundTripper {
	return tripper(func(request *http.Request) (*http.Response, error) {
		answer, err := base.RoundTrip(request)
		if err == nil && answer.StatusCode == http.StatusForbidden {
			r.forbidden.Add(1)
			GinkgoWriter.Println("forbidden:", request.Method, request.URL)
		}
		return answer, err
	})
}

type tripper func(*http.Request) (*http.Response, error)

func (t tripper) RoundTrip(request *http.Request) (*http.Response, error) { return t(request) }

var _ = Describe("the operator with roles in its own and one other namespace", Ordered, func() {
	var (
		refused = &refusals{}
		gateway string
		keeper  *servingcert.Keeper
	)

	BeforeAll(func(ctx context.Context) {
		for _, part := range []string{"operator", "watched"} {
			apply(ctx, inRepository("dist", "namespaced-"+part+".yaml"))
		}
		wide := &rbacv1.ClusterRoleBindingList{}
		Expect(admin.List(ctx, wide)).To(Succeed())
		for _, binding := range wide.Items {
			Expect(binding.Name).NotTo(HavePrefix("axiom-"))
		}
		cfg, err := env.User(testenv.OperatorUser, "system:authenticated", "system:serviceaccounts", "system:serviceaccounts:axiom-system")
		Expect(err).NotTo(HaveOccurred())
		cfg = rest.CopyConfig(cfg)
		cfg.QPS = -1
		Eventually(func() error { return ownSecret(ctx, cfg) }).Should(Succeed())
		cfg.Wrap(refused.count)
		gateway, keeper = operate(cfg)
	})

	AfterAll(func(ctx context.Context) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "axiom-system", Name: "axiom-serving-cert"}}
		Expect(client.IgnoreNotFound(admin.Delete(ctx, secret))).To(Succeed())
	})

	It("leads, and works where it is told to and nowhere else", func(ctx context.Context) {
		document, err := json.Marshal(workflow.Blank("draft"))
		Expect(err).NotTo(HaveOccurred())
		for _, namespace := range []string{"team-b", "team-a"} {
			Expect(admin.Create(ctx, &api.Composition{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "draft"},
				Spec:       api.CompositionSpec{Workflow: &runtime.RawExtension{Raw: document}},
			})).To(Succeed())
		}
		Eventually(observed).WithArguments(ctx, "team-a").Should(BeTrue())
		Expect(observed(ctx, "team-b")).To(BeFalse())
		run := &api.WorkflowRun{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "run"},
			Spec:       api.WorkflowRunSpec{CompositionRef: api.CompositionSource{Name: "draft"}},
		}
		Expect(admin.Create(ctx, run)).To(Succeed())
		Eventually(func() string {
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(run), run)).To(Succeed())
			return string(run.Status.Phase)
		}).Should(Equal("Completed"))
	})

	It("tells an agent of a stranger's token that it is one", func(ctx context.Context) {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(keeper.CA())
		callers := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}}}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+gateway+"/api/v1/stream/events", http.NoBody)
		Expect(err).NotTo(HaveOccurred())
		request.Header.Set("X-Axiom-Session-Token", "a stranger's")
		answer, err := callers.Do(request)
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.Body.Close()).To(Succeed())
		Expect(answer.StatusCode).To(Equal(http.StatusUnauthorized))
	})

	It("is refused nothing", func() {
		Expect(refused.forbidden.Load()).To(BeZero())
	})
})

// ownSecret asks for what the role in the operator's namespace allows, until the
// authorizer knows of it.
func ownSecret(ctx context.Context, cfg *rest.Config) error {
	asker, err := client.New(cfg, client.Options{Scheme: env.Scheme})
	if err != nil {
		return err
	}
	err = client.IgnoreNotFound(asker.Get(ctx, types.NamespacedName{Namespace: "axiom-system", Name: "axiom-serving-cert"}, &corev1.Secret{}))
	if err != nil {
		return err
	}
	return asker.List(ctx, &api.CompositionList{}, client.InNamespace("team-a"))
}

// operate runs the operator's loops for team-a until the container ends, and
// returns the gateway's address.
func operate(cfg *rest.Config) (address string, keeper *servingcert.Keeper) {
	GinkgoHelper()
	ctx, stop := context.WithCancel(context.Background())
	DeferCleanup(stop)
	direct, err := client.New(cfg, client.Options{Scheme: env.Scheme})
	Expect(err).NotTo(HaveOccurred())
	keeper = &servingcert.Keeper{
		Client: direct, Secret: types.NamespacedName{Namespace: "axiom-system", Name: "axiom-serving-cert"},
		IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Clock: clock.RealClock{},
	}
	Expect(keeper.Ensure(ctx)).To(Succeed())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	address = listener.Addr().String()
	Expect(listener.Close()).To(Succeed())
	patience := 5 * time.Second
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: operator.NewScheme(), Cache: operator.CacheOptions("team-a"), Client: operator.ClientOptions(),
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", GracefulShutdownTimeout: &patience,
		LeaderElection: true, LeaderElectionID: "axiom-operator", LeaderElectionNamespace: "axiom-system", LeaderElectionReleaseOnCancel: true,
	})
	Expect(err).NotTo(HaveOccurred())
	pods := controllers.GatewayOptions{URL: "https://" + address + "/api/v1", CA: keeper.CA, Namespace: "axiom-system", Port: 8443}
	Expect(operator.SetupLoops(mgr, operator.Options{
		Username: testenv.OperatorUser, Namespaces: []string{"team-a"},
		Sessions: controllers.SessionOptions{OperatorImage: "operator", Gateway: pods, MaxPerNamespace: 3, StartTimeout: time.Minute},
		Runs:     controllers.RunOptions{OperatorImage: "operator", Gateway: pods},
		Supervised: operator.SupervisedOptions{
			SupervisedOptions: controllers.SupervisedOptions{Remotes: types.NamespacedName{Namespace: "axiom-system", Name: "axiom-remotes"}},
			CacheDir:          filepath.Join(GinkgoT().TempDir(), "workspace"), CacheBytes: 1 << 20,
		},
		GatewayAddress: address, GetCertificate: keeper.GetCertificate,
	})).To(Succeed())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	DeferCleanup(func() {
		stop()
		Expect(<-ended).To(Succeed())
	})
	Eventually(mgr.Elected()).Should(BeClosed())
	return address, keeper
}

func observed(ctx context.Context, namespace string) bool {
	GinkgoHelper()
	comp := &api.Composition{}
	Expect(admin.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "draft"}, comp)).To(Succeed())
	return comp.Status.ObservedGeneration == comp.Generation
}

// Package path walks the operator's main job against a real API server, with
// admission over TLS and real agent and script processes in place of pods, and
// stops the operator at every write of it.
package path

import (
	"context"
	"net"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/apitomy/axiom-operator/internal/operator"
	"github.com/apitomy/axiom-operator/internal/servingcert"
	"github.com/apitomy/axiom-operator/internal/testing/testenv"
)

var (
	env *testenv.Environment
	// admin writes what the suite itself needs, and plays the node.
	admin client.WithWatch
	// alice is of the security team.
	alice client.WithWatch
	// keeper has the gateway's certificate.
	keeper *servingcert.Keeper
	// programs is a directory with axiom-runner and axiom-mcp.
	programs string
)

func TestPath(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(60 * time.Second)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	RunSpecs(t, "The main path")
}

var _ = BeforeSuite(func() {
	ctrl.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))
	ctx, cancel := context.WithCancel(context.Background())

	By("building the programs that run in pods")
	programs = GinkgoT().TempDir()
	build := exec.CommandContext(ctx, "go", "build", "-o", programs+string(filepath.Separator), "./cmd/axiom-runner", "./cmd/axiom-mcp")
	build.Dir = testenv.Root()
	out, err := build.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))

	service, err = newFront()
	Expect(err).NotTo(HaveOccurred())
	go func() {
		defer GinkgoRecover()
		Expect(service.serve(ctx)).To(Succeed())
	}()

	By("starting the API server with admission")
	env, err = testenv.Start(testenv.Options{Webhooks: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	DeferCleanup(cancel)
	admin, err = env.Client(env.Admin)
	Expect(err).NotTo(HaveOccurred())
	aliceConfig, err := env.User("alice", "security", "system:masters")
	Expect(err).NotTo(HaveOccurred())
	alice, err = env.Client(aliceConfig)
	Expect(err).NotTo(HaveOccurred())
	serveAdmission(ctx)

	keeper = &servingcert.Keeper{
		Client: admin, Secret: types.NamespacedName{Namespace: "default", Name: "gateway-cert"},
		IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Clock: clock.RealClock{},
	}
	Expect(keeper.Ensure(ctx)).To(Succeed())
})

// serveAdmission runs the webhooks as a replica of their own, which nothing
// stops: what the crash tests stop are controllers and gateway.
func serveAdmission(ctx context.Context) {
	GinkgoHelper()
	install := env.Webhook
	mgr, err := ctrl.NewManager(env.Operator, ctrl.Options{
		Scheme:  env.Scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: install.LocalServingHost, Port: install.LocalServingPort, CertDir: install.LocalServingCertDir,
		}),
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(operator.SetupAdmission(mgr, operator.Options{Username: testenv.OperatorUser})).To(Succeed())
	go func() {
		defer GinkgoRecover()
		Expect(mgr.Start(ctx)).To(Succeed())
	}()
	Eventually(func() error { return mgr.GetWebhookServer().StartedChecker()(nil) }).Should(Succeed())
}

// Package supervised tells stories of runs that are defined in Git, against a real
// API server with the operator's admission and gateway, a real Git server and
// scripted agents behind the real runner.
package supervised

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
	"k8s.io/client-go/rest"
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

// patience is more than the minute for which an effect must be missing that may have
// been sent.
const patience = 3 * time.Minute

// person is somebody the stories are about.
type person struct {
	client.WithWatch
	kubectl *testenv.KubeCtl
}

var (
	env *testenv.Environment
	// admin prepares; bob asks, answers and resumes.
	admin, bob person
	// keeper has the gateway's certificate.
	keeper *servingcert.Keeper
	// programs is a directory with axiom-runner.
	programs string
)

func TestSupervised(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	RunSpecs(t, "Supervised runs")
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

	By("starting the API server with admission")
	env, err = testenv.Start(testenv.Options{Webhooks: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	DeferCleanup(cancel)
	admin, bob = newPerson(env.Admin), addPerson("bob")
	serveAdmission(ctx)

	keeper = &servingcert.Keeper{
		Client: admin, Secret: types.NamespacedName{Namespace: "default", Name: "gateway-cert"},
		IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Clock: clock.RealClock{},
	}
	Expect(keeper.Ensure(ctx)).To(Succeed())
})

// serveAdmission has the doors open for all stories, while operators come and go.
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

func newPerson(cfg *rest.Config) person {
	GinkgoHelper()
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	c, err := env.Client(cfg)
	Expect(err).NotTo(HaveOccurred())
	k, err := env.Kubectl(cfg)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(k.Close)
	return person{WithWatch: c, kubectl: k}
}

func addPerson(name string, groups ...string) person {
	GinkgoHelper()
	cfg, err := env.User(name, append(groups, "system:masters")...)
	Expect(err).NotTo(HaveOccurred())
	return newPerson(cfg)
}

// operatorPerson writes what only the operator may.
func operatorPerson() person {
	GinkgoHelper()
	return newPerson(env.Operator)
}

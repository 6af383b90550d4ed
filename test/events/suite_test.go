// Package events tells stories of events against a real API server with
// admission: how they come in through the gateway, what they complete, what
// they start, and when they go. The test plays the senders and the people.
package events

import (
	"context"
	"net"
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
	// admin plays people and GitOps.
	admin client.WithWatch
	// keeper has the gateway's certificate.
	keeper *servingcert.Keeper
	// address of the gateway.
	address string
)

func TestEvents(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	RunSpecs(t, "Events")
}

var _ = BeforeSuite(func() {
	ctrl.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))
	ctx, cancel := context.WithCancel(context.Background())
	var err error
	address, err = findAddress()
	Expect(err).NotTo(HaveOccurred())
	env, err = testenv.Start(testenv.Options{Webhooks: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	DeferCleanup(cancel)
	admin, err = env.Client(env.Admin)
	Expect(err).NotTo(HaveOccurred())
	serveAdmission(ctx)
	keeper = &servingcert.Keeper{
		Client: admin, Secret: types.NamespacedName{Namespace: "default", Name: "gateway-cert"},
		IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Clock: clock.RealClock{},
	}
	Expect(keeper.Ensure(ctx)).To(Succeed())
})

// findAddress reserves the gateway's address for the suite.
func findAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// serveAdmission runs the webhooks as a replica of their own, which nothing
// stops.
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

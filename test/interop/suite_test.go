//go:build interop

// Package interop has programs that others wrote meet the operator: clients of
// the Model Context Protocol and its conformance suite, and agents that speak
// the Agent Client Protocol. The API server, the gateway, the runner and the
// tools are the real ones; models are played by a server on loopback that
// speaks their wire protocols. hack/interop/run installs the programs and starts
// the suite.
package interop

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/apitomy/axiom-operator/controllers"
	"github.com/apitomy/axiom-operator/internal/operator"
	"github.com/apitomy/axiom-operator/internal/servingcert"
	"github.com/apitomy/axiom-operator/internal/testing/testenv"
)

// Set by hack/interop/run.
const (
	// envPrograms is a directory with axiom-runner and axiom-mcp.
	envPrograms = "AXIOM_INTEROP_PROGRAMS"
	// envTranscript is the file to write the transcript to; unset: none is.
	envTranscript = "AXIOM_INTEROP_TRANSCRIPT"
)

var (
	env   *testenv.Environment
	admin client.WithWatch
	// alice edits compositions and talks to agents.
	alice client.WithWatch
	// address of the gateway, and the file with the certificates that it is known by.
	address, caFile string
	// programs is a directory with axiom-runner and axiom-mcp.
	programs string
)

func TestInterop(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(3 * time.Minute)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "Interoperability")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	ctrl.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))
	programs = os.Getenv(envPrograms)
	Expect(programs).NotTo(BeEmpty(), "start the suite with hack/interop/run")

	var err error
	env, err = testenv.Start(testenv.Options{Webhooks: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	admin, err = env.Client(env.Admin)
	Expect(err).NotTo(HaveOccurred())
	aliceConfig, err := env.User("alice", "system:masters")
	Expect(err).NotTo(HaveOccurred())
	alice, err = env.Client(aliceConfig)
	Expect(err).NotTo(HaveOccurred())
	operate(ctx)
})

// operate runs the operator until the suite ends.
func operate(ctx context.Context) {
	GinkgoHelper()
	keeper := &servingcert.Keeper{
		Client: admin, Secret: types.NamespacedName{Namespace: "default", Name: "gateway-cert"},
		IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Clock: clock.RealClock{},
	}
	Expect(keeper.Ensure(ctx)).To(Succeed())
	caFile = filepath.Join(GinkgoT().TempDir(), "ca.crt")
	Expect(os.WriteFile(caFile, keeper.CA(), 0o600)).To(Succeed())
	address = freeAddress(ctx)

	mgr, err := ctrl.NewManager(env.Operator, ctrl.Options{
		Scheme:  operator.NewScheme(),
		Cache:   operator.CacheOptions(),
		Client:  operator.ClientOptions(),
		Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: env.Webhook.LocalServingHost, Port: env.Webhook.LocalServingPort, CertDir: env.Webhook.LocalServingCertDir,
		}),
	})
	Expect(err).NotTo(HaveOccurred())
	gateway := controllers.GatewayOptions{
		URL: "https://" + address + "/api/v1", CA: keeper.CA, Namespace: "axiom-system",
		PodLabels: map[string]string{"control-plane": "controller-manager"}, Port: 8443,
	}
	Expect(operator.Setup(mgr, operator.Options{
		Username: testenv.OperatorUser,
		Sessions: controllers.SessionOptions{
			OperatorImage: "operator", Gateway: gateway, PullPolicy: corev1.PullNever, MaxPerNamespace: 3, StartTimeout: 5 * time.Minute,
		},
		Runs: controllers.RunOptions{
			OperatorImage: "operator", ScriptImages: map[string]string{"bash": "bash"}, Gateway: gateway, PullPolicy: corev1.PullNever,
		},
		GatewayAddress: address,
		GetCertificate: keeper.GetCertificate,
	})).To(Succeed())

	running, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(running) }()
	DeferCleanup(func() {
		stop()
		Expect(<-ended).To(Succeed())
	})
	Eventually(func() error { return mgr.GetWebhookServer().StartedChecker()(nil) }).Should(Succeed())
	Eventually(isReady).WithContext(ctx).Should(Succeed())
}

// isReady asks the gateway.
func isReady(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	answer, err := (&http.Client{Transport: trusting()}).Do(request)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("the gateway is not ready: %s", answer.Status)
	}
	return errors.Join(err, answer.Body.Close())
}

// freeAddress is one on loopback that nobody serves on.
func freeAddress(ctx context.Context) string {
	GinkgoHelper()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(listener.Close()).To(Succeed()) }()
	return listener.Addr().String()
}

// interop is the directory with the programs that others wrote.
func interop() string { return filepath.Join(testenv.Root(), "hack", "interop") }

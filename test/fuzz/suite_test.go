// Package fuzz sends random objects of each kind to a real API server with the
// operator's admission in front of it, and wants an answer to each: accepted
// whole or refused whole, in time, and for a reason.
//
// The cases are the same in each run. AXIOM_FUZZ_CASES sets how many there are
// of each kind, AXIOM_FUZZ_SEED takes others, and AXIOM_FUZZ_ONLY picks one, such
// as Turn/17, by the name under which a failure tells of it.
package fuzz

import (
	"context"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/apitomy/axiom-operator/internal/operator"
	"github.com/apitomy/axiom-operator/internal/testing/testenv"
)

const (
	// answerTime is what any request must be answered in.
	answerTime  = 20 * time.Second
	patience    = 30 * time.Second
	usualCases  = 300
	usualSeed   = 20261130
	setCases    = "AXIOM_FUZZ_CASES"
	setSeed     = "AXIOM_FUZZ_SEED"
	setOnlyCase = "AXIOM_FUZZ_ONLY"
)

// person sends bodies as they are.
type person struct {
	name string
	host string
	http *http.Client
}

var (
	env   *testenv.Environment
	admin client.WithWatch
	// alice may do everything, as far as RBAC goes; controller is the operator.
	alice, controller person
	namespace         string
	cases             int
	seed              uint64
	// doors closes admission; nil: it is closed.
	doors func()
)

func TestFuzz(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Random objects")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	ctrl.SetLogger(zap.New(zap.WriteTo(GinkgoWriter)))
	cases, seed = number(setCases, usualCases), uint64(number(setSeed, usualSeed))
	var err error
	env, err = testenv.Start(testenv.Options{Webhooks: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	admin, err = env.Client(env.Admin)
	Expect(err).NotTo(HaveOccurred())
	aliceConfig, err := env.User("alice", "system:masters")
	Expect(err).NotTo(HaveOccurred())
	alice, controller = newPerson("alice", aliceConfig), newPerson("operator", env.Operator)
	openDoors()
	DeferCleanup(closeDoors)

	ns := testenv.Namespace("fuzz")
	Expect(admin.Create(ctx, ns)).To(Succeed())
	namespace = ns.Name
})

func number(variable string, usual int) int {
	GinkgoHelper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	Expect(err).NotTo(HaveOccurred(), variable)
	return n
}

func newPerson(name string, cfg *rest.Config) person {
	GinkgoHelper()
	c, err := rest.HTTPClientFor(cfg)
	Expect(err).NotTo(HaveOccurred())
	c.Timeout = answerTime
	return person{name: name, host: strings.TrimSuffix(cfg.Host, "/"), http: c}
}

// openDoors serves admission.
func openDoors() {
	GinkgoHelper()
	mgr, err := ctrl.NewManager(env.Operator, ctrl.Options{
		Scheme:  env.Scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: env.Webhook.LocalServingHost, Port: env.Webhook.LocalServingPort, CertDir: env.Webhook.LocalServingCertDir,
		}),
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(operator.SetupAdmission(mgr, operator.Options{Username: testenv.OperatorUser})).To(Succeed())
	running, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(running) }()
	Eventually(func() error { return mgr.GetWebhookServer().StartedChecker()(nil) }).WithTimeout(patience).Should(Succeed())
	doors = func() {
		cancel()
		Expect(<-ended).To(Succeed())
	}
}

// closeDoors has admission answer nobody.
func closeDoors() {
	GinkgoHelper()
	if doors != nil {
		doors()
		doors = nil
	}
}

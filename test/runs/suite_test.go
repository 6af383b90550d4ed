// Package runs tells stories of runs and human tasks against a real API
// server. The test plays the people, the kubelet and the gateway.
package runs

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/apitomy/axiom-operator/internal/testing/testenv"
)

var (
	env   *testenv.Environment
	admin client.WithWatch
)

func TestRuns(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Runs")
}

var _ = BeforeSuite(func() {
	ctrl.SetLogger(zap.New(zap.WriteTo(GinkgoWriter)))
	var err error
	env, err = testenv.Start(testenv.Options{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	admin, err = env.Client(env.Admin)
	Expect(err).NotTo(HaveOccurred())
})

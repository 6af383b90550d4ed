// Package bench holds the operator to what a run may cost: counts of requests,
// which no load on the machine can move. Times are measured by hack/bench.
package bench

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/apitomy/axiom-operator/internal/testing/testenv"
)

var (
	env   *testenv.Environment
	admin client.WithWatch
)

func TestBench(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "What runs cost")
}

var _ = BeforeSuite(func() {
	var err error
	env, err = testenv.Start(testenv.Options{Webhooks: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	admin, err = env.Client(env.Admin)
	Expect(err).NotTo(HaveOccurred())
})

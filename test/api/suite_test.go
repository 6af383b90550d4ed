// Package api tests the schemas of the kinds against a real API server.
package api

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/apitomy/axiom-operator/internal/testing/testenv"
)

var (
	env   *testenv.Environment
	admin *testenv.KubeCtl
)

func TestAPI(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "API schemas")
}

var _ = BeforeSuite(func() {
	var err error
	env, err = testenv.Start(testenv.Options{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	admin, err = env.Kubectl(env.Admin)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(admin.Close)
})

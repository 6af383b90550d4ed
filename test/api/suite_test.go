// Package api tests the schemas of the kinds against a real API server, without
// the operator's admission: what they refuse holds for every writer.
package api

import (
	"fmt"
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

func manifest(kind, name, spec string) string {
	return fmt.Sprintf("apiVersion: axiom.apitomy.io/v1alpha1\nkind: %s\nmetadata: {name: %s, namespace: default}\nspec: %s\n", kind, name, spec)
}

// apply keeps an object.
func apply(ctx SpecContext, object string) {
	GinkgoHelper()
	out, err := admin.Run(ctx, object, "apply", "-f", "-")
	Expect(err).NotTo(HaveOccurred(), out)
}

// tryCreate applies an object without keeping it. It must be refused in words
// that contain all parts, or without any be accepted.
func tryCreate(ctx SpecContext, object string, parts ...string) {
	GinkgoHelper()
	out, err := admin.Run(ctx, object, "apply", "--dry-run=server", "-f", "-")
	expectVerdict(out, err, parts)
}

// tryPatch is tryCreate for a change of an object's spec.
func tryPatch(ctx SpecContext, kind, name, spec string, parts ...string) {
	GinkgoHelper()
	out, err := admin.Run(ctx, "", "patch", kind, name, "--dry-run=server", "--type=merge", "-p", `{"spec":`+spec+`}`)
	expectVerdict(out, err, parts)
}

func expectVerdict(out string, err error, parts []string) {
	GinkgoHelper()
	if len(parts) == 0 {
		Expect(err).NotTo(HaveOccurred(), out)
		return
	}
	Expect(err).To(HaveOccurred(), out)
	for _, part := range parts {
		Expect(out).To(ContainSubstring(part))
	}
}

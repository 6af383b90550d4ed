package cli

import (
	"encoding/xml"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
)

var _ = Describe("conformance", func() {
	It("is found of this installation, and leaves nothing", func(ctx SpecContext) {
		w := newWorld(ctx)
		report := w.as(root, "conformance", "--in", w.namespace, "-o", "json").gives(command.ExitOK).value()
		Expect(report["cases"]).To(And(HaveLen(10), HaveEach(HaveKeyWithValue("status", "passed"))))
		Expect(report).To(And(HaveKeyWithValue("passed", true), HaveKeyWithValue("leftovers", "")))
		Eventually(func(g Gomega) {
			for _, list := range []client.ObjectList{&api.CompositionList{}, &api.WorkflowRunList{}, &api.TurnList{}} {
				g.Expect(admin.List(ctx, list, client.InNamespace(w.namespace))).To(Succeed())
				g.Expect(list).To(HaveField("Items", BeEmpty()))
			}
		}).Should(Succeed())
		Expect(admin.Get(ctx, client.ObjectKey{Name: w.namespace}, &corev1.Namespace{})).To(Succeed(), "it was there before")
	})

	It("makes a namespace of its own, and tells build servers", func(ctx SpecContext) {
		w := newWorld(ctx)
		c := w.as(root, "conformance", "--in", w.namespace+"-own", "--no-pods", "-o", "junit").gives(command.ExitOK)
		var suite struct {
			Tests    int `xml:"tests,attr"`
			Failures int `xml:"failures,attr"`
			Skipped  int `xml:"skipped,attr"`
		}
		Expect(xml.Unmarshal(c.stdout.Bytes(), &suite)).To(Succeed())
		Expect([]int{suite.Tests, suite.Failures, suite.Skipped}).To(Equal([]int{10, 0, 3}))
		namespace := &corev1.Namespace{}
		Expect(client.IgnoreNotFound(admin.Get(ctx, client.ObjectKey{Name: w.namespace + "-own"}, namespace))).To(Succeed())
		Expect(namespace.DeletionTimestamp == nil && namespace.Name != "").To(BeFalse(), "its namespace stays")
	})

	It("is not found where things take too long", func(ctx SpecContext) {
		w := newWorld(ctx)
		c := w.as(root, "conformance", "--in", w.namespace, "--no-pods", "--patience", "1ns").gives(command.ExitVerdict)
		Expect(c.stdout.String()).To(And(ContainSubstring("✗ straight"), ContainSubstring(" after 1ns"), ContainSubstring("3 skipped")))
		Expect(w.as(bob, "conformance", "--in", w.namespace+"-none").gives(command.ExitUsage).stderr.String()).To(ContainSubstring("namespaces is forbidden"))
	})
})

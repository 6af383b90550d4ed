package events

import (
	"fmt"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/testing/testenv"
)

// issue is a delivery of GitHub about an issue.
func issue(action, login string) string {
	return fmt.Sprintf(`{"action":%q,"issue":{"html_url":"https://github.com/acme/shop/issues/7","title":"It breaks","labels":[{"name":"bug"}]},`+
		`"repository":{"html_url":"https://github.com/acme/shop"},"sender":{"login":%q}}`, action, login)
}

var _ = Describe("The sample of issues", func() {
	// apply creates an object of the sample.
	apply := func(w *world, file string, object client.Object) {
		GinkgoHelper()
		text, err := os.ReadFile(filepath.Join(testenv.Root(), "config", "samples", "issue-triage", file))
		Expect(err).NotTo(HaveOccurred())
		Expect(yaml.UnmarshalStrict(text, object)).To(Succeed())
		object.SetNamespace(w.namespace)
		Expect(admin.Create(w.ctx, object)).To(Succeed())
	}

	It("starts with an issue, asks, and ends when the issue is closed", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		apply(w, "composition.yaml", &api.Composition{})
		source := &corev1.Secret{}
		apply(w, "source.yaml", source)
		w.patch(source, fmt.Sprintf(`{"stringData":{"hmac":%q}}`, hmacSecret))

		opened, _ := w.gitHub("github", "issues", "d-1", issue("opened", "ada")).receipt()
		Eventually(func() []string { return triggersOf(w.stored(opened)) }).Should(Equal([]string{"issue-triage/opened Started"}))
		run := &w.runs()[0]
		w.opens(run, "triage#1")
		Expect(run.Status.Instance.ActiveBranches[0].Title).To(Equal("Triage: It breaks"))
		closed, _ := w.gitHub("github", "issues", "d-2", issue("closed", "grace")).receipt()
		w.answerWith(run, "triage#1", `{"accepted":true}`)
		w.reaches(run, api.RunCompleted)
		Expect(run.Status.Outcome).To(Equal("done"))
		Expect(contextOf(run)).To(HaveKeyWithValue("closedBy", "grace"))
		Eventually(func() []string { return deliveriesOf(w.stored(closed)) }).Should(Equal([]string{run.Name + " closed#1 Completed"}))
	})
})

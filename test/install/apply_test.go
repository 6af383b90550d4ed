package install

import (
	"context"
	"encoding/json"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/apitomy/axiom-operator/internal/servingcert"
	"github.com/apitomy/axiom-operator/internal/testing/testenv"
	doors "github.com/apitomy/axiom-operator/webhook/v1alpha1"
)

const validatingName = "axiom-validating-webhook-configuration"

var _ = DescribeTable("everything that is installed applies to an API server",
	func(ctx context.Context, path string) {
		Expect(apply(ctx, inRepository(strings.Split(path, "/")...))).NotTo(ContainSubstring("Warning"))
	},
	Entry(nil, "config/high-availability"),
	Entry(nil, "config/cert-manager"),
	Entry(nil, "config/namespaced"),
	Entry(nil, "dist/crds.yaml"),
	Entry(nil, "dist/install.yaml"),
	Entry(nil, "dist/namespaced-cluster.yaml"),
	Entry(nil, "dist/namespaced-operator.yaml"),
	Entry(nil, "dist/namespaced-watched.yaml"),
	Entry(nil, "hack/dist/testdata/chart-default.yaml"),
	Entry(nil, "hack/dist/testdata/chart-high-availability.yaml"),
	Entry(nil, "hack/dist/testdata/chart-cert-manager.yaml"),
	Entry(nil, "hack/dist/testdata/chart-namespaced.yaml"),
	Entry(nil, "hack/dist/testdata/chart-separate.yaml"),
	Entry(nil, "hack/dist/testdata/chart-everything.yaml"),
	Entry(nil, "docs/examples/flow-schema.yaml"),
)

var _ = It("applying it again, as an upgrade does, needs no force", func(ctx context.Context) {
	first := apply(ctx, inRepository("dist", "install.yaml"))
	Expect(apply(ctx, inRepository("dist", "install.yaml"))).To(Equal(first))
})

var _ = Describe("an installation for chosen namespaces", func() {
	It("is in three parts, of which the administrator's is all that has no namespace", func(ctx context.Context) {
		for file, wide := range map[string][]string{
			"dist/namespaced-cluster.yaml": {
				"ClusterRole", "CustomResourceDefinition", "MutatingWebhookConfiguration", "Namespace", "ValidatingWebhookConfiguration",
			},
			"dist/namespaced-operator.yaml": nil, "dist/namespaced-watched.yaml": nil,
		} {
			var found []string
			for _, kind := range kindsWithoutNamespace(ctx, inRepository(strings.Split(file, "/")...)) {
				if len(found) == 0 || found[len(found)-1] != kind {
					found = append(found, kind)
				}
			}
			Expect(found).To(ConsistOf(asAny(wide)...), file)
		}
	})

	DescribeTable("exempts the operator as the operator itself would", func(ctx context.Context, file string) {
		apply(ctx, inRepository(strings.Split(file, "/")...))
		config := &admissionv1.ValidatingWebhookConfiguration{}
		Expect(admin.Get(ctx, types.NamespacedName{Name: validatingName}, config)).To(Succeed())
		Expect(doors.ExemptOperator(config, testenv.OperatorUser)).To(BeFalse())
		for _, hook := range config.Webhooks {
			Expect(hook.NamespaceSelector.MatchExpressions).To(HaveLen(1), hook.Name)
			Expect(hook.NamespaceSelector.MatchExpressions[0].Values).To(Equal([]string{"team-a"}), hook.Name)
		}
	},
		Entry(nil, "dist/namespaced-cluster.yaml"),
		Entry(nil, "hack/dist/testdata/chart-namespaced.yaml"),
	)

	It("has its webhooks trust the operator once the administrator says so", func(ctx context.Context) {
		apply(ctx, inRepository("dist", "namespaced-cluster.yaml"))
		out, err := script(ctx, "trust-webhooks")
		Expect(err).To(HaveOccurred(), out)
		keeper := &servingcert.Keeper{
			Client: admin, Secret: types.NamespacedName{Namespace: "axiom-system", Name: "axiom-serving-cert"},
			DNSNames: []string{"axiom-webhook-service.axiom-system.svc"}, Clock: clock.RealClock{},
		}
		Expect(keeper.Ensure(ctx)).To(Succeed())
		DeferCleanup(func(ctx context.Context) {
			secret := &corev1.Secret{}
			secret.Namespace, secret.Name = keeper.Secret.Namespace, keeper.Secret.Name
			Expect(client.IgnoreNotFound(admin.Delete(ctx, secret))).To(Succeed())
		})
		out, err = script(ctx, "trust-webhooks", "axiom-system", "axiom")
		Expect(err).NotTo(HaveOccurred(), out)
		validating, mutating := &admissionv1.ValidatingWebhookConfiguration{}, &admissionv1.MutatingWebhookConfiguration{}
		Expect(admin.Get(ctx, types.NamespacedName{Name: validatingName}, validating)).To(Succeed())
		Expect(admin.Get(ctx, types.NamespacedName{Name: "axiom-mutating-webhook-configuration"}, mutating)).To(Succeed())
		for _, hook := range validating.Webhooks {
			Expect(hook.ClientConfig.CABundle).To(Equal(keeper.CA()), hook.Name)
		}
		for _, hook := range mutating.Webhooks {
			Expect(hook.ClientConfig.CABundle).To(Equal(keeper.CA()), hook.Name)
		}
	})
})

// kindsWithoutNamespace are the kinds of the objects in a file that belong to the
// cluster, sorted as they are in it.
func kindsWithoutNamespace(ctx context.Context, path string) (kinds []string) {
	GinkgoHelper()
	out, err := kubectl.Run(ctx, "", "create", "--dry-run=client", "--validate=false", "-o", "json", "-f", path)
	Expect(err).NotTo(HaveOccurred(), out)
	decoder := json.NewDecoder(strings.NewReader(out))
	for decoder.More() {
		var o struct {
			Kind     string `json:"kind"`
			Metadata struct {
				Namespace string `json:"namespace"`
			} `json:"metadata"`
			Items []json.RawMessage `json:"items"`
		}
		Expect(decoder.Decode(&o)).To(Succeed())
		Expect(o.Items).To(BeEmpty())
		if o.Metadata.Namespace == "" {
			kinds = append(kinds, o.Kind)
		}
	}
	return kinds
}

func asAny(texts []string) []any {
	all := make([]any, 0, len(texts))
	for _, text := range texts {
		all = append(all, text)
	}
	return all
}

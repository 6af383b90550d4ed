//go:build e2e

// Package e2e walks the operator's main job on a real cluster with real pods.
// hack/e2e/run brings the cluster up, installs the operator and starts it.
package e2e

import (
	"context"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/apitomy/axiom-operator/internal/testing/testenv"
)

const samples = "../../config/samples/cve-triage/"

var (
	cluster client.Client
	// namespace of the container that runs.
	namespace string
)

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	ctrllog.SetLogger(GinkgoLogr)
	SetDefaultEventuallyTimeout(3 * time.Minute)
	SetDefaultEventuallyPollingInterval(250 * time.Millisecond)
	RunSpecs(t, "End to end")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	Expect(err).NotTo(HaveOccurred(), "KUBECONFIG must name the cluster under test")
	cluster, err = client.New(config, client.Options{Scheme: testenv.NewScheme()})
	Expect(err).NotTo(HaveOccurred())
})

// settle gives the specs of a container a namespace of their own.
func settle(ctx SpecContext) {
	GinkgoHelper()
	ns := testenv.Namespace("e2e")
	ns.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	Expect(cluster.Create(ctx, ns)).To(Succeed())
	namespace = ns.Name
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(cluster.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns.Name}}))).To(Succeed())
	})
}

// person runs kubectl as one user.
type person struct {
	name   string
	groups []string
}

var (
	administrator = person{}
	alice         = person{name: "alice", groups: []string{"security"}}
	bob           = person{name: "bob"}
)

// kubectl returns what the command prints; an error holds it too.
func (p person) kubectl(ctx context.Context, args ...string) (string, error) {
	prefix := []string{"--namespace", namespace}
	if p.name != "" {
		prefix = append(prefix, "--as", p.name, "--as-group", "system:authenticated")
	}
	for _, group := range p.groups {
		prefix = append(prefix, "--as-group", group)
	}
	return testenv.Command(ctx, "kubectl", append(prefix, args...)...)
}

// do is a command that must succeed.
func (p person) do(ctx context.Context, args ...string) string {
	GinkgoHelper()
	out, err := p.kubectl(ctx, args...)
	Expect(err).NotTo(HaveOccurred(), out)
	return out
}

// refused is a command that must fail and say why.
func (p person) refused(ctx context.Context, args ...string) string {
	GinkgoHelper()
	out, err := p.kubectl(ctx, args...)
	Expect(err).To(HaveOccurred(), out)
	return out
}

func key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: name}
}

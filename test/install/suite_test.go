// Package install holds what is installed against a real API server: every overlay
// of config/, every file of dist/ and the rendered Helm chart apply, people may do
// what their roles say, and the operator works in chosen namespaces with the roles
// that it is given there and nothing else.
package install

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/apitomy/axiom-operator/internal/testing/testenv"
)

var (
	env   *testenv.Environment
	admin client.WithWatch
	// kubectl speaks for the administrator.
	kubectl *testenv.KubeCtl
)

func TestInstall(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "Install")
}

var _ = BeforeSuite(func(ctx context.Context) {
	ctrl.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))
	var err error
	env, err = testenv.Start(testenv.Options{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	admin, err = env.Client(env.Admin)
	Expect(err).NotTo(HaveOccurred())
	kubectl, err = env.Kubectl(env.Admin)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(kubectl.Close)
	for _, name := range []string{"axiom-system", "team-a", "team-b"} {
		Expect(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	}
	standIns()
})

// standIns are types of others that manifests may use, without their rules.
func standIns() {
	GinkgoHelper()
	anything := true
	var types []*apiextensionsv1.CustomResourceDefinition
	for _, t := range []struct{ group, version, kind, plural string }{
		{"cert-manager.io", "v1", "Certificate", "certificates"},
		{"cert-manager.io", "v1", "Issuer", "issuers"},
		{"monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors"},
	} {
		types = append(types, &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: t.plural + "." + t.group},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: t.group, Scope: apiextensionsv1.NamespaceScoped,
				Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: t.kind, Plural: t.plural},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: t.version, Served: true, Storage: true,
					Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
						Type: "object", XPreserveUnknownFields: &anything,
					}},
				}},
			},
		})
	}
	_, err := envtest.InstallCRDs(env.Admin, envtest.CRDInstallOptions{CRDs: types})
	Expect(err).NotTo(HaveOccurred())
}

// inRepository is the path of a file of the repository.
func inRepository(parts ...string) string {
	return filepath.Join(append([]string{testenv.Root()}, parts...)...)
}

// apply applies a file, or a directory for kustomize, and has the webhook
// configurations and cluster roles go with the spec: nobody serves the former.
func apply(ctx context.Context, path string) string {
	GinkgoHelper()
	flag := "-f"
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		flag = "-k"
	}
	DeferCleanup(func(ctx context.Context) {
		for _, kinds := range []string{"mutatingwebhookconfigurations,validatingwebhookconfigurations", "rolebindings", "roles"} {
			_, err := kubectl.Run(ctx, "", "delete", kinds, "--all", "--all-namespaces", "--ignore-not-found")
			Expect(err).NotTo(HaveOccurred())
		}
		_, err := kubectl.Run(ctx, "", "delete", "clusterrolebinding", "axiom-manager-rolebinding", "--ignore-not-found")
		Expect(err).NotTo(HaveOccurred())
	})
	out, err := kubectl.Run(ctx, "", "apply", "--server-side", "--validate=strict", flag, path)
	Expect(err).NotTo(HaveOccurred(), out)
	return out
}

// script runs a program of hack/ as the administrator.
func script(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, inRepository("hack", name), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubectl.Kubeconfig(), "PATH="+filepath.Dir(kubectl.Binary())+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Package cli plays people at a shell: the commands that speak with a cluster, on
// a real API server with the operator's admission, controllers and gateway behind
// it, and agents and scripts as processes in place of pods.
package cli

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/apitomy/axiom-operator/internal/testing/operating"
	"github.com/apitomy/axiom-operator/internal/testing/testenv"
)

var (
	env *testenv.Environment
	// admin prepares, looks at objects, and plays the node.
	admin client.WithWatch
	// alice edits compositions and may read ConfigMaps; bob writes turns and sees
	// everything but ConfigMaps; root may do everything, and act as others.
	alice, bob, root *testenv.KubeCtl
	// programs is a directory with axiom-runner, axiom-mcp and kubectl-axiom.
	programs string
)

func TestCLI(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(60 * time.Second)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	RunSpecs(t, "The command line on a cluster")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	ctrl.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))

	By("building the programs")
	programs = GinkgoT().TempDir()
	build(ctx, programs+string(filepath.Separator), "./cmd/axiom-runner", "./cmd/axiom-mcp")
	build(ctx, filepath.Join(programs, "kubectl-axiom"), "./cmd/axiom")

	By("starting the API server with the operator")
	var err error
	env, err = testenv.Start(testenv.Options{Webhooks: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	admin, err = env.Client(env.Admin)
	Expect(err).NotTo(HaveOccurred())
	stop, err := operating.Start(ctx, env, admin)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(stop)

	root = newPerson("root", "system:masters")
	alice, bob = newPerson("alice", "editors"), newPerson("bob", "askers")
	everything := []string{"*"}
	ours, looks := []string{"axiom.apitomy.io"}, []string{"get", "list", "watch"}
	grant(ctx, "editors",
		rbacv1.PolicyRule{APIGroups: ours, Resources: everything, Verbs: everything},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: looks},
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"controllerrevisions"}, Verbs: looks},
	)
	grant(ctx, "askers",
		rbacv1.PolicyRule{APIGroups: ours, Resources: everything, Verbs: looks},
		rbacv1.PolicyRule{APIGroups: ours, Resources: []string{"turns"}, Verbs: everything},
	)
})

func build(ctx context.Context, to string, packages ...string) {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-o", to}, packages...)...)
	cmd.Dir = testenv.Root()
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
}

func newPerson(name, group string) *testenv.KubeCtl {
	GinkgoHelper()
	config, err := env.User(name, group)
	Expect(err).NotTo(HaveOccurred())
	kubectl, err := env.Kubectl(config)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(kubectl.Close)
	return kubectl
}

func grant(ctx context.Context, group string, rules ...rbacv1.PolicyRule) {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{Rules: rules}
	role.Name = group
	Expect(admin.Create(ctx, role)).To(Succeed())
	binding := &rbacv1.ClusterRoleBinding{
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
	}
	binding.Name = role.Name
	Expect(admin.Create(ctx, binding)).To(Succeed())
}

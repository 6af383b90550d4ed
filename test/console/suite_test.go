// Package console plays people at the local page: the program serves it as they
// call it, with their kubeconfig, on a real API server with the whole operator and
// agents as processes in place of pods.
package console

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
	// alice edits, answers and may read what is kept outside; bob sees everything of
	// ours but tasks, and may change nothing.
	alice, bob *testenv.KubeCtl
	// programs is a directory with axiom-runner and axiom-mcp.
	programs string
)

func TestConsole(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(60 * time.Second)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	RunSpecs(t, "The console")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	ctrl.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))

	By("building the programs")
	programs = GinkgoT().TempDir()
	build := exec.CommandContext(ctx, "go", "build", "-o", programs+string(filepath.Separator), "./cmd/axiom-runner", "./cmd/axiom-mcp")
	build.Dir = testenv.Root()
	out, err := build.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))

	By("starting the API server with the operator")
	env, err = testenv.Start(testenv.Options{Webhooks: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	admin, err = env.Client(env.Admin)
	Expect(err).NotTo(HaveOccurred())
	stop, err := operating.Start(ctx, env, admin)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(stop)

	alice, bob = newPerson("alice", "editors"), newPerson("bob", "readers")
	everything, looks := []string{"*"}, []string{"get", "list", "watch"}
	grant(ctx, "editors",
		rbacv1.PolicyRule{APIGroups: []string{"axiom.apitomy.io"}, Resources: everything, Verbs: everything},
		rbacv1.PolicyRule{APIGroups: []string{"", "apps"}, Resources: []string{"configmaps", "controllerrevisions"}, Verbs: looks},
	)
	grant(ctx, "readers", rbacv1.PolicyRule{
		APIGroups: []string{"axiom.apitomy.io"}, Resources: []string{"compositions", "turns", "workflowruns"}, Verbs: looks,
	})
})

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

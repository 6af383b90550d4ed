// Package turns tells stories of compositions, turns and agent sessions
// against a real API server with the operator's admission in front of it. The
// test plays the people, the kubelet, and the gateway with the agent behind it.
package turns

import (
	"context"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/testing/testenv"
	webhook "github.com/apitomy/axiom-operator/webhook/v1alpha1"
)

// person is somebody the stories are about.
type person struct {
	client.WithWatch
	kubectl *testenv.KubeCtl
}

var (
	env *testenv.Environment
	// admin prepares, gateway writes what the operator's gateway would; alice
	// edits compositions, bob too; carol may read everything and write turns.
	admin, gateway, alice, bob, carol person
)

func TestTurns(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Turns")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	ctrl.SetLogger(zap.New(zap.WriteTo(GinkgoWriter)))
	var err error
	env, err = testenv.Start(testenv.Options{Webhooks: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	serveAdmission()

	admin, gateway = newPerson(env.Admin), newPerson(env.Operator)
	alice, bob, carol = addPerson("alice", "editors"), addPerson("bob", "editors"), addPerson("carol", "askers")
	grant(ctx, "editors", rbacv1.PolicyRule{APIGroups: []string{"axiom.apitomy.io"}, Resources: []string{"*"}, Verbs: []string{"*"}})
	grant(ctx, "askers",
		rbacv1.PolicyRule{APIGroups: []string{"axiom.apitomy.io"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{"axiom.apitomy.io"}, Resources: []string{"turns"}, Verbs: []string{"*"}},
	)
})

// serveAdmission has the doors open for all stories, while operators come and go.
func serveAdmission() {
	GinkgoHelper()
	mgr, err := ctrl.NewManager(env.Operator, ctrl.Options{
		Scheme:  env.Scheme,
		Metrics: server.Options{BindAddress: "0"},
		WebhookServer: ctrlwebhook.NewServer(ctrlwebhook.Options{
			Host: env.Webhook.LocalServingHost, Port: env.Webhook.LocalServingPort, CertDir: env.Webhook.LocalServingCertDir,
		}),
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(webhook.Setup(mgr, webhook.Options{Operator: testenv.OperatorUser, Expressions: expression.NewCache()})).To(Succeed())

	running, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(running) }()
	DeferCleanup(func() {
		stop()
		Expect(<-ended).To(Succeed())
	})
	Eventually(func() error { return mgr.GetWebhookServer().StartedChecker()(nil) }).WithTimeout(patience).Should(Succeed())
}

func newPerson(cfg *rest.Config) person {
	GinkgoHelper()
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	c, err := env.Client(cfg)
	Expect(err).NotTo(HaveOccurred())
	k, err := env.Kubectl(cfg)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(k.Close)
	return person{WithWatch: c, kubectl: k}
}

func addPerson(name, group string) person {
	GinkgoHelper()
	cfg, err := env.User(name, group)
	Expect(err).NotTo(HaveOccurred())
	return newPerson(cfg)
}

// grant lets a group do what the rules say, and hear of Events.
func grant(ctx context.Context, group string, rules ...rbacv1.PolicyRule) {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{Rules: append(rules, rbacv1.PolicyRule{
		APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"list"},
	})}
	role.Name = group
	Expect(admin.Create(ctx, role)).To(Succeed())
	binding := &rbacv1.ClusterRoleBinding{
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
	}
	binding.Name = role.Name
	Expect(admin.Create(ctx, binding)).To(Succeed())
}

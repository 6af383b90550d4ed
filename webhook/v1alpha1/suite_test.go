package v1alpha1_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/secretscan"
	"github.com/apitomy/axiom-operator/internal/testing/testenv"
	"github.com/apitomy/axiom-operator/webhook/v1alpha1"
)

// person is somebody the suite speaks as.
type person struct {
	client.WithWatch
	name    string
	kubectl *testenv.KubeCtl
}

var (
	env *testenv.Environment
	// now is the webhooks' clock; a spec that moves it sets it back.
	now = testingclock.NewFakePassiveClock(time.Now().Truncate(time.Second))

	// admin prepares, operator is the operator; alice may do everything with
	// the kinds, bob may write turns and answers but no composition, carol is
	// like bob and one of the reviewers.
	admin, operator, alice, bob, carol person
)

func TestAdmission(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Admission")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	ctrl.SetLogger(GinkgoLogr)
	var err error
	env, err = testenv.Start(testenv.Options{Webhooks: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	startDoors()

	admin = newPerson("admin", env.Admin)
	operator = newPerson(testenv.OperatorUser, env.Operator)
	alice = addPerson("alice", "editors")
	bob = addPerson("bob", "writers")
	carol = addPerson("carol", "writers", "reviewers")
	grant(ctx, "editors", rbacv1.PolicyRule{APIGroups: []string{"axiom.apitomy.io"}, Resources: []string{"*"}, Verbs: []string{"*"}})
	grant(ctx, "writers",
		rbacv1.PolicyRule{
			APIGroups: []string{"axiom.apitomy.io"}, Resources: []string{"turns", "humantasks", "humantasks/status"},
			Verbs: []string{"create", "get", "list", "patch", "update"},
		},
		rbacv1.PolicyRule{APIGroups: []string{"axiom.apitomy.io"}, Resources: []string{"compositions"}, Verbs: []string{"get", "list"}})

	// The authorizer learns of roles a moment later.
	Eventually(func() error { return alice.List(ctx, &api.CompositionList{}) }).Should(Succeed())
	Eventually(func() error { return bob.List(ctx, &api.CompositionList{}) }).Should(Succeed())
})

// startDoors serves admission as the operator would.
func startDoors() {
	GinkgoHelper()
	mgr, err := ctrl.NewManager(env.Operator, ctrl.Options{
		Scheme:  env.Scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: env.Webhook.LocalServingHost, Port: env.Webhook.LocalServingPort, CertDir: env.Webhook.LocalServingCertDir,
		}),
	})
	Expect(err).NotTo(HaveOccurred())
	scanner, err := secretscan.New()
	Expect(err).NotTo(HaveOccurred())
	Expect(v1alpha1.Setup(mgr, v1alpha1.Options{
		Operator: testenv.OperatorUser, Clock: now, Expressions: expression.NewCache(), Scanner: scanner,
	})).To(Succeed())

	running, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(running) }()
	DeferCleanup(func() {
		stop()
		Expect(<-ended).NotTo(HaveOccurred())
	})
	Eventually(func() error { return mgr.GetWebhookServer().StartedChecker()(nil) }).Should(Succeed())
}

func addPerson(name string, groups ...string) person {
	GinkgoHelper()
	cfg, err := env.User(name, groups...)
	Expect(err).NotTo(HaveOccurred())
	return newPerson(name, cfg)
}

func newPerson(name string, cfg *rest.Config) person {
	GinkgoHelper()
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	c, err := env.Client(cfg)
	Expect(err).NotTo(HaveOccurred())
	k, err := env.Kubectl(cfg)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(k.Close)
	return person{WithWatch: c, name: name, kubectl: k}
}

// grant gives a group rights in every namespace.
func grant(ctx context.Context, group string, rules ...rbacv1.PolicyRule) {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{Rules: rules}
	role.Name = "test-" + group
	Expect(admin.Create(ctx, role)).To(Succeed())
	binding := &rbacv1.ClusterRoleBinding{
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
	}
	binding.Name = role.Name
	Expect(admin.Create(ctx, binding)).To(Succeed())
}

// newNamespace is a place of a spec's own.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	ns := testenv.Namespace("admission")
	Expect(admin.Create(ctx, ns)).To(Succeed())
	return ns.Name
}

// run speaks through kubectl and returns what it printed; it must succeed.
func (p person) run(ctx context.Context, stdin string, args ...string) string {
	GinkgoHelper()
	out, err := p.kubectl.Run(ctx, stdin, args...)
	Expect(err).NotTo(HaveOccurred(), out)
	return out
}

// fail is like run, but kubectl must fail.
func (p person) fail(ctx context.Context, stdin string, args ...string) string {
	GinkgoHelper()
	out, err := p.kubectl.Run(ctx, stdin, args...)
	Expect(err).To(HaveOccurred(), out)
	return out
}

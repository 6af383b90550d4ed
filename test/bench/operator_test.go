package bench

import (
	"context"
	"maps"
	"net/http"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/apitomy/axiom-operator/controllers"
	"github.com/apitomy/axiom-operator/internal/operator"
	"github.com/apitomy/axiom-operator/internal/testing/testenv"
)

// counter counts the requests of an operator that may change something, and
// those that read, by method and resource.
type counter struct {
	mu     sync.Mutex
	counts map[string]int
}

func (c *counter) wrap(base http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		c.mu.Lock()
		c.counts[keyOf(req)]++
		c.mu.Unlock()
		return base.RoundTrip(req)
	})
}

func (c *counter) now() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}

// since is what was counted after an earlier look, without what was not.
func (c *counter) since(before map[string]int) map[string]int {
	grown := c.now()
	maps.DeleteFunc(grown, func(key string, n int) bool { return n == before[key] })
	for key := range grown {
		grown[key] -= before[key]
	}
	return grown
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// keyOf names method, resource and subresource of a namespaced request.
func keyOf(req *http.Request) string {
	_, path, _ := strings.Cut(req.URL.Path, "/namespaces/")
	parts := strings.Split(path, "/")
	switch {
	case req.URL.Query().Get("watch") == "true" || len(parts) < 2:
		return "other"
	case len(parts) > 3:
		return req.Method + " " + parts[1] + "/" + parts[3]
	}
	return req.Method + " " + parts[1]
}

// operate starts the whole operator and returns what counts its requests, and
// what stops it.
func operate(ctx context.Context) (*counter, func()) {
	GinkgoHelper()
	counted := &counter{counts: map[string]int{}}
	cfg := rest.CopyConfig(env.Operator)
	cfg.QPS = -1
	cfg.Wrap(counted.wrap)
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: operator.NewScheme(), Cache: operator.CacheOptions(), Client: operator.ClientOptions(),
		Metrics:    server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: env.Webhook.LocalServingHost, Port: env.Webhook.LocalServingPort, CertDir: env.Webhook.LocalServingCertDir,
		}),
	})
	Expect(err).NotTo(HaveOccurred())
	gateway := controllers.GatewayOptions{URL: "https://gateway.example.invalid/api/v1", CA: func() []byte { return nil }, Namespace: "axiom-system", Port: 8443}
	Expect(operator.Setup(mgr, operator.Options{
		Username: testenv.OperatorUser,
		Sessions: controllers.SessionOptions{Gateway: gateway, MaxPerNamespace: 1},
		Runs:     controllers.RunOptions{Gateway: gateway, Workers: 4},
	})).To(Succeed())
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		Expect(<-ended).To(Succeed())
	})
	DeferCleanup(stop)
	Expect(mgr.GetCache().WaitForCacheSync(ctx)).To(BeTrue())
	return counted, stop
}

// reconciles are how often a controller was called in this process.
func reconciles(controller string) int {
	GinkgoHelper()
	families, err := metrics.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	n := 0
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, pair := range metric.GetLabel() {
				if pair.GetName() == "controller" && pair.GetValue() == controller {
					n += int(metric.GetCounter().GetValue())
				}
			}
		}
	}
	return n
}

package turns

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/controllers"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/operator"
)

// process is a manager with the controllers that turns need, for one namespace.
type process struct {
	clock clock.PassiveClock
	// traffic is told of each request; may be nil.
	traffic *traffic
}

func (p process) start(ctx context.Context, cfg *rest.Config, namespace string) error {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1 // a story should not wait for a client's own patience
	if p.traffic != nil {
		cfg.Wrap(p.traffic.wrap)
	}
	mgr, err := p.manager(cfg, namespace)
	if err != nil {
		return err
	}
	direct, err := client.New(cfg, client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("create direct client: %w", err)
	}
	expressions := expression.NewCache()
	for _, controller := range []interface{ SetupWithManager(mgr ctrl.Manager) error }{
		&controllers.CompositionReconciler{Client: mgr.GetClient(), Live: direct, Clock: p.clock, Expressions: expressions},
		&controllers.TurnReconciler{
			Client: mgr.GetClient(), Direct: direct, Clock: p.clock, Recorder: mgr.GetEventRecorder("axiom-turns"), Expressions: expressions,
		},
		&controllers.AgentSessionReconciler{Client: mgr.GetClient(), Direct: direct, Clock: p.clock, Options: sessionOptions()},
	} {
		if err := controller.SetupWithManager(mgr); err != nil {
			return fmt.Errorf("set up %T: %w", controller, err)
		}
	}
	return mgr.Start(ctx)
}

func (p process) manager(cfg *rest.Config, namespace string) (ctrl.Manager, error) {
	shutdown := 5 * time.Second
	caches := operator.CacheOptions()
	caches.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	return ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                  env.Scheme,
		Metrics:                 server.Options{BindAddress: "0"},
		Controller:              config.Controller{SkipNameValidation: new(true)},
		GracefulShutdownTimeout: &shutdown,
		Cache:                   caches,
		Client:                  operator.ClientOptions(),
	})
}

func sessionOptions() controllers.SessionOptions {
	return controllers.SessionOptions{
		OperatorImage:   "example.invalid/operator:test",
		DefaultRuntime:  api.RuntimeSpec{Image: "example.invalid/agent:test", Command: []string{"agent", "--acp"}},
		PullPolicy:      corev1.PullNever,
		MaxPerNamespace: 3,
		StartTimeout:    5 * time.Minute,
		Random:          rand.Reader,
		Gateway: controllers.GatewayOptions{
			URL: "https://gateway.example.invalid/api/v1", CA: func() []byte { return []byte("certificates") },
			Namespace: "axiom-system", PodLabels: map[string]string{"app": "gateway"}, Port: 8443,
		},
	}
}

// traffic is what a process asks of the API server.
type traffic struct {
	mu     sync.Mutex
	writes []string
}

func (t *traffic) wrap(base http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		isWrite := req.Method != http.MethodGet && req.Method != http.MethodHead && req.Method != http.MethodOptions
		if isWrite && !strings.Contains(req.URL.Path, "/events") {
			t.mu.Lock()
			t.writes = append(t.writes, req.Method+" "+req.URL.Path)
			t.mu.Unlock()
		}
		return base.RoundTrip(req)
	})
}

// seen are the writes so far.
func (t *traffic) seen() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.writes...)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

package actions

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/apitomy/axiom-operator/controllers"
	"github.com/apitomy/axiom-operator/internal/operator"
	"github.com/apitomy/axiom-operator/internal/testing/testenv"
)

// startTimeout is what pods have to start their containers.
const startTimeout = 5 * time.Minute

// findAddress reserves an address on this machine.
func findAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}

// process is an operator for one namespace, its gateway included.
type process struct {
	namespace string
	// address of the gateway: one that replaces another serves where that one did,
	// as a Service would have it. Empty: there is none.
	address string
	clock   clock.Clock
	// wrap looks at each request to the API server; may be nil.
	wrap func(http.RoundTripper) http.RoundTripper
}

// run runs the operator until ctx ends.
func (p process) run(ctx context.Context, cfg *rest.Config) error {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	if p.wrap != nil {
		cfg.Wrap(p.wrap)
	}
	caches := operator.CacheOptions()
	caches.DefaultNamespaces = map[string]cache.Config{p.namespace: {}}
	shutdown := 5 * time.Second
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                  operator.NewScheme(),
		Cache:                   caches,
		Client:                  operator.ClientOptions(),
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress:  "0",
		GracefulShutdownTimeout: &shutdown,
		Controller:              config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		return fmt.Errorf("create manager: %w", err)
	}
	if err := operator.SetupLoops(mgr, p.options()); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func (p process) options() operator.Options {
	gateway := controllers.GatewayOptions{
		URL: "https://" + p.address + "/api/v1", CA: keeper.CA, Namespace: "axiom-system",
		PodLabels: map[string]string{"control-plane": "controller-manager"}, Port: 8443,
	}
	return operator.Options{
		Username: testenv.OperatorUser,
		Clock:    p.clock,
		Sessions: controllers.SessionOptions{
			OperatorImage: "operator", Gateway: gateway, PullPolicy: corev1.PullNever, MaxPerNamespace: 1, StartTimeout: startTimeout,
		},
		Runs: controllers.RunOptions{
			OperatorImage: "operator", ScriptImages: map[string]string{"bash": "bash", "node": "node", "python": "python"},
			Gateway: gateway, PullPolicy: corev1.PullNever, StartTimeout: startTimeout,
		},
		GatewayAddress: p.address,
		GetCertificate: keeper.GetCertificate,
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

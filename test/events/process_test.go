package events

import (
	"context"
	"fmt"
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

// process is the operator for one namespace: its controllers and its gateway.
type process struct {
	clock clock.Clock
	// silent processes serve no gateway: only one can at an address.
	silent bool
	// after is called with the status code of each answer to its requests; may
	// be nil.
	after func(*http.Request, int)
	// change the operator's settings; may be nil.
	change func(*operator.Options)
}

func (p process) start(ctx context.Context, cfg *rest.Config, namespace string) error {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	cfg.Wrap(func(base http.RoundTripper) http.RoundTripper { return watched{base, p} })
	cacheOptions := operator.CacheOptions()
	cacheOptions.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	shutdown := 5 * time.Second
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                  operator.NewScheme(),
		Cache:                   cacheOptions,
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
	pods := controllers.GatewayOptions{
		URL: "https://" + address + "/api/v1", CA: keeper.CA, Namespace: "axiom-system",
		PodLabels: map[string]string{"control-plane": "controller-manager"}, Port: 8443,
	}
	options := operator.Options{
		Username: testenv.OperatorUser,
		Clock:    p.clock,
		Sessions: controllers.SessionOptions{
			OperatorImage: "operator", Gateway: pods, PullPolicy: corev1.PullNever, MaxPerNamespace: 3, StartTimeout: time.Minute,
		},
		Runs: controllers.RunOptions{
			OperatorImage: "operator", ScriptImages: map[string]string{"bash": "bash"}, Gateway: pods, PullPolicy: corev1.PullNever,
		},
		GatewayAddress: address,
		GetCertificate: keeper.GetCertificate,
	}
	if p.silent {
		options.GatewayAddress = ""
	}
	if p.change != nil {
		p.change(&options)
	}
	return options
}

// watched tells of each request of a process.
type watched struct {
	base    http.RoundTripper
	process process
}

func (w watched) RoundTrip(req *http.Request) (*http.Response, error) {
	answer, err := w.base.RoundTrip(req)
	if err == nil && w.process.after != nil {
		w.process.after(req, answer.StatusCode)
	}
	return answer, err
}

package path

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/apitomy/axiom-operator/controllers"
	"github.com/apitomy/axiom-operator/internal/operator"
	"github.com/apitomy/axiom-operator/internal/testing/testenv"
)

// service leads to the gateways of the processes.
var service *front

// makeWorld gives a play a namespace of its own.
func makeWorld(ctx context.Context) (string, error) {
	ns := testenv.Namespace("path")
	if err := admin.Create(ctx, ns); err != nil {
		return "", fmt.Errorf("create namespace: %w", err)
	}
	return ns.Name, nil
}

// runOperator runs controllers and gateway for one namespace until ctx ends.
func runOperator(ctx context.Context, cfg *rest.Config, namespace string) error {
	address, leave, err := service.join()
	if err != nil {
		return err
	}
	defer leave()
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
	gateway := controllers.GatewayOptions{
		URL: "https://" + service.address() + "/api/v1", CA: keeper.CA, Namespace: "axiom-system",
		PodLabels: map[string]string{"control-plane": "controller-manager"}, Port: 8443,
	}
	err = operator.SetupLoops(mgr, operator.Options{
		Username: testenv.OperatorUser,
		Sessions: controllers.SessionOptions{
			OperatorImage: "operator", Gateway: gateway, PullPolicy: corev1.PullNever,
			MaxPerNamespace: 3, StartTimeout: 5 * time.Minute,
		},
		Runs: controllers.RunOptions{
			OperatorImage: "operator", ScriptImages: map[string]string{"bash": "bash"}, Gateway: gateway, PullPolicy: corev1.PullNever,
		},
		GatewayAddress: address,
		GetCertificate: keeper.GetCertificate,
	})
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

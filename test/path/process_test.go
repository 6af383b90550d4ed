package path

import (
	"context"
	"fmt"
	"net"
	"sync"
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

// addresses keeps the gateway's address of each namespace: a process that
// replaces another serves where that one did, as a Service would have it.
var addresses sync.Map

// makeWorld gives a play a namespace and a gateway address of its own.
func makeWorld(ctx context.Context) (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a port: %w", err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return "", fmt.Errorf("free the port: %w", err)
	}
	ns := testenv.Namespace("path")
	if err := admin.Create(ctx, ns); err != nil {
		return "", fmt.Errorf("create namespace: %w", err)
	}
	addresses.Store(ns.Name, address)
	return ns.Name, nil
}

// runOperator runs controllers and gateway for one namespace until ctx ends.
func runOperator(ctx context.Context, cfg *rest.Config, namespace string) error {
	stored, _ := addresses.Load(namespace)
	address, _ := stored.(string)
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
		URL: "https://" + address + "/api/v1", CA: keeper.CA, Namespace: "axiom-system",
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

// Package operating runs the whole operator against the API server of a suite: its
// admission, controllers and gateway in one process, as the manager does.
package operating

import (
	"context"
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/apitomy/axiom-operator/controllers"
	"github.com/apitomy/axiom-operator/internal/operator"
	"github.com/apitomy/axiom-operator/internal/servingcert"
	"github.com/apitomy/axiom-operator/internal/testing/testenv"
)

// patience is how long admission may take to answer.
const patience = time.Minute

// Start runs the operator and returns when its admission answers. The caller must
// call stop, which returns how the operator ended, before the environment stops.
// The environment must have been started with webhooks.
func Start(ctx context.Context, env *testenv.Environment, admin client.Client) (stop func() error, err error) {
	mgr, err := newManager(ctx, env, admin)
	if err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(running) }()
	stop = func() error {
		cancel()
		return <-ended
	}
	answers := func(context.Context) (bool, error) { return mgr.GetWebhookServer().StartedChecker()(nil) == nil, nil }
	if err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, answers); err != nil {
		_ = stop()
		return nil, fmt.Errorf("wait for admission: %w", err)
	}
	return stop, nil
}

func newManager(ctx context.Context, env *testenv.Environment, admin client.Client) (ctrl.Manager, error) {
	keeper := &servingcert.Keeper{
		Client: admin, Secret: types.NamespacedName{Namespace: "default", Name: "gateway-cert"},
		IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Clock: clock.RealClock{},
	}
	if err := keeper.Ensure(ctx); err != nil {
		return nil, fmt.Errorf("issue certificate: %w", err)
	}
	mgr, err := ctrl.NewManager(env.Operator, ctrl.Options{
		Scheme: operator.NewScheme(), Cache: operator.CacheOptions(), Client: operator.ClientOptions(),
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: env.Webhook.LocalServingHost, Port: env.Webhook.LocalServingPort, CertDir: env.Webhook.LocalServingCertDir,
		}),
	})
	if err != nil {
		return nil, fmt.Errorf("make manager: %w", err)
	}
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	gateway := controllers.GatewayOptions{
		URL: "https://" + address + "/api/v1", CA: keeper.CA, Namespace: "axiom-system",
		PodLabels: map[string]string{"control-plane": "controller-manager"}, Port: 8443,
	}
	err = operator.Setup(mgr, operator.Options{
		Username: testenv.OperatorUser,
		Sessions: controllers.SessionOptions{
			OperatorImage: "operator", Gateway: gateway, PullPolicy: corev1.PullNever, MaxPerNamespace: 3, StartTimeout: 5 * time.Minute,
		},
		Runs: controllers.RunOptions{
			OperatorImage: "operator", ScriptImages: map[string]string{"bash": "bash"}, Gateway: gateway, PullPolicy: corev1.PullNever,
		},
		GatewayAddress: address,
		GetCertificate: keeper.GetCertificate,
	})
	if err != nil {
		return nil, fmt.Errorf("set up operator: %w", err)
	}
	return mgr, nil
}

// freeAddress is a port of the loopback address that nobody listens on.
func freeAddress(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find free port: %w", err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return "", fmt.Errorf("free port: %w", err)
	}
	return address, nil
}

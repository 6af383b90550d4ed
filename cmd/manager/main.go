// Command manager runs the operator: controllers, admission webhooks and the
// agent gateway.
//
// It exits with 0 when it was told to stop, 1 when it failed, and 2 when its
// flags cannot be used.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/controllers"
	"github.com/apitomy/axiom-operator/internal/operator"
	"github.com/apitomy/axiom-operator/internal/servingcert"
	"github.com/apitomy/axiom-operator/internal/telemetry"
	doors "github.com/apitomy/axiom-operator/webhook/v1alpha1"
)

// servingSecret holds the operator's certificate; its name is in the role that
// lets the operator read it.
const servingSecret = "axiom-serving-cert"

// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,verbs=get;update,resourceNames=axiom-mutating-webhook-configuration
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,verbs=get;update,resourceNames=axiom-validating-webhook-configuration

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	flags := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	opts := &options{}
	opts.register(flags)
	logging := zap.Options{}
	goFlags := flag.NewFlagSet("manager", flag.ContinueOnError)
	logging.BindFlags(goFlags)
	flags.AddGoFlagSet(goFlags)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return 0
		}
		fmt.Fprintln(os.Stderr, "manager:", err)
		return 2
	}
	if err := opts.validate(); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		return 2
	}
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))
	if err := serve(ctrl.SetupSignalHandler(), opts); err != nil {
		ctrl.Log.Error(err, "Manager ended")
		return 1
	}
	return 0
}

func serve(ctx context.Context, opts *options) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	opts.client.limit(config)
	direct, err := client.New(config, client.Options{Scheme: operator.NewScheme()})
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	keeper := opts.keeper(direct)
	if err := keeper.Ensure(ctx); err != nil {
		return err
	}
	lock, leadership, err := opts.lock(config)
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, opts.manager(keeper, lock))
	if err != nil {
		return fmt.Errorf("create manager: %w", err)
	}
	settings := opts.operator(keeper)
	settings.Supervised.Leadership = leadership
	if opts.authorities != "" {
		if settings.Supervised.Authorities, err = os.ReadFile(opts.authorities); err != nil {
			return fmt.Errorf("read authorities of remotes: %w", err)
		}
	}
	settings.Metrics = metrics.Registry
	if settings.Tracing, err = telemetry.New(ctx, os.LookupEnv); err != nil {
		return err
	}
	if err := operator.Setup(mgr, settings); err != nil {
		return err
	}
	err = errors.Join(
		mgr.Add(keeper),
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("webhook", mgr.GetWebhookServer().StartedChecker()),
	)
	if err != nil {
		return fmt.Errorf("set up manager: %w", err)
	}
	return mgr.Start(ctx)
}

func (o *options) keeper(direct client.Client) *servingcert.Keeper {
	names, ips := o.servingNames()
	return &servingcert.Keeper{
		Client:   direct,
		Secret:   types.NamespacedName{Namespace: o.namespace, Name: servingSecret},
		DNSNames: names, IPs: ips,
		Webhooks: o.webhookConfig,
		External: o.certificate == certificateExternal,
		Adjust: func(config *admissionv1.ValidatingWebhookConfiguration) bool {
			return doors.ExemptOperator(config, o.operatorUsername)
		},
		Clock: clock.RealClock{},
	}
}

func (o *options) manager(keeper *servingcert.Keeper, lock resourcelock.Interface) ctrl.Options {
	http1 := func(config *tls.Config) { config.NextProtos = []string{"http/1.1"} }
	return ctrl.Options{
		Scheme: operator.NewScheme(),
		Cache:  operator.CacheOptions(o.namespaces...),
		Client: operator.ClientOptions(),
		Controller: ctrlconfig.Controller{
			MaxConcurrentReconciles: o.workers,
		},
		Metrics: metricsserver.Options{
			BindAddress: o.metricsAddress, SecureServing: true, FilterProvider: filters.WithAuthenticationAndAuthorization,
			TLSOpts: []func(*tls.Config){http1},
		},
		WebhookServer: webhook.NewServer(webhook.Options{
			Port: o.webhookPort,
			TLSOpts: []func(*tls.Config){http1, func(config *tls.Config) {
				config.GetCertificate = keeper.GetCertificate
			}},
		}),
		HealthProbeBindAddress:              o.probeAddress,
		LeaderElection:                      o.leaderElect,
		LeaderElectionResourceLockInterface: lock,
		RenewDeadline:                       new(renewDeadline),
		LeaderElectionReleaseOnCancel:       true,
		GracefulShutdownTimeout:             &o.shutdown,
	}
}

func (o *options) operator(keeper *servingcert.Keeper) operator.Options {
	pull := corev1.PullPolicy(o.pullPolicy)
	pods := controllers.GatewayOptions{
		URL: o.gatewayURL, CA: keeper.CA, Namespace: o.namespace,
		PodLabels: map[string]string{"control-plane": "controller-manager"}, Port: o.gatewayPort(),
	}
	return operator.Options{
		Username: o.operatorUsername,
		Sessions: controllers.SessionOptions{
			OperatorImage: o.operatorImage, Gateway: pods, PullPolicy: pull,
			DefaultRuntime:  api.RuntimeSpec{Image: o.agentImage, Command: o.agentCommand},
			MaxPerNamespace: o.maxSessions, StartTimeout: o.startTimeout,
		},
		Runs: controllers.RunOptions{
			OperatorImage: o.operatorImage, ScriptImages: o.scriptImages, Gateway: pods, PullPolicy: pull,
			Workers: o.runWorkers, StartTimeout: o.scriptStart,
		},
		Supervised: operator.SupervisedOptions{
			SupervisedOptions: controllers.SupervisedOptions{
				Remotes: types.NamespacedName{Namespace: o.namespace, Name: o.remotes}, Workers: o.runWorkers,
			},
			CacheDir: o.workspaceCache, CacheBytes: o.workspaceBytes,
		},
		Namespaces:     o.namespaces,
		Events:         o.events,
		GatewayAddress: o.gatewayAddress,
		GetCertificate: keeper.GetCertificate,
	}
}

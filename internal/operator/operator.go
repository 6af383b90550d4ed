// Package operator puts the operator together: controllers, admission and the
// gateway on one manager. The program in cmd/manager and the suites start the
// same thing.
package operator

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/controllers"
	"github.com/apitomy/axiom-operator/gateway"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/remotes"
	"github.com/apitomy/axiom-operator/internal/secretscan"
	"github.com/apitomy/axiom-operator/internal/telemetry"
	"github.com/apitomy/axiom-operator/internal/workspace"
	webhook "github.com/apitomy/axiom-operator/webhook/v1alpha1"
)

// recorderName is who Events come from.
const recorderName = "axiom.apitomy.io/operator"

// Options of an operator.
type Options struct {
	// Username of the operator's own requests.
	Username string
	// Namespaces the operator works in; empty: all. The cache must be of the same
	// ones, see [CacheOptions].
	Namespaces []string
	// Sessions and Runs are the settings of the controllers.
	Sessions controllers.SessionOptions
	Runs     controllers.RunOptions
	// Supervised are the settings of runs that are defined in Git.
	Supervised SupervisedOptions
	// Events says how long events are kept.
	Events controllers.EventRetention
	// GatewayAddress to serve the gateway on; empty: it is not served.
	GatewayAddress string
	// GetCertificate returns the gateway's serving certificate.
	GetCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Clock is the machine's when nil.
	Clock clock.Clock
	// Metrics take the operator's own; nil: there are none.
	Metrics prometheus.Registerer
	// Tracing sends the traces of runs; nil: they are not sent.
	Tracing *telemetry.Tracing
}

// SupervisedOptions are the settings of runs that are defined in Git.
type SupervisedOptions struct {
	// SupervisedOptions of their controller.
	controllers.SupervisedOptions
	// CacheDir is where fetched objects are kept, and belongs to this process alone;
	// empty: no such run is worked on.
	CacheDir string
	// CacheBytes bounds what is kept there.
	CacheBytes int64
	// Authorities in PEM are trusted beside those of the machine.
	Authorities []byte
}

// NewScheme has the built-in types and the project's.
func NewScheme() *kruntime.Scheme {
	scheme := kruntime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(api.AddToScheme(scheme))
	return scheme
}

// CacheOptions keep in memory only what the controllers look at: of pods and
// ConfigMaps those of runs and sessions, of ControllerRevisions those of
// compositions. Secrets are never cached. With namespaces, it watches only there.
func CacheOptions(namespaces ...string) cache.Options {
	var within map[string]cache.Config
	if len(namespaces) > 0 {
		within = make(map[string]cache.Config, len(namespaces))
	}
	for _, namespace := range namespaces {
		within[namespace] = cache.Config{}
	}
	return cache.Options{DefaultNamespaces: within, DefaultTransform: cache.TransformStripManagedFields(), ByObject: map[client.Object]cache.ByObject{
		&corev1.Pod{}:                {Label: has(api.LabelComponent)},
		&corev1.ConfigMap{}:          {Label: has(api.LabelRun)},
		&appsv1.ControllerRevision{}: {Label: has(api.LabelComposition)},
	}}
}

// fieldOwner names the operator where objects tell who set their fields, whatever
// the program is called.
const fieldOwner = "axiom-operator"

// ClientOptions keep Secrets out of every cache, and name who writes.
func ClientOptions() client.Options {
	return client.Options{
		Cache:      &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}},
		FieldOwner: fieldOwner,
	}
}

// Setup adds controllers, gateway and admission to a manager.
func Setup(mgr ctrl.Manager, options Options) error {
	return errors.Join(SetupLoops(mgr, options), SetupAdmission(mgr, options))
}

// SetupLoops adds the controllers and the gateway.
func SetupLoops(mgr ctrl.Manager, options Options) error {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	expressions := expression.NewCache()
	direct, err := client.NewWithWatch(mgr.GetConfig(), client.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), FieldOwner: fieldOwner,
	})
	if err != nil {
		return fmt.Errorf("create direct client: %w", err)
	}
	return errors.Join(
		setupControllers(mgr, options, direct, expressions),
		setupGateway(mgr, options, direct, expressions),
	)
}

// SetupAdmission adds the webhooks.
func SetupAdmission(mgr ctrl.Manager, options Options) error {
	scanner, err := secretscan.New()
	if err != nil {
		return err
	}
	return webhook.Setup(mgr, webhook.Options{
		Operator: options.Username, Clock: options.Clock, Expressions: expression.NewCache(), Scanner: scanner,
	})
}

func setupControllers(mgr ctrl.Manager, options Options, direct client.Client, expressions *expression.Cache) error {
	if options.Sessions.Random == nil {
		options.Sessions.Random = rand.Reader
	}
	if options.Runs.Random == nil {
		options.Runs.Random = rand.Reader
	}
	runMetrics, err := setupMetrics(mgr, options)
	if err != nil {
		return err
	}
	recorder := mgr.GetEventRecorder(recorderName)
	receipts := &controllers.EventReceipts{}
	return errors.Join(
		(&controllers.CompositionReconciler{
			Client: mgr.GetClient(), Live: direct, Clock: options.Clock, Expressions: expressions,
		}).SetupWithManager(mgr),
		(&controllers.TurnReconciler{
			Client: mgr.GetClient(), Direct: direct, Clock: options.Clock, Recorder: recorder, Expressions: expressions,
			StartTimeout: options.Sessions.StartTimeout,
		}).SetupWithManager(mgr),
		(&controllers.AgentSessionReconciler{
			Client: mgr.GetClient(), Direct: direct, Clock: options.Clock, Options: options.Sessions,
		}).SetupWithManager(mgr),
		(&controllers.WorkflowRunReconciler{
			Client: mgr.GetClient(), Live: direct, Clock: options.Clock, Recorder: recorder, Options: options.Runs, Expressions: expressions,
			Receipts: receipts, Metrics: runMetrics, Tracing: options.Tracing,
		}).SetupWithManager(mgr),
		setupSupervised(mgr, options, direct, expressions),
		(&controllers.StreamEventReconciler{
			Client: mgr.GetClient(), Live: direct, Clock: options.Clock, Recorder: recorder, Expressions: expressions, Receipts: receipts,
		}).SetupWithManager(mgr),
		(&controllers.EventRetentionReconciler{
			Client: mgr.GetClient(), Clock: options.Clock, Retention: options.Events,
		}).SetupWithManager(mgr),
		(&controllers.ActionTypeReconciler{
			Client: mgr.GetClient(), Live: direct, Clock: options.Clock, Expressions: expressions,
		}).SetupWithManager(mgr),
		(&controllers.ToolReconciler{Client: mgr.GetClient(), Clock: options.Clock}).SetupWithManager(mgr),
		(&controllers.HumanTaskReconciler{
			Client: mgr.GetClient(), Clock: options.Clock, Recorder: recorder,
		}).SetupWithManager(mgr),
	)
}

// setupSupervised adds the controller of runs that are defined in Git.
func setupSupervised(mgr ctrl.Manager, options Options, direct client.Client, expressions *expression.Cache) error {
	own := options.Supervised
	if own.CacheDir == "" {
		return nil
	}
	scanner, err := secretscan.New()
	if err != nil {
		return err
	}
	network, err := remotes.NewNetwork(own.Authorities)
	if err != nil {
		return err
	}
	bases, err := workspace.NewCache(own.CacheDir, own.CacheBytes, options.Clock)
	if err != nil {
		return err
	}
	return (&controllers.SupervisedRunReconciler{
		Client: mgr.GetClient(), Live: direct, Clock: options.Clock, Recorder: mgr.GetEventRecorder(recorderName), Options: own.SupervisedOptions,
		Expressions: expressions, Scanner: scanner, Network: network, Bases: bases,
	}).SetupWithManager(mgr)
}

// setupMetrics registers the operator's metrics, and lets the tracing end with
// the manager.
func setupMetrics(mgr ctrl.Manager, options Options) (*controllers.RunMetrics, error) {
	if options.Tracing != nil {
		if err := mgr.Add(options.Tracing); err != nil {
			return nil, fmt.Errorf("add tracing: %w", err)
		}
	}
	if options.Metrics == nil {
		return nil, nil //nolint:nilnil // nil metrics count nothing
	}
	if err := options.Metrics.Register(controllers.NewPhaseMetrics(mgr.GetCache())); err != nil {
		return nil, fmt.Errorf("register metrics of phases: %w", err)
	}
	return controllers.NewRunMetrics(options.Metrics)
}

func setupGateway(mgr ctrl.Manager, options Options, direct client.WithWatch, expressions *expression.Cache) error {
	if options.GatewayAddress == "" {
		return nil
	}
	scanner, err := secretscan.New()
	if err != nil {
		return err
	}
	server := gateway.New(gateway.Options{
		Client:      direct,
		Reader:      direct,
		Cached:      mgr.GetClient(),
		Informers:   mgr.GetCache(),
		Namespaces:  options.Namespaces,
		Expressions: expressions,
		Template: func(ctx context.Context, namespace, name string) (api.SessionTemplateSpec, error) {
			return controllers.ResolveTemplate(ctx, mgr.GetClient(), namespace, name)
		},
		Scanner:        scanner,
		Clock:          options.Clock,
		Log:            mgr.GetLogger().WithName("gateway"),
		Address:        options.GatewayAddress,
		GetCertificate: options.GetCertificate,
	})
	if err := mgr.Add(server); err != nil {
		return fmt.Errorf("add gateway: %w", err)
	}
	return nil
}

// has selects the objects that carry a label.
func has(label string) labels.Selector {
	requirement, err := labels.NewRequirement(label, selection.Exists, nil)
	utilruntime.Must(err)
	return labels.NewSelector().Add(*requirement)
}

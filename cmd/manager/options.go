package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/controllers"
)

// options are the manager's flags.
type options struct {
	namespace        string
	operatorUsername string
	operatorImage    string
	scriptImages     map[string]string
	pullPolicy       string

	gatewayAddress string
	gatewayURL     string
	webhookPort    int
	metricsAddress string
	probeAddress   string
	leaderElect    bool
	namespaces     []string
	certificate    string
	client         clientRates
	workers        int
	shutdown       time.Duration

	agentImage    string
	agentCommand  []string
	maxSessions   int
	startTimeout  time.Duration
	scriptStart   time.Duration
	runWorkers    int
	events        controllers.EventRetention
	webhookConfig string

	remotes        string
	workspaceCache string
	workspaceBytes int64
	authorities    string
}

// clientRates bound the requests to the API server.
type clientRates struct {
	qps   float32
	burst int
}

// Who keeps the serving certificate.
const (
	certificateOwn      = "Own"
	certificateExternal = "External"
)

func (o *options) register(flags *pflag.FlagSet) {
	o.registerOperation(flags)
	namespace := envOr("POD_NAMESPACE", "axiom-system")
	flags.StringVar(&o.namespace, "namespace", namespace, "Namespace the operator runs in; from POD_NAMESPACE.")
	flags.StringVar(&o.operatorUsername, "operator-username",
		"system:serviceaccount:"+namespace+":"+envOr("POD_SERVICE_ACCOUNT", "axiom-controller-manager"),
		"User name of the operator's own requests. Admission lets only this user write what belongs to the operator.")
	flags.StringVar(&o.operatorImage, "operator-image", "ghcr.io/apitomy/axiom-operator:v0.1.0",
		"Image with axiom-runner and axiom-mcp, for the pods of agents and scripts.")
	flags.StringToStringVar(&o.scriptImages, "script-image", map[string]string{
		api.InterpreterBash:   "docker.io/library/bash:5.3",
		api.InterpreterNode:   "docker.io/library/node:24-slim",
		api.InterpreterPython: "docker.io/library/python:3.14-slim",
	}, "Image of scripts by interpreter, where an action type names none.")
	flags.StringVar(&o.pullPolicy, "image-pull-policy", string(corev1.PullIfNotPresent), "Pull policy of the pods of agents and scripts: Always, IfNotPresent or Never.")

	flags.StringVar(&o.gatewayAddress, "gateway-bind-address", ":8443", "Address that the gateway listens on.")
	flags.StringVar(&o.gatewayURL, "gateway-url", "https://axiom-gateway."+namespace+".svc/api/v1", "URL of the gateway as pods see it, with the base path /api/v1.")
	flags.IntVar(&o.webhookPort, "webhook-port", 9443, "Port that the webhook server listens on.")
	flags.StringVar(&o.webhookConfig, "webhook-configurations", "axiom", "Name prefix of the webhook configurations that shall trust the operator's certificate; empty: leave them alone.")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", "0", "Address of the metrics endpoint, served over TLS to authorized callers; 0 switches it off.")
	flags.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "Address of /healthz and /readyz.")
	flags.BoolVar(&o.leaderElect, "leader-elect", false, "Let only one replica at a time run the controllers. Webhooks and gateway run in all.")

	flags.StringVar(&o.agentImage, "agent-image", "", "Image of agents where neither composition nor template names one.")
	flags.StringSliceVar(&o.agentCommand, "agent-command", nil, "Command of agents where neither composition nor template names one, comma-separated.")
	flags.IntVar(&o.maxSessions, "max-sessions-per-namespace", 3, "Agent sessions of a namespace that may have a pod at a time.")
	flags.IntVar(&o.runWorkers, "run-workers", 8, "Workflow runs that are worked on at a time.")
	flags.StringVar(&o.remotes, "remotes-configmap", "axiom-remotes", "ConfigMap in the operator's namespace that lists the hosts supervised runs may talk to. Without it they may talk to none.")
	flags.StringVar(&o.workspaceCache, "workspace-cache", "", "Directory in which fetched Git objects are kept, for this process alone; empty: supervised runs are not worked on.")
	flags.Int64Var(&o.workspaceBytes, "workspace-cache-bytes", 2<<30, "Size in bytes up to which fetched Git objects are kept.")
	flags.StringVar(&o.authorities, "remotes-ca-file", "", "PEM file of authorities that remotes may have certificates of, beside those of the machine.")
	flags.DurationVar(&o.startTimeout, "agent-start-timeout", 5*time.Minute, "What an agent pod has to become ready.")
	flags.DurationVar(&o.scriptStart, "script-start-timeout", 10*time.Minute, "What the pod of a script has to start its containers while something keeps it from doing so.")

	flags.DurationVar(&o.events.After, "event-retention", defaultRetention,
		"Age at which stored events are deleted, unless a run that is not finished could still take them; 0 keeps them for ever.")
	flags.DurationVar(&o.events.Limit, "event-retention-limit", defaultRetentionLimit,
		"Age at which stored events are deleted whether or not a run could still take them.")
}

func (o *options) registerOperation(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.namespaces, "namespaces", nil,
		"Namespaces the operator works in, comma-separated; empty: all. With it, roles in these namespaces are enough.")
	flags.StringVar(&o.certificate, "serving-certificate", certificateOwn,
		"Who keeps the Secret axiom-serving-cert: Own makes and renews it; External loads what somebody else, such as cert-manager, puts there.")
	flags.Float32Var(&o.client.qps, "kube-api-qps", -1, "Requests a second to the API server; negative: as many as its priority and fairness admits.")
	flags.IntVar(&o.client.burst, "kube-api-burst", 0, "Requests to the API server at once, with --kube-api-qps; 0: twice as many as in a second.")
	flags.IntVar(&o.workers, "workers", 4, "Objects of a kind, other than workflow runs, that are worked on at a time.")
	flags.DurationVar(&o.shutdown, "graceful-shutdown-timeout", 30*time.Second, "What requests and work that has begun have to end when the operator is told to stop.")
}

// Defaults of how long events are kept.
const (
	defaultRetention      = 7 * 24 * time.Hour
	defaultRetentionLimit = 90 * 24 * time.Hour
)

// validate names every flag that cannot be used, with its rule.
func (o *options) validate() error {
	var errs []error
	switch corev1.PullPolicy(o.pullPolicy) {
	case corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever:
	default:
		errs = append(errs, fmt.Errorf("--image-pull-policy must be Always, IfNotPresent or Never, not %q", o.pullPolicy))
	}
	target, err := url.Parse(o.gatewayURL)
	if err != nil || target.Scheme != "https" || target.Hostname() == "" || !strings.HasSuffix(target.Path, "/api/v1") {
		errs = append(errs, fmt.Errorf("--gateway-url must be an https URL that ends in /api/v1, not %q", o.gatewayURL))
	}
	if _, _, err := net.SplitHostPort(o.gatewayAddress); err != nil {
		errs = append(errs, fmt.Errorf("--gateway-bind-address must be host:port: %w", err))
	}
	if o.scriptStart <= 0 {
		errs = append(errs, errors.New("--script-start-timeout must be positive"))
	}
	if o.events.After < 0 || o.events.Limit < o.events.After {
		errs = append(errs, errors.New("--event-retention must not be negative, and --event-retention-limit must not be shorter"))
	}
	for interpreter := range o.scriptImages {
		switch interpreter {
		case api.InterpreterBash, api.InterpreterNode, api.InterpreterPython:
		default:
			errs = append(errs, fmt.Errorf("--script-image names the unknown interpreter %q; known are bash, node and python", interpreter))
		}
	}
	return errors.Join(append(errs, o.validateLimits(), o.validateOperation())...)
}

func (o *options) validateOperation() error {
	var errs []error
	for _, namespace := range o.namespaces {
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			errs = append(errs, fmt.Errorf("--namespaces names %q: %s", namespace, problems[0]))
		}
	}
	if o.certificate != certificateOwn && o.certificate != certificateExternal {
		errs = append(errs, fmt.Errorf("--serving-certificate must be Own or External, not %q", o.certificate))
	}
	if o.client.qps == 0 || o.client.burst < 0 {
		errs = append(errs, errors.New("--kube-api-qps must not be 0, and --kube-api-burst must not be negative"))
	}
	if o.workers < 1 {
		errs = append(errs, errors.New("--workers must be at least 1"))
	}
	if o.shutdown <= 0 {
		errs = append(errs, errors.New("--graceful-shutdown-timeout must be positive"))
	}
	return errors.Join(errs...)
}

// limit bounds what the clients of a configuration ask for.
func (r clientRates) limit(config *rest.Config) {
	config.QPS, config.Burst = r.qps, r.burst
	if r.qps > 0 && r.burst == 0 {
		config.Burst = max(1, int(2*r.qps))
	}
}

func (o *options) validateLimits() error {
	var errs []error
	if o.maxSessions < 1 {
		errs = append(errs, errors.New("--max-sessions-per-namespace must be at least 1"))
	}
	if o.workspaceBytes < 1 {
		errs = append(errs, errors.New("--workspace-cache-bytes must be positive"))
	}
	if o.runWorkers < 1 {
		errs = append(errs, errors.New("--run-workers must be at least 1"))
	}
	if o.startTimeout <= 0 {
		errs = append(errs, errors.New("--agent-start-timeout must be positive"))
	}
	return errors.Join(errs...)
}

// servingNames are the names and addresses under which webhook and gateway are called.
func (o *options) servingNames() (names []string, ips []net.IP) {
	names = []string{
		"axiom-webhook-service." + o.namespace + ".svc",
		"axiom-gateway." + o.namespace + ".svc",
		"localhost",
	}
	ips = []net.IP{net.IPv4(127, 0, 0, 1)}
	target, err := url.Parse(o.gatewayURL)
	if err != nil {
		return names, ips
	}
	if ip := net.ParseIP(target.Hostname()); ip != nil {
		return names, append(ips, ip)
	}
	return append(names, target.Hostname()), ips
}

func (o *options) gatewayPort() int32 {
	_, text, err := net.SplitHostPort(o.gatewayAddress)
	if err != nil {
		return 0
	}
	number, err := net.LookupPort("tcp", text)
	if err != nil {
		return 0
	}
	return int32(number) //nolint:gosec // a port fits
}

func envOr(name, fallback string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return fallback
}

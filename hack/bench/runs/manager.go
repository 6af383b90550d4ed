package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/apitomy/axiom-operator/controllers"
	"github.com/apitomy/axiom-operator/internal/operator"
)

// managerCommand makes this program be the operator.
const managerCommand = "operator-process"

// managerSettings are what the operator's process reads from its standard input.
type managerSettings struct {
	Kubeconfig string
	Username   string
	// Host, Port and CertDir of the webhook server.
	Host    string
	Port    int
	CertDir string
	// Gateway is the address to serve it on.
	Gateway string
	// Workers of the run controller.
	Workers int
	// Log: keep a log on standard error.
	Log bool
}

// managerStats is what the operator's process tells of itself.
type managerStats struct {
	// Requests to the API server by method and resource, such as `PUT workflowruns/status`.
	Requests map[string]int
	// Reconciles by controller.
	Reconciles map[string]int
	// Queued are the keys that wait for a worker, of all controllers.
	Queued int
	// Heap in use, in bytes.
	Heap uint64
}

func (s managerStats) writes() int {
	n := 0
	for key, count := range s.Requests {
		method, _, _ := strings.Cut(key, " ")
		if method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch || method == http.MethodDelete {
			n += count
		}
	}
	return n
}

func (s managerStats) requests() int {
	n := 0
	for _, count := range s.Requests {
		n += count
	}
	return n
}

// since is what was counted after an earlier look.
func (s managerStats) since(earlier managerStats) managerStats {
	diff := func(now, then map[string]int) map[string]int {
		grown := map[string]int{}
		for key, n := range now {
			if n -= then[key]; n > 0 {
				grown[key] = n
			}
		}
		return grown
	}
	s.Requests, s.Reconciles = diff(s.Requests, earlier.Requests), diff(s.Reconciles, earlier.Reconciles)
	return s
}

// serveManager is the operator's process. It writes the address of its counters
// as the first line and runs until its input ends.
func serveManager(ctx context.Context, in io.Reader, out io.Writer) error {
	var settings managerSettings
	input := json.NewDecoder(in)
	if err := input.Decode(&settings); err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		// Whoever started this process holds its input open; with it this ends.
		_, _ = io.Copy(io.Discard, io.MultiReader(input.Buffered(), in))
		stop()
	}()
	ctrl.SetLogger(logr.Discard())
	if settings.Log {
		ctrl.SetLogger(zap.New())
	}
	requests := &requestCounter{counts: map[string]int{}}
	mgr, err := newManager(settings, requests)
	if err != nil {
		return err
	}
	if err := serveStats(ctx, requests, out); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func newManager(settings managerSettings, requests *requestCounter) (ctrl.Manager, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", settings.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	cfg.QPS = -1 // as the operator's own program has it
	cfg.Wrap(requests.wrap)
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:  operator.NewScheme(),
		Cache:   operator.CacheOptions(),
		Client:  operator.ClientOptions(),
		Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: settings.Host, Port: settings.Port, CertDir: settings.CertDir,
			TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }},
		}),
	})
	if err != nil {
		return nil, fmt.Errorf("create manager: %w", err)
	}
	gateway := controllers.GatewayOptions{
		URL: "https://gateway.example.invalid/api/v1", CA: func() []byte { return []byte("none") }, Namespace: "axiom-system", Port: 8443,
	}
	certificate, err := tls.LoadX509KeyPair(filepath.Join(settings.CertDir, "tls.crt"), filepath.Join(settings.CertDir, "tls.key"))
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	return mgr, operator.Setup(mgr, operator.Options{
		Username: settings.Username, Metrics: metrics.Registry, GatewayAddress: settings.Gateway,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &certificate, nil },
		Sessions:       controllers.SessionOptions{Gateway: gateway, OperatorImage: "example.invalid/operator", MaxPerNamespace: 100, StartTimeout: time.Hour},
		Runs:           controllers.RunOptions{Gateway: gateway, OperatorImage: "example.invalid/operator", Workers: settings.Workers},
	})
}

// serveStats answers questions about the process on loopback.
func serveStats(ctx context.Context, requests *requestCounter, out io.Writer) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/stats", func(answer http.ResponseWriter, _ *http.Request) {
		stats, err := collectStats(requests)
		if err != nil {
			http.Error(answer, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(answer).Encode(stats)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintln(os.Stderr, "runs: serve counters:", err)
		}
	}()
	_, err = fmt.Fprintln(out, listener.Addr())
	return err
}

func collectStats(requests *requestCounter) (managerStats, error) {
	stats := managerStats{Requests: requests.snapshot(), Reconciles: map[string]int{}}
	families, err := metrics.Registry.Gather()
	if err != nil {
		return stats, fmt.Errorf("gather metrics: %w", err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			switch family.GetName() {
			case "controller_runtime_reconcile_total":
				stats.Reconciles[label(metric, "controller")] += int(metric.GetCounter().GetValue())
			case "workqueue_depth", "controller_runtime_active_workers":
				stats.Queued += int(metric.GetGauge().GetValue())
			}
		}
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	stats.Heap = memory.HeapAlloc
	return stats, nil
}

func label(metric *dto.Metric, name string) string {
	for _, pair := range metric.GetLabel() {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}

// requestCounter counts what a process asks the API server.
type requestCounter struct {
	mu     sync.Mutex
	counts map[string]int
}

func (c *requestCounter) wrap(base http.RoundTripper) http.RoundTripper {
	return countedTransport{base: base, counter: c}
}

func (c *requestCounter) snapshot() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}

type countedTransport struct {
	base    http.RoundTripper
	counter *requestCounter
}

// RoundTrip counts a request and sends it.
func (t countedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	key := requestKey(req)
	t.counter.mu.Lock()
	t.counter.counts[key]++
	t.counter.mu.Unlock()
	return t.base.RoundTrip(req)
}

// WrappedRoundTripper lets client-go find what is beneath.
func (t countedTransport) WrappedRoundTripper() http.RoundTripper { return t.base }

// requestKey names method and resource, without names of objects.
func requestKey(req *http.Request) string {
	method := req.Method
	if req.URL.Query().Get("watch") == "true" {
		method = "WATCH"
	}
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	skip := 2 // api/v1
	if parts[0] == "apis" {
		skip = 3 // apis/group/version
	}
	parts = parts[min(skip, len(parts)):]
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	switch len(parts) {
	case 0:
		return method + " discovery"
	case 3:
		return method + " " + parts[0] + "/" + parts[2]
	}
	return method + " " + parts[0]
}

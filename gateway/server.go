package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi/server"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/journal/store"
	"github.com/apitomy/axiom-operator/internal/secretscan"
	"github.com/apitomy/axiom-operator/mcpserver"
)

const (
	headerTimeout = 10 * time.Second
	// requestTimeout is longer than the longest wait for a prompt: it would end
	// that one too.
	requestTimeout  = 90 * time.Second
	idleTimeout     = 2 * time.Minute
	shutdownTimeout = 15 * time.Second
	maxHeader       = 16 << 10
)

// Options are what a server works with.
type Options struct {
	// Client writes, and watches what somebody follows.
	Client client.WithWatch
	// Reader reads live, past every cache: what another replica has just
	// written must be seen.
	Reader client.Reader
	// Cached reads events, which never change.
	Cached client.Reader
	// Informers wake those who wait for a prompt.
	Informers cache.Informers
	// Namespaces whose agents are served; empty: all.
	Namespaces []string
	// Expressions are compiled for the whole process.
	Expressions *expression.Cache
	// Template returns a session template by name, its system prompt rendered;
	// a built-in one, else that of the namespace. The error is a not-found
	// error of the API if there is none.
	Template func(ctx context.Context, namespace, name string) (api.SessionTemplateSpec, error)
	// Scanner finds secrets in what agents of role Prompt say; without it nothing
	// that they say is kept.
	Scanner *secretscan.Scanner
	// Clock tells the time, and when a wait is over.
	Clock clock.Clock
	// Log takes what went wrong and is not the caller's fault.
	Log logr.Logger
	// Address to serve on, such as :8443.
	Address string
	// GetCertificate returns the present serving certificate.
	GetCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
}

// Server is the gateway. It is made by [New].
type Server struct {
	live        client.Client
	cached      client.Reader
	watcher     client.WithWatch
	namespaces  []string
	contents    content.Store
	journals    store.Store
	expressions *expression.Cache
	template    func(ctx context.Context, namespace, name string) (api.SessionTemplateSpec, error)
	scanner     *secretscan.Scanner
	clock       clock.Clock
	log         logr.Logger

	informers      cache.Informers
	address        string
	getCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)

	rates rates
	// senders are the rates of those who send events.
	senders  rates
	patience patience
	bells    bells
	streams  streams
}

var _ server.StrictServerInterface = (*Server)(nil)

// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=agentsessions,verbs=get;list;watch
// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=agentsessions/status;turns/status,verbs=update
// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=compositions,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=turns,verbs=get
// +kubebuilder:rbac:groups="",resources=pods,verbs=get
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;update;delete

// New makes a server. It serves once [Server.Start] runs.
func New(options Options) *Server {
	live := liveClient{Client: options.Client, reader: options.Reader}
	return &Server{
		live:           live,
		cached:         options.Cached,
		watcher:        options.Client,
		namespaces:     options.Namespaces,
		contents:       content.Store{Client: live},
		journals:       store.Store{Client: live, Reader: live},
		expressions:    options.Expressions,
		template:       options.Template,
		scanner:        options.Scanner,
		clock:          options.Clock,
		log:            options.Log,
		informers:      options.Informers,
		address:        options.Address,
		getCertificate: options.GetCertificate,
		senders:        rates{perSecond: eventsPerSecond, burst: eventBurst},
		patience:       patience{header: headerTimeout, body: bodyTimeout, sender: senderPatience},
	}
}

// liveClient writes as its client does, and reads past that client's cache.
type liveClient struct {
	client.Client
	reader client.Reader
}

// Get implements [client.Reader].
func (c liveClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return c.reader.Get(ctx, key, object, options...)
}

// List implements [client.Reader].
func (c liveClient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.reader.List(ctx, list, options...)
}

// Handler serves all routes.
func (s *Server) Handler() http.Handler {
	strict := server.NewStrictHandlerWithOptions(s, nil, server.StrictHTTPServerOptions{
		RequestErrorHandlerFunc:  misread,
		ResponseErrorHandlerFunc: s.fail,
	})
	mux := http.NewServeMux()
	server.HandlerWithOptions(strict, server.StdHTTPServerOptions{
		BaseURL:          basePath,
		BaseRouter:       guardedMux{ServeMux: mux, server: s, policies: policies()},
		ErrorHandlerFunc: misread,
	})
	mux.HandleFunc("/mcp", s.mcpHandler(mcpserver.Workbench, mux))
	mux.HandleFunc("/mcp/"+mcpserver.Assistant, s.mcpHandler(mcpserver.Assistant, mux))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("GET /readyz", s.serveReady)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { notFound("No such route").write(w) })
	return plain(mux)
}

// plain refuses paths that mean something else than they say, which a mux would
// redirect: no caller of the gateway makes one by mistake.
func plain(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		escaped := r.URL.EscapedPath()
		if escaped != path.Clean(escaped) || strings.ContainsRune(r.URL.Path, 0) {
			notFound("No such route").write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// serveReady tells whether waiting for a prompt would be in vain.
func (s *Server) serveReady(w http.ResponseWriter, _ *http.Request) {
	if !s.bells.connected() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusOK)
}

// NeedLeaderElection implements the manager's interface: every replica serves.
func (s *Server) NeedLeaderElection() bool {
	return false
}

// Start serves until the context ends, and then until the requests that are on
// their way are answered.
func (s *Server) Start(ctx context.Context) error {
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if err := s.connectBells(ctx); err != nil {
		return errors.Join(err, listener.Close())
	}
	return s.serve(ctx, listener)
}

func (s *Server) serve(ctx context.Context, listener net.Listener) error {
	web := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: s.patience.header,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      requestTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		TLSConfig: &tls.Config{
			MinVersion:     tls.VersionTLS12,
			GetCertificate: s.getCertificate,
			// Long polls make poor use of HTTP/2, and its streams are one more
			// thing that an agent could exhaust.
			NextProtos: []string{"http/1.1"},
		},
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		s.bells.close()
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		stopped <- web.Shutdown(drain)
	})
	s.log.Info("Serving the gateway", "address", listener.Addr().String())
	err := web.ServeTLS(listener, "", "")
	if stop() { // the context did not end: serving failed
		return fmt.Errorf("serve gateway: %w", err)
	}
	if err := <-stopped; err != nil {
		return fmt.Errorf("shut gateway down: %w", err)
	}
	return nil
}

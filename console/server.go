package console

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"time"
)

//go:embed assets
var assets embed.FS

// Limits of a connection. There is none for an answer as a whole: events go on as
// long as the page is open.
const (
	headerTimeout   = 10 * time.Second
	shutdownTimeout = time.Second
	maxHeader       = 32 << 10
)

// Options of a server.
type Options struct {
	Routes []Route
	Watch  Watch
}

// A Server is the page, for one person, as long as the program runs.
type Server struct {
	listener net.Listener
	guard    *guard
	handler  http.Handler
}

// New makes the server of a listener, which must be on a loopback address.
func New(listener net.Listener, options Options) (*Server, error) {
	authority, err := authorityOf(listener)
	if err != nil {
		return nil, err
	}
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		return nil, fmt.Errorf("open pages: %w", err)
	}
	g := newGuard(authority)
	inner := http.NewServeMux()
	inner.Handle("GET /", http.FileServerFS(files))
	inner.HandleFunc("GET /api/events", options.Watch.stream)
	for _, route := range options.Routes {
		inner.HandleFunc(route.Method+" /api/"+route.Path, route.serve)
	}
	outer := http.NewServeMux()
	outer.HandleFunc("GET /enter", g.enter)
	outer.Handle("/", g.admitted(inner))
	return &Server{listener: listener, guard: g, handler: g.addressed(outer)}, nil
}

// URL is the link that lets one browser in.
func (s *Server) URL() string {
	return s.guard.origin() + "/enter?token=" + s.guard.token
}

// Serve answers until the context ends, and closes the listener.
func (s *Server) Serve(ctx context.Context) error {
	streaming, stop := context.WithCancel(ctx)
	defer stop()
	server := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return streaming },
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(s.listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve console: %w", err)
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(closing); err != nil {
		_ = server.Close() // browsers keep connections at hand that they have not used
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve console: %w", err)
	}
	return nil
}

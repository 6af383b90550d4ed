package crash

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
)

// ErrStopped is what every request of a stopped process gets.
var ErrStopped = errors.New("process was stopped")

// Moment is when a process is stopped, seen from the write it is stopped at.
type Moment string

// Moments.
const (
	// Before: the write was not sent.
	Before Moment = "before"
	// After: the write was applied, and its answer did not arrive.
	After Moment = "after"
)

// A Fault stops a process at one of its writes.
type Fault struct {
	// Write counts from 1. Zero: never.
	Write int
	// Moment of the stop.
	Moment Moment
}

// life is one process between its start and its stop.
type life struct {
	fault  Fault
	stop   context.CancelFunc
	writes atomic.Int64
	dead   atomic.Bool
}

func (l *life) wrap(base http.RoundTripper) http.RoundTripper {
	return &gate{life: l, base: base}
}

// gate is the way of one client of the process to the API server.
type gate struct {
	life *life
	base http.RoundTripper
}

// RoundTrip lets a request through unless the process is stopped, which it may
// be by this very request.
func (g *gate) RoundTrip(req *http.Request) (*http.Response, error) {
	if g.life.dead.Load() {
		return nil, ErrStopped
	}
	if !isWrite(req) {
		return g.base.RoundTrip(req)
	}
	number := int(g.life.writes.Add(1))
	if g.life.fault.Write == 0 || number != g.life.fault.Write {
		return g.base.RoundTrip(req)
	}
	if g.life.fault.Moment == After {
		g.applyUnheard(req)
	}
	g.life.dead.Store(true)
	g.life.stop()
	return nil, ErrStopped
}

// applyUnheard sends the write and throws its answer away, once it is there.
func (g *gate) applyUnheard(req *http.Request) {
	// A process that ends meanwhile must not take the request back.
	answer, err := g.base.RoundTrip(req.WithContext(context.WithoutCancel(req.Context())))
	if err == nil {
		_ = answer.Body.Close()
	}
}

// isWrite tells whether a request may change anything that counts.
func isWrite(req *http.Request) bool {
	switch req.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return false
	}
	for _, uncounted := range []string{
		"/apis/events.k8s.io/", "/apis/coordination.k8s.io/", "/apis/authentication.k8s.io/", "/apis/authorization.k8s.io/",
	} {
		if strings.Contains(req.URL.Path, uncounted) {
			return false
		}
	}
	return !strings.HasSuffix(req.URL.Path, "/events")
}

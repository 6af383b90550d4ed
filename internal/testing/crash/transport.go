package crash

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// ErrStopped is what every request of a stopped process gets.
var ErrStopped = errors.New("process was stopped")

// life is one process between its start and its stop.
type life struct {
	fault   Fault
	stop    context.CancelFunc
	effects *effects
	still   stillness
	// writes sent, and events that reached the process in order of arrival.
	writes, events atomic.Int64
	dead, struck   atomic.Bool
	// newest resource version that the process has heard of.
	newest atomic.Int64
	// past is the resource version that the caches begin with, zero: the present.
	past int64
	// before is what the next process's caches begin with.
	before int64

	mu sync.Mutex
	// begun are the lists that were asked for.
	begun map[string]bool
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
	if isWatch(req) {
		return g.watch(req)
	}
	g.life.still.begin()
	defer g.life.still.end()
	if !isWrite(req) {
		return g.read(req)
	}
	number := int(g.life.writes.Add(1))
	switch fault := g.life.fault; {
	case fault.At != number:
		return g.write(req)
	case fault.Kind == StopBefore:
	case fault.Kind == StopAfter:
		g.writeUnheard(req)
	case fault.Kind == StopAfterStale:
		g.life.before = g.life.newest.Load()
		g.writeUnheard(req)
	default:
		return g.write(req)
	}
	g.life.struck.Store(true)
	g.life.dead.Store(true)
	g.life.stop()
	return nil, ErrStopped
}

// write sends a write and notes what it created. A process that ends meanwhile
// does not take it back: whether it was applied is to be known.
func (g *gate) write(req *http.Request) (*http.Response, error) {
	answer, err := g.base.RoundTrip(req.WithContext(context.WithoutCancel(req.Context())))
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	g.life.hear(body)
	if req.Method == http.MethodPost && answer.StatusCode == http.StatusCreated {
		g.life.effects.add(req.URL.Path, body)
	}
	return answer, nil
}

// writeUnheard sends the write and throws its answer away, once it is there.
func (g *gate) writeUnheard(req *http.Request) {
	answer, err := g.write(req)
	if err == nil {
		_ = answer.Body.Close()
	}
}

var versionText = regexp.MustCompile(`"resourceVersion":"(\d+)"`)

// hear keeps the newest resource version of what the process is told.
func (l *life) hear(data []byte) {
	for _, match := range versionText.FindAllSubmatch(data, -1) {
		version, err := strconv.ParseInt(string(match[1]), 10, 64)
		for err == nil {
			newest := l.newest.Load()
			if version <= newest || l.newest.CompareAndSwap(newest, version) {
				break
			}
		}
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

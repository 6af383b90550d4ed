package crash

import (
	"io"
	"net/http"
	"path"
	"sync"
)

// A Curtain hides from a process what happens to one resource: while it is
// down, watches of the resource tell nothing, and what the process reads of it
// in its cache is as it was. The zero value hides nothing.
type Curtain struct {
	// Resource by its plural name, such as pods.
	Resource string

	mu   sync.Mutex
	down chan struct{}
}

// Lower lets the curtain down.
func (c *Curtain) Lower() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down == nil {
		c.down = make(chan struct{})
	}
}

// Raise lets the process see what happened meanwhile, and what happens then.
func (c *Curtain) Raise() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down != nil {
		close(c.down)
		c.down = nil
	}
}

// Wrap puts the curtain before a transport, as rest.Config.Wrap wants it.
func (c *Curtain) Wrap(base http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		answer, err := base.RoundTrip(req)
		if err == nil && isWatch(req) && path.Base(req.URL.Path) == c.Resource {
			answer.Body = &hidden{ReadCloser: answer.Body, curtain: c, closed: make(chan struct{})}
		}
		return answer, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// hidden is a watch behind a curtain.
type hidden struct {
	io.ReadCloser
	curtain *Curtain
	once    sync.Once
	closed  chan struct{}
}

// Read tells what came as soon as the curtain is up.
func (h *hidden) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	h.curtain.mu.Lock()
	down := h.curtain.down
	h.curtain.mu.Unlock()
	if down != nil {
		select {
		case <-down:
		case <-h.closed:
		}
	}
	return n, err
}

// Close ends the watch.
func (h *hidden) Close() error {
	h.once.Do(func() { close(h.closed) })
	return h.ReadCloser.Close()
}

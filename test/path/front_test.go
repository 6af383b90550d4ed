package path

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// front is the gateway's address as a Service would have it: it leads to a
// process that serves, whichever that is.
type front struct {
	listener net.Listener

	mu sync.Mutex
	// behind it are the addresses of the processes, the newest first.
	behind []string
}

func newFront() (*front, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the gateway: %w", err)
	}
	return &front{listener: listener}, nil
}

func (f *front) address() string { return f.listener.Addr().String() }

// serve leads connections to processes until the context ends.
func (f *front) serve(ctx context.Context) error {
	context.AfterFunc(ctx, func() { _ = f.listener.Close() })
	for {
		caller, err := f.listener.Accept()
		switch {
		case err == nil:
			go f.lead(ctx, caller)
		case ctx.Err() == nil:
			return fmt.Errorf("accept: %w", err)
		default:
			return nil
		}
	}
}

// lead connects a caller with the newest process that answers. One that starts
// is waited for.
func (f *front) lead(ctx context.Context, caller net.Conn) {
	defer func() { _ = caller.Close() }()
	served, err := f.dial(ctx)
	if err != nil {
		return
	}
	defer func() { _ = served.Close() }()
	done := make(chan struct{}, 2)
	for from, to := range map[net.Conn]net.Conn{caller: served, served: caller} {
		go func() {
			_, _ = io.Copy(to, from)
			done <- struct{}{}
		}()
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}

func (f *front) dial(ctx context.Context) (net.Conn, error) {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for range 250 {
		f.mu.Lock()
		behind := slices.Clone(f.behind)
		f.mu.Unlock()
		for _, address := range behind {
			if conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address); err == nil {
				return conn, nil
			}
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return nil, errors.New("no process serves")
}

// join puts a process behind the front until it leaves, and returns where it
// must serve.
func (f *front) join() (address string, leave func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("find a port: %w", err)
	}
	address = listener.Addr().String()
	if err := listener.Close(); err != nil {
		return "", nil, fmt.Errorf("free a port: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.behind = append([]string{address}, f.behind...)
	return address, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.behind = slices.DeleteFunc(f.behind, func(other string) bool { return other == address })
	}, nil
}

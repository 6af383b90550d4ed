package gateway

import (
	"context"
	"net"
	"time"
)

// Hurry gives the parts of a request so long to arrive.
func (s *Server) Hurry(header, body time.Duration) {
	s.patience = patience{header: header, body: body, sender: body}
}

// LimitCallers holds each caller to a rate.
func (s *Server) LimitCallers(perSecond, burst int) {
	s.rates = rates{perSecond: perSecond, burst: burst}
}

// Connect makes waiting callers wake up, as Start does.
func (s *Server) Connect(ctx context.Context) error { return s.connectBells(ctx) }

// Serve is Start on a listener of the test's own.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	return s.serve(ctx, listener)
}

// Listeners counts those who wait for news of any session.
func (s *Server) Listeners() int {
	s.bells.mu.Lock()
	defer s.bells.mu.Unlock()
	n := 0
	for _, waiting := range s.bells.rung {
		n += len(waiting)
	}
	return n
}

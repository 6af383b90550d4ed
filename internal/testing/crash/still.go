package crash

import (
	"cmp"
	"sync"
	"time"
)

const (
	defaultQuiet = 120 * time.Millisecond
	// holdLimit bounds the wait for a process that is never quiet.
	holdLimit = 3 * time.Second
)

// stillness knows when a process has no request under way and has made none for
// a while. The zero value is ready.
type stillness struct {
	// quiet is that while; zero: the default.
	quiet time.Duration

	mu      sync.Mutex
	open    int
	timer   *time.Timer
	waiting []chan struct{}
}

// begin notes a request.
func (s *stillness) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
}

// end notes that a request was answered.
func (s *stillness) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	s.wind()
}

// next is closed when the process is still for the next time.
func (s *stillness) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	moment := make(chan struct{})
	s.waiting = append(s.waiting, moment)
	s.wind()
	return moment
}

// wind lets the time of quiet begin anew, if there is somebody to tell.
func (s *stillness) wind() {
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.open == 0 && len(s.waiting) > 0 {
		s.timer = time.AfterFunc(cmp.Or(s.quiet, defaultQuiet), s.ring)
	}
}

func (s *stillness) ring() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open > 0 {
		return
	}
	for _, moment := range s.waiting {
		close(moment)
	}
	s.waiting = nil
}

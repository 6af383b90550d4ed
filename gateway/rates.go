package gateway

import (
	"cmp"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	requestsPerSecond = 20
	requestBurst      = 40
	// maxRates is how many callers are remembered before those are forgotten
	// whose burst is whole again: forgetting them changes nothing.
	maxRates = 4096
)

// rates bounds how fast each caller may call. The zero value is ready to use,
// with the limits of ordinary callers.
type rates struct {
	// perSecond and burst are the limits, unless zero.
	perSecond, burst int

	mu       sync.Mutex
	limiters map[string]*rate.Limiter
}

// ratesOf are those that a route's callers are held to.
func (s *Server) ratesOf(p policy) *rates {
	if p.isOutside {
		return &s.senders
	}
	return &s.rates
}

// allow tells whether the caller may call now.
func (r *rates) allow(key string, now time.Time) bool {
	return r.limiter(key, now).AllowN(now, 1)
}

func (r *rates) limiter(key string, now time.Time) *rate.Limiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.limiters == nil {
		r.limiters = map[string]*rate.Limiter{}
	}
	if limiter, ok := r.limiters[key]; ok {
		return limiter
	}
	if len(r.limiters) >= maxRates {
		r.forgetIdle(now)
	}
	limiter := rate.NewLimiter(rate.Limit(cmp.Or(r.perSecond, requestsPerSecond)), cmp.Or(r.burst, requestBurst))
	r.limiters[key] = limiter
	return limiter
}

func (r *rates) forgetIdle(now time.Time) {
	for key, limiter := range r.limiters {
		if limiter.TokensAt(now) >= float64(limiter.Burst()) {
			delete(r.limiters, key)
		}
	}
}

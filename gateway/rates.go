package gateway

import (
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

// rates bounds how fast each caller may call. The zero value is ready to use.
type rates struct {
	mu       sync.Mutex
	limiters map[string]*rate.Limiter
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
	limiter := rate.NewLimiter(requestsPerSecond, requestBurst)
	r.limiters[key] = limiter
	return limiter
}

func (r *rates) forgetIdle(now time.Time) {
	for key, limiter := range r.limiters {
		if limiter.TokensAt(now) >= requestBurst {
			delete(r.limiters, key)
		}
	}
}

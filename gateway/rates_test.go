package gateway

import (
	"strconv"
	"testing"
	"time"
)

func TestRatesForgetOnlyThoseWhoseBurstIsWhole(t *testing.T) {
	now := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	var r rates
	for range requestBurst {
		r.allow("greedy", now)
	}
	for i := range maxRates - 1 {
		r.allow(strconv.Itoa(i), now)
	}
	now = now.Add(time.Second) // the greedy one has half its burst again, all others everything
	if !r.allow("new", now) {
		t.Fatal("a new caller was refused")
	}
	if len(r.limiters) != 2 {
		t.Errorf("%d callers are remembered", len(r.limiters))
	}
	allowed := 0
	for range requestBurst {
		if r.allow("greedy", now) {
			allowed++
		}
	}
	if allowed != requestsPerSecond {
		t.Errorf("the greedy caller may call %d times, want %d", allowed, requestsPerSecond)
	}
}

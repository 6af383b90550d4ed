package engine

import (
	"testing"
	"time"
)

func TestHasConsumed(t *testing.T) {
	t.Parallel()
	floor := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	in := Instance{Consumed: map[string]Consumed{"merged": {
		IDs: []string{EventIdentity("git hub", "e/1")}, Arrivals: []time.Time{floor}, Floor: floor,
	}}}
	for name, tc := range map[string]struct {
		node, identity string
		arrived        time.Time
		want           bool
	}{
		"an event that it had":                {"merged", "git%20hub/e/1", floor.Add(time.Hour), true},
		"one of another source":               {"merged", "git/hub/e/1", floor.Add(time.Hour), false},
		"one from before the floor":           {"merged", "x", floor.Add(-time.Nanosecond), true},
		"one of the floor's second":           {"merged", "x", floor.Add(999 * time.Millisecond), false},
		"one that another node had":           {"closed", "git%20hub/e/1", floor, false},
		"the same in another zone of the day": {"merged", "x", floor.In(time.FixedZone("", 3600)), false},
	} {
		if got := in.HasConsumed(tc.node, tc.identity, tc.arrived); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

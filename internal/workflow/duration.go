package workflow

import (
	"time"

	"github.com/apitomy/axiom-operator/internal/isoduration"
)

// ParseDuration reads the durations of documents: an optional sign, P, days, and behind a T hours, minutes and seconds
// with up to nine fraction digits, in any case, as in P1DT2H3M4.5S. At least one component must be there, and the value
// must fit 64-bit nanoseconds.
func ParseDuration(text string) (time.Duration, error) {
	return isoduration.Parse(text)
}

// positiveDuration reads a member that must be more than nothing, as all durations but that of a wait.
func positiveDuration(v any) (time.Duration, bool) {
	d, err := ParseDuration(text(v))
	return d, err == nil && d > 0
}

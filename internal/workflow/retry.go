package workflow

import (
	"time"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// A Retry says how often an action is attempted and how long it rests in between.
type Retry struct {
	// MaxAttempts counts the first attempt too.
	MaxAttempts int
	// Initial is the delay before the second attempt.
	Initial time.Duration
	// Factor multiplies the delay from one attempt to the next.
	Factor float64
	// Max is the longest delay.
	Max time.Duration
}

// Defaults of the members of retry, where it is given.
const (
	defaultMaxAttempts = 3
	defaultInitial     = 10 * time.Second
	defaultFactor      = 2
	defaultMax         = 10 * time.Minute
)

// Limits of the members of retry.
const (
	maxAttemptsLimit = 10
	factorLimit      = 10
)

// Delay is the time between the end of one attempt and the beginning of the given one, which counts from 2.
func (r Retry) Delay(attempt int) time.Duration {
	delay := float64(r.Initial)
	for range attempt - 2 {
		delay *= r.Factor
	}
	// Compared as doubles, because the product may be beyond a duration.
	if delay >= float64(r.Max) {
		return r.Max
	}
	return time.Duration(delay)
}

// Retry is how an action is retried: one attempt and no more where the document does not say.
func (n Node) Retry() Retry {
	raw, ok := n.Config()["retry"].(map[string]any)
	if !ok || n.Kind() != KindAction {
		return Retry{MaxAttempts: 1}
	}
	r, _ := readRetry(raw)
	return r
}

// readRetry reads retry with its defaults and tells what is wrong with the first member that is out of bounds.
func readRetry(raw map[string]any) (r Retry, wrong string) {
	r = Retry{MaxAttempts: defaultMaxAttempts, Initial: defaultInitial, Factor: defaultFactor, Max: defaultMax}
	backoff := object(raw["backoff"])
	checks := []struct {
		name, want string
		v          any
		read       func(v any) bool
	}{
		{"maxAttempts", "an integer from 1 to 10", raw["maxAttempts"], func(v any) bool { return readAttempts(v, &r.MaxAttempts) }},
		{"backoff.initial", "a positive duration", backoff["initial"], func(v any) bool { return readPositive(v, &r.Initial) }},
		{"backoff.factor", "a number from 1 to 10", backoff["factor"], func(v any) bool { return readFactor(v, &r.Factor) }},
		{"backoff.max", "a positive duration", backoff["max"], func(v any) bool { return readPositive(v, &r.Max) }},
	}
	for _, check := range checks {
		if check.v != nil && !check.read(check.v) {
			return r, check.name + " of retry must be " + check.want
		}
	}
	if r.Max < r.Initial {
		return r, "backoff.max of retry must not be less than backoff.initial"
	}
	return r, ""
}

func readAttempts(v any, into *int) bool {
	n, ok := integer(v)
	if !ok || n < 1 || n > maxAttemptsLimit {
		return false
	}
	*into = int(n)
	return true
}

func readFactor(v any, into *float64) bool {
	f, ok := jsonvalue.Number(v)
	if !ok || f < 1 || f > factorLimit {
		return false
	}
	*into = f
	return true
}

func readPositive(v any, into *time.Duration) bool {
	d, ok := positiveDuration(v)
	if ok {
		*into = d
	}
	return ok
}

package gateway

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

func TestWithTurn(t *testing.T) {
	took := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	for name, tc := range map[string]struct{ sum, turn, want *api.Usage }{
		"the first turn": {
			nil, &api.Usage{InputTokens: 5, OutputTokens: 3, CostUSD: "0.0312", Duration: took(time.Second)},
			&api.Usage{Turns: 1, InputTokens: 5, OutputTokens: 3, CostUSD: "0.0312", Duration: took(time.Second)},
		},
		"another": {
			&api.Usage{Turns: 1, InputTokens: 5, OutputTokens: 3, CostUSD: "0.1", Duration: took(time.Second)},
			&api.Usage{InputTokens: 1, OutputTokens: 2, CostUSD: "0.2", Duration: took(time.Minute)},
			&api.Usage{Turns: 2, InputTokens: 6, OutputTokens: 5, CostUSD: "0.3", Duration: took(61 * time.Second)},
		},
		"one of which nothing is known": {
			&api.Usage{Turns: 1, CostUSD: "0.1", Duration: took(time.Second)}, nil,
			&api.Usage{Turns: 2, CostUSD: "0.1", Duration: took(time.Second)},
		},
		"cents to a dollar": {&api.Usage{CostUSD: "0.95"}, &api.Usage{CostUSD: "0.05"}, &api.Usage{Turns: 1, CostUSD: "1"}},
		"more than fits": {
			&api.Usage{Turns: math.MaxInt64, InputTokens: math.MaxInt64 - 1, CostUSD: "9999999999999999.999999999999999", Duration: took(math.MaxInt64)},
			&api.Usage{InputTokens: 2, CostUSD: "0.000000000000001", Duration: took(1)},
			&api.Usage{Turns: math.MaxInt64, InputTokens: math.MaxInt64, CostUSD: "10000000000000000", Duration: took(math.MaxInt64)},
		},
		"more money than fits": {
			&api.Usage{CostUSD: "99999999999999999.99999999999999"}, &api.Usage{CostUSD: "0.000000000000001"},
			&api.Usage{Turns: 1, CostUSD: "99999999999999999.99999999999999"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.sum.DeepCopy()
			if diff := cmp.Diff(tc.want, withTurn(tc.sum, tc.turn)); diff != "" {
				t.Errorf("usage differs (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.sum); diff != "" {
				t.Errorf("the sum changed in place (-before +after):\n%s", diff)
			}
		})
	}
}

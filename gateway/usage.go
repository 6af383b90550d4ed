package gateway

import (
	"math"
	"math/big"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

const (
	// maxCost is what the status takes of a sum of money, in characters, and
	// costPlaces how exactly it is reported.
	maxCost    = 32
	costPlaces = 15
)

// withTurn is what a session took when one more turn is counted, of which the
// agent may have reported nothing. Sums end at what fits, so that no report can
// keep a result from being recorded.
func withTurn(sum, turn *api.Usage) *api.Usage {
	total := &api.Usage{}
	if sum != nil {
		total = sum.DeepCopy()
	}
	total.Turns = addCount(total.Turns, 1)
	if turn == nil {
		return total
	}
	total.InputTokens = addCount(total.InputTokens, turn.InputTokens)
	total.OutputTokens = addCount(total.OutputTokens, turn.OutputTokens)
	total.CostUSD = addCost(total.CostUSD, turn.CostUSD)
	if turn.Duration != nil {
		before := time.Duration(0)
		if total.Duration != nil {
			before = total.Duration.Duration
		}
		total.Duration = &metav1.Duration{Duration: time.Duration(addCount(int64(before), int64(turn.Duration.Duration)))}
	}
	return total
}

// addCount adds two numbers that are not negative.
func addCount(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// addCost adds decimal numbers exactly; an empty one was not reported.
func addCost(sum, more string) string {
	a, isSum := new(big.Rat).SetString(sum)
	b, isMore := new(big.Rat).SetString(more)
	switch {
	case !isMore:
		return sum
	case !isSum:
		return more
	}
	text := a.Add(a, b).FloatString(costPlaces)
	text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	if len(text) > maxCost {
		return sum
	}
	return text
}

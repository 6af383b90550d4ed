package runner

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"github.com/apitomy/axiom-operator/gateway/openapi"
)

func (t *transcript) addUsage(cost *acp.Cost) {
	if cost != nil && strings.EqualFold(cost.Currency, "USD") && !math.IsNaN(cost.Amount) && !math.IsInf(cost.Amount, 0) {
		t.cost = cost.Amount
	}
}

// usage returns what the prompt took.
func (t *transcript) usage(reported *acp.Usage) *openapi.Usage {
	t.mu.Lock()
	defer t.mu.Unlock()

	usage := &openapi.Usage{Duration: t.now().Sub(t.turn.started).Round(time.Millisecond).String()}
	if reported != nil {
		usage.InputTokens = max(0, int64(reported.InputTokens))
		usage.OutputTokens = max(0, int64(reported.OutputTokens))
	}
	if cost := t.turnCost(); cost > 0 {
		usage.CostUSD = strconv.FormatFloat(cost, 'f', -1, 64)
	}
	return usage
}

// turnCost is the difference of the cumulative figure, to a millionth; the
// agent starts counting anew when it feels like it.
func (t *transcript) turnCost() float64 {
	cost := t.cost
	if cost >= t.turn.costBefore {
		cost -= t.turn.costBefore
	}
	return math.Round(cost*1e6) / 1e6
}

// complete tells that the agent ended its turn by itself.
func (t *transcript) complete(stopReason acp.StopReason, usage *openapi.Usage) {
	t.mu.Lock()
	defer t.mu.Unlock()

	data := map[string]any{
		"stopReason": string(stopReason), "success": stopReason == acp.StopReasonEndTurn,
		"durationMs": t.now().Sub(t.turn.started).Milliseconds(),
	}
	if usage.InputTokens > 0 || usage.OutputTokens > 0 {
		data["inputTokens"], data["outputTokens"] = usage.InputTokens, usage.OutputTokens
	}
	if usage.CostUSD != "" {
		data["costUsd"] = json.Number(usage.CostUSD)
	}
	t.emit(eventTurnComplete, data)
}

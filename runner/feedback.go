package runner

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/internal/capability"
)

const (
	// maxFollowUps is how often one turn is told of problems.
	maxFollowUps = 3
	// feedbackTimeout bounds the look at the drafts: a turn does not wait for
	// advice.
	feedbackTimeout = 10 * time.Second

	followUpHeading = "Validation found problems in your items. Fix them:"
)

// feedback is what is known of the problems of the agent's drafts.
type feedback struct {
	// problems as they were last read, and as they were last sent; empty when
	// there were none.
	problems, sent string
}

// followUp is what the agent is to be told after an answer; empty: nothing. Each
// tool result may have changed the drafts, and only how they are in the end
// counts.
func (r *run) followUp(ctx context.Context, got answer) string {
	isDone := got.err == nil && got.why == causeNone && got.response.StopReason == acp.StopReasonEndTurn
	if !isDone || !capability.Parse(r.session.Capabilities).Has(capability.ValidationFeedback) {
		return ""
	}
	if r.client.transcript.takeResults() {
		r.readProblems(ctx)
	}
	if r.feedback.problems == "" || r.feedback.problems == r.feedback.sent {
		return ""
	}
	r.feedback.sent = r.feedback.problems
	return followUpHeading + "\n" + r.feedback.problems
}

func (r *run) readProblems(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, feedbackTimeout)
	defer cancel()
	drafts, err := r.Gateway.ListItems(ctx, r.Environment.Namespace, r.Environment.Name)
	if err != nil {
		r.Log.Warn("Could not read the problems of drafts", "error", err)
		return
	}
	r.feedback.problems = problemsOf(drafts.Items)
}

// problemsOf names each draft with problems and lists them below it.
func problemsOf(drafts []openapi.Item) string {
	var lines []string
	for _, draft := range drafts {
		if len(draft.Problems) > 0 {
			lines = append(lines, fmt.Sprintf("%s '%s':", draft.Type, draft.Name), openapi.ProblemLines(draft.Problems))
		}
	}
	return strings.Join(lines, "\n")
}

// sumUsage adds what one answer took to what the answers before it took; nil is
// what no agent reported.
func sumUsage(sum, more *acp.Usage) *acp.Usage {
	if sum == nil || more == nil {
		return cmp.Or(sum, more)
	}
	return &acp.Usage{InputTokens: sum.InputTokens + more.InputTokens, OutputTokens: sum.OutputTokens + more.OutputTokens}
}

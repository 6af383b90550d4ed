package runner

import (
	"context"
	"errors"
	"fmt"

	acp "github.com/coder/acp-go-sdk"

	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/runner/rpc"
)

// codeCancelled is the error with which some agents end a cancelled prompt.
const codeCancelled = -32800

// Names of the errors that end a prompt.
const (
	errorAgent        = "AgentError"
	errorConversation = "ConversationError"
	errorDenied       = "AGENT_TOOL_DENIED"
	errorProtocol     = "ProtocolError"
	errorTimeout      = "TurnTimeout"
)

// ending is how a prompt ended.
type ending struct {
	// result to be sent; nil if nobody is to get one.
	result *openapi.PromptResult
	// err is set when there is no agent or no session for another prompt.
	err error
}

// conclude turns an answer into a result, and tells of it in the journal.
func (r *run) conclude(ctx context.Context, got answer) ending {
	reply := r.client.transcript.end()
	if got.why == causeShutdown {
		return ending{err: context.Cause(ctx)}
	}
	if got.why == causeGone {
		return ending{err: ErrSessionGone}
	}
	if isCancelled(got) {
		got.response.StopReason, got.err = acp.StopReasonCancelled, nil
	}
	if got.why == causeDenied {
		reply = "" // what the agent said counts no more
	}
	usage := r.client.transcript.usage(got.response.Usage)
	result := &openapi.PromptResult{
		StopReason: r.redactor.String(string(got.response.StopReason)), Reply: reply, Usage: usage,
	}
	if failed := r.failureOf(got); failed != nil {
		result.Outcome, result.Detail = openapi.PromptOutcomeFailed, r.tellFailure(*failed)
	} else {
		r.client.transcript.complete(got.response.StopReason, usage)
		result.Outcome, result.Detail = judge(got.response.StopReason)
	}
	return ending{result: result, err: r.afterAnswer(got)}
}

// isCancelled reports an error that only says that the prompt was cancelled,
// which it was.
func isCancelled(got answer) bool {
	refused, ok := errors.AsType[*acp.RequestError](got.err)
	return ok && got.why != causeNone && refused.Code == codeCancelled
}

// judge returns the outcome that a stop reason stands for.
func judge(reason acp.StopReason) (outcome openapi.PromptOutcome, detail string) {
	switch reason {
	case acp.StopReasonEndTurn:
		return openapi.PromptOutcomeCompleted, ""
	case acp.StopReasonCancelled:
		return openapi.PromptOutcomeInterrupted, ""
	default:
		return openapi.PromptOutcomeFailed, fmt.Sprintf("The agent stopped: %s", reason)
	}
}

// failure is why a prompt failed other than by a stop reason.
type failure struct {
	// name of the session error; empty if the end of the session says it.
	name string
	// message for people; empty if there is nothing to add.
	message string
}

// failureOf returns nil for an agent that answered as it should.
func (r *run) failureOf(got answer) *failure {
	switch {
	case got.why == causeTimeout:
		return &failure{errorTimeout, fmt.Sprintf("The turn took longer than %s", r.timeout)}
	case got.why == causeDenied:
		return &failure{errorDenied, fmt.Sprintf("The agent asked for %s, which it must not have", got.denied)}
	case got.err == nil:
		return nil
	case errors.Is(got.err, rpc.ErrProtocol):
		return &failure{errorProtocol, "The agent does not speak the Agent Client Protocol"}
	case errors.Is(got.err, rpc.ErrClosed) && got.forced:
		return &failure{"", fmt.Sprintf("The agent did not stop within %s", r.Timing.Cancel)}
	case errors.Is(got.err, rpc.ErrClosed):
		return &failure{}
	}
	if refused, ok := errors.AsType[*acp.RequestError](got.err); ok {
		return &failure{errorAgent, describe(refused)}
	}
	return &failure{errorAgent, got.err.Error()}
}

// tellFailure puts a failure into the journal and returns what the result says
// of it.
func (r *run) tellFailure(failed failure) (detail string) {
	message := r.redactor.String(failed.message)
	switch failed.name {
	case "":
		return message
	case errorDenied:
		r.tellError(failed.name, message)
		// Runs tell this failure from others by its code.
		return errorDenied + ": " + message
	default:
		r.tellError(failed.name, message)
		return message
	}
}

// afterAnswer returns an error if the connection did not survive the prompt,
// once the end of the program is in the journal.
func (r *run) afterAnswer(got answer) error {
	if !errors.Is(got.err, rpc.ErrClosed) && !errors.Is(got.err, rpc.ErrProtocol) {
		return nil
	}
	<-r.link.ended
	return r.tellEnd()
}

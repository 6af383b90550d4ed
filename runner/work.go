package runner

import (
	"context"
	"fmt"
	"net/http"

	acp "github.com/coder/acp-go-sdk"

	"github.com/apitomy/axiom-operator/gateway/openapi"
)

// maxShortReply is the reply, in bytes, of a result that was refused for its
// size: however it is escaped, it fits.
const maxShortReply = 8 << 10

// work brings one prompt to its result. The error is that of an agent or a
// session that is no more, or the context's.
func (r *run) work(ctx context.Context, prompt *openapi.Prompt) error {
	err := r.Gateway.AckPrompt(ctx, r.Environment.Namespace, r.Environment.Name, prompt.ID)
	if hasStatus(err, http.StatusConflict) {
		return nil // it was taken back
	}
	if err != nil {
		return goneOr(fmt.Errorf("acknowledge prompt: %w", err))
	}
	if prompt.Cancel {
		return r.finish(ctx, prompt, openapi.PromptResult{
			Outcome: openapi.PromptOutcomeInterrupted, StopReason: string(acp.StopReasonCancelled),
		})
	}
	if prompt.NewConversation {
		r.client.transcript.reset()
		if err := r.newConversation(ctx); err != nil {
			return r.fail(ctx, prompt, err)
		}
	}
	ended := r.converse(ctx, prompt)
	if ended.result == nil {
		return ended.err
	}
	if err := r.finish(ctx, prompt, *ended.result); err != nil {
		return err
	}
	return ended.err
}

// fail ends a prompt for which no conversation could be opened, and with it
// the agent, which is in no state for another.
func (r *run) fail(ctx context.Context, prompt *openapi.Prompt, reason error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	message := r.redactor.String(reason.Error())
	r.tellError(errorConversation, message)
	r.link.stop()
	<-r.link.ended
	end := r.tellEnd()
	if err := r.finish(ctx, prompt, openapi.PromptResult{Outcome: openapi.PromptOutcomeFailed, Detail: message}); err != nil {
		return err
	}
	return end
}

func (r *run) tellError(name, message string) {
	r.queue.Add(eventSessionError, map[string]any{"name": name, "message": message})
}

// finish sends the result of a prompt once its events are delivered, or have
// had their time.
func (r *run) finish(ctx context.Context, prompt *openapi.Prompt, result openapi.PromptResult) error {
	ctx, cancel := lingering(ctx, r.Timing.Linger)
	defer cancel()
	r.queue.Flush(ctx)
	send := func(result openapi.PromptResult) error {
		return r.Gateway.FinishPrompt(ctx, r.Environment.Namespace, r.Environment.Name, prompt.ID, result)
	}
	err := send(result)
	if hasStatus(err, http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity) {
		r.Log.Warn("Sent a shorter result, since the whole was refused", "prompt", prompt.ID, "error", err)
		err = send(shorter(result))
	}
	if hasStatus(err, http.StatusConflict) {
		r.Log.Info("Left a result that nobody waits for", "prompt", prompt.ID)
		return nil
	}
	if err != nil {
		return goneOr(fmt.Errorf("send result: %w", err))
	}
	return nil
}

func shorter(result openapi.PromptResult) openapi.PromptResult {
	result.Usage = nil
	if len(result.Reply) > maxShortReply {
		kept := cutAt([]byte(result.Reply), maxShortReply)
		result.Reply = fmt.Sprintf("%s…[truncated %d bytes]", result.Reply[:kept], len(result.Reply)-kept)
	}
	return result
}

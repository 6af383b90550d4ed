package runner

import (
	"context"
	"errors"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"github.com/apitomy/axiom-operator/gateway/openapi"
)

// cause is why a prompt is being cancelled.
type cause int

const (
	causeNone cause = iota
	// causeInterrupt: somebody asked for it.
	causeInterrupt
	// causeSuperseded: the gateway has another prompt already.
	causeSuperseded
	// causeGone: the gateway does not know this pod any more.
	causeGone
	// causeTimeout: it took too long.
	causeTimeout
	// causeDenied: the agent asked for what it must not have.
	causeDenied
	// causeShutdown: the pod ends.
	causeShutdown
)

// answer is how a prompt came to its end.
type answer struct {
	response acp.PromptResponse
	err      error
	// why it was cancelled, if it was.
	why cause
	// denied is what the agent asked for, if that is why.
	denied string
	// forced means that the agent did not stop by itself.
	forced bool
}

// converse brings a prompt to its end: it gives it to the agent, and after an
// answer whatever has to be said to it.
func (r *run) converse(ctx context.Context, prompt *openapi.Prompt) ending {
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()

	r.client.begin()
	timeout := time.NewTimer(r.timeout)
	defer timeout.Stop()
	bounds := bounds{causes: r.watch(watching, prompt), timeout: timeout.C, stopWatching: stopWatching}

	var usage *acp.Usage
	text := prompt.Text
	for followUps := 0; ; followUps++ {
		got := r.exchange(ctx, text, bounds)
		usage = sumUsage(usage, got.response.Usage)
		if text = ""; followUps < maxFollowUps {
			text = r.followUp(ctx, got)
		}
		if text == "" {
			got.response.Usage = usage
			return r.conclude(ctx, got)
		}
		r.client.transcript.nextAnswer()
	}
}

// bounds are what ends the work on a prompt before the agent does.
type bounds struct {
	causes       <-chan cause
	timeout      <-chan time.Time
	stopWatching func()
}

// exchange gives a text to the agent and waits for its answer, cancelling it
// when there is a cause to.
func (r *run) exchange(ctx context.Context, text string, bounds bounds) answer {
	answers := r.ask(ctx, text)
	var got answer
	select {
	case got = <-answers:
		got.why, got.denied = r.overtaken()
		return got
	case got.why = <-bounds.causes:
	case <-bounds.timeout:
		got.why = causeTimeout
	case got.denied = <-r.client.violations:
		got.why = causeDenied
	case <-ctx.Done():
		got.why = causeShutdown
	}
	bounds.stopWatching()
	return r.cancel(ctx, answers, got)
}

// overtaken finds a violation that the agent's answer overtook on the way
// here.
func (r *run) overtaken() (cause, string) {
	select {
	case denied := <-r.client.violations:
		return causeDenied, denied
	default:
		return causeNone, ""
	}
}

// ask sends a prompt's text: the first of a conversation with the system prompt
// ahead of it.
func (r *run) ask(ctx context.Context, text string) <-chan answer {
	blocks := []acp.ContentBlock{acp.TextBlock(text)}
	if r.fresh && r.session.SystemPrompt != "" {
		blocks = []acp.ContentBlock{acp.TextBlock(r.session.SystemPrompt), acp.TextBlock(text)}
	}
	r.fresh = false
	request := acp.PromptRequest{SessionId: r.client.currentSession(), Prompt: blocks}
	answers := make(chan answer, 1)
	// A prompt is given up by cancelling it, not by no longer waiting for it.
	patient := context.WithoutCancel(ctx)
	go func() {
		var got answer
		got.err = r.link.peer.Call(patient, acp.AgentMethodSessionPrompt, request, &got.response)
		answers <- got
	}()
	return answers
}

// watch waits for a cause to cancel the prompt that the gateway knows of.
func (r *run) watch(ctx context.Context, prompt *openapi.Prompt) <-chan cause {
	causes := make(chan cause, 1)
	go func() {
		if found := r.pollCause(ctx, prompt); found != causeNone {
			causes <- found
		}
	}()
	return causes
}

func (r *run) pollCause(ctx context.Context, prompt *openapi.Prompt) cause {
	for {
		next, err := r.Gateway.NextPrompt(ctx, r.Environment.Namespace, r.Environment.Name, prompt.Sequence, r.Timing.Poll)
		switch {
		case ctx.Err() != nil:
			return causeNone
		case errors.Is(goneOr(err), ErrSessionGone):
			return causeGone
		case err != nil:
			r.Log.Warn("Stopped watching for an interrupt", "prompt", prompt.ID, "error", err)
			return causeNone
		case next == nil:
		case next.Sequence > prompt.Sequence:
			return causeSuperseded
		case next.Cancel:
			return causeInterrupt
		default:
			r.pause(ctx)
		}
	}
}

// cancel asks the agent to stop and waits for its answer; one that does not
// give it in time is ended, which is an answer too. A pod that ends has no
// patience left for the rest.
func (r *run) cancel(ctx context.Context, answers <-chan answer, asked answer) answer {
	r.client.cancel()
	// The only failure is a closed connection, which is an answer by itself.
	_ = r.link.peer.Notify(acp.AgentMethodSessionCancel, acp.CancelNotification{SessionId: r.client.currentSession()})

	timer := time.NewTimer(r.Timing.Cancel)
	defer timer.Stop()
	shutdown := ctx.Done()
	for {
		select {
		case got := <-answers:
			got.why, got.denied, got.forced = asked.why, asked.denied, asked.forced
			return got
		case <-shutdown:
			asked.why, shutdown = causeShutdown, nil
			timer.Reset(r.Timing.Shutdown)
		case <-timer.C:
			asked.forced = true
			r.link.stop()
		}
	}
}

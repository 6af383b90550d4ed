package gateway

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/gateway/openapi/server"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/journal"
	"github.com/apitomy/axiom-operator/internal/journal/store"
)

const (
	// maxWait for a prompt, in seconds.
	maxWait = 55

	maxStopReason = 64
	maxFailure    = 4096
)

var decimal = regexp.MustCompile(`^[0-9]{1,16}(\.[0-9]{1,15})?$`)

// NextPrompt waits for a prompt that the runner does not know, or for the
// cancellation of the one that it does.
func (s *Server) NextPrompt(ctx context.Context, request server.NextPromptRequestObject) (server.NextPromptResponseObject, error) {
	after, wait := request.Params.After, request.Params.Wait
	if after < 0 || wait < 0 || wait > maxWait {
		return nil, invalid("after must not be negative, and wait must be from 0 to %d", maxWait)
	}
	who := callerOf(ctx)
	session := who.session
	if promptFor(session, after) == nil && wait > 0 {
		var err error
		if session, err = s.await(ctx, who, after, time.Duration(wait)*time.Second); err != nil {
			return nil, err
		}
	}
	if promptFor(session, after) == nil {
		return server.NextPrompt204Response{}, nil
	}
	return s.deliver(ctx, session)
}

// await waits for a prompt that the runner needs to be told of, and returns the
// session as it is then. It has no such prompt when there is none in time, when
// the caller is gone, or when the server shuts down: another one goes on then.
func (s *Server) await(ctx context.Context, who caller, after int64, wait time.Duration) (*api.AgentSession, error) {
	session := who.session.DeepCopy()
	// Listening begins before the first look, so that nothing falls in between.
	news, leave := s.bells.listen(sessionTopic(client.ObjectKeyFromObject(session)))
	defer leave()
	timeout := s.clock.NewTimer(wait)
	defer timeout.Stop()
	for {
		if err := s.refresh(ctx, who, session); err != nil {
			return nil, err
		}
		if promptFor(session, after) != nil {
			return session, nil
		}
		select {
		case _, open := <-news:
			if !open {
				return session, nil
			}
		case <-timeout.C():
			return session, nil
		case <-ctx.Done():
			return session, nil
		}
	}
}

// promptFor is the prompt that a runner needs to be told of, nil for none.
func promptFor(session *api.AgentSession, after int64) *api.SessionPrompt {
	prompt := session.Status.Prompt
	if prompt == nil || prompt.State == api.PromptDone {
		return nil
	}
	if prompt.Sequence > after || prompt.Sequence == after && prompt.Cancel {
		return prompt
	}
	return nil
}

// deliver gives the session's prompt to its runner.
func (s *Server) deliver(ctx context.Context, session *api.AgentSession) (server.NextPromptResponseObject, error) {
	prompt := session.Status.Prompt
	text, err := s.contents.Get(ctx, session.Namespace, prompt.Ref.Digest)
	if err != nil {
		return nil, fmt.Errorf("read prompt: %w", err)
	}
	recap, err := s.recap(ctx, session)
	if err != nil {
		return nil, err
	}
	return server.NextPrompt200JSONResponse{
		Sequence:        prompt.Sequence,
		ID:              prompt.ID,
		Text:            recap + string(text),
		NewConversation: prompt.NewConversation,
		Cancel:          prompt.Cancel,
	}, nil
}

// recap is what goes ahead of the prompt of an agent that does not know what
// was said in its session; empty for one that does, or that shall not know.
func (s *Server) recap(ctx context.Context, session *api.AgentSession) (string, error) {
	if !session.Status.RecapPending || session.Status.Prompt.NewConversation {
		return "", nil
	}
	if session.Spec.Role == api.RolePrompt {
		return s.retained(ctx, session)
	}
	events, err := s.journals.Load(ctx, session)
	if errors.Is(err, store.ErrDamaged) {
		s.log.Error(err, "Could not recap", "session", session.Namespace+"/"+session.Name)
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("load journal: %w", err)
	}
	ref := session.Spec.CompositionRef
	if ref == nil {
		return journal.Recap(events, nil) + "\n\n", nil
	}
	comp := &api.Composition{}
	err = s.live.Get(ctx, types.NamespacedName{Namespace: session.Namespace, Name: ref.Name}, comp)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("read composition: %w", err)
	}
	return journal.Recap(events, &comp.Spec.Goal) + "\n\n", nil
}

// AckPrompt notes that the runner has the prompt. What the person said is written
// first: whoever is stopped in between is asked again.
func (s *Server) AckPrompt(ctx context.Context, request server.AckPromptRequestObject) (server.AckPromptResponseObject, error) {
	now := metav1.NewTime(s.clock.Now())
	who := callerOf(ctx)
	isNew, err := acknowledge(who.session.Status.DeepCopy(), request.ID, now)
	if err != nil {
		return nil, err
	}
	if isNew {
		s.recordMessage(ctx, who, who.session.Status.Prompt)
	}
	err = s.updateSession(ctx, who, func(status *api.AgentSessionStatus) (bool, error) {
		recapPending := status.RecapPending
		changed, err := acknowledge(status, request.ID, now)
		// A lost prompt of a run is given to another pod, whose agent may not have
		// kept what this one was told.
		status.RecapPending = status.RecapPending || recapPending && who.session.Spec.Role == api.RolePrompt
		return changed, err
	})
	if err != nil {
		return nil, err
	}
	return server.AckPrompt204Response{}, nil
}

// recordMessage puts what the person said into the journal, ahead of what the
// agent makes of it. The agent works whether or not that can be written.
func (s *Server) recordMessage(ctx context.Context, who caller, prompt *api.SessionPrompt) {
	turn := &api.Turn{}
	err := s.live.Get(ctx, types.NamespacedName{Namespace: who.namespace, Name: prompt.ID}, turn)
	if err == nil && (prompt.TurnUID == "" || string(turn.UID) == prompt.TurnUID) && turn.Spec.Message != "" {
		err = s.journals.Record(ctx, who.session, fmt.Sprintf("message/%d", prompt.Sequence), journal.Event{
			Type: journal.TypeUserMessage, Data: map[string]any{"content": turn.Spec.Message, "turn": turn.Name},
		})
	}
	if client.IgnoreNotFound(err) != nil {
		s.log.Error(err, "Could not record a message", "session", who.key)
	}
}

func acknowledge(status *api.AgentSessionStatus, id string, now metav1.Time) (changed bool, err error) {
	prompt, err := currentPrompt(status, id)
	if err != nil {
		return false, err
	}
	isOfThisPod := prompt.Attempt == status.Attempt
	switch {
	case prompt.State == api.PromptDone && !isOfThisPod:
		return false, conflict("Prompt %s was taken back", id)
	case prompt.State == api.PromptDone, prompt.State == api.PromptDelivered && isOfThisPod:
		return false, nil
	}
	prompt.State, prompt.Attempt = api.PromptDelivered, status.Attempt
	status.RecapPending = false
	status.LastActivityAt, status.LastHeartbeatAt = &now, &now
	return true, nil
}

func currentPrompt(status *api.AgentSessionStatus, id string) (*api.SessionPrompt, error) {
	if status.Prompt == nil || status.Prompt.ID != id {
		return nil, conflict("Prompt %s is not the current one", cut(id, maxShownRevision))
	}
	return status.Prompt, nil
}

// FinishPrompt records how the prompt ended.
func (s *Server) FinishPrompt(ctx context.Context, request server.FinishPromptRequestObject) (server.FinishPromptResponseObject, error) {
	result, err := readResult(request.Body)
	if err != nil {
		return nil, err
	}
	who := callerOf(ctx)
	if _, err := currentPrompt(&who.session.Status, request.ID); err != nil {
		return nil, err
	}
	result, reply := s.gateResult(who.session, result, request.Body.Reply)
	if result.Reply, result.ReplyRef, err = s.keepReply(ctx, who.session, reply); err != nil {
		return nil, err
	}
	now := metav1.NewTime(s.clock.Now())
	err = s.updateSession(ctx, who, func(status *api.AgentSessionStatus) (bool, error) {
		changed, err := finish(status, request.ID, result, now)
		if changed {
			s.noteJournal(ctx, who, status)
		}
		return changed, err
	})
	if err != nil {
		return nil, err
	}
	return server.FinishPrompt204Response{}, nil
}

func finish(status *api.AgentSessionStatus, id string, result *api.PromptResult, now metav1.Time) (changed bool, err error) {
	prompt, err := currentPrompt(status, id)
	if err != nil {
		return false, err
	}
	if prompt.State == api.PromptDone {
		if !equality.Semantic.DeepEqual(prompt.Result, result) {
			return false, conflict("Prompt %s already has another result", id)
		}
		return false, nil
	}
	// The acknowledgement may have been lost; the result says as much.
	prompt.State, prompt.Attempt, prompt.Result = api.PromptDone, status.Attempt, result
	status.RecapPending = status.RecapPending && result.Outcome != api.OutcomeCompleted
	status.Usage = withTurn(status.Usage, result.Usage)
	status.LastActivityAt = &now
	return true, nil
}

// readResult reads all of a result but the reply.
func readResult(body *openapi.PromptResult) (*api.PromptResult, error) {
	if !body.Outcome.Valid() {
		return nil, invalid("outcome must be Completed, Interrupted or Failed")
	}
	usage, err := readUsage(body.Usage)
	if err != nil {
		return nil, err
	}
	return &api.PromptResult{
		Outcome:    api.PromptOutcome(body.Outcome),
		StopReason: cut(body.StopReason, maxStopReason),
		Detail:     cut(body.Detail, maxFailure),
		Usage:      usage,
	}, nil
}

func readUsage(usage *openapi.Usage) (*api.Usage, error) {
	if usage == nil {
		return nil, nil
	}
	if usage.InputTokens < 0 || usage.OutputTokens < 0 {
		return nil, invalid("numbers of tokens must not be negative")
	}
	if usage.CostUSD != "" && !decimal.MatchString(usage.CostUSD) {
		return nil, invalid("costUSD must be a decimal number, such as 0.0312")
	}
	read := &api.Usage{InputTokens: usage.InputTokens, OutputTokens: usage.OutputTokens, CostUSD: usage.CostUSD}
	if usage.Duration != "" {
		duration, err := time.ParseDuration(usage.Duration)
		if err != nil || duration < 0 {
			return nil, invalid("duration must be a duration, such as 1m4s")
		}
		read.Duration = &metav1.Duration{Duration: duration}
	}
	return read, nil
}

// keepReply returns what the session's status holds of a reply: the text, or
// where it is kept.
func (s *Server) keepReply(ctx context.Context, session *api.AgentSession, reply string) (string, *api.ContentRef, error) {
	if len(reply) <= content.MaxInline {
		return reply, nil, nil
	}
	ref, err := s.contents.Put(ctx, session, []byte(reply))
	if err != nil {
		return "", nil, fmt.Errorf("store reply: %w", err)
	}
	return "", &ref, nil
}

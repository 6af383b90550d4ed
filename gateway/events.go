package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/gateway/openapi/server"
	"github.com/apitomy/axiom-operator/internal/journal"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

const (
	// maxEventType bounds the type of an event, in characters.
	maxEventType = 64
	// activityInterval is how far the recorded time of activity may lag behind.
	activityInterval = time.Minute
)

// AppendEvents appends a batch of the runner's events to the session's journal.
func (s *Server) AppendEvents(ctx context.Context, request server.AppendEventsRequestObject) (server.AppendEventsResponseObject, error) {
	batch, err := readEvents(request.Body.Events)
	if err != nil {
		return nil, err
	}
	who := callerOf(ctx)
	if who.session.Spec.Role == api.RolePrompt {
		batch = withoutTexts(batch)
	}
	// A session is ready when its agent is, whether or not the journal can be
	// written: the runner repeats the batch until it can.
	if err := s.noteAgent(ctx, who, batch); err != nil {
		return nil, err
	}
	var accepted int64
	err = settle(func() error {
		accepted, err = s.journals.Append(ctx, who.session, batch)
		return err
	})
	if err != nil {
		return nil, gapOf(err)
	}
	s.noteLife(ctx, who, len(batch) > 0)
	return server.AppendEvents200JSONResponse{AcceptedThrough: accepted}, nil
}

// gapOf makes a conflict of a gap, and leaves other errors alone.
func gapOf(err error) error {
	var gap *journal.GapError
	if !errors.As(err, &gap) {
		return fmt.Errorf("append to journal: %w", err)
	}
	p := conflict("Events are missing: expected sequence %d", gap.Expected)
	p.Expected, p.Actual = strconv.FormatInt(gap.Expected, 10), strconv.FormatInt(gap.Actual, 10)
	return p
}

func readEvents(events []openapi.Event) ([]journal.Entry, error) {
	batch := make([]journal.Entry, 0, len(events))
	for i, event := range events {
		if event.Sequence < 1 {
			return nil, invalid("events[%d].sequence must be at least 1", i)
		}
		if event.Type == "" || utf8.RuneCountInString(event.Type) > maxEventType {
			return nil, invalid("events[%d].type must have 1 to %d characters", i, maxEventType)
		}
		if event.Type == journal.TypeUserMessage {
			return nil, invalid("events[%d].type: a %s is what a person said, and not a session's to tell", i, event.Type)
		}
		// Data that cannot be read counts as empty, like data that is no object:
		// one bad event must not keep all later ones out.
		value, _ := jsonvalue.Decode(event.Data)
		data := journal.DataOf(value)
		delete(data, journal.MemberNotice)
		batch = append(batch, journal.Entry{
			Event:    journal.Event{Type: event.Type, Data: data},
			Sequence: event.Sequence,
		})
	}
	return batch, nil
}

// noteAgent makes the session ready when its runner announces an initialised
// agent, and ends the prompt that an agent left behind untaken. Of one that it
// took the runner sends a result.
func (s *Server) noteAgent(ctx context.Context, who caller, batch []journal.Entry) error {
	if !has(batch, journal.TypeSessionInit) && !has(batch, journal.TypeSessionEnded) {
		return nil
	}
	position, err := s.journals.Position(ctx, who.session)
	if err != nil {
		return fmt.Errorf("read journal position: %w", err)
	}
	news, err := position.Accept(who.session.Status.Attempt, batch)
	if err != nil {
		return gapOf(err)
	}
	return s.updateSession(ctx, who, func(status *api.AgentSessionStatus) (bool, error) {
		becameReady := has(news, journal.TypeSessionInit) && status.ReadyAttempt != status.Attempt
		if becameReady {
			status.ReadyAttempt = status.Attempt
		}
		isUntaken := status.Prompt != nil && status.Prompt.State == api.PromptQueued
		isLeft := has(news, journal.TypeSessionEnded) && isUntaken
		if isLeft {
			status.Prompt.State, status.Prompt.Attempt = api.PromptDone, status.Attempt
			status.Prompt.Result = &api.PromptResult{Outcome: api.OutcomeFailed}
		}
		return becameReady || isLeft, nil
	})
}

func has(batch []journal.Entry, kind string) bool {
	return slices.ContainsFunc(batch, func(entry journal.Entry) bool { return entry.Type == kind })
}

// noteLife records that the runner is alive while somebody waits for it, that
// its agent did something, and how far the journal goes; each once in a while.
// The events are in the journal by then, so that its failure is nobody's concern.
func (s *Server) noteLife(ctx context.Context, who caller, isActive bool) {
	now := metav1.NewTime(s.clock.Now())
	err := s.updateSession(ctx, who, func(status *api.AgentSessionStatus) (bool, error) {
		isWaitedFor := status.Prompt != nil && status.Prompt.State != api.PromptDone
		isAlive := isWaitedFor && isDue(status.LastHeartbeatAt, now)
		isNews := isActive && isDue(status.LastActivityAt, now)
		if isAlive {
			status.LastHeartbeatAt = &now
		}
		if isNews {
			status.LastActivityAt = &now
			s.noteJournal(ctx, who, status)
		}
		return isAlive || isNews, nil
	})
	if err != nil {
		s.log.V(1).Info("Could not record a sign of life", "session", who.key, "reason", err.Error())
	}
}

// isDue tells whether a recorded moment lags far enough behind to be worth a write.
func isDue(recorded *metav1.Time, now metav1.Time) bool {
	return recorded == nil || now.Sub(recorded.Time) >= activityInterval
}

func (s *Server) noteJournal(ctx context.Context, who caller, status *api.AgentSessionStatus) {
	extent, err := s.journals.Extent(ctx, who.session)
	if err != nil || extent.Chunks == 0 {
		return
	}
	chunks := min(extent.Chunks, journal.MaxChunks)
	status.Journal = &api.SessionJournal{Chunks: int32(chunks), FirstSeq: extent.First, LastSeq: extent.Last} //nolint:gosec // bounded by the line before
}

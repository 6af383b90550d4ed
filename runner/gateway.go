package runner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/apitomy/axiom-operator/gateway/client"
	"github.com/apitomy/axiom-operator/gateway/openapi"
)

// Gateway is what the runner needs of the gateway. Calls are repeated while
// the gateway is away, until their context ends; a refusal is a
// [*client.Problem].
type Gateway interface {
	// GetSession returns how to set the agent up.
	GetSession(ctx context.Context, namespace, name string) (*openapi.Session, error)
	// OpenConversation asks which conversation the agent shall have, and
	// CommitConversation tells of the one that it began; for sessions of role Prompt.
	OpenConversation(ctx context.Context, namespace, name string, query openapi.ConversationQuery) (*openapi.Conversation, error)
	CommitConversation(ctx context.Context, namespace, name, id string) error
	// NextPrompt waits for a prompt newer than after, or for the cancellation of
	// that one; nil means that there was nothing new.
	NextPrompt(ctx context.Context, namespace, name string, after int64, wait time.Duration) (*openapi.Prompt, error)
	// AckPrompt tells that a prompt arrived.
	AckPrompt(ctx context.Context, namespace, name, id string) error
	// FinishPrompt tells how a prompt ended.
	FinishPrompt(ctx context.Context, namespace, name, id string, result openapi.PromptResult) error
	// AppendEvents adds events to the journal, and returns the number of the
	// newest one there.
	AppendEvents(ctx context.Context, namespace, name string, events []openapi.Event) (int64, error)
	// ListItems returns the drafts of the session's agent.
	ListItems(ctx context.Context, namespace, name string) (*openapi.Items, error)
}

// ErrSessionGone means that the gateway no longer knows this pod: the session
// was deleted or stopped, or another pod took its place.
var ErrSessionGone = errors.New("the session has no use for this pod any more")

// goneOr turns refusals of the token or the session into [ErrSessionGone].
func goneOr(err error) error {
	if hasStatus(err, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound) {
		return fmt.Errorf("%w: %w", ErrSessionGone, err)
	}
	return err
}

func hasStatus(err error, statuses ...int) bool {
	var problem *client.Problem
	return errors.As(err, &problem) && slices.Contains(statuses, problem.Status)
}

// lingering returns a context that outlives ctx by d, so that what is known
// already can still be told.
func lingering(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-longer.Done():
		}
	})
	return longer, func() {
		stop()
		cancel()
	}
}

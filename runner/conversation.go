package runner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"

	acp "github.com/coder/acp-go-sdk"

	"github.com/apitomy/axiom-operator/gateway/openapi"
)

// ErrRefused means that the session's conversation cannot be taken up, so that
// nothing may be said to the agent.
var ErrRefused = errors.New("the conversation was refused")

// takeUp makes the agent of a session of role Prompt go on with the session's
// conversation, or begin the one that the session is held to from then on. The
// gateway decides which.
func (r *run) takeUp(ctx context.Context) error {
	if !filepath.IsAbs(string(r.home())) {
		return &StartError{Message: "the agent has no home"}
	}
	belongs, err := r.home().conversation()
	if err != nil {
		return err
	}
	query := openapi.ConversationQuery{CanLoad: r.canLoad, Home: belongs}
	for {
		found, err := r.Gateway.OpenConversation(ctx, r.Environment.Namespace, r.Environment.Name, query)
		if err != nil {
			return goneOr(fmt.Errorf("open conversation: %w", err))
		}
		switch {
		case found.Action == openapi.ConversationActionBegin:
			return r.beginCommitted(ctx)
		case found.Action != openapi.ConversationActionLoad || query.Failed != "":
			return fmt.Errorf("%w: %s", ErrRefused, found.Reason)
		}
		if query.Failed, err = r.load(ctx, acp.SessionId(found.ID)); err != nil || query.Failed == "" {
			return err
		}
	}
}

// beginCommitted begins a conversation. The home is marked first: what the gateway
// knows of must be there.
func (r *run) beginCommitted(ctx context.Context) error {
	if err := r.newConversation(ctx); err != nil {
		return err
	}
	id := string(r.client.currentSession())
	if err := r.home().belongTo(id); err != nil {
		return err
	}
	err := r.Gateway.CommitConversation(ctx, r.Environment.Namespace, r.Environment.Name, id)
	if hasStatus(err, http.StatusBadRequest, http.StatusConflict, http.StatusUnprocessableEntity) {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return goneOr(err)
}

// load has the agent take a conversation up, and tells why it did not. What it
// reports meanwhile was said before.
func (r *run) load(ctx context.Context, id acp.SessionId) (openapi.LoadFailure, error) {
	r.client.beginLoad(id)
	request := acp.LoadSessionRequest{SessionId: id, Cwd: r.Dir, McpServers: []acp.McpServer{}}
	var answer struct {
		// SessionID is in no version of the protocol, but in the answers of agents.
		SessionID acp.SessionId `json:"sessionId"`
	}
	err := r.call(ctx, r.Timing.NewSession, acp.AgentMethodSessionLoad, request, &answer)
	isOther := r.client.endLoad() || answer.SessionID != "" && answer.SessionID != id
	switch {
	case err != nil:
		return lossOf(err)
	case isOther:
		return openapi.LoadFailureSessionDiffers, nil
	}
	return "", nil
}

// lossOf tells an agent that does not know a conversation from one that could not
// say. Its words stay in the pod: they may be of the conversation.
func lossOf(err error) (openapi.LoadFailure, error) {
	if isRefusal(err) {
		return openapi.LoadFailureSessionLost, nil
	}
	return "", err
}

// home of the agent.
func (r *run) home() home { return home(r.Environment.Home) }

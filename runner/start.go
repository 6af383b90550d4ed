package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/runner/rpc"
)

// codeAuthRequired is the error by which an agent demands authentication.
const codeAuthRequired = -32000

// start launches the agent and opens the first conversation.
func (r *run) start(ctx context.Context) error {
	agent, err := r.Launch()
	if err != nil {
		return err
	}
	r.link = connect(agent, r.client, r.Timing)
	initialized, err := r.initialize(ctx)
	if err != nil {
		return err
	}
	begin := r.newConversation
	if r.session.Role == openapi.SessionRolePrompt {
		begin = r.takeUp
	}
	if err := begin(ctx); err != nil {
		return err
	}
	data := initData(initialized)
	if attempt := r.Environment.Attempt; attempt > 0 {
		data["attempt"] = attempt
	}
	r.queue.Add(eventSessionInit, data)
	// What a person says to the agent comes after this in the journal.
	r.queue.Flush(ctx)
	return nil
}

func initData(initialized *acp.InitializeResponse) map[string]any {
	agent := ""
	if info := initialized.AgentInfo; info != nil {
		agent = info.Name
		if info.Version != "" {
			agent += " " + info.Version
		}
	}
	return map[string]any{"agent": agent, "protocolVersion": int(initialized.ProtocolVersion)}
}

func (r *run) initialize(ctx context.Context) (*acp.InitializeResponse, error) {
	var answer acp.InitializeResponse
	request := acp.InitializeRequest{
		ProtocolVersion:    protocolVersion,
		ClientCapabilities: acp.ClientCapabilities{Fs: acp.FileSystemCapabilities{}, Terminal: false},
		ClientInfo:         &acp.Implementation{Name: runnerClientName, Version: "1"},
	}
	if err := r.call(ctx, r.Timing.Initialize, acp.AgentMethodInitialize, request, &answer); err != nil {
		return nil, err
	}
	if answer.ProtocolVersion != protocolVersion {
		return nil, &StartError{Message: fmt.Sprintf(
			"the agent speaks version %d of the Agent Client Protocol, not %d", answer.ProtocolVersion, protocolVersion)}
	}
	r.http, r.canLoad = answer.AgentCapabilities.McpCapabilities.Http, answer.AgentCapabilities.LoadSession
	return &answer, nil
}

// newConversation opens a conversation, whose first prompt is to be preceded
// by the system prompt.
func (r *run) newConversation(ctx context.Context) error {
	declared := r.session.MCPServers
	if r.refuses() {
		declared = nil
	}
	servers, err := r.Environment.servers(declared, r.http)
	if err != nil {
		return err
	}
	var answer acp.NewSessionResponse
	request := acp.NewSessionRequest{Cwd: r.Dir, McpServers: servers}
	r.client.setSession("")
	if err := r.call(ctx, r.Timing.NewSession, acp.AgentMethodSessionNew, request, &answer); err != nil {
		return err
	}
	if answer.SessionId == "" {
		return &StartError{Message: "the agent answered session/new without a session id"}
	}
	r.client.setSession(answer.SessionId)
	r.fresh = true
	return nil
}

// call makes a request that must be answered in time, and says in words what
// kept it from being so.
func (r *run) call(ctx context.Context, timeout time.Duration, method string, params, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := r.link.peer.Call(ctx, method, params, answer)
	var refused *acp.RequestError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused) && refused.Code == codeAuthRequired:
		return &StartError{Message: "the agent demands authentication; give it credentials in the session's environment"}
	case errors.As(err, &refused):
		return &refusalError{text: fmt.Sprintf("the agent refused %s: %s", method, describe(refused))}
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the agent did not answer %s within %s", method, timeout)
	case errors.Is(err, rpc.ErrClosed):
		<-r.link.ended
		return r.endedEarly(method)
	default:
		return err
	}
}

// refusalError is an agent's answer that it will not do what it was asked to.
type refusalError struct{ text string }

func (e *refusalError) Error() string { return e.text }

func isRefusal(err error) bool {
	var refused *refusalError
	return errors.As(err, &refused)
}

func (r *run) endedEarly(method string) error {
	message := fmt.Sprintf("the agent ended with exit code %d before it answered %s", r.link.agent.ExitCode(), method)
	if words := r.link.agent.LastWords(); words != "" {
		message += ": " + words
	}
	return errors.New(message)
}

// describe returns the text of a JSON-RPC error and what it adds in its data.
func describe(refused *acp.RequestError) string {
	switch data := refused.Data.(type) {
	case string:
		return refused.Message + ": " + data
	case map[string]any:
		for _, member := range []string{"details", "error", "message"} {
			if text, ok := data[member].(string); ok && text != "" {
				return refused.Message + ": " + text
			}
		}
	}
	return refused.Message
}

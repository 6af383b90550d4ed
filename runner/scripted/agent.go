// Package scripted is an agent that plays a playbook: a real agent as far as
// the Agent Client Protocol and the Model Context Protocol go, with a file in
// the place of a model. It shows what a composition or a session does without
// costing a token, and misbehaves on demand.
//
// A prompt plays the first turn that was not played yet and whose expression
// matches the prompt's last text; without one the agent refuses. A step that
// does not go as the playbook expects ends the prompt in an error that names
// the step. Turns played and values saved belong to the program, so that a new
// conversation goes on where the last one was.
package scripted

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"sync"

	acp "github.com/coder/acp-go-sdk"

	"github.com/apitomy/axiom-operator/runner/playbook"
)

const (
	agentName    = "axiom-scripted"
	agentVersion = "1"
)

// Config of an [Agent].
type Config struct {
	Playbook *playbook.Playbook
	// In and Out are the connection, Stderr takes what goes beside it.
	In     io.Reader
	Out    io.Writer
	Stderr io.Writer
	// Env is the environment of MCP servers that are programs, besides the
	// variables that they are given.
	Env []string
	// Home is the directory in which conversations are kept, if the playbook has a
	// memory.
	Home string
	// Exit ends the program.
	Exit func(code int)
}

// Agent plays a playbook.
type Agent struct {
	config Config
	conn   *acp.AgentSideConnection
	out    *sharedWriter

	mu        sync.Mutex
	played    []bool
	variables playbook.Variables
	boxes     map[acp.SessionId]*toolbox
	said      map[acp.SessionId][]utterance
	calls     int
}

// Serve plays until the connection or the context ends.
func Serve(ctx context.Context, config Config) error {
	out := &sharedWriter{w: config.Out}
	agent := &Agent{
		config: config, out: out,
		played:    make([]bool, len(config.Playbook.Turns)),
		variables: playbook.Variables{},
		boxes:     make(map[acp.SessionId]*toolbox),
		said:      make(map[acp.SessionId][]utterance),
	}
	defer agent.closeBoxes()
	in := &heldReader{r: config.In, open: make(chan struct{})}
	agent.conn = acp.NewAgentSideConnection(agent, out, in)
	agent.conn.SetLogger(slog.New(slog.NewTextHandler(config.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	close(in.open)
	select {
	case <-agent.conn.Done():
		return nil
	case <-ctx.Done():
		return nil
	}
}

// heldReader holds the first message back until the connection is complete: the
// library answers messages before the call that makes a connection has returned.
type heldReader struct {
	r    io.Reader
	open chan struct{}
}

func (h *heldReader) Read(p []byte) (int, error) {
	<-h.open
	return h.r.Read(p)
}

// sharedWriter keeps raw texts from getting into the middle of messages.
type sharedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *sharedWriter) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.w.Write(p)
}

func (a *Agent) closeBoxes() {
	a.mu.Lock()
	defer a.mu.Unlock()

	for _, box := range a.boxes {
		// The servers end with the program; how they take it is their business.
		_ = box.close()
	}
}

// Initialize implements [acp.Agent].
func (a *Agent) Initialize(context.Context, acp.InitializeRequest) (acp.InitializeResponse, error) {
	return acp.InitializeResponse{
		ProtocolVersion:   acp.ProtocolVersionNumber,
		AgentInfo:         &acp.Implementation{Name: agentName, Version: agentVersion},
		AgentCapabilities: acp.AgentCapabilities{LoadSession: a.hasMemory(), McpCapabilities: acp.McpCapabilities{Http: true}},
		AuthMethods:       []acp.AuthMethod{},
	}, nil
}

// NewSession implements [acp.Agent]: it connects to the MCP servers.
func (a *Agent) NewSession(ctx context.Context, request acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	box, err := openToolbox(ctx, request.McpServers, a.config.Env, a.config.Stderr)
	if err != nil {
		return acp.NewSessionResponse{}, acp.NewInternalError(map[string]any{"error": err.Error()})
	}
	a.mu.Lock()
	id := acp.SessionId(fmt.Sprintf("scripted-%d", len(a.boxes)+1))
	if a.hasMemory() {
		id += acp.SessionId("-" + rand.Text()) // another program counts from the start, too
	}
	a.boxes[id] = box
	a.mu.Unlock()

	if err := a.remember(id); err != nil {
		return acp.NewSessionResponse{}, acp.NewInternalError(map[string]any{"error": err.Error()})
	}
	return acp.NewSessionResponse{SessionId: id}, nil
}

// Prompt implements [acp.Agent]: it plays a turn.
func (a *Agent) Prompt(ctx context.Context, request acp.PromptRequest) (acp.PromptResponse, error) {
	box := a.boxOf(request.SessionId)
	if box == nil {
		return acp.PromptResponse{}, acp.NewInvalidParams(map[string]any{"error": "unknown session"})
	}
	i, ok := a.nextTurn(lastText(request.Prompt))
	if !ok {
		return acp.PromptResponse{StopReason: acp.StopReasonRefusal}, nil
	}
	a.note(request.SessionId, utterance{User: true, Text: lastText(request.Prompt)})
	turn := a.config.Playbook.Turns[i]
	player := &player{agent: a, session: request.SessionId, box: box}
	for j, step := range turn.Steps {
		err := player.play(ctx, step)
		if isCancelled(ctx) {
			return acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
		}
		if err != nil {
			return acp.PromptResponse{}, stepError(err, fmt.Sprintf("turns[%d].steps[%d] (%s)", i, j, step.Name()))
		}
	}
	if err := a.remember(request.SessionId); err != nil {
		return acp.PromptResponse{}, acp.NewInternalError(map[string]any{"error": err.Error()})
	}
	return acp.PromptResponse{StopReason: acp.StopReason(turn.Stop)}, nil
}

func isCancelled(ctx context.Context) bool { return ctx.Err() != nil }

func (a *Agent) boxOf(session acp.SessionId) *toolbox {
	a.mu.Lock()
	defer a.mu.Unlock()

	return a.boxes[session]
}

// nextTurn takes the first unused turn for a prompt.
func (a *Agent) nextTurn(prompt string) (int, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()

	for i, turn := range a.config.Playbook.Turns {
		if !a.played[i] && turn.Matches(prompt) {
			a.played[i] = true
			return i, true
		}
	}
	return 0, false
}

func lastText(prompt []acp.ContentBlock) string {
	last := ""
	for _, block := range prompt {
		if block.Text != nil {
			last = block.Text.Text
		}
	}
	return last
}

// Cancel implements [acp.Agent]; the connection ends the prompt's context.
func (a *Agent) Cancel(context.Context, acp.CancelNotification) error { return nil }

// Authenticate implements [acp.Agent]; nobody needs to.
func (a *Agent) Authenticate(context.Context, acp.AuthenticateRequest) (acp.AuthenticateResponse, error) {
	return acp.AuthenticateResponse{}, acp.NewMethodNotFound(acp.AgentMethodAuthenticate)
}

// CloseSession implements [acp.Agent].
func (a *Agent) CloseSession(context.Context, acp.CloseSessionRequest) (acp.CloseSessionResponse, error) {
	return acp.CloseSessionResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionClose)
}

// ListSessions implements [acp.Agent].
func (a *Agent) ListSessions(context.Context, acp.ListSessionsRequest) (acp.ListSessionsResponse, error) {
	return acp.ListSessionsResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionList)
}

// ResumeSession implements [acp.Agent].
func (a *Agent) ResumeSession(context.Context, acp.ResumeSessionRequest) (acp.ResumeSessionResponse, error) {
	return acp.ResumeSessionResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionResume)
}

// SetSessionConfigOption implements [acp.Agent].
func (a *Agent) SetSessionConfigOption(context.Context, acp.SetSessionConfigOptionRequest) (acp.SetSessionConfigOptionResponse, error) {
	return acp.SetSessionConfigOptionResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionSetConfigOption)
}

// SetSessionMode implements [acp.Agent].
func (a *Agent) SetSessionMode(context.Context, acp.SetSessionModeRequest) (acp.SetSessionModeResponse, error) {
	return acp.SetSessionModeResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionSetMode)
}

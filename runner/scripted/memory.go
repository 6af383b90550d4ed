package scripted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	acp "github.com/coder/acp-go-sdk"

	"github.com/apitomy/axiom-operator/runner/playbook"
)

// memoryDir is where conversations are kept, below the home.
const memoryDir = ".axiom-scripted"

// codeUnknownSession is the JSON-RPC code for a conversation that nobody knows.
const codeUnknownSession = -32002

// utterance is what was said in a conversation.
type utterance struct {
	// User tells whether the user said it, and not the agent.
	User bool   `json:"user,omitempty"`
	Text string `json:"text"`
}

// memory is what is kept of a conversation.
type memory struct {
	Said      []utterance        `json:"said"`
	Played    []bool             `json:"played"`
	Variables playbook.Variables `json:"variables"`
}

func (a *Agent) hasMemory() bool { return a.config.Playbook.Memory == playbook.MemoryHome }

// note adds to what was said; it is kept with the turn.
func (a *Agent) note(session acp.SessionId, said utterance) {
	a.mu.Lock()
	defer a.mu.Unlock()

	a.said[session] = append(a.said[session], said)
}

// remember keeps a conversation as it is now.
func (a *Agent) remember(session acp.SessionId) error {
	if !a.hasMemory() {
		return nil
	}
	a.mu.Lock()
	data, err := json.Marshal(memory{Said: a.said[session], Played: a.played, Variables: a.variables})
	a.mu.Unlock()
	if err != nil {
		return fmt.Errorf("encode conversation: %w", err)
	}
	path := a.memoryPath(session)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("keep conversation: %w", err)
	}
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return fmt.Errorf("keep conversation: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("keep conversation: %w", err)
	}
	return nil
}

func (a *Agent) memoryPath(session acp.SessionId) string {
	return filepath.Join(a.config.Home, memoryDir, string(session)+".json")
}

// LoadSession implements [acp.AgentLoader]: it tells what was said and goes on after
// the turns that were played.
func (a *Agent) LoadSession(ctx context.Context, request acp.LoadSessionRequest) (acp.LoadSessionResponse, error) {
	if !a.hasMemory() {
		return acp.LoadSessionResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionLoad)
	}
	kept, err := a.recall(request.SessionId)
	if errors.Is(err, fs.ErrNotExist) {
		return acp.LoadSessionResponse{}, &acp.RequestError{Code: codeUnknownSession, Message: "Resource not found"}
	}
	if err != nil {
		return acp.LoadSessionResponse{}, acp.NewInternalError(map[string]any{"error": err.Error()})
	}
	box, err := openToolbox(ctx, request.McpServers, a.config.Env, a.config.Stderr)
	if err != nil {
		return acp.LoadSessionResponse{}, acp.NewInternalError(map[string]any{"error": err.Error()})
	}
	a.resume(request.SessionId, box, kept)
	for _, said := range kept.Said {
		update := acp.UpdateAgentMessageText(said.Text)
		if said.User {
			update = acp.UpdateUserMessageText(said.Text)
		}
		if err := a.conn.SessionUpdate(ctx, acp.SessionNotification{SessionId: request.SessionId, Update: update}); err != nil {
			return acp.LoadSessionResponse{}, acp.NewInternalError(map[string]any{"error": err.Error()})
		}
	}
	return acp.LoadSessionResponse{}, nil
}

func (a *Agent) recall(session acp.SessionId) (memory, error) {
	if strings.ContainsRune(string(session), filepath.Separator) {
		return memory{}, fs.ErrNotExist // no conversation has such an id
	}
	data, err := os.ReadFile(a.memoryPath(session))
	if err != nil {
		return memory{}, fmt.Errorf("read conversation: %w", err)
	}
	var kept memory
	if err := json.Unmarshal(data, &kept); err != nil {
		return memory{}, fmt.Errorf("decode conversation: %w", err)
	}
	return kept, nil
}

// resume goes on after what is kept. The playbook may have got other turns since.
func (a *Agent) resume(session acp.SessionId, box *toolbox, kept memory) {
	a.mu.Lock()
	defer a.mu.Unlock()

	a.boxes[session], a.said[session] = box, slices.Clone(kept.Said)
	copy(a.played, kept.Played)
	if kept.Variables != nil {
		a.variables = kept.Variables
	}
}

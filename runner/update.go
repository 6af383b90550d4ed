package runner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	acp "github.com/coder/acp-go-sdk"
)

// Kinds of session updates that have an event of their own.
const (
	updateMessage  = "agent_message_chunk"
	updateThought  = "agent_thought_chunk"
	updateToolCall = "tool_call"
	updateTool     = "tool_call_update"
	updatePlan     = "plan"
	updateUsage    = "usage_update"
	// updateMalformed is the kind of one that cannot be read.
	updateMalformed = "malformed"
)

// update is a session update, read without insisting on the rest of its
// schema: agents are ahead of it and behind it.
type update struct {
	Kind       string          `json:"sessionUpdate"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"toolCallId"`
	Title      string          `json:"title"`
	Status     string          `json:"status"`
	RawInput   any             `json:"rawInput"`
	RawOutput  any             `json:"rawOutput"`
	Entries    []any           `json:"entries"`
	Cost       *acp.Cost       `json:"cost"`
	Meta       map[string]any  `json:"_meta"`
}

type sessionUpdate struct {
	SessionID acp.SessionId `json:"sessionId"`
	Update    update        `json:"update"`
}

// permissionRequest is read with the same leniency.
type permissionRequest struct {
	Options  []acp.PermissionOption `json:"options"`
	Meta     map[string]any         `json:"_meta"`
	ToolCall struct {
		ToolCallID string         `json:"toolCallId"`
		Title      string         `json:"title"`
		RawInput   any            `json:"rawInput"`
		Meta       map[string]any `json:"_meta"`
	} `json:"toolCall"`
}

// decodeParams keeps numbers as they are written: what an agent reports is
// passed on, not calculated with.
func decodeParams(params json.RawMessage, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(params))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("decode parameters: %w", err)
	}
	return nil
}

// block is a content block, or the part of a tool call's content around one.
type block struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Path    string          `json:"path"`
	Content json.RawMessage `json:"content"`
}

// blockOf returns the content block of a chunk; its type is empty if there is
// none.
func blockOf(content json.RawMessage) block {
	var b block
	if json.Unmarshal(content, &b) != nil {
		return block{}
	}
	return b
}

// outputOf returns the text of a tool call's content, or else of its raw
// output.
func outputOf(content json.RawMessage, rawOutput any) string {
	var parts []block
	var texts []string
	if json.Unmarshal(content, &parts) == nil {
		for _, part := range parts {
			texts = append(texts, textOf(part)...)
		}
	}
	if len(texts) > 0 {
		return strings.Join(texts, "\n")
	}
	switch raw := rawOutput.(type) {
	case nil:
		return ""
	case string:
		return raw
	default:
		encoded, err := json.Marshal(raw)
		if err != nil {
			return ""
		}
		return string(encoded)
	}
}

func textOf(part block) []string {
	switch part.Type {
	case "content":
		if inner := blockOf(part.Content); inner.Type == "text" {
			return []string{inner.Text}
		}
	case "diff":
		return []string{"changed " + part.Path}
	}
	return nil
}

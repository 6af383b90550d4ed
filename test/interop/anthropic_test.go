//go:build interop

package interop

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
)

// messagesRequest is the part of a request to Anthropic's Messages API that the
// model goes by.
type messagesRequest struct {
	System   json.RawMessage `json:"system"`
	Stream   bool            `json:"stream"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name string `json:"name"`
	} `json:"tools"`
}

func (r messagesRequest) conversation() conversation {
	c := conversation{system: textOf(r.System)}
	for _, tool := range r.Tools {
		c.tools = append(c.tools, tool.Name)
	}
	for _, message := range r.Messages {
		c.said += textOf(message.Content) + "\n"
		var blocks []struct {
			Type    string          `json:"type"`
			Content json.RawMessage `json:"content"`
		}
		_ = json.Unmarshal(message.Content, &blocks) // a text has no blocks
		for _, block := range blocks {
			if block.Type == "tool_result" {
				c.results = append(c.results, textOf(block.Content))
			}
		}
	}
	return c
}

// messages speaks Anthropic's Messages API.
func (m *model) messages(w http.ResponseWriter, r *http.Request) {
	var request messagesRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c := request.conversation()
	c.key = r.Header.Get("X-Api-Key") + strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	next := m.next(r.Context(), c)
	block, reason := object{"type": "text", "text": next.text}, "end_turn"
	if next.tool != "" {
		block, reason = object{"type": "tool_use", "id": callID(c), "name": next.tool, "input": next.input}, "tool_use"
	}
	message := object{
		"id": "msg_1", "type": "message", "role": "assistant", "model": "stub", "content": []any{block},
		"stop_reason": reason, "stop_sequence": nil, "usage": object{"input_tokens": 100, "output_tokens": 10},
	}
	if !request.Stream {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(message)
		return
	}
	streamMessage(newStream(w), message, block, next)
}

// streamMessage sends a message with one block in pieces.
func streamMessage(s stream, message, block object, next move) {
	start, open := maps.Clone(message), maps.Clone(block)
	start["content"], start["stop_reason"] = []any{}, nil
	delta := object{"type": "text_delta", "text": next.text}
	if next.tool == "" {
		open["text"] = ""
	} else {
		open["input"] = object{}
		input, _ := json.Marshal(next.input)
		delta = object{"type": "input_json_delta", "partial_json": string(input)}
	}
	s.send("message_start", object{"type": "message_start", "message": start})
	s.send("content_block_start", object{"type": "content_block_start", "index": 0, "content_block": open})
	s.send("content_block_delta", object{"type": "content_block_delta", "index": 0, "delta": delta})
	s.send("content_block_stop", object{"type": "content_block_stop", "index": 0})
	s.send("message_delta", object{
		"type": "message_delta", "delta": object{"stop_reason": message["stop_reason"], "stop_sequence": nil},
		"usage": object{"output_tokens": 10},
	})
	s.send("message_stop", object{"type": "message_stop"})
}

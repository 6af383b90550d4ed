//go:build interop

package interop

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
)

// completionsRequest is the part of a request to OpenAI's chat completions that
// the model goes by.
type completionsRequest struct {
	Stream   bool `json:"stream"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
}

func (r completionsRequest) conversation() conversation {
	var c conversation
	for _, tool := range r.Tools {
		c.tools = append(c.tools, tool.Function.Name)
	}
	for _, message := range r.Messages {
		switch text := textOf(message.Content); message.Role {
		case "system", "developer":
			c.system += text + "\n"
		case "tool":
			c.results = append(c.results, text)
		default:
			c.said += text + "\n"
		}
	}
	return c
}

// completions speaks OpenAI's chat completions.
func (m *model) completions(w http.ResponseWriter, r *http.Request) {
	var request completionsRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c := request.conversation()
	c.key = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	next := m.next(r.Context(), c)
	message, reason := object{"role": "assistant", "content": next.text}, "stop"
	if next.tool != "" {
		input, _ := json.Marshal(next.input)
		message, reason = object{"role": "assistant", "content": nil, "tool_calls": []any{object{
			"index": 0, "id": callID(c), "type": "function", "function": object{"name": next.tool, "arguments": string(input)},
		}}}, "tool_calls"
	}
	usage := object{"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
	answer := func(kind string, choices []any, more object) object {
		answer := object{"id": "chatcmpl-1", "object": kind, "created": 1, "model": "stub", "choices": choices}
		maps.Copy(answer, more)
		return answer
	}
	if !request.Stream {
		w.Header().Set("Content-Type", "application/json")
		choice := object{"index": 0, "message": message, "finish_reason": reason}
		_ = json.NewEncoder(w).Encode(answer("chat.completion", []any{choice}, object{"usage": usage}))
		return
	}
	const chunk = "chat.completion.chunk"
	s := newStream(w)
	s.send("", answer(chunk, []any{object{"index": 0, "delta": message, "finish_reason": nil}}, nil))
	s.send("", answer(chunk, []any{object{"index": 0, "delta": object{}, "finish_reason": reason}}, nil))
	s.send("", answer(chunk, []any{}, object{"usage": usage}))
	_, _ = fmt.Fprint(s, "data: [DONE]\n\n")
}

// callID names the next call of a conversation.
func callID(c conversation) string { return fmt.Sprintf("call_%d", len(c.results)+1) }

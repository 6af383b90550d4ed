package transcript_test

import (
	"strings"
	"testing"

	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/terminal"
	"github.com/apitomy/axiom-operator/cli/transcript"
	"github.com/apitomy/axiom-operator/internal/journal"
)

func event(kind string, data map[string]any) journal.Event {
	return journal.Event{Type: kind, Data: data}
}

func TestEventsInWords(t *testing.T) {
	for name, tc := range map[string]struct {
		event journal.Event
		want  string
	}{
		"a message": {event("user_message", map[string]any{"content": "Wait an hour\nbefore closing.\n", "turn": "t"}), `
    7  user: Wait an hour
             before closing.
`},
		"an answer":            {event("assistant_text", map[string]any{"text": "Done."}), "\n    7  assistant: Done.\n"},
		"a notice":             {event("assistant_text", map[string]any{"text": "Ask again.", "notice": true}), "\n    7  notice: Ask again.\n"},
		"a thought":            {event("thinking", map[string]any{"text": "Hm."}), "\n    7  thinking: Hm.\n"},
		"a tool":               {event("tool_use", map[string]any{"id": "1", "name": "mcp__workbench__get_item", "input": map[string]any{"type": "tool"}}), "\n    7  tool: get_item {\"type\":\"tool\"}\n"},
		"a tool without input": {event("tool_use", map[string]any{"name": "Bash", "input": nil}), "\n    7  tool: Bash\n"},
		"its answer":           {event("tool_result", map[string]any{"stdout": "VALID\n", "stderr": "", "isError": false}), "\n    7  result: VALID\n"},
		"a long answer":        {event("tool_result", map[string]any{"stdout": "INVALID\n- [ERROR] a\n"}), "\n    7  result: INVALID …\n"},
		"data as an answer":    {event("tool_result", map[string]any{"stdout": "{\n  \"a\": 1\n}"}), "\n    7  result: {\"a\":1}\n"},
		"data that is cut off": {event("tool_result", map[string]any{"stdout": "[1, …"}), "\n    7  result: \"[1, …\"\n"},
		"its failure":          {event("tool_result", map[string]any{"stdout": "", "stderr": "HTTP 404: no such item", "isError": true}), "\n    7  failed: HTTP 404: no such item\n"},
		"a request":            {event("permission_request", map[string]any{"toolName": "Write"}), "\n    7  permission: asked for Write\n"},
		"a permission":         {event("permission_resolved", map[string]any{"allow": true}), "\n    7  permission: given\n"},
		"a denial":             {event("permission_resolved", map[string]any{"allow": false}), "\n    7  permission: denied\n"},
		"a plan": {event("plan", map[string]any{"entries": []any{map[string]any{"content": "look", "status": "completed"}, map[string]any{"content": "act", "status": "pending"}}}), `
    7  plan: [x] look
             [ ] act
`},
		"a start":            {event("session_init", map[string]any{"agent": "scripted 1", "attempt": int64(2)}), "\n    7  session: scripted 1 is ready, pod 2\n"},
		"a new conversation": {event("conversation_reset", map[string]any{}), "\n    7  session: a new conversation begins\n"},
		"an end": {
			event("turn_complete", map[string]any{"stopReason": "end_turn", "inputTokens": int64(12), "outputTokens": 3.0}),
			"\n    7  session: the turn is complete: end_turn, 12 tokens read, 3 written\n",
		},
		"lost events":         {event("events_dropped", map[string]any{"count": int64(4)}), "\n    7  session: events were lost: 4\n"},
		"an error":            {event("session_error", map[string]any{"name": "ProviderRetry", "message": "busy"}), "\n    7  error: ProviderRetry: busy\n"},
		"the agent's end":     {event("session_ended", map[string]any{"exitCode": int64(3), "message": "killed"}), "\n    7  error: the agent ended with exit code 3: killed\n"},
		"an unknown kind":     {event("tool_progress", map[string]any{"toolName": "Bash"}), "\n"},
		"members that lack":   {event("user_message", map[string]any{}), "\n    7  user: \n"},
		"a hostile text":      {event("assistant_text", map[string]any{"text": "a\x1b[2Jb\u202ec"}), "\n    7  assistant: a�[2Jb�c\n"},
		"a hostile tool name": {event("tool_use", map[string]any{"name": "a\x1b]0;b"}), "\n    7  tool: a�]0;b\n"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &command.Page{}
			transcript.Tell(p, journal.Line{Number: 7, Event: tc.event})
			if got := "\n" + p.String(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestColoursAreOfWhoSpeaks(t *testing.T) {
	p := &command.Page{Palette: terminal.Colours()}
	transcript.Tell(p, journal.Line{Number: 1, Event: event("assistant_text", map[string]any{"text": "Done."})})
	if want := "\x1b[2m    1\x1b[0m  \x1b[32massistant:\x1b[0m Done.\n"; p.String() != want {
		t.Errorf("got %q, want %q", p.String(), want)
	}
}

func TestToolsAndOutcomes(t *testing.T) {
	long := strings.Repeat("ö", 130)
	for name, tc := range map[string]struct {
		event         journal.Event
		tool, outcome string
	}{
		"a tool":          {event("tool_use", map[string]any{"name": "mcp__workbench__get_composition"}), "get_composition", ""},
		"a foreign tool":  {event("tool_use", map[string]any{"name": "mcp__axiom__axiom_list_tools"}), "mcp__axiom__axiom_list_tools", ""},
		"a word":          {event("tool_result", map[string]any{"stdout": " VALID \n"}), "", "VALID"},
		"data":            {event("tool_result", map[string]any{"stdout": "{}"}), "", ""},
		"a list":          {event("tool_result", map[string]any{"stdout": "[]"}), "", ""},
		"a long line":     {event("tool_result", map[string]any{"stdout": long}), "", strings.Repeat("ö", 120) + "…"},
		"nothing":         {event("tool_result", map[string]any{}), "", ""},
		"something else":  {event("assistant_text", map[string]any{"name": "a", "stdout": "b"}), "", ""},
		"an error stream": {event("tool_result", map[string]any{"stdout": "\n", "stderr": "no"}), "", "no"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := transcript.Tool(tc.event); got != tc.tool {
				t.Errorf("tool %q, want %q", got, tc.tool)
			}
			if got := transcript.Outcome(tc.event); got != tc.outcome {
				t.Errorf("outcome %q, want %q", got, tc.outcome)
			}
		})
	}
}

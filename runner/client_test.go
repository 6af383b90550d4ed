package runner

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/gateway/openapi"
)

func permissionParams(title string) string {
	return fmt.Sprintf(`{"sessionId":"s-1","toolCall":{"toolCallId":"c-1","title":%q,"rawInput":{"name":"a"}},"options":[
		{"optionId":"always","name":"Always","kind":"allow_always"},{"optionId":"once","name":"Once","kind":"allow_once"},
		{"optionId":"no","name":"No","kind":"reject_once"}]}`, title)
}

func TestPolicyOfRuns(t *testing.T) {
	cases := map[string]struct {
		act        func(*stage)
		wantDenied string
	}{
		"permission request": {
			act: func(s *stage) {
				got := s.agent.ask("session/request_permission", permissionParams("mcp__workbench__get_item"))
				s.assertJSON("answer", `{"outcome":{"outcome":"selected","optionId":"no"}}`, got.Result)
			},
			wantDenied: "mcp__workbench__get_item",
		},
		"tool call": {
			act: func(s *stage) {
				s.agent.update(`"sessionUpdate":"tool_call","toolCallId":"c-1","title":"Write a file","status":"pending"`)
			},
			wantDenied: "Write a file",
		},
		"news of a tool call": {
			act: func(s *stage) {
				s.agent.say("I wrote a file.")
				s.agent.update(`"sessionUpdate":"tool_call_update","toolCallId":"c-1","title":"Write a file","status":"completed"`)
			},
			wantDenied: "Write a file",
		},
		"file": {
			act: func(s *stage) {
				got := s.agent.ask("fs/read_text_file", `{"path":"/etc/passwd","sessionId":"s-1"}`)
				s.assertJSON("error", `{"code":-32601,"message":"Method not found","data":{"method":"fs/read_text_file"}}`, got.Error)
			},
			wantDenied: "fs/read_text_file",
		},
		"terminal": {
			act:        func(s *stage) { s.agent.ask("terminal/create", `{"command":"sh","sessionId":"s-1"}`) },
			wantDenied: "terminal/create",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			play(t, func(session *openapi.Session) { session.PermissionPolicy = openapi.PermissionPolicyRefuse }, func(s *stage) {
				s.agent.getReady()
				s.assertJSON("session/new", `{"cwd":"/work","mcpServers":[]}`, s.agent.conversation.Params)
				s.queue("t-1", "go")
				s.agent.takePrompt()
				tc.act(s)
				s.agent.expect("session/cancel")
				s.agent.stop("end_turn")
				want := openapi.PromptResult{
					Outcome: openapi.PromptOutcomeFailed, StopReason: "end_turn",
					Detail: "AGENT_TOOL_DENIED: The agent asked for " + tc.wantDenied + ", which it must not have",
				}
				if diff := cmp.Diff(want, s.result("t-1")); diff != "" {
					t.Errorf("result (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestViolationThatTheAnswerOvertookStillFails(t *testing.T) {
	play(t, func(session *openapi.Session) { session.PermissionPolicy = "SomethingNewer" }, func(s *stage) {
		s.agent.getReady()
		s.queue("t-1", "go")
		s.agent.takePrompt()
		s.agent.write(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":{"sessionUpdate":"tool_call","toolCallId":"c-1","title":"Write"}}}` +
			"\n" + fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, s.agent.promptID))
		go func() { _, _ = s.agent.lines.ReadBytes('\n') }() // a cancellation may come first
		if got := s.result("t-1"); got.Outcome != openapi.PromptOutcomeFailed {
			t.Errorf("result %+v", got)
		}
	})
}

func TestFilesAndTerminalsAreNotLent(t *testing.T) {
	play(t, nil, func(s *stage) {
		s.agent.getReady()
		s.queue("t-1", "go")
		s.agent.takePrompt()
		for _, method := range []string{"fs/read_text_file", "fs/write_text_file", "terminal/create", "terminal/output", "_vendor/extension"} {
			got := s.agent.ask(method, `{}`)
			if !strings.Contains(string(got.Error), `"code":-32601`) {
				t.Errorf("%s was answered %s %s", method, got.Result, got.Error)
			}
		}
		s.agent.stop("end_turn")
		if got := s.result("t-1"); got.Outcome != openapi.PromptOutcomeCompleted {
			t.Errorf("result %+v", got)
		}
	})
}

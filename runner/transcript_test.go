package runner

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/gateway/openapi"
)

// assertTurn plays one prompt that the agent ends well, and compares the
// events in between.
func assertTurn(t *testing.T, act func(*stage), want ...string) openapi.PromptResult {
	t.Helper()
	var result openapi.PromptResult
	play(t, nil, func(s *stage) {
		s.agent.getReady()
		s.queue("t-1", "go")
		s.agent.takePrompt()
		act(s)
		s.agent.stop("end_turn")
		result = s.result("t-1")
		got := strings.Split(s.events(), "\n")
		if diff := cmp.Diff(want, got[1:len(got)-1]); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
	return result
}

func TestPiecesOfTextAreJoined(t *testing.T) {
	result := assertTurn(t, func(s *stage) {
		s.agent.say("one ")
		s.agent.say("two")
		s.agent.update(`"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}`)
		s.agent.update(`"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"…"}`)
		s.agent.say(" three")
		s.agent.update(`"sessionUpdate":"plan","entries":[{"content":"a","priority":"high","status":"pending"}]`)
		s.agent.say(" four")
	},
		`assistant_text {"text":"one two"}`, `thinking {"text":"hm…"}`, `assistant_text {"text":" three"}`,
		`plan {"entries":[{"content":"a","priority":"high","status":"pending"}]}`, `assistant_text {"text":" four"}`)
	if want := "one two three four"; result.Reply != want {
		t.Errorf("reply %q, want %q", result.Reply, want)
	}
}

func TestReplyIsWhatFollowsTheLastTool(t *testing.T) {
	result := assertTurn(t, func(s *stage) {
		s.agent.say("I will look.")
		s.agent.update(`"sessionUpdate":"tool_call","toolCallId":"c-1","title":"mcp__workbench__get_item","rawInput":{"n":12345678901234567890},"status":"pending"`)
		s.agent.update(`"sessionUpdate":"tool_call_update","toolCallId":"c-1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"a"}},{"type":"content","content":{"type":"text","text":"b"}},{"type":"diff","path":"/x","newText":"y"}]`)
		s.agent.update(`"sessionUpdate":"tool_call_update","toolCallId":"c-1","status":"completed"`)
		s.agent.say("Done.")
	},
		`assistant_text {"text":"I will look."}`, `tool_use {"id":"c-1","input":{"n":12345678901234567890},"name":"mcp__workbench__get_item"}`,
		`tool_result {"interrupted":false,"isError":false,"stderr":"","stdout":"a\nb\nchanged /x","toolUseId":"c-1"}`,
		`assistant_text {"text":"Done."}`)
	if result.Reply != "Done." {
		t.Errorf("reply %q", result.Reply)
	}
}

func TestReplyBeforeAToolStaysWithoutOneAfter(t *testing.T) {
	result := assertTurn(t, func(s *stage) {
		s.agent.say("Saving.")
		s.agent.update(`"sessionUpdate":"tool_call","toolCallId":"c-1","title":"Write","status":"completed","rawOutput":{"ok":true}`)
	}, `assistant_text {"text":"Saving."}`, `tool_use {"id":"c-1","input":null,"name":"Write"}`,
		`tool_result {"interrupted":false,"isError":false,"stderr":"","stdout":"{\"ok\":true}","toolUseId":"c-1"}`)
	if result.Reply != "Saving." {
		t.Errorf("reply %q", result.Reply)
	}
}

func TestToolProgressAndFailure(t *testing.T) {
	assertTurn(t, func(s *stage) {
		s.agent.update(`"sessionUpdate":"tool_call","toolCallId":"c-1","title":"Searching","_meta":{"toolName":"WebSearch"}`)
		time.Sleep(1500 * time.Millisecond)
		s.agent.update(`"sessionUpdate":"tool_call_update","toolCallId":"c-1","status":"in_progress"`)
		s.agent.update(`"sessionUpdate":"tool_call_update","toolCallId":"c-1","title":"Still searching"`)
		s.agent.update(`"sessionUpdate":"tool_call_update","toolCallId":"c-1","status":"failed","rawOutput":"no network"`)
		s.agent.update(`"sessionUpdate":"tool_call_update","toolCallId":"c-2","status":"completed"`)
	}, `tool_use {"id":"c-1","input":null,"name":"WebSearch"}`,
		`tool_progress {"elapsedSeconds":1.5,"toolName":"WebSearch","toolUseId":"c-1"}`,
		`tool_result {"interrupted":false,"isError":true,"stderr":"","stdout":"no network","toolUseId":"c-1"}`,
		`tool_result {"interrupted":false,"isError":false,"stderr":"","stdout":"","toolUseId":"c-2"}`)
}

func TestOtherUpdatesAreToldOncePerKind(t *testing.T) {
	assertTurn(t, func(s *stage) {
		s.agent.update(`"sessionUpdate":"current_mode_update","currentModeId":"x"`)
		s.agent.update(`"sessionUpdate":"from_the_future","x":1`)
		s.agent.update(`"sessionUpdate":"current_mode_update","currentModeId":"y"`)
		s.agent.update(`"sessionUpdate":"agent_message_chunk","content":{"type":"image","data":"AA==","mimeType":"image/png"}`)
		s.agent.write(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"another","update":{"sessionUpdate":"plan","entries":[]}}}`)
		s.agent.write(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":["s-1"]}}`)
		s.agent.write(`{"jsonrpc":"2.0","method":"_vendor/note","params":{}}`)
	}, `unhandled_event {"kind":"current_mode_update"}`, `unhandled_event {"kind":"from_the_future"}`,
		`unhandled_event {"kind":"agent_message_chunk/image"}`, `unhandled_event {"kind":"malformed"}`)
}

func TestLongTextIsSplitBetweenCharacters(t *testing.T) {
	text := strings.Repeat("x", maxText-1) + "é" + strings.Repeat("y", maxText)
	var pieces []string
	play(t, nil, func(s *stage) {
		s.agent.getReady()
		s.queue("t-1", "go")
		s.agent.takePrompt()
		s.agent.say(text[:100])
		s.agent.say(text[100:])
		s.agent.stop("end_turn")
		s.events()
		for _, event := range s.gateway.events {
			var data struct{ Text string }
			if event.Type == eventText && json.Unmarshal(event.Data, &data) == nil {
				pieces = append(pieces, data.Text)
			}
		}
		if got := s.result("t-1").Reply; got != text {
			t.Errorf("reply has %d bytes, want %d", len(got), len(text))
		}
	})
	if strings.Join(pieces, "") != text {
		t.Error("the pieces do not make the text")
	}
	for i, piece := range pieces {
		if len(piece) > maxText {
			t.Errorf("piece %d has %d bytes", i, len(piece))
		}
	}
	if len(pieces) != 3 || len(pieces[0]) != maxText-1 {
		t.Errorf("%d pieces, the first of %d bytes", len(pieces), len(pieces[0]))
	}
}

func TestSecretsAreTakenOutEvenInPieces(t *testing.T) {
	padding := strings.Repeat("x", maxText-4)
	result := assertTurn(t, func(s *stage) {
		s.agent.say(padding + "hunter2-")
		s.agent.say("hunter2 and tok-012")
		s.agent.say("3456789.")
		s.agent.update(`"sessionUpdate":"tool_call","toolCallId":"c-1","title":"Write","rawInput":{"hunter2-hunter2":["tok-0123456789"]}`)
		s.agent.say("hunter2-hunter2!")
	}, `assistant_text {"text":"`+padding+`[red"}`, `assistant_text {"text":"acted] and [redacted]."}`,
		`tool_use {"id":"c-1","input":{"[redacted]":["[redacted]"]},"name":"Write"}`, `assistant_text {"text":"[redacted]!"}`)
	if result.Reply != "[redacted]!" {
		t.Errorf("reply %q", result.Reply)
	}
}

func TestPermissionEvents(t *testing.T) {
	assertTurn(t, func(s *stage) {
		s.agent.update(`"sessionUpdate":"tool_call","toolCallId":"c-1","title":"mcp__workbench__get_item","rawInput":{"name":"a"}`)
		got := s.agent.ask("session/request_permission", strings.Replace(permissionParams("May I?"), `"rawInput":{"name":"a"},`, "", 1))
		s.assertJSON("answer", `{"outcome":{"outcome":"selected","optionId":"once"}}`, got.Result)
		got = s.agent.ask("session/request_permission", permissionParams("mcp__workbench__remove_item"))
		s.assertJSON("answer", `{"outcome":{"outcome":"selected","optionId":"no"}}`, got.Result)
		got = s.agent.ask("session/request_permission", `{"options":7}`)
		if !strings.Contains(string(got.Error), "-32602") {
			t.Errorf("a request that is none was answered %s %s", got.Result, got.Error)
		}
	}, `tool_use {"id":"c-1","input":{"name":"a"},"name":"mcp__workbench__get_item"}`,
		`permission_request {"requestId":"c-1","toolInput":{"name":"a"},"toolName":"mcp__workbench__get_item"}`,
		`permission_resolved {"allow":true,"permissionId":"c-1"}`,
		`permission_request {"requestId":"c-1","toolInput":{"name":"a"},"toolName":"mcp__workbench__remove_item"}`,
		`permission_resolved {"allow":false,"permissionId":"c-1"}`)
}

func TestToolNameThatIsNoTextIsNotReplacedByATitle(t *testing.T) {
	play(t, nil, func(s *stage) {
		s.agent.getReady()
		s.queue("t-1", "go")
		s.agent.takePrompt()
		s.agent.update(`"sessionUpdate":"tool_call","toolCallId":"c-1","title":"mcp__workbench__get_item"`)
		params := strings.Replace(permissionParams("mcp__workbench__get_item"), `"sessionId":"s-1",`, `"sessionId":"s-1","_meta":{"toolName":{}},`, 1)
		got := s.agent.ask("session/request_permission", params)
		s.assertJSON("answer", `{"outcome":{"outcome":"selected","optionId":"no"}}`, got.Result)
		s.agent.stop("end_turn")
		s.result("t-1")
	})
}

func TestUsage(t *testing.T) {
	play(t, nil, func(s *stage) {
		s.agent.getReady()
		cost := func(amount, currency string) {
			s.agent.update(`"sessionUpdate":"usage_update","used":10,"size":100,"cost":{"amount":` + amount + `,"currency":"` + currency + `"}`)
		}
		var got []openapi.Usage
		prompt := func(id string, act func()) {
			s.queue(id, "go")
			s.agent.takePrompt()
			act()
			s.agent.answer(s.agent.promptID, `{"stopReason":"end_turn","usage":{"inputTokens":150,"outputTokens":12,"totalTokens":162}}`)
			s.result(id)
			got = append(got, *s.gateway.results[id].Usage)
		}
		prompt("t-1", func() { cost("0.03", "USD"); time.Sleep(90 * time.Second) })
		prompt("t-2", func() { cost("0.04", "USD"); cost("0.07", "USD"); cost("9", "EUR") })
		prompt("t-3", func() {})
		prompt("t-4", func() { cost("0.01", "USD") })
		want := []openapi.Usage{
			{InputTokens: 150, OutputTokens: 12, CostUSD: "0.03", Duration: "1m30s"},
			{InputTokens: 150, OutputTokens: 12, CostUSD: "0.04", Duration: "0s"},
			{InputTokens: 150, OutputTokens: 12, Duration: "0s"},
			{InputTokens: 150, OutputTokens: 12, CostUSD: "0.01", Duration: "0s"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("usage (-want +got):\n%s", diff)
		}
		first := strings.Split(s.events(), "\n")[1]
		if want := `turn_complete {"costUsd":0.03,"durationMs":90000,"inputTokens":150,"outputTokens":12,"stopReason":"end_turn","success":true}`; first != want {
			t.Errorf("event %s, want %s", first, want)
		}
	})
}

func TestReplyOverEveryLimitIsStillSeenToBe(t *testing.T) {
	play(t, nil, func(s *stage) {
		s.agent.getReady()
		s.queue("t-1", "go")
		s.agent.takePrompt()
		for range 100 {
			s.agent.say(strings.Repeat("x", 10<<10))
		}
		s.agent.stop("end_turn")
		if got := len(s.result("t-1").Reply); got != maxReply {
			t.Errorf("reply of %d bytes, want %d", got, maxReply)
		}
	})
}

package runner

import (
	"strconv"
	"testing"
	"time"

	"github.com/apitomy/axiom-operator/runner/permission"
	"github.com/apitomy/axiom-operator/runner/redact"
)

// What follows is what two agents do: one tells of a call as soon as the model
// names the tool, and again when the input is complete; another tells of the
// input with an update.

func TestCallThatIsToldOfAgainIsOneCall(t *testing.T) {
	assertTurn(t, func(s *stage) {
		s.agent.update(`"sessionUpdate":"tool_call","toolCallId":"c-1","title":"mcp__workbench__get_item","rawInput":{},"status":"pending"`)
		s.agent.update(`"sessionUpdate":"tool_call","toolCallId":"c-1","title":"mcp__workbench__get_item","rawInput":{"name":"a"},"status":"pending"`)
		s.agent.update(`"sessionUpdate":"tool_call_update","toolCallId":"c-1","status":"completed"`)
	}, `tool_use {"id":"c-1","input":{"name":"a"},"name":"mcp__workbench__get_item"}`,
		`tool_result {"interrupted":false,"isError":false,"stderr":"","stdout":"","toolUseId":"c-1"}`)
}

func TestIDThatComesAgainAfterItsCallIsAnotherCall(t *testing.T) {
	assertTurn(t, func(s *stage) {
		for range 2 {
			s.agent.update(`"sessionUpdate":"tool_call","toolCallId":"c-1","title":"Read","rawInput":{"path":"/x"},"status":"pending"`)
			s.agent.update(`"sessionUpdate":"tool_call_update","toolCallId":"c-1","status":"completed"`)
		}
	}, `tool_use {"id":"c-1","input":{"path":"/x"},"name":"Read"}`,
		`tool_result {"interrupted":false,"isError":false,"stderr":"","stdout":"","toolUseId":"c-1"}`,
		`tool_use {"id":"c-1","input":{"path":"/x"},"name":"Read"}`,
		`tool_result {"interrupted":false,"isError":false,"stderr":"","stdout":"","toolUseId":"c-1"}`)
}

func TestCallsThatWaitAreBounded(t *testing.T) {
	var told []string
	transcript := newTranscript(func(_ string, data map[string]any) { told = append(told, data["id"].(string)) }, redact.New(nil), permission.Names{}, time.Now)
	for i := range maxHeld + 1 {
		transcript.add(update{Kind: updateToolCall, ToolCallID: strconv.Itoa(i)})
	}
	if len(told) != maxHeld || told[0] != "0" || len(transcript.turn.held) != 1 {
		t.Errorf("told %v, %d wait", told, len(transcript.turn.held))
	}
}

func TestCallWaitsForItsInput(t *testing.T) {
	assertTurn(t, func(s *stage) {
		s.agent.update(`"sessionUpdate":"tool_call","toolCallId":"c-1","title":"tool","rawInput":{},"status":"pending"`)
		s.agent.update(`"sessionUpdate":"tool_call","toolCallId":"c-2","title":"Write","status":"pending"`)
		s.agent.update(`"sessionUpdate":"tool_call_update","toolCallId":"c-1","title":"Read"`)
		s.agent.update(`"sessionUpdate":"tool_call_update","toolCallId":"c-1","rawInput":{"path":"/x"}`)
		s.agent.update(`"sessionUpdate":"tool_call_update","toolCallId":"c-2","rawInput":{"path":"/y"},"status":"in_progress"`)
		s.agent.update(`"sessionUpdate":"tool_call_update","toolCallId":"c-2","rawInput":{"path":"/z"}`)
	}, `tool_use {"id":"c-1","input":{"path":"/x"},"name":"Read"}`,
		`tool_use {"id":"c-2","input":{"path":"/y"},"name":"Write"}`,
		`tool_progress {"elapsedSeconds":0,"toolName":"Write","toolUseId":"c-2"}`)
}

func TestCallWithoutInputIsToldBeforeWhatFollows(t *testing.T) {
	assertTurn(t, func(s *stage) {
		s.agent.update(`"sessionUpdate":"tool_call","toolCallId":"c-1","title":"Read","rawInput":{}`)
		s.agent.say("Hm.")
		s.agent.update(`"sessionUpdate":"tool_call","toolCallId":"c-2","title":"Write","rawInput":{}`)
		s.agent.update(`"sessionUpdate":"plan","entries":[]`)
		s.agent.update(`"sessionUpdate":"tool_call","toolCallId":"c-3","title":"Edit","rawInput":{}`)
	}, `tool_use {"id":"c-1","input":{},"name":"Read"}`, `assistant_text {"text":"Hm."}`,
		`tool_use {"id":"c-2","input":{},"name":"Write"}`, `plan {"entries":[]}`,
		`tool_use {"id":"c-3","input":{},"name":"Edit"}`)
}

func TestCallTakesItsInputFromThePermissionItNeeds(t *testing.T) {
	assertTurn(t, func(s *stage) {
		s.agent.update(`"sessionUpdate":"tool_call","toolCallId":"c-1","title":"mcp__workbench__get_item","rawInput":{},"status":"pending"`)
		got := s.agent.ask("session/request_permission", permissionParams("mcp__workbench__get_item"))
		s.assertJSON("answer", `{"outcome":{"outcome":"selected","optionId":"once"}}`, got.Result)
	}, `tool_use {"id":"c-1","input":{"name":"a"},"name":"mcp__workbench__get_item"}`,
		`permission_request {"requestId":"c-1","toolInput":{"name":"a"},"toolName":"mcp__workbench__get_item"}`,
		`permission_resolved {"allow":true,"permissionId":"c-1"}`)
}

func TestServerThatIsDeclaredIsKnownByOneUnderscore(t *testing.T) {
	assertTurn(t, func(s *stage) {
		got := s.agent.ask("session/request_permission", permissionParams("workbench_get_item"))
		s.assertJSON("answer", `{"outcome":{"outcome":"selected","optionId":"once"}}`, got.Result)
		got = s.agent.ask("session/request_permission", permissionParams("stranger_get_item"))
		s.assertJSON("answer", `{"outcome":{"outcome":"selected","optionId":"no"}}`, got.Result)
	}, `permission_request {"requestId":"c-1","toolInput":{"name":"a"},"toolName":"mcp__workbench__get_item"}`,
		`permission_resolved {"allow":true,"permissionId":"c-1"}`,
		`permission_request {"requestId":"c-1","toolInput":{"name":"a"},"toolName":"stranger_get_item"}`,
		`permission_resolved {"allow":false,"permissionId":"c-1"}`)
}

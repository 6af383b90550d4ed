package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/gateway/openapi"
)

func TestScriptedAgentWorksThroughItsTools(t *testing.T) {
	g := newFakeGateway(t)
	p := startScripted(t, g, `
turns:
- when: ^Wait an hour$
  steps:
  - think: Let me look.
  - call: {tool: get_composition, save: comp}
  - call:
      tool: mcp__workbench__echo
      args: {text: "New revision: ", rev: "${comp.workflowRevision}"}
      expect: "^New"
      capture: {rev: 'New revision: (\S+)'}
  - say: "Now at ${rev}, "
  - say: "with ${comp.items[0].name}."
- steps: [{say: again}]
`)
	g.queue("turn-1", "Wait an hour")
	got := g.result("turn-1")
	if got.Usage == nil || got.Usage.Duration == "" {
		t.Errorf("result has no duration: %+v", got.Usage)
	}
	got.Usage = nil
	want := openapi.PromptResult{Outcome: openapi.PromptOutcomeCompleted, StopReason: "end_turn", Reply: "Now at sha256:3f, with triage."}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	g.queue("turn-2", "Go on")
	if again := g.result("turn-2"); again.Reply != "again" {
		t.Errorf("reply of the second prompt: %q", again.Reply)
	}
	wantKinds := []string{
		"session_init", "thinking", "tool_use", "tool_result", "tool_use", "tool_result", "assistant_text", "turn_complete",
		"assistant_text", "turn_complete",
	}
	if diff := cmp.Diff(wantKinds, g.kinds()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	p.terminate()
	if code := p.exitCode(); code != exitOK {
		t.Errorf("exit code %d, want %d", code, exitOK)
	}
}

func TestFirstPromptCarriesTheSystemPrompt(t *testing.T) {
	g := newFakeGateway(t)
	startScripted(t, g, `
turns:
- when: You build workflows
  steps: [{say: the system prompt came last}]
- when: ^hello$
  steps: [{say: fine}]
`)
	g.queue("turn-1", "hello")
	if got := g.result("turn-1"); got.Reply != "fine" {
		t.Errorf("reply %q; the person's text is to be the last block", got.Reply)
	}
}

func TestMCPServerGetsTheTokenAndTheAgentDoesNot(t *testing.T) {
	g := newFakeGateway(t)
	startScripted(t, g, "turns: [{steps: [{call: {tool: environment}}]}]", "MODEL_API_KEY=sk-very-secret-value", "AXIOM_OTHER=x")
	g.queue("turn-1", "go")
	g.result("turn-1")
	seen := decodeEvent[struct{ Stdout string }](t, g, "tool_result").Stdout
	for _, want := range []string{"AXIOM_API_URL=" + g.url(), "AXIOM_COMPOSITION_ID=team-a/triage", "AXIOM_CA_FILE=" + g.caFile, "AXIOM_SESSION_TOKEN=[redacted]", "MODEL_API_KEY=[redacted]"} {
		if !slices.Contains(strings.Split(seen, "\n"), want) {
			t.Errorf("environment of the MCP server lacks %s:\n%s", want, seen)
		}
	}
	for _, name := range []string{"AXIOM_SESSION_ID=", "AXIOM_OTHER=", "AXIOM_MCP_COMMAND="} {
		if strings.Contains(seen, name) {
			t.Errorf("the agent was given %s", name)
		}
	}
	if everything := g.transcript(); strings.Contains(everything, testToken) || strings.Contains(everything, "sk-very-secret-value") {
		t.Error("a secret is in the journal")
	}
}

func TestPermissionsFollowTheAllowlist(t *testing.T) {
	g := newFakeGateway(t)
	startScripted(t, g, `
turns:
- steps:
  - permission: {tool: mcp__workbench__echo, expect: allow}
  - permission: {tool: mcp__workbench__upsert_item, expect: deny}
  - permission: {tool: Write, expect: deny}
  - permission: {tool: Bash, input: {command: "jq . workflow.json"}, expect: allow}
  - permission: {tool: Bash, input: {command: "jq . ; rm -rf /"}, expect: deny}
  - say: as it should be
`)
	g.queue("turn-1", "go")
	if got := g.result("turn-1"); got.Reply != "as it should be" {
		t.Errorf("result %+v", got)
	}
	want := []string{"permission_request", "permission_resolved"}
	if got := g.kinds()[1:3]; !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
}

func TestPromptsThatDoNotEndWell(t *testing.T) {
	garbage := "- raw: |\n" + strings.Repeat("      this is no message\n", 100)
	cases := map[string]struct {
		steps      string
		wantDetail string
		wantStop   string
		wantEvents []string
		wantExit   int
	}{
		"refusal": {
			steps: "- when: something else\n  steps: []", wantDetail: "The agent stopped: refusal", wantStop: "refusal",
			wantEvents: []string{"turn_complete"},
		},
		"failed expectation": {
			steps:      "- steps:\n  - call: {tool: echo, args: {text: REJECTED}, expect: ^APPLIED}\n  - say: never",
			wantDetail: `turns[0].steps[0] (call echo): expected /^APPLIED/, got "REJECTED"`,
			wantEvents: []string{"tool_use", "tool_result", "session_error"},
		},
		"error": {
			steps: "- steps: [{error: {code: -32001, message: out of credit}}]", wantDetail: "out of credit",
			wantEvents: []string{"session_error"},
		},
		"exit": {
			steps: "- steps: [{say: bye}, {exit: 3}]", wantEvents: []string{"assistant_text", "session_ended"}, wantExit: exitAgentEnded,
		},
		"garbage": {
			steps: "- steps:\n  " + garbage + "  - hang: true", wantDetail: "The agent does not speak the Agent Client Protocol",
			wantEvents: []string{"session_error", "session_ended"}, wantExit: exitAgentEnded,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newFakeGateway(t)
			p := startScripted(t, g, "turns:\n"+tc.steps+"\n")
			g.queue("turn-1", "go")
			got := g.result("turn-1")
			if got.Outcome != openapi.PromptOutcomeFailed || got.Detail != tc.wantDetail || got.StopReason != tc.wantStop {
				t.Errorf("result %+v", got)
			}
			if tc.wantExit != 0 {
				if code := p.exitCode(); code != tc.wantExit {
					t.Errorf("exit code %d, want %d", code, tc.wantExit)
				}
			}
			if diff := cmp.Diff(append([]string{"session_init"}, tc.wantEvents...), g.kinds()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExitCodeOfTheAgentIsTold(t *testing.T) {
	g := newFakeGateway(t)
	p := startScripted(t, g, "turns: [{steps: [{exit: 3}]}]")
	g.queue("turn-1", "go")
	p.exitCode()
	if got := decodeEvent[struct{ ExitCode int }](t, g, "session_ended").ExitCode; got != 3 {
		t.Errorf("session_ended says %d, want 3", got)
	}
}

func TestInterruptKeepsTheAgent(t *testing.T) {
	g := newFakeGateway(t)
	startScripted(t, g, "turns:\n- steps: [{say: wait}, {think: hm}, {sleep: 1h}]\n- steps: [{say: still here}]\n")
	g.queue("turn-1", "go")
	g.awaitEvent("assistant_text", "wait")
	g.interrupt()
	if got := g.result("turn-1"); got.Outcome != openapi.PromptOutcomeInterrupted || got.StopReason != "cancelled" {
		t.Errorf("result %+v", got)
	}
	g.queue("turn-2", "go on")
	if got := g.result("turn-2"); got.Reply != "still here" {
		t.Errorf("result %+v", got)
	}
}

func TestEndOfThePodGivesNoResult(t *testing.T) {
	g := newFakeGateway(t)
	p := startScripted(t, g, "turns:\n- steps: [{say: wait}, {think: hm}, {sleep: 1h}]\n")
	g.queue("turn-1", "go")
	g.awaitEvent("assistant_text", "wait")
	p.terminate()
	if code := p.exitCode(); code != exitOK {
		t.Errorf("exit code %d, want %d", code, exitOK)
	}
	if got := g.kinds(); !slices.Equal(got, []string{"session_init", "assistant_text", "thinking"}) {
		t.Errorf("events %v; none may end the turn", got)
	}
	if len(g.results) != 0 {
		t.Errorf("results %+v, want none", g.results)
	}
}

func TestGatewayThatComesAndGoesLosesNothing(t *testing.T) {
	g := newFakeGateway(t)
	g.fails = func(n int) bool { return n%3 != 0 }
	var steps strings.Builder
	want := []string{"session_init"}
	for range 50 {
		steps.WriteString("  - think: a\n  - say: b\n")
		want = append(want, "thinking", "assistant_text")
	}
	startScripted(t, g, "turns:\n- steps:\n"+steps.String())
	g.queue("turn-1", "go")
	if got := g.result("turn-1"); got.Outcome != openapi.PromptOutcomeCompleted {
		t.Errorf("result %+v", got)
	}
	if diff := cmp.Diff(append(want, "turn_complete"), g.kinds()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestAgentsThatDoNotStart(t *testing.T) {
	cases := map[string]struct {
		command  []string
		wantText string
	}{
		"missing program":     {[]string{"no-such-agent"}, "no-such-agent"},
		"ends at once":        {[]string{"sh", "-c", "echo cannot reach the model >&2; exit 7"}, "exit code 7 before it answered initialize: cannot reach the model"},
		"closes its output":   {[]string{"sh", "-c", "exec >&-; exec sleep 3600"}, "before it answered initialize"},
		"speaks another text": {[]string{"sh", "-c", "yes hello"}, "does not speak JSON-RPC"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newFakeGateway(t)
			p := start(t, sessionEnv(g), append([]string{"--"}, tc.command...))
			if code := p.exitCode(); code != exitNotStarted {
				t.Errorf("exit code %d, want %d", code, exitNotStarted)
			}
			if got := p.stderr.String(); !strings.Contains(got, tc.wantText) {
				t.Errorf("stderr %q lacks %q", got, tc.wantText)
			}
			if got := g.kinds(); len(got) != 0 {
				t.Errorf("events %v; nothing may fail the turn before the operator does", got)
			}
		})
	}
}

func TestRunnerWithoutASessionEnds(t *testing.T) {
	g := newFakeGateway(t)
	environ := append(sessionEnv(g), "AXIOM_SESSION_TOKEN=revoked-revoked-revoked")
	p := start(t, environ, []string{"--", "sh", "-c", "cat"})
	if code := p.exitCode(); code != exitGone {
		t.Errorf("exit code %d, want %d", code, exitGone)
	}
}

func TestCommandLinesThatCannotBeRight(t *testing.T) {
	cases := map[string]struct {
		args     []string
		wantText string
	}{
		"no command":       {nil, "after --"},
		"no dashes":        {[]string{"agent"}, `unknown command "agent"`},
		"unknown flag":     {[]string{"--fast", "--", "agent"}, "--fast"},
		"no environment":   {[]string{"--", "agent"}, "AXIOM_API_URL must be set"},
		"no playbook":      {[]string{"scripted"}, "--playbook must be given"},
		"missing playbook": {[]string{"scripted", "--playbook", "/no/such/file"}, "/no/such/file"},
		"no script":        {[]string{"script"}, "--script must be given"},
		"no directory":     {[]string{"install"}, "--to must be given"},
		"extra argument":   {[]string{"install", "here"}, `unexpected argument "here"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, nil, tc.args)
			if code := p.exitCode(); code != exitUsage {
				t.Errorf("exit code %d, want %d", code, exitUsage)
			}
			if got := p.stderr.String(); !strings.Contains(got, tc.wantText) {
				t.Errorf("stderr %q lacks %q", got, tc.wantText)
			}
		})
	}
}

func TestPlaybookIsCheckedBeforeAnythingIsSaid(t *testing.T) {
	g := newFakeGateway(t)
	p := startScripted(t, g, "turns: [{steps: [{shout: hello}]}]")
	if code := p.exitCode(); code != exitNotStarted {
		t.Errorf("exit code %d, want %d", code, exitNotStarted)
	}
	if got := p.stderr.String(); !strings.Contains(got, "turns[0].steps[0].shout: is no step") {
		t.Errorf("stderr %q does not name the step", got)
	}
}

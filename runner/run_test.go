package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/gateway/openapi"
)

const sessionInit = `session_init {"agent":"fake 7","protocolVersion":1}`

// assertEvents compares the events after session_init.
func (s *stage) assertEvents(want ...string) {
	s.t.Helper()
	got := strings.Split(s.events(), "\n")
	if diff := cmp.Diff(append([]string{sessionInit}, want...), got); diff != "" {
		s.t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestConversationIsOpenedAsAgreed(t *testing.T) {
	play(t, func(session *openapi.Session) {
		session.MCPServers = append(session.MCPServers, openapi.MCPServer{Name: "@axiom-assistant"}, openapi.MCPServer{Name: "docs", URL: "https://docs/mcp"})
	}, func(s *stage) {
		s.agent.getReady()
		s.assertJSON("initialize", `{"protocolVersion":1,"clientInfo":{"name":"axiom-runner","version":"1"},
			"clientCapabilities":{"auth":{},"fs":{}}}`, s.agent.initialize.Params)
		env := `{"name":"AXIOM_API_URL","value":"https://gateway/api/v1"},{"name":"AXIOM_SESSION_TOKEN","value":"tok-0123456789"},
			{"name":"AXIOM_CA_FILE","value":"/etc/axiom/ca.crt"},{"name":"AXIOM_COMPOSITION_ID","value":"team-a/triage"}`
		s.assertJSON("session/new", `{"cwd":"/work","mcpServers":[
			{"name":"workbench","command":"/axiom/axiom-mcp","args":[],"env":[`+env+`]},
			{"name":"axiom","command":"/axiom/axiom-mcp","args":["--server","axiom"],"env":[`+env+`,{"name":"AXIOM_ASSISTANT_SESSION_ID","value":"team-a/helper"}]},
			{"type":"http","name":"docs","url":"https://docs/mcp","headers":[]}]}`, s.agent.conversation.Params)
		s.assertEvents()
	})
}

func (s *stage) assertJSON(what, want string, got json.RawMessage) {
	s.t.Helper()
	var wantTree, gotTree any
	if err := errors.Join(json.Unmarshal([]byte(want), &wantTree), json.Unmarshal(got, &gotTree)); err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
	if diff := cmp.Diff(wantTree, gotTree); diff != "" {
		s.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestAgentsThatAreNotReadyInTime(t *testing.T) {
	cases := map[string]struct {
		start     func(*fakeAgent)
		wantError string
		wantAfter time.Duration
	}{
		"silent": {
			start:     func(a *fakeAgent) { a.expect("initialize") },
			wantError: "the agent did not answer initialize within 30s", wantAfter: 30 * time.Second,
		},
		"silent about the conversation": {
			start: func(a *fakeAgent) {
				a.answer(a.expect("initialize").ID, `{"protocolVersion":1}`)
				a.expect("session/new")
			},
			wantError: "the agent did not answer session/new within 1m0s", wantAfter: time.Minute,
		},
		"of another version": {
			start:     func(a *fakeAgent) { a.answer(a.expect("initialize").ID, `{"protocolVersion":2}`) },
			wantError: "the agent speaks version 2 of the Agent Client Protocol, not 1",
		},
		"without credentials": {
			start: func(a *fakeAgent) {
				a.answer(a.expect("initialize").ID, `{"protocolVersion":1}`)
				a.refuse(a.expect("session/new").ID, -32000, "Authentication required")
			},
			wantError: "the agent demands authentication; give it credentials in the session's environment",
		},
		"that refuse": {
			start: func(a *fakeAgent) {
				a.answer(a.expect("initialize").ID, `{"protocolVersion":1}`)
				a.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"Internal error","data":{"details":"no model hunter2-hunter2"}}}`, a.expect("session/new").ID))
			},
			wantError: "the agent refused session/new: Internal error: no model [redacted]",
		},
		"that end": {
			start:     func(a *fakeAgent) { a.expect("initialize"); a.exit(1) },
			wantError: "the agent ended with exit code 1 before it answered initialize",
		},
		"without a session id": {
			start: func(a *fakeAgent) {
				a.answer(a.expect("initialize").ID, `{"protocolVersion":1}`)
				a.answer(a.expect("session/new").ID, `{}`)
			},
			wantError: "the agent answered session/new without a session id",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			play(t, nil, func(s *stage) {
				begin := time.Now()
				tc.start(s.agent)
				err := s.end()
				var started *StartError
				if !errors.As(err, &started) || started.Message != tc.wantError {
					t.Errorf("error %v, want %s", err, tc.wantError)
				}
				if after := time.Since(begin); after != tc.wantAfter {
					t.Errorf("it took %s, want %s", after, tc.wantAfter)
				}
				if len(s.gateway.events) != 0 {
					t.Errorf("events %+v, want none", s.gateway.events)
				}
			})
		})
	}
}

func TestAgentWithoutHTTPCannotReachURLs(t *testing.T) {
	play(t, func(session *openapi.Session) {
		session.MCPServers = []openapi.MCPServer{{Name: "docs", URL: "https://docs/mcp"}}
	}, func(s *stage) {
		s.agent.answer(s.agent.expect("initialize").ID, `{"protocolVersion":1}`)
		var started *StartError
		if err := s.end(); !errors.As(err, &started) || !strings.Contains(started.Message, `MCP server "docs"`) {
			t.Errorf("error %v", err)
		}
	})
}

func TestSystemPromptGoesAheadOfTheFirstPromptOfAConversation(t *testing.T) {
	play(t, nil, func(s *stage) {
		s.agent.getReady()
		var got [][]string
		for i, prompt := range []openapi.Prompt{
			{ID: "t-1", Text: "one"}, {ID: "t-2", Text: "two"}, {ID: "t-3", Text: "three", NewConversation: true}, {ID: "t-4", Text: "four"},
		} {
			s.queuePrompt(prompt)
			if prompt.NewConversation {
				s.agent.session = "s-2"
				s.agent.openConversation()
			}
			got = append(got, s.agent.takePrompt())
			s.agent.stop("end_turn")
			if result := s.result(fmt.Sprintf("t-%d", i+1)); result.Outcome != openapi.PromptOutcomeCompleted {
				t.Errorf("result %+v", result)
			}
		}
		want := [][]string{{"Be helpful.", "one"}, {"two"}, {"Be helpful.", "three"}, {"four"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("prompts (-want +got):\n%s", diff)
		}
		complete := `turn_complete {"durationMs":0,"stopReason":"end_turn","success":true}`
		s.assertEvents(complete, complete, "conversation_reset {}", complete, complete)
	})
}

func TestConversationThatCannotBeOpenedFailsThePrompt(t *testing.T) {
	play(t, nil, func(s *stage) {
		s.agent.getReady()
		s.queuePrompt(openapi.Prompt{ID: "t-1", Text: "one", NewConversation: true})
		s.agent.refuse(s.agent.expect("session/new").ID, -32603, "too many")
		var ended *EndError
		if err := s.end(); !errors.As(err, &ended) {
			t.Errorf("error %v, want an EndError", err)
		}
		want := openapi.PromptResult{Outcome: openapi.PromptOutcomeFailed, Detail: "the agent refused session/new: too many"}
		if diff := cmp.Diff(want, s.result("t-1")); diff != "" {
			t.Errorf("result (-want +got):\n%s", diff)
		}
	})
}

func TestResults(t *testing.T) {
	cases := map[string]struct {
		answer     func(*fakeAgent)
		want       openapi.PromptResult
		wantEvents []string
	}{
		"end of turn": {
			answer:     func(a *fakeAgent) { a.say("Done."); a.stop("end_turn") },
			want:       openapi.PromptResult{Outcome: openapi.PromptOutcomeCompleted, StopReason: "end_turn", Reply: "Done."},
			wantEvents: []string{`assistant_text {"text":"Done."}`, `turn_complete {"durationMs":0,"stopReason":"end_turn","success":true}`},
		},
		"cancelled by itself": {
			answer:     func(a *fakeAgent) { a.stop("cancelled") },
			want:       openapi.PromptResult{Outcome: openapi.PromptOutcomeInterrupted, StopReason: "cancelled"},
			wantEvents: []string{`turn_complete {"durationMs":0,"stopReason":"cancelled","success":false}`},
		},
		"too many tokens": {
			answer:     func(a *fakeAgent) { a.stop("max_tokens") },
			want:       openapi.PromptResult{Outcome: openapi.PromptOutcomeFailed, StopReason: "max_tokens", Detail: "The agent stopped: max_tokens"},
			wantEvents: []string{`turn_complete {"durationMs":0,"stopReason":"max_tokens","success":false}`},
		},
		"error": {
			answer:     func(a *fakeAgent) { a.refuse(a.promptID, -32603, "no credit for hunter2-hunter2") },
			want:       openapi.PromptResult{Outcome: openapi.PromptOutcomeFailed, Detail: "no credit for [redacted]"},
			wantEvents: []string{`session_error {"message":"no credit for [redacted]","name":"AgentError"}`},
		},
		"cancelled error without a cause": {
			answer:     func(a *fakeAgent) { a.refuse(a.promptID, -32800, "Request cancelled") },
			want:       openapi.PromptResult{Outcome: openapi.PromptOutcomeFailed, Detail: "Request cancelled"},
			wantEvents: []string{`session_error {"message":"Request cancelled","name":"AgentError"}`},
		},
		"answer that is none": {
			answer:     func(a *fakeAgent) { a.answer(a.promptID, `[]`) },
			want:       openapi.PromptResult{Outcome: openapi.PromptOutcomeFailed, Detail: "decode the answer to session/prompt: json: cannot unmarshal array into Go value of type acp.PromptResponse"},
			wantEvents: []string{`session_error {"message":"decode the answer to session/prompt: json: cannot unmarshal array into Go value of type acp.PromptResponse","name":"AgentError"}`},
		},
		"garbage in between": {
			answer: func(a *fakeAgent) {
				for range 99 {
					a.write("Loading…")
				}
				a.stop("end_turn")
			},
			want:       openapi.PromptResult{Outcome: openapi.PromptOutcomeCompleted, StopReason: "end_turn"},
			wantEvents: []string{`turn_complete {"durationMs":0,"stopReason":"end_turn","success":true}`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			play(t, nil, func(s *stage) {
				s.agent.getReady()
				s.queue("t-1", "go")
				s.agent.takePrompt()
				tc.answer(s.agent)
				if diff := cmp.Diff(tc.want, s.result("t-1")); diff != "" {
					t.Errorf("result (-want +got):\n%s", diff)
				}
				s.assertEvents(tc.wantEvents...)
			})
		})
	}
}

func TestEndsOfTheAgent(t *testing.T) {
	cases := map[string]struct {
		end        func(*fakeAgent)
		want       openapi.PromptResult
		wantCode   int
		wantEvents []string
	}{
		"exit": {
			end:  func(a *fakeAgent) { a.say("bye"); a.exit(3) },
			want: openapi.PromptResult{Outcome: openapi.PromptOutcomeFailed, Reply: "bye"}, wantCode: 3,
			wantEvents: []string{`assistant_text {"text":"bye"}`, `session_ended {"exitCode":3}`},
		},
		"garbage": {
			end: func(a *fakeAgent) {
				for range 100 {
					a.write("Loading…")
				}
			},
			want:     openapi.PromptResult{Outcome: openapi.PromptOutcomeFailed, Detail: "The agent does not speak the Agent Client Protocol"},
			wantCode: 143,
			wantEvents: []string{
				`session_error {"message":"The agent does not speak the Agent Client Protocol","name":"ProtocolError"}`,
				`session_ended {"exitCode":143}`,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			play(t, nil, func(s *stage) {
				s.agent.getReady()
				s.queue("t-1", "go")
				s.agent.takePrompt()
				tc.end(s.agent)
				var ended *EndError
				if err := s.end(); !errors.As(err, &ended) || ended.ExitCode != tc.wantCode {
					t.Errorf("error %v, want exit code %d", err, tc.wantCode)
				}
				if diff := cmp.Diff(tc.want, s.result("t-1")); diff != "" {
					t.Errorf("result (-want +got):\n%s", diff)
				}
				s.assertEvents(tc.wantEvents...)
				if last := s.gateway.order[len(s.gateway.order)-1]; last != "result t-1" {
					t.Errorf("the last thing told was %s; the result comes after all events", last)
				}
			})
		})
	}
}

func TestAgentThatEndsBetweenPromptsIsTold(t *testing.T) {
	play(t, nil, func(s *stage) {
		s.agent.getReady()
		synctest.Wait()
		s.agent.exit(0)
		var ended *EndError
		if err := s.end(); !errors.As(err, &ended) || ended.ExitCode != 0 {
			t.Errorf("error %v", err)
		}
		s.assertEvents(`session_ended {"exitCode":0}`)
	})
}

func TestInterruptedAgent(t *testing.T) {
	cases := map[string]struct {
		stubborn bool
		obey     func(*fakeAgent)
		want     openapi.PromptResult
		// wantTerminated and wantKilled are measured from the interrupt; 0 is never.
		wantTerminated, wantKilled time.Duration
	}{
		"obeys": {
			obey: func(a *fakeAgent) { a.stop("cancelled") },
			want: openapi.PromptResult{Outcome: openapi.PromptOutcomeInterrupted, StopReason: "cancelled"},
		},
		"obeys with an error": {
			obey: func(a *fakeAgent) { a.refuse(a.promptID, -32800, "Request cancelled") },
			want: openapi.PromptResult{Outcome: openapi.PromptOutcomeInterrupted, StopReason: "cancelled"},
		},
		"was done anyway": {
			obey: func(a *fakeAgent) { a.stop("end_turn") },
			want: openapi.PromptResult{Outcome: openapi.PromptOutcomeCompleted, StopReason: "end_turn"},
		},
		"takes no notice": {
			obey:           func(*fakeAgent) {},
			want:           openapi.PromptResult{Outcome: openapi.PromptOutcomeFailed, Detail: "The agent did not stop within 30s"},
			wantTerminated: 30 * time.Second,
		},
		"cannot even be terminated": {
			stubborn: true, obey: func(*fakeAgent) {},
			want:           openapi.PromptResult{Outcome: openapi.PromptOutcomeFailed, Detail: "The agent did not stop within 30s"},
			wantTerminated: 30 * time.Second, wantKilled: 40 * time.Second,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			play(t, nil, func(s *stage) {
				s.agent.stubborn = tc.stubborn
				s.agent.getReady()
				s.queue("t-1", "go")
				s.agent.takePrompt()
				begin := time.Now()
				s.interrupt()
				s.agent.expect("session/cancel")
				tc.obey(s.agent)
				time.Sleep(time.Minute)
				if diff := cmp.Diff(tc.want, s.result("t-1")); diff != "" {
					t.Errorf("result (-want +got):\n%s", diff)
				}
				assertAfter(t, "terminated", begin, s.agent.terminatedAt, tc.wantTerminated)
				assertAfter(t, "killed", begin, s.agent.killedAt, tc.wantKilled)
			})
		})
	}
}

func assertAfter(t *testing.T, what string, begin, at time.Time, want time.Duration) {
	t.Helper()
	var got time.Duration
	if !at.IsZero() {
		got = at.Sub(begin)
	}
	if got != want {
		t.Errorf("%s after %s, want %s", what, got, want)
	}
}

func TestPermissionRequestDuringACancellationIsCancelled(t *testing.T) {
	play(t, nil, func(s *stage) {
		s.agent.getReady()
		s.queue("t-1", "go")
		s.agent.takePrompt()
		s.interrupt()
		s.agent.expect("session/cancel")
		got := s.agent.ask("session/request_permission", permissionParams("mcp__workbench__get_item"))
		s.assertJSON("answer", `{"outcome":{"outcome":"cancelled"}}`, got.Result)
		s.agent.stop("cancelled")
		s.result("t-1")
	})
}

func permissionParams(title string) string {
	return fmt.Sprintf(`{"sessionId":"s-1","toolCall":{"toolCallId":"c-1","title":%q,"rawInput":{"name":"a"}},"options":[
		{"optionId":"always","name":"Always","kind":"allow_always"},{"optionId":"once","name":"Once","kind":"allow_once"},
		{"optionId":"no","name":"No","kind":"reject_once"}]}`, title)
}

func TestTurnThatTakesTooLong(t *testing.T) {
	play(t, nil, func(s *stage) {
		s.agent.getReady()
		s.queue("t-1", "go")
		s.agent.takePrompt()
		begin := time.Now()
		s.agent.expect("session/cancel")
		if after := time.Since(begin); after != 30*time.Minute {
			t.Errorf("cancelled after %s", after)
		}
		s.agent.say("half done")
		s.agent.stop("cancelled")
		want := openapi.PromptResult{
			Outcome: openapi.PromptOutcomeFailed, StopReason: "cancelled",
			Detail: "The turn took longer than 30m0s", Reply: "half done",
		}
		if diff := cmp.Diff(want, s.result("t-1")); diff != "" {
			t.Errorf("result (-want +got):\n%s", diff)
		}
		s.assertEvents(`assistant_text {"text":"half done"}`, `session_error {"message":"The turn took longer than 30m0s","name":"TurnTimeout"}`)
	})
}

func TestPromptThatIsCancelledBeforeItIsDelivered(t *testing.T) {
	play(t, nil, func(s *stage) {
		s.agent.getReady()
		s.queuePrompt(openapi.Prompt{ID: "t-1", Text: "go", Cancel: true})
		want := openapi.PromptResult{Outcome: openapi.PromptOutcomeInterrupted, StopReason: "cancelled"}
		if diff := cmp.Diff(want, s.result("t-1")); diff != "" {
			t.Errorf("result (-want +got):\n%s", diff)
		}
	})
}

func TestNewerPromptEndsTheOneBefore(t *testing.T) {
	play(t, nil, func(s *stage) {
		s.gateway.refuse = func(result openapi.PromptResult) error {
			if result.StopReason == "cancelled" {
				return refusal(http.StatusConflict)
			}
			return nil
		}
		s.agent.getReady()
		s.queue("t-1", "go")
		s.agent.takePrompt()
		s.queue("t-2", "go elsewhere")
		s.agent.expect("session/cancel")
		s.agent.stop("cancelled")
		if got := s.agent.takePrompt(); !slices.Equal(got, []string{"go elsewhere"}) {
			t.Errorf("prompt %q", got)
		}
		s.agent.stop("end_turn")
		if got := s.result("t-2"); got.Outcome != openapi.PromptOutcomeCompleted {
			t.Errorf("result %+v", got)
		}
	})
}

func TestPromptThatWasTakenBackIsNotGiven(t *testing.T) {
	play(t, nil, func(s *stage) {
		s.agent.getReady()
		s.gateway.ackError = refusal(http.StatusConflict)
		s.queue("t-1", "go")
		synctest.Wait()
		s.gateway.ackError = nil
		s.queue("t-2", "go on")
		if got := s.agent.takePrompt(); !slices.Equal(got, []string{"Be helpful.", "go on"}) {
			t.Errorf("prompt %q", got)
		}
		s.agent.stop("end_turn")
		s.result("t-2")
	})
}

func TestSessionThatIsGoneEndsTheRunner(t *testing.T) {
	play(t, nil, func(s *stage) {
		s.agent.getReady()
		s.queue("t-1", "go")
		s.agent.takePrompt()
		s.gateway.change(func() { s.gateway.gone = true })
		s.agent.expect("session/cancel")
		s.agent.stop("cancelled")
		if err := s.end(); !errors.Is(err, ErrSessionGone) {
			t.Errorf("error %v", err)
		}
		if len(s.gateway.results) != 0 {
			t.Errorf("results %+v, want none", s.gateway.results)
		}
	})
}

func TestPodThatEndsLeavesNoTraceOfAnEnd(t *testing.T) {
	cases := map[string]struct {
		obey           func(*fakeAgent)
		wantTerminated time.Duration
	}{
		"agent obeys":       {obey: func(a *fakeAgent) { a.stop("cancelled") }},
		"agent is stubborn": {obey: func(*fakeAgent) {}, wantTerminated: 5 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			play(t, nil, func(s *stage) {
				s.agent.getReady()
				s.queue("t-1", "go")
				s.agent.takePrompt()
				s.agent.say("half")
				begin := time.Now()
				s.stop()
				s.agent.expect("session/cancel")
				tc.obey(s.agent)
				if err := s.end(); err != nil {
					t.Errorf("error %v", err)
				}
				assertAfter(t, "terminated", begin, s.agent.terminatedAt, tc.wantTerminated)
				s.assertEvents(`assistant_text {"text":"half"}`)
				if len(s.gateway.results) != 0 {
					t.Errorf("results %+v, want none", s.gateway.results)
				}
			})
		})
	}
}

func TestResultThatIsTooLargeIsShortened(t *testing.T) {
	play(t, nil, func(s *stage) {
		s.gateway.refuse = func(result openapi.PromptResult) error {
			if len(result.Reply) > 64<<10 {
				return refusal(http.StatusRequestEntityTooLarge)
			}
			return nil
		}
		s.agent.getReady()
		s.queue("t-1", "go")
		s.agent.takePrompt()
		s.agent.say(strings.Repeat("x", 70<<10))
		s.agent.stop("end_turn")
		if got, want := s.result("t-1").Reply, strings.Repeat("x", maxShortReply)+"…[truncated 63488 bytes]"; got != want {
			t.Errorf("reply has %d bytes and ends %q", len(got), got[len(got)-40:])
		}
	})
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

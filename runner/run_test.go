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

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/gateway/openapi"
)

const sessionInit = `session_init {"agent":"fake 7","attempt":2,"protocolVersion":1}`

// assertEvents compares the events after session_init.

func (s *stage) assertEvents(want ...string) {
	s.t.Helper()
	got := strings.Split(s.events(), "\n")
	if diff := cmp.Diff(append([]string{sessionInit}, want...), got); diff != "" {
		s.t.Errorf("events (-want +got):\n%s", diff)
	}
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

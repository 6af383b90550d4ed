package runner

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/gateway/openapi"
)

func drafting(session *openapi.Session) {
	session.Capabilities = []string{"config-items", "validation-feedback"}
}

func draft(name string, problems ...openapi.ItemProblem) openapi.Item {
	return openapi.Item{Type: openapi.ItemTypeTool, Name: name, Problems: problems}
}

func wrong(code string) openapi.ItemProblem {
	return openapi.ItemProblem{Severity: openapi.SeverityError, Path: "scriptTemplate", Code: code, Message: "is wrong"}
}

// puts plays a tool call that leaves these drafts.
func (s *stage) puts(drafts ...openapi.Item) {
	s.gateway.change(func() { s.gateway.drafts = drafts })
	s.agent.update(`"sessionUpdate":"tool_call","toolCallId":"c","title":"mcp__axiom__axiom_put_item","status":"completed"`)
}

func TestProblemsOfDraftsComeBackInTheSameTurn(t *testing.T) {
	play(t, drafting, func(s *stage) {
		s.agent.getReady()
		s.queue("t-1", "draft")
		s.agent.takePrompt()
		s.agent.say("Drafting.")
		s.puts(draft("good"), draft("a", wrong("one"), wrong("two")), openapi.Item{
			Type: openapi.ItemTypeActionType, Name: "b", Problems: []openapi.ItemProblem{{Severity: openapi.SeverityWarning, Path: "inputs", Code: "three", Message: "looks odd"}},
		})
		s.agent.say("Done.")
		s.agent.answer(s.agent.promptID, `{"stopReason":"end_turn","usage":{"inputTokens":100,"outputTokens":10,"totalTokens":110}}`)
		want := "Validation found problems in your items. Fix them:\n" +
			"tool 'a':\n- [ERROR] scriptTemplate one: is wrong\n- [ERROR] scriptTemplate two: is wrong\n" +
			"action-type 'b':\n- [WARNING] inputs three: looks odd"
		if diff := cmp.Diff([]string{want}, s.agent.takePrompt()); diff != "" {
			t.Errorf("follow-up (-want +got):\n%s", diff)
		}
		s.puts(draft("good"), draft("a"))
		s.agent.say("Fixed.")
		s.agent.answer(s.agent.promptID, `{"stopReason":"end_turn","usage":{"inputTokens":20,"outputTokens":3,"totalTokens":23}}`)
		got := s.result("t-1")
		if got.Outcome != openapi.PromptOutcomeCompleted || got.Reply != "Fixed." {
			t.Errorf("result %+v", got)
		}
		if usage := s.gateway.results["t-1"].Usage; usage.InputTokens != 120 || usage.OutputTokens != 13 {
			t.Errorf("usage %+v is not that of both answers", usage)
		}
		events := s.events()
		if strings.Count(events, "turn_complete") != 1 || strings.Contains(events, "user_message") {
			t.Errorf("events of one turn:\n%s", events)
		}
		if !strings.Contains(events, `assistant_text {"text":"Done."}`) || !strings.Contains(events, `assistant_text {"text":"Fixed."}`) {
			t.Errorf("texts ran together:\n%s", events)
		}
	})
}

func TestFollowUpsOfATurn(t *testing.T) {
	change := func(i int) []openapi.Item { return []openapi.Item{draft("a", wrong(fmt.Sprint("code-", i)))} }
	for name, tc := range map[string]struct {
		session func(*openapi.Session)
		// answers play the agent, one after the other; each stops with end_turn.
		// There is one follow-up fewer than answers.
		answers []func(*stage)
	}{
		"are three at most": {drafting, slices.Repeat([]func(*stage){nil}, 4)},
		"are none for what was sent already": {drafting, []func(*stage){
			nil, func(s *stage) { s.puts(s.gateway.drafts...) },
		}},
		"are none without another tool result": {drafting, []func(*stage){nil, func(*stage) {}}},
		"are none when all is well":            {drafting, []func(*stage){func(s *stage) { s.puts(draft("a")) }}},
		"are none without the capability":      {nil, []func(*stage){nil}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, tc.session, func(s *stage) {
				s.agent.getReady()
				s.queue("t-1", "draft")
				for i, act := range tc.answers {
					s.agent.takePrompt()
					if act == nil {
						act = func(s *stage) { s.puts(change(i)...) }
					}
					act(s)
					s.agent.stop("end_turn")
				}
				if got := s.result("t-1"); got.Outcome != openapi.PromptOutcomeCompleted {
					t.Errorf("result %+v", got)
				}
			})
		})
	}
}

func TestProblemsAreSentAgainInAnotherTurnOnlyIfTheyChanged(t *testing.T) {
	play(t, drafting, func(s *stage) {
		s.agent.getReady()
		s.queue("t-1", "draft")
		s.agent.takePrompt()
		s.puts(draft("a", wrong("one")))
		s.agent.stop("end_turn")
		s.agent.takePrompt()
		s.agent.stop("end_turn")
		s.result("t-1")

		s.queue("t-2", "go on")
		s.agent.takePrompt()
		s.puts(draft("a", wrong("one")))
		s.agent.stop("end_turn")
		s.result("t-2")

		s.queue("t-3", "go on")
		s.agent.takePrompt()
		s.puts(draft("a", wrong("two")))
		s.agent.stop("end_turn")
		if got := s.agent.takePrompt(); !strings.HasSuffix(got[0], "two: is wrong") {
			t.Errorf("follow-up %q", got)
		}
		s.agent.stop("end_turn")
		s.result("t-3")
	})
}

func TestAnAgentThatDidNotEndWellIsToldNothing(t *testing.T) {
	for _, reason := range []string{"refusal", "max_tokens", "cancelled"} {
		t.Run(reason, func(t *testing.T) {
			play(t, drafting, func(s *stage) {
				s.agent.getReady()
				s.queue("t-1", "draft")
				s.agent.takePrompt()
				s.puts(draft("a", wrong("one")))
				s.agent.stop(reason)
				if got := s.result("t-1"); got.StopReason != reason {
					t.Errorf("result %+v", got)
				}
			})
		})
	}
}

func TestAFollowUpCanBeInterrupted(t *testing.T) {
	play(t, drafting, func(s *stage) {
		s.agent.getReady()
		s.queue("t-1", "draft")
		s.agent.takePrompt()
		s.puts(draft("a", wrong("one")))
		s.agent.stop("end_turn")
		s.agent.takePrompt()
		s.interrupt()
		s.agent.expect("session/cancel")
		s.agent.stop("cancelled")
		if got := s.result("t-1"); got.Outcome != openapi.PromptOutcomeInterrupted {
			t.Errorf("result %+v", got)
		}
	})
}

func TestDraftsThatCannotBeReadFailNoTurn(t *testing.T) {
	play(t, drafting, func(s *stage) {
		s.gateway.draftsError = errors.New("away")
		s.agent.getReady()
		s.queue("t-1", "draft")
		s.agent.takePrompt()
		s.puts(draft("a", wrong("one")))
		s.agent.stop("end_turn")
		if got := s.result("t-1"); got.Outcome != openapi.PromptOutcomeCompleted {
			t.Errorf("result %+v", got)
		}
	})
}

package runner

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/gateway/openapi"
)

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

package runner

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/gateway/openapi"
)

var (
	begin  = openapi.Conversation{Action: openapi.ConversationActionBegin}
	load   = openapi.Conversation{Action: openapi.ConversationActionLoad, ID: "s-1"}
	refuse = openapi.Conversation{Action: openapi.ConversationActionRefuse, Reason: "SessionLost"}
)

// playPrompt plays a runner of role Prompt up to where its agent, which can load, is
// to be given its conversation. The marker is that of its home.
func playPrompt(t *testing.T, marker string, answers []openapi.Conversation, test func(*stage)) {
	t.Helper()
	dir := t.TempDir()
	if marker != "" {
		if err := home(dir).belongTo(marker); err != nil {
			t.Fatal(err)
		}
	}
	playOn(t, func(s *stage) {
		session := &s.gateway.session
		session.Role, session.PermissionPolicy = openapi.SessionRolePrompt, openapi.PermissionPolicyRefuse
		s.gateway.conversations, s.home = answers, dir
	}, func(s *stage) {
		start := s.agent.expect("initialize")
		s.assertJSON("initialize", `{"protocolVersion":1,"clientCapabilities":{"auth":{},"fs":{}},"clientInfo":{"name":"axiom-runner","version":"1"}}`, start.Params)
		s.agent.answer(start.ID, `{"protocolVersion":1,"agentInfo":{"name":"fake","version":"7"},"agentCapabilities":{"loadSession":true}}`)
		test(s)
	})
}

func (s *stage) asked() []openapi.ConversationQuery {
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	return s.gateway.queries
}

func (s *stage) assertQueries(want ...openapi.ConversationQuery) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.asked()); diff != "" {
		s.t.Errorf("queries (-want +got):\n%s", diff)
	}
}

func (s *stage) assertHome(want string) {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.home, markerName))
	if err != nil || string(data) != want+"\n" {
		s.t.Errorf("the home belongs to %q (%v), want %q", data, err, want)
	}
}

func TestConversationIsCommittedBeforeAnythingIsSaid(t *testing.T) {
	playPrompt(t, "", []openapi.Conversation{begin}, func(s *stage) {
		s.queue("t-1", "go")
		s.agent.openConversation()
		s.assertJSON("session/new", `{"cwd":"/work","mcpServers":[]}`, s.agent.conversation.Params)
		if diff := cmp.Diff([]string{"Be helpful.", "go"}, s.agent.takePrompt()); diff != "" {
			t.Errorf("prompt (-want +got):\n%s", diff)
		}
		s.agent.say("Done.")
		s.agent.stop("end_turn")
		if got := s.result("t-1"); got.Reply != "Done." {
			t.Errorf("result %+v", got)
		}
		if s.gateway.order[0] != "commit s-1" || s.gateway.order[1] != eventSessionInit {
			t.Errorf("order %v", s.gateway.order)
		}
		s.assertHome("s-1")
		s.assertQueries(openapi.ConversationQuery{CanLoad: true})
	})
}

func TestConversationGoesOnWhereItWas(t *testing.T) {
	playPrompt(t, "s-1", []openapi.Conversation{load}, func(s *stage) {
		s.queue("t-2", "and now?")
		asked := s.agent.expect("session/load")
		s.assertJSON("session/load", `{"cwd":"/work","mcpServers":[],"sessionId":"s-1"}`, asked.Params)
		s.agent.say("This was said before.")
		s.agent.update(`"sessionUpdate":"tool_call","toolCallId":"c-1","title":"Write","status":"completed"`)
		s.agent.answer(asked.ID, `null`)
		if diff := cmp.Diff([]string{"and now?"}, s.agent.takePrompt()); diff != "" {
			t.Errorf("prompt (-want +got):\n%s", diff)
		}
		s.agent.say("This is new.")
		s.agent.stop("end_turn")
		want := openapi.PromptResult{Outcome: openapi.PromptOutcomeCompleted, StopReason: "end_turn", Reply: "This is new."}
		if diff := cmp.Diff(want, s.result("t-2")); diff != "" {
			t.Errorf("result (-want +got):\n%s", diff)
		}
		s.assertEvents(`assistant_text {"text":"This is new."}`, `turn_complete {"durationMs":0,"stopReason":"end_turn","success":true}`)
		s.assertQueries(openapi.ConversationQuery{CanLoad: true, Home: "s-1"})
	})
}

func TestConversationThatCannotBeTakenUpIsNotReplaced(t *testing.T) {
	for name, tc := range map[string]struct {
		load   func(*stage, message)
		failed openapi.LoadFailure
	}{
		"an unknown id": {func(s *stage, asked message) { s.agent.refuse(asked.ID, -32002, "Resource not found") }, openapi.LoadFailureSessionLost},
		"another id": {
			func(s *stage, asked message) { s.agent.answer(asked.ID, `{"sessionId":"s-2"}`) }, openapi.LoadFailureSessionDiffers,
		},
		"words of another": {func(s *stage, asked message) {
			s.agent.session = "s-2"
			s.agent.say("This was said elsewhere.")
			s.agent.answer(asked.ID, `{}`)
		}, openapi.LoadFailureSessionDiffers},
	} {
		t.Run(name, func(t *testing.T) {
			playPrompt(t, "s-1", []openapi.Conversation{load, refuse}, func(s *stage) {
				s.queue("t-2", "and now?")
				tc.load(s, s.agent.expect("session/load"))
				if err := s.end(); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "SessionLost") {
					t.Errorf("error %v", err)
				}
				known := openapi.ConversationQuery{CanLoad: true, Home: "s-1"}
				s.assertQueries(known, openapi.ConversationQuery{CanLoad: true, Home: "s-1", Failed: tc.failed})
				if len(s.gateway.results) > 0 || len(s.gateway.order) > 0 {
					t.Errorf("something happened: %v", s.gateway.order)
				}
			})
		})
	}
}

func TestConversationIsReplacedWhereTheGatewaySaysSo(t *testing.T) {
	playPrompt(t, "s-0", []openapi.Conversation{load, begin}, func(s *stage) {
		s.queue("t-2", "What was said. And now?")
		s.agent.refuse(s.agent.expect("session/load").ID, -32603, "gone")
		s.agent.openConversation()
		if diff := cmp.Diff([]string{"Be helpful.", "What was said. And now?"}, s.agent.takePrompt()); diff != "" {
			t.Errorf("prompt (-want +got):\n%s", diff)
		}
		s.agent.stop("end_turn")
		s.assertHome("s-1")
		s.result("t-2")
	})
}

func TestNothingIsSaidInAConversationThatIsNotCommitted(t *testing.T) {
	playPrompt(t, "", []openapi.Conversation{begin}, func(s *stage) {
		s.gateway.commitError = refusal(409)
		s.queue("t-1", "go")
		s.agent.openConversation()
		if err := s.end(); !errors.Is(err, ErrRefused) {
			t.Errorf("error %v", err)
		}
		if len(s.gateway.results) > 0 {
			t.Errorf("results %v", s.gateway.results)
		}
	})
}

func TestAgentThatDemandsCredentialsDidNotLoseItsConversation(t *testing.T) {
	playPrompt(t, "s-1", []openapi.Conversation{load}, func(s *stage) {
		s.agent.refuse(s.agent.expect("session/load").ID, codeAuthRequired, "Authentication required")
		var started *StartError
		if err := s.end(); !errors.As(err, &started) {
			t.Errorf("error %v", err)
		}
		s.assertQueries(openapi.ConversationQuery{CanLoad: true, Home: "s-1"})
	})
}

func TestHomeBelongsToNobodyUnlessItSaysSo(t *testing.T) {
	dir := t.TempDir()
	for name, spoil := range map[string]func(path string) error{
		"no mark":     func(string) error { return nil },
		"a directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"a link":      func(path string) error { return os.Symlink("/etc/hostname", path) },
		"a long file": func(path string) error { return os.WriteFile(path, make([]byte, maxMarker+1), 0o600) },
	} {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.Mkdir(at, 0o700), spoil(home(at).marker())); err != nil {
			t.Fatal(err)
		}
		if got, err := home(at).conversation(); got != "" || err != nil {
			t.Errorf("%s: the home belongs to %q, error %v", name, got, err)
		}
	}
}

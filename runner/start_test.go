package runner

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apitomy/axiom-operator/gateway/openapi"
)

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

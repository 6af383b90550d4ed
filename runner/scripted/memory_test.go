package scripted

import (
	"errors"
	"strings"
	"testing"

	acp "github.com/coder/acp-go-sdk"
	"github.com/google/go-cmp/cmp"
)

const remembering = `
memory: home
turns:
- steps: [{say: "One."}]
- steps: [{say: "Two."}]
`

func TestConversationOutlastsTheProgram(t *testing.T) {
	home := t.TempDir()
	first := converseIn(t, home, remembering)
	session := first.open(t)
	if _, err := first.prompt(t, session, "Say one."); err != nil {
		t.Fatal(err)
	}
	first.end()

	second := converseIn(t, home, remembering)
	started, err := second.Initialize(t.Context(), acp.InitializeRequest{ProtocolVersion: 1})
	if err != nil || !started.AgentCapabilities.LoadSession {
		t.Fatalf("started with %+v, error %v", started.AgentCapabilities, err)
	}
	if _, err := second.LoadSession(t.Context(), acp.LoadSessionRequest{SessionId: session, Cwd: "/", McpServers: []acp.McpServer{}}); err != nil {
		t.Fatal(err)
	}
	if _, err := second.prompt(t, session, "Say two."); err != nil {
		t.Fatal(err)
	}
	second.end()
	if diff := cmp.Diff([]string{"say One.", "say Two."}, second.user.seen); diff != "" {
		t.Errorf("what was said (-want +got):\n%s", diff)
	}
}

func TestConversationIsLoadedOnlyIfItIsKnown(t *testing.T) {
	for name, tc := range map[string]struct {
		book, id string
		code     int
	}{
		"another's":      {remembering, "scripted-1", codeUnknownSession},
		"a path":         {remembering, "../memory", codeUnknownSession},
		"without memory": {strings.Replace(remembering, "memory: home", "memory: none", 1), "scripted-1", -32601},
	} {
		t.Run(name, func(t *testing.T) {
			c := converseIn(t, t.TempDir(), tc.book)
			_, err := c.LoadSession(t.Context(), acp.LoadSessionRequest{SessionId: acp.SessionId(tc.id), Cwd: "/", McpServers: []acp.McpServer{}})
			refused, isRefused := errors.AsType[*acp.RequestError](err)
			if !isRefused || refused.Code != tc.code {
				t.Errorf("error %v, want code %d", err, tc.code)
			}
		})
	}
}

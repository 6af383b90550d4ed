package scripted

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	acp "github.com/coder/acp-go-sdk"
	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/apitomy/axiom-operator/runner/playbook"
)

// user is a client of the protocol that allows one tool and notes what it is
// told.
type user struct {
	acp.Client
	mu   sync.Mutex
	seen []string
}

func (u *user) SessionUpdate(_ context.Context, n acp.SessionNotification) error {
	u.mu.Lock()
	defer u.mu.Unlock()

	switch update := n.Update; {
	case update.AgentMessageChunk != nil:
		u.seen = append(u.seen, "say "+update.AgentMessageChunk.Content.Text.Text)
	case update.AgentThoughtChunk != nil:
		u.seen = append(u.seen, "think "+update.AgentThoughtChunk.Content.Text.Text)
	case update.ToolCall != nil:
		u.seen = append(u.seen, "tool "+update.ToolCall.Title)
	case update.ToolCallUpdate != nil:
		u.seen = append(u.seen, string(*update.ToolCallUpdate.Status)+" "+update.ToolCallUpdate.Content[0].Content.Content.Text.Text)
	}
	return nil
}

func (u *user) RequestPermission(_ context.Context, r acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
	option := acp.PermissionOptionId("reject")
	if *r.ToolCall.Title == "Read" || r.Meta["toolName"] == "Read" {
		option = "once"
	}
	return acp.RequestPermissionResponse{Outcome: acp.RequestPermissionOutcome{
		Selected: &acp.RequestPermissionOutcomeSelected{OptionId: option, Outcome: "selected"},
	}}, nil
}

// conversation is a client connected to an agent that plays a playbook.
type conversation struct {
	*acp.ClientSideConnection
	user   *user
	exits  chan int
	stderr bytes.Buffer
	end    func()
}

func converse(t *testing.T, text string) *conversation {
	t.Helper()
	return converseIn(t, "", text)
}

// converseIn is converse with an agent that has a home.
func converseIn(t *testing.T, home, text string) *conversation {
	t.Helper()
	book, err := playbook.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	in, toAgent := io.Pipe()
	fromAgent, out := io.Pipe()
	c := &conversation{user: &user{}, exits: make(chan int, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = Serve(ctx, Config{Playbook: book, Home: home, In: in, Out: out, Stderr: &c.stderr, Exit: func(code int) { c.exits <- code }})
	}()
	c.ClientSideConnection = acp.NewClientSideConnection(c.user, toAgent, fromAgent)
	c.SetLogger(slog.New(slog.DiscardHandler))
	c.end = func() {
		cancel()
		_, _ = toAgent.Close(), out.Close()
		<-served
	}
	t.Cleanup(c.end)
	return c
}

func (c *conversation) open(t *testing.T, servers ...acp.McpServer) acp.SessionId {
	t.Helper()
	opened, err := c.NewSession(t.Context(), acp.NewSessionRequest{Cwd: "/", McpServers: append([]acp.McpServer{}, servers...)})
	if err != nil {
		t.Fatal(err)
	}
	return opened.SessionId
}

func (c *conversation) prompt(t *testing.T, session acp.SessionId, texts ...string) (acp.PromptResponse, error) {
	t.Helper()
	var blocks []acp.ContentBlock
	for _, text := range texts {
		blocks = append(blocks, acp.TextBlock(text))
	}
	return c.Prompt(t.Context(), acp.PromptRequest{SessionId: session, Prompt: blocks})
}

// tools is an MCP server over HTTP that wants a header.
func tools(t *testing.T, name string) acp.McpServer {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, nil)
	type input struct {
		Text string `json:"text"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}, IsError: in.Text == "fail"}, nil, nil
	})
	if name == "first" {
		mcp.AddTool(server, &mcp.Tool{Name: "only_here"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: `{"rev": 7}`}}}, nil, nil
		})
	}
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Axiom-Session-Token") != "token" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return acp.McpServer{Http: &acp.McpServerHttpInline{
		Type: "http", Name: name, Url: web.URL, Headers: []acp.HttpHeader{{Name: "X-Axiom-Session-Token", Value: "token"}},
	}}
}

func TestTurnsArePlayedOnceAndInOrder(t *testing.T) {
	c := converse(t, `
turns:
- {when: hello, steps: [{say: first}]}
- {when: '^hello$', steps: [{say: second}, {think: hm}], stop: max_tokens}
- {when: bye, steps: [{say: third}]}
`)
	session := c.open(t)
	var stops []acp.StopReason
	for _, texts := range [][]string{{"bye", "hello"}, {"hello"}, {"hello"}, {"bye"}} {
		response, err := c.prompt(t, session, texts...)
		if err != nil {
			t.Fatal(err)
		}
		stops = append(stops, response.StopReason)
	}
	if want := []acp.StopReason{"end_turn", "max_tokens", "refusal", "end_turn"}; !slices.Equal(stops, want) {
		t.Errorf("stop reasons %v, want %v", stops, want)
	}
	if diff := cmp.Diff([]string{"say first", "say second", "think hm", "say third"}, c.user.seen); diff != "" {
		t.Errorf("said (-want +got):\n%s", diff)
	}
}

func TestCallsGoToTheServerThatHasTheTool(t *testing.T) {
	c := converse(t, `
turns:
- steps:
  - call: {tool: only_here, save: comp}
  - call: {tool: mcp__second__echo, args: {text: "rev ${comp.rev}"}, capture: {all: '(.*)', rev: 'rev (\d+)'}}
  - call: {tool: echo, server: first, args: {text: fail}, expect: fail}
  - say: ${all}, ${rev}
- steps: [{say: "still ${rev}"}]
`)
	session := c.open(t, tools(t, "first"), tools(t, "second"))
	if _, err := c.prompt(t, session, "go"); err != nil {
		t.Fatal(err)
	}
	again := c.open(t)
	if _, err := c.prompt(t, again, "go on"); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"tool mcp__first__only_here", `completed {"rev": 7}`, "tool mcp__second__echo", "completed rev 7",
		"tool mcp__first__echo", "failed fail", "say rev 7, 7", "say still 7",
	}
	if diff := cmp.Diff(want, c.user.seen); diff != "" {
		t.Errorf("said (-want +got):\n%s", diff)
	}
}

func TestStepsThatDoNotGoAsExpected(t *testing.T) {
	long := strings.Repeat("x", 300)
	cases := map[string]struct {
		step string
		want string
	}{
		"expectation":     {`{call: {tool: only_here, expect: ^APPLIED}}`, `turns[0].steps[0] (call only_here): expected /^APPLIED/, got "{\"rev\": 7}"`},
		"long text":       {`{call: {tool: echo, server: first, args: {text: ` + long + `}, expect: y}}`, `turns[0].steps[0] (call echo): expected /y/, got "` + long[:200] + `…"`},
		"capture":         {`{call: {tool: only_here, capture: {a: (no)}}}`, `turns[0].steps[0] (call only_here): capture a: /(no)/ is not in "{\"rev\": 7}"`},
		"save":            {`{call: {tool: echo, server: first, args: {text: plain}, save: a}}`, `turns[0].steps[0] (call echo): save a: the result is no JSON: "plain"`},
		"unknown tool":    {`{call: {tool: nothing}}`, "turns[0].steps[0] (call nothing): no MCP server has a tool nothing"},
		"other server":    {`{call: {tool: only_here, server: second}}`, "turns[0].steps[0] (call only_here): no MCP server has a tool only_here"},
		"ambiguous tool":  {`{call: {tool: echo}}`, "turns[0].steps[0] (call echo): several MCP servers have a tool echo; name the server"},
		"bad arguments":   {`{call: {tool: echo, server: first, args: {text: 7}}}`, ""},
		"denied":          {`{permission: {tool: Write, expect: allow}}`, "turns[0].steps[0] (permission Write): expected allow, got deny"},
		"allowed":         {`{permission: {tool: Read, expect: deny}}`, "turns[0].steps[0] (permission Read): expected deny, got allow"},
		"allowed by meta": {`{permission: {tool: Read, title: "May I?", expect: deny}}`, "turns[0].steps[0] (permission Read): expected deny, got allow"},
		"error":           {`{error: {code: -32001, message: no credit}}`, "no credit"},
		"not saved yet":   {`{say: "${later}"}, {call: {tool: only_here, save: later}}`, "turns[0].steps[0] (say): ${later}: nothing is saved as later"},
		"not there":       {`{call: {tool: only_here, save: a}}, {permission: {tool: Write, input: ["${a.b}"]}}`, "turns[0].steps[1] (permission Write): ${a.b}: there is no b"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := converse(t, "turns: [{steps: ["+tc.step+", {say: 'after all'}]}]")
			session := c.open(t, tools(t, "first"), tools(t, "second"))
			_, err := c.prompt(t, session, "go")
			if tc.want == "" { // the words are the server's
				if err != nil {
					t.Error(err)
				}
				return
			}
			refused, ok := errors.AsType[*acp.RequestError](err)
			if !ok || refused.Message != tc.want {
				t.Errorf("error %v\nwant  %s", err, tc.want)
			}
			if slices.Contains(c.user.seen, "say after all") {
				t.Error("the turn went on")
			}
		})
	}
}

func TestExitEndsTheProgram(t *testing.T) {
	c := converse(t, "turns: [{steps: [{exit: 3}]}]")
	if _, err := c.prompt(t, c.open(t), "go"); err != nil {
		t.Fatal(err)
	}
	if code := <-c.exits; code != 3 {
		t.Errorf("exit code %d", code)
	}
}

func TestServersThatCannotBeReached(t *testing.T) {
	c := converse(t, "turns: [{}]")
	unauthorized := tools(t, "first")
	unauthorized.Http.Headers = []acp.HttpHeader{}
	cases := map[string]struct {
		server acp.McpServer
		want   string
	}{
		"missing program": {acp.McpServer{Stdio: &acp.McpServerStdio{Name: "w", Command: "/no/such/program", Args: []string{}, Env: []acp.EnvVariable{}}}, "connect to MCP server w: "},
		"no server":       {acp.McpServer{Stdio: &acp.McpServerStdio{Name: "w", Command: "true", Args: []string{}, Env: []acp.EnvVariable{}}}, "connect to MCP server w: "},
		"no token":        {unauthorized, "connect to MCP server first: "},
		"other transport": {acp.McpServer{Sse: &acp.McpServerSseInline{Type: "sse", Name: "w", Url: "http://w", Headers: []acp.HttpHeader{}}}, "only MCP servers over stdio and HTTP are supported"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := c.NewSession(t.Context(), acp.NewSessionRequest{Cwd: "/", McpServers: []acp.McpServer{tc.server}})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

func TestUnknownSessionAndMethods(t *testing.T) {
	c := converse(t, "turns: [{}]")
	if _, err := c.prompt(t, "other", "go"); err == nil || !strings.Contains(err.Error(), "unknown session") {
		t.Errorf("error %v", err)
	}
	_, err := c.Authenticate(t.Context(), acp.AuthenticateRequest{MethodId: "x"})
	if refused, ok := errors.AsType[*acp.RequestError](err); !ok || refused.Code != -32601 {
		t.Errorf("authenticate: %v", err)
	}
}

// TestRawTextIsWrittenAsItIs plays the client by hand: the library's own
// client cannot see what is no message.
func TestRawTextIsWrittenAsItIs(t *testing.T) {
	book, err := playbook.Parse([]byte("turns: [{steps: [{raw: \"not a message\"}, {raw: \"two\\nlines\\n\"}]}]"))
	if err != nil {
		t.Fatal(err)
	}
	in, toAgent := io.Pipe()
	fromAgent, out := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- Serve(t.Context(), Config{Playbook: book, In: in, Out: out, Stderr: io.Discard, Exit: func(int) {}})
	}()
	lines := bufio.NewReader(fromAgent)
	read := func() string {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return line
	}
	_, _ = io.WriteString(toAgent, `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`+"\n")
	read()
	_, _ = io.WriteString(toAgent, `{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"scripted-1","prompt":[{"type":"text","text":"go"}]}}`+"\n")
	got := []string{read(), read(), read(), read()}
	want := []string{"not a message\n", "two\n", "lines\n", `{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}` + "\n"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	_ = toAgent.Close()
	if err := <-served; err != nil {
		t.Errorf("the end of the connection is an error: %v", err)
	}
}

func TestCancelledSleepEndsAndHangDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := converse(t, "turns: [{steps: [{sleep: 3s}]}, {steps: [{sleep: 1h}]}, {steps: [{hang: true}]}]")
		session := c.open(t)
		begin := time.Now()
		for _, want := range []acp.StopReason{"end_turn", "cancelled"} {
			timer := time.AfterFunc(10*time.Second, func() {
				_ = c.Cancel(t.Context(), acp.CancelNotification{SessionId: session})
			})
			response, err := c.prompt(t, session, "go")
			if err != nil || response.StopReason != want {
				t.Errorf("stop reason %s, %v, want %s", response.StopReason, err, want)
			}
			timer.Stop()
		}
		if after := time.Since(begin); after != 13*time.Second {
			t.Errorf("both took %s", after)
		}
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			_, _ = c.prompt(t, session, "go")
		}()
		synctest.Wait()
		_ = c.Cancel(t.Context(), acp.CancelNotification{SessionId: session})
		time.Sleep(time.Hour)
		select {
		case <-answered:
			t.Error("a hanging agent answered")
		default:
		}
		c.end()
		<-answered
		time.Sleep(time.Minute) // the library lets go of its goroutines in time
	})
}

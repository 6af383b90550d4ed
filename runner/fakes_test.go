package runner

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apitomy/axiom-operator/gateway/client"
	"github.com/apitomy/axiom-operator/gateway/openapi"
)

// fakeAgent is an agent in memory, played by the test.
type fakeAgent struct {
	t       *testing.T
	input   *io.PipeReader
	toAgent *io.PipeWriter
	output  *io.PipeWriter
	fromIt  *io.PipeReader
	lines   *bufio.Reader
	exited  chan struct{}
	once    sync.Once
	code    int
	// stubborn agents take no notice of being told to end.
	stubborn                 bool
	terminatedAt, killedAt   time.Time
	session                  string
	promptID                 json.RawMessage
	early                    []message
	initialize, conversation message
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func newFakeAgent(t *testing.T) *fakeAgent {
	a := &fakeAgent{t: t, exited: make(chan struct{}), session: "s-1"}
	a.input, a.toAgent = io.Pipe()
	a.fromIt, a.output = io.Pipe()
	a.lines = bufio.NewReader(a.input)
	return a
}

func (a *fakeAgent) Input() io.Writer        { return a.toAgent }
func (a *fakeAgent) Output() io.Reader       { return a.fromIt }
func (a *fakeAgent) Exited() <-chan struct{} { return a.exited }
func (a *fakeAgent) ExitCode() int           { <-a.exited; return a.code }
func (a *fakeAgent) LastWords() string       { return "" }
func (a *fakeAgent) Close()                  { _, _ = a.input.Close(), a.fromIt.Close() }

func (a *fakeAgent) Terminate() {
	if a.terminatedAt.IsZero() {
		a.terminatedAt = time.Now()
	}
	if !a.stubborn {
		a.exit(143)
	}
}

func (a *fakeAgent) Kill() {
	a.killedAt = time.Now()
	a.exit(137)
}

func (a *fakeAgent) exit(code int) {
	a.once.Do(func() {
		a.code = code
		_ = a.output.Close()
		_ = a.input.Close()
		close(a.exited)
	})
}

// read returns the next message from the runner.
func (a *fakeAgent) read() message {
	a.t.Helper()
	if len(a.early) > 0 {
		m := a.early[0]
		a.early = a.early[1:]
		return m
	}
	return a.readLine()
}

func (a *fakeAgent) readLine() message {
	a.t.Helper()
	line, err := a.lines.ReadBytes('\n')
	if err != nil {
		a.t.Fatalf("read from runner: %v", err)
	}
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		a.t.Fatal(err)
	}
	return m
}

// expect returns the next message, which must be of the method.
func (a *fakeAgent) expect(method string) message {
	a.t.Helper()
	m := a.read()
	if m.Method != method {
		a.t.Fatalf("got %s %s, want %s", m.Method, m.Result, method)
	}
	return m
}

func (a *fakeAgent) write(line string) {
	a.t.Helper()
	if _, err := io.WriteString(a.output, line+"\n"); err != nil {
		a.t.Fatalf("write to runner: %v", err)
	}
}

func (a *fakeAgent) answer(id json.RawMessage, result string) {
	a.t.Helper()
	a.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result))
}

func (a *fakeAgent) refuse(id json.RawMessage, code int, text string) {
	a.t.Helper()
	a.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, id, code, text))
}

// update sends a session update, given without its braces.
func (a *fakeAgent) update(members string) {
	a.t.Helper()
	a.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%q,"update":{%s}}}`, a.session, members))
}

func (a *fakeAgent) say(text string) {
	a.t.Helper()
	quoted, _ := json.Marshal(text)
	a.update(`"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":` + string(quoted) + `}`)
}

// ask sends a request and returns its answer.
func (a *fakeAgent) ask(method, params string) message {
	a.t.Helper()
	a.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":"ask","method":%q,"params":%s}`, method, strings.ReplaceAll(params, "\n", "")))
	for {
		m := a.readLine()
		if m.Method == "" {
			return m
		}
		a.early = append(a.early, m) // the runner may have something to say first
	}
}

// getReady answers the two requests of the start.
func (a *fakeAgent) getReady() {
	a.t.Helper()
	a.initialize = a.expect("initialize")
	a.answer(a.initialize.ID, `{"protocolVersion":1,"agentInfo":{"name":"fake","version":"7"},"agentCapabilities":{"mcpCapabilities":{"http":true}}}`)
	a.openConversation()
}

func (a *fakeAgent) openConversation() {
	a.t.Helper()
	a.conversation = a.expect("session/new")
	a.answer(a.conversation.ID, fmt.Sprintf(`{"sessionId":%q}`, a.session))
}

// takePrompt returns the texts of the next prompt.
func (a *fakeAgent) takePrompt() []string {
	a.t.Helper()
	m := a.expect("session/prompt")
	a.promptID = m.ID
	var params struct {
		Prompt []struct{ Text string }
	}
	if err := json.Unmarshal(m.Params, &params); err != nil {
		a.t.Fatal(err)
	}
	var texts []string
	for _, block := range params.Prompt {
		texts = append(texts, block.Text)
	}
	return texts
}

func (a *fakeAgent) stop(reason string) {
	a.t.Helper()
	a.answer(a.promptID, fmt.Sprintf(`{"stopReason":%q}`, reason))
}

// fakeGateway is a gateway in memory.
type fakeGateway struct {
	mu      sync.Mutex
	changed chan struct{}
	session openapi.Session
	prompt  *openapi.Prompt
	done    bool
	events  []openapi.Event
	results map[string]openapi.PromptResult
	order   []string
	gone    bool
	drafts  []openapi.Item
	// draftsError is why the drafts cannot be read.
	draftsError error
	ackError    error
	// conversations are the answers to the queries of a runner.
	conversations []openapi.Conversation
	queries       []openapi.ConversationQuery
	commitError   error
	// refuse decides about results; nil takes them all.
	refuse func(openapi.PromptResult) error
}

func (g *fakeGateway) change(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()

	f()
	close(g.changed)
	g.changed = make(chan struct{})
}

func refusal(status int) error {
	return &client.Problem{Problem: openapi.Problem{Status: status, Title: "refused"}}
}

func (g *fakeGateway) GetSession(context.Context, string, string) (*openapi.Session, error) {
	return &g.session, nil
}

func (g *fakeGateway) NextPrompt(ctx context.Context, _, _ string, after int64, wait time.Duration) (*openapi.Prompt, error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		g.mu.Lock()
		var found *openapi.Prompt
		if p := g.prompt; p != nil && !g.done && (p.Sequence > after || p.Sequence == after && p.Cancel) {
			copied := *p
			found = &copied
		}
		gone, changed := g.gone, g.changed
		g.mu.Unlock()
		switch {
		case gone:
			return nil, refusal(401)
		case found != nil:
			return found, nil
		}
		select {
		case <-changed:
		case <-timer.C:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (g *fakeGateway) AckPrompt(context.Context, string, string, string) error { return g.ackError }

func (g *fakeGateway) FinishPrompt(_ context.Context, _, _, id string, result openapi.PromptResult) error {
	if g.refuse != nil {
		if err := g.refuse(result); err != nil {
			return err
		}
	}
	g.change(func() {
		g.results[id] = result
		g.done = true
		g.order = append(g.order, "result "+id)
	})
	return nil
}

func (g *fakeGateway) AppendEvents(_ context.Context, _, _ string, events []openapi.Event) (int64, error) {
	g.change(func() {
		for _, event := range events {
			if event.Sequence == int64(len(g.events))+1 {
				g.events = append(g.events, event)
				g.order = append(g.order, event.Type)
			}
		}
	})
	return int64(len(g.events)), nil
}

func (g *fakeGateway) ListItems(context.Context, string, string) (*openapi.Items, error) {
	g.mu.Lock()
	defer g.mu.Unlock()

	return &openapi.Items{Items: slices.Clone(g.drafts)}, g.draftsError
}

func (g *fakeGateway) OpenConversation(_ context.Context, _, _ string, query openapi.ConversationQuery) (*openapi.Conversation, error) {
	g.mu.Lock()
	defer g.mu.Unlock()

	g.queries = append(g.queries, query)
	found := g.conversations[0]
	g.conversations = g.conversations[1:]
	return &found, nil
}

func (g *fakeGateway) CommitConversation(_ context.Context, _, _, id string) error {
	g.change(func() { g.order = append(g.order, "commit "+id) })
	return g.commitError
}

// stage is a runner with a fake agent and a fake gateway, inside a bubble of
// fake time.
type stage struct {
	t       *testing.T
	agent   *fakeAgent
	gateway *fakeGateway
	stop    context.CancelFunc
	ended   chan error
	log     strings.Builder
	// home of the agent.
	home string
}

// play runs the test with a runner in a bubble. The test must leave the agent
// in a state in which it ends when it is told to.
func play(t *testing.T, change func(*openapi.Session), test func(*stage)) {
	t.Helper()
	playOn(t, func(s *stage) {
		if change != nil {
			change(&s.gateway.session)
		}
	}, test)
}

// playOn is play on a stage that is set first.
func playOn(t *testing.T, set, test func(*stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{t: t, agent: newFakeAgent(t), ended: make(chan error, 1)}
		s.gateway = &fakeGateway{
			changed: make(chan struct{}), results: make(map[string]openapi.PromptResult),
			session: openapi.Session{
				SystemPrompt: "Be helpful.", AllowedTools: []string{"mcp__workbench__get_item", "Bash(jq *)"},
				MCPServers: []openapi.MCPServer{{Name: "@axiom-workbench"}}, PermissionPolicy: openapi.PermissionPolicyAllowlist,
				TurnTimeout: "30m0s",
			},
		}
		set(s)
		ctx, stop := context.WithCancel(t.Context())
		s.stop = stop
		go func() { s.ended <- Run(ctx, s.config()) }()
		test(s)
		s.stop()
		synctest.Wait()
		s.agent.exit(0)
	})
}

func (s *stage) config() Config {
	return Config{
		Environment: Environment{
			APIURL: "https://gateway/api/v1", Token: "tok-0123456789", CAFile: "/etc/axiom/ca.crt",
			Namespace: "team-a", Name: "helper", Attempt: 2, Composition: "team-a/triage", MCPCommand: "/axiom/axiom-mcp", Home: s.home,
			Secrets: []string{"tok-0123456789", "hunter2-hunter2"},
		},
		Gateway: s.gateway, Launch: func() (Agent, error) { return s.agent, nil }, Dir: "/work",
		Timing: DefaultTiming(), Now: time.Now, Log: slog.New(slog.NewTextHandler(&s.log, nil)),
	}
}

// queue queues a prompt.
func (s *stage) queue(id, text string) { s.queuePrompt(openapi.Prompt{ID: id, Text: text}) }

func (s *stage) queuePrompt(prompt openapi.Prompt) {
	s.gateway.change(func() {
		prompt.Sequence = 1
		if s.gateway.prompt != nil {
			prompt.Sequence = s.gateway.prompt.Sequence + 1
		}
		s.gateway.prompt, s.gateway.done = &prompt, false
	})
}

func (s *stage) interrupt() { s.gateway.change(func() { s.gateway.prompt.Cancel = true }) }

// result returns the result of a prompt once everything has come to rest; its
// usage is not looked at.
func (s *stage) result(id string) openapi.PromptResult {
	s.t.Helper()
	synctest.Wait()
	result, ok := s.gateway.results[id]
	if !ok {
		s.t.Fatalf("no result of %s; events: %s", id, s.events())
	}
	result.Usage = nil
	return result
}

// end waits for the end of the runner.
func (s *stage) end() error { return <-s.ended }

// events returns every event, a line each, once they had the time to be sent.
func (s *stage) events() string {
	time.Sleep(2 * time.Second)
	synctest.Wait()
	var lines []string
	for i, event := range s.gateway.events {
		line := event.Type + " " + string(event.Data)
		if event.Sequence != int64(i+1) {
			line = strconv.FormatInt(event.Sequence, 10) + "?" + line
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

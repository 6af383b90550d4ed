package client

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/gateway/openapi"
)

// answer is one canned answer of a gateway.
type answer struct {
	status     int
	body       string
	retryAfter string
	// hangUp closes the connection instead.
	hangUp bool
}

// script is a gateway that plays answers in order, and records what it was asked.
type script struct {
	mu       sync.Mutex
	answers  []answer
	requests []asked
}

// asked is one request.
type asked struct{ route, body, token string }

// seen are the requests up to now.
func (s *script) seen() []asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *script) next(request asked) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, request)
	if len(s.answers) == 0 {
		return answer{status: http.StatusTeapot}
	}
	next := s.answers[0]
	s.answers = s.answers[1:]
	return next
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	next := s.next(asked{r.Method + " " + r.URL.String(), string(body), r.Header.Get(TokenHeader)})
	if next.hangUp {
		connection, _, _ := w.(http.Hijacker).Hijack()
		_ = connection.Close()
		return
	}
	if next.retryAfter != "" {
		w.Header().Set("Retry-After", next.retryAfter)
	}
	w.Header().Set("Content-Type", "application/json")
	if next.status >= 400 {
		w.Header().Set("Content-Type", "application/problem+json")
	}
	w.WriteHeader(next.status)
	_, _ = io.WriteString(w, next.body)
}

// start serves the script and returns a client of it that records its pauses
// instead of making them.
func (s *script) start(t *testing.T) (*Client, *[]time.Duration) {
	t.Helper()
	gateway := httptest.NewServer(s)
	t.Cleanup(gateway.Close)
	c, err := New(gateway.URL+"/api/v1", "the-token", "")
	if err != nil {
		t.Fatal(err)
	}
	pauses := &[]time.Duration{}
	c.pause = func(_ context.Context, d time.Duration) error {
		*pauses = append(*pauses, d)
		return nil
	}
	return c, pauses
}

const busy = `{"status":503,"title":"Service Unavailable","code":"unavailable","detail":"later"}`

func TestCalls(t *testing.T) {
	for name, tc := range map[string]struct {
		answer   answer
		do       func(context.Context, *Client) (any, error)
		request  string
		body     string
		want     any
		wantFail string
	}{
		"get composition": {
			answer{status: 200, body: `{"compositionId":"a/b","workflow":{"n":9007199254740993},"items":[]}`},
			func(ctx context.Context, c *Client) (any, error) { return c.GetAgentComposition(ctx, "a", "b") },
			"GET /api/v1/compositions/a/b/agent/composition", "",
			&openapi.AgentComposition{CompositionID: "a/b", Workflow: json.RawMessage(`{"n":9007199254740993}`), Items: []openapi.Item{}}, "",
		},
		"propose": {
			answer{status: 200, body: `{"applied":false,"problems":[],"error":{"code":"malformed","opIndex":0,"reason":"r"}}`},
			func(ctx context.Context, c *Client) (any, error) {
				return c.ProposeWorkflowChanges(ctx, "a", "b", json.RawMessage(`{"ops":[1.0]}`))
			},
			"POST /api/v1/compositions/a/b/agent/workflow/changesets", `{"ops":[1.0]}`,
			&openapi.ProposalResult{
				Problems: []openapi.ItemProblem{},
				Error:    &openapi.Rejection{Code: openapi.RejectionCodeMalformed, OpIndex: new(int), Reason: "r"},
			}, "",
		},
		"evaluate": {
			answer{status: 200, body: `{"ok":true,"valueJson":"42","valueType":"number"}`},
			func(ctx context.Context, c *Client) (any, error) {
				return c.EvaluateExpression(ctx, openapi.Evaluation{Expression: "1", Scope: "s", Context: json.RawMessage(`{}`)})
			},
			"POST /api/v1/expressions/evaluate", `{"context":{},"expression":"1","scope":"s"}`,
			&openapi.EvaluationResult{Ok: true, ValueJSON: "42", ValueType: openapi.ValueTypeNumber}, "",
		},
		"get item": {
			answer{status: 200, body: `{"name":"a"}`},
			func(ctx context.Context, c *Client) (any, error) {
				return c.GetAgentItem(ctx, "a", "b", "tool", "x/y z")
			},
			"GET /api/v1/compositions/a/b/agent/items/tool/x%2Fy%20z", "", json.RawMessage(`{"name":"a"}`), "",
		},
		"upsert item": {
			answer{status: 200, body: `{"type":"tool","name":"a","contentRevision":"r","valid":true,"problems":[]}`},
			func(ctx context.Context, c *Client) (any, error) {
				return c.UpsertAgentItem(ctx, "a", "b", openapi.ItemChange{Type: "tool", Content: json.RawMessage(`{"s":"<"}`)})
			},
			"PUT /api/v1/compositions/a/b/agent/items", `{"content":{"s":"<"},"type":"tool"}`,
			&openapi.Item{Type: "tool", Name: "a", ContentRevision: "r", Valid: true, Problems: []openapi.ItemProblem{}}, "",
		},
		"remove item": {
			answer{status: 204},
			func(ctx context.Context, c *Client) (any, error) {
				return nil, c.RemoveAgentItem(ctx, "a", "b", openapi.ItemRef{Type: "tool", Name: "x"}, new(string))
			},
			"DELETE /api/v1/compositions/a/b/agent/items/tool/x?baseRevision=", "", nil, "",
		},
		"list drafts": {
			answer{status: 200, body: `{"items":[]}`},
			func(ctx context.Context, c *Client) (any, error) { return c.ListItems(ctx, "a", "b") },
			"GET /api/v1/sessions/a/b/items", "", &openapi.Items{Items: []openapi.Item{}}, "",
		},
		"get draft": {
			answer{status: 200, body: `{"name":"a"}`},
			func(ctx context.Context, c *Client) (any, error) { return c.GetItem(ctx, "a", "b", "tool", "x") },
			"GET /api/v1/sessions/a/b/items/tool/x", "", json.RawMessage(`{"name":"a"}`), "",
		},
		"put draft": {
			answer{status: 200, body: `{"name":"a"}`},
			func(ctx context.Context, c *Client) (any, error) {
				return c.PutItem(ctx, "a", "b", openapi.ItemChange{Type: "tool", Content: json.RawMessage(`{}`)})
			},
			"PUT /api/v1/sessions/a/b/items", `{"content":{},"type":"tool"}`, &openapi.Item{Name: "a"}, "",
		},
		"remove draft": {
			answer{status: 204},
			func(ctx context.Context, c *Client) (any, error) {
				return nil, c.RemoveItem(ctx, "a", "b", openapi.ItemRef{Type: "tool", Name: "x"}, nil)
			},
			"DELETE /api/v1/sessions/a/b/items/tool/x", "", nil, "",
		},
		"validate": {
			answer{status: 200, body: `{"valid":true,"problems":[]}`},
			func(ctx context.Context, c *Client) (any, error) {
				return c.ValidateItem(ctx, "a", "b", openapi.Validation{Type: "tool", Item: json.RawMessage(`{}`)})
			},
			"POST /api/v1/sessions/a/b/validate", `{"item":{},"type":"tool"}`,
			&openapi.ValidationResult{Valid: true, Problems: []openapi.ItemProblem{}}, "",
		},
		"list events": {
			answer{status: 200, body: `{"items":[{"id":"e1"}]}`},
			func(ctx context.Context, c *Client) (any, error) {
				limit := 3
				return c.ListStreamEvents(ctx, openapi.ListStreamEventsParams{FilterRef: "a b", Limit: &limit})
			},
			"GET /api/v1/stream/events?namespace=&filterType=&filterEventSourceId=&filterRef=a+b&limit=3", "", &openapi.StreamEvents{Items: []json.RawMessage{json.RawMessage(`{"id":"e1"}`)}}, "",
		},
		"get event": {
			answer{status: 200, body: `{"id":"e1"}`},
			func(ctx context.Context, c *Client) (any, error) { return c.GetStreamEvent(ctx, "e1") },
			"GET /api/v1/stream/events/e1", "", json.RawMessage(`{"id":"e1"}`), "",
		},
		"list library": {
			answer{status: 200, body: `{"items":[]}`},
			func(ctx context.Context, c *Client) (any, error) { return c.ListLibrary(ctx, openapi.LibraryKindTools) },
			"GET /api/v1/library/tools", "", &openapi.Library{Items: []openapi.LibraryEntry{}}, "",
		},
		"get library object": {
			answer{status: 200, body: `{"mode":"script"}`},
			func(ctx context.Context, c *Client) (any, error) {
				return c.GetLibrary(ctx, openapi.LibraryKindActionTypes, "x")
			},
			"GET /api/v1/library/action-types/x", "", json.RawMessage(`{"mode":"script"}`), "",
		},
		"get session": {
			answer{status: 200, body: `{"systemPrompt":"p","runnerSequence":7}`},
			func(ctx context.Context, c *Client) (any, error) { return c.GetSession(ctx, "a", "b") },
			"GET /api/v1/sessions/a/b", "", &openapi.Session{SystemPrompt: "p", RunnerSequence: 7}, "",
		},
		"next prompt": {
			answer{status: 200, body: `{"sequence":4,"id":"t","text":"hi","newConversation":false,"cancel":true}`},
			func(ctx context.Context, c *Client) (any, error) {
				return c.NextPrompt(ctx, "a", "b", 3, 55*time.Second)
			},
			"GET /api/v1/sessions/a/b/prompts?after=3&wait=55", "", &openapi.Prompt{Sequence: 4, ID: "t", Text: "hi", Cancel: true}, "",
		},
		"no prompt": {
			answer{status: 204},
			func(ctx context.Context, c *Client) (any, error) { return c.NextPrompt(ctx, "a", "b", 0, 0) },
			"GET /api/v1/sessions/a/b/prompts?after=0&wait=0", "", (*openapi.Prompt)(nil), "",
		},
		"acknowledge": {
			answer{status: 204},
			func(ctx context.Context, c *Client) (any, error) { return nil, c.AckPrompt(ctx, "a", "b", "t") },
			"POST /api/v1/sessions/a/b/prompts/t/ack", "", nil, "",
		},
		"finish": {
			answer{status: 204},
			func(ctx context.Context, c *Client) (any, error) {
				return nil, c.FinishPrompt(ctx, "a", "b", "t", openapi.PromptResult{Outcome: openapi.PromptOutcomeCompleted, Usage: &openapi.Usage{InputTokens: 1}})
			},
			"POST /api/v1/sessions/a/b/prompts/t/result", `{"outcome":"Completed","usage":{"inputTokens":1}}`, nil, "",
		},
		"append nothing": {
			answer{status: 200, body: `{"acceptedThrough":9}`},
			func(ctx context.Context, c *Client) (any, error) { return c.AppendEvents(ctx, "a", "b", nil) },
			"POST /api/v1/sessions/a/b/events", `{"events":[]}`, int64(9), "",
		},
		"attempt result": {
			answer{status: 204},
			func(ctx context.Context, c *Client) (any, error) {
				return nil, c.PostAttemptResult(ctx, "a", "p", openapi.AttemptResult{ExitCode: 0, Outputs: json.RawMessage(`{}`)})
			},
			"POST /api/v1/attempts/a/p/result", `{"exitCode":0,"outputs":{}}`, nil, "",
		},
		"an answer that is no JSON": {
			answer{status: 200, body: `<html>`},
			func(ctx context.Context, c *Client) (any, error) { return c.GetSession(ctx, "a", "b") },
			"GET /api/v1/sessions/a/b", "", (*openapi.Session)(nil), "get session: decode answer: invalid character '<' looking for beginning of value",
		},
		"a refusal": {
			answer{status: 409, body: `{"status":409,"code":"no-turn","title":"Conflict","detail":"No AI turn is running"}`},
			func(ctx context.Context, c *Client) (any, error) { return nil, c.AckPrompt(ctx, "a", "b", "t") },
			"POST /api/v1/sessions/a/b/prompts/t/ack", "", nil, "acknowledge prompt: HTTP 409: No AI turn is running",
		},
		"a redirection": {
			answer{status: 302},
			func(ctx context.Context, c *Client) (any, error) { return nil, c.AckPrompt(ctx, "a", "b", "t") },
			"POST /api/v1/sessions/a/b/prompts/t/ack", "", nil, "acknowledge prompt: HTTP 302: Found",
		},
	} {
		t.Run(name, func(t *testing.T) {
			gateway := &script{answers: []answer{tc.answer}}
			c, _ := gateway.start(t)
			got, err := tc.do(t.Context(), c)
			if message := errorText(err); message != tc.wantFail {
				t.Fatalf("error %q, want %q", message, tc.wantFail)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			want := []asked{{tc.request, tc.body, "the-token"}}
			if diff := cmp.Diff(want, gateway.seen(), cmp.AllowUnexported(asked{})); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestCallsAreRepeated(t *testing.T) {
	ack := func(ctx context.Context, c *Client) error { return c.AckPrompt(ctx, "a", "b", "t") }
	propose := func(ctx context.Context, c *Client) error {
		_, err := c.ProposeWorkflowChanges(ctx, "a", "b", json.RawMessage(`{}`))
		return err
	}
	done := answer{status: 200, body: `{"applied":true,"problems":[]}`}
	for name, tc := range map[string]struct {
		answers []answer
		do      func(context.Context, *Client) error
		tries   int
		status  int
	}{
		"while the gateway is away":              {[]answer{{status: 503, body: busy}, {status: 502}, {status: 204}}, ack, 3, 0},
		"when the connection breaks":             {[]answer{{hangUp: true}, {status: 204}}, ack, 2, 0},
		"when the caller is too fast":            {[]answer{{status: 429, body: busy}, {status: 204}}, ack, 2, 0},
		"not after a refusal":                    {[]answer{{status: 404, body: busy}}, ack, 1, 404},
		"a proposal when the caller is too fast": {[]answer{{status: 429, body: busy}, done}, propose, 2, 0},
		"a proposal whose answer was lost":       {[]answer{{hangUp: true}, {status: 503, body: busy}, done}, propose, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			gateway := &script{answers: tc.answers}
			c, _ := gateway.start(t)
			err := tc.do(t.Context(), c)
			if got := len(gateway.seen()); got != tc.tries {
				t.Errorf("%d tries, want %d", got, tc.tries)
			}
			var problem *Problem
			if errors.As(err, &problem) != (tc.status != 0) || problem != nil && problem.Status != tc.status {
				t.Errorf("error %v, want status %d", err, tc.status)
			}
		})
	}
}

func TestRemovalWhoseAnswerWasLost(t *testing.T) {
	gone := answer{status: 404, body: `{"status":404,"title":"Not Found","code":"not-found","detail":"no tool/x"}`}
	remove := func(answers ...answer) error {
		s := &script{answers: answers}
		c, _ := s.start(t)
		return c.RemoveAgentItem(t.Context(), "a", "b", openapi.ItemRef{Type: "tool", Name: "x"}, nil)
	}
	if err := remove(answer{hangUp: true}, gone); err != nil {
		t.Errorf("repeated: %v", err)
	}
	if err := remove(gone); err == nil {
		t.Error("what was never there was removed")
	}
}

func TestBodiesAreNotEscaped(t *testing.T) {
	gateway := &script{answers: []answer{{status: 204}}}
	c, _ := gateway.start(t)
	outputs := json.RawMessage(`{"page":"<b>&</b>"}`)
	if err := c.PostAttemptResult(t.Context(), "a", "p", openapi.AttemptResult{Outputs: outputs}); err != nil {
		t.Fatal(err)
	}
	if body := gateway.seen()[0].body; !strings.Contains(body, "<b>&</b>") {
		t.Errorf("the request was %s", body)
	}
}

func TestPausesHonourTheGateway(t *testing.T) {
	gateway := &script{answers: []answer{
		{status: 503, body: busy, retryAfter: "7"},
		{status: 503, body: busy, retryAfter: "86400"},
		{status: 503, body: busy, retryAfter: "soon"},
		{status: 204},
	}}
	c, pauses := gateway.start(t)
	if err := c.AckPrompt(t.Context(), "a", "b", "t"); err != nil {
		t.Fatal(err)
	}
	got := *pauses
	if len(got) != 3 || got[0] != 7*time.Second || got[1] != maxRetryAfter || got[2] > firstPause<<2 {
		t.Errorf("pauses %v", got)
	}
}

func TestPausesGrowToTheirMaximum(t *testing.T) {
	for n, longest := range []time.Duration{
		200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, 1600 * time.Millisecond,
		3200 * time.Millisecond, 6400 * time.Millisecond, 10 * time.Second, 10 * time.Second,
	} {
		for range 50 {
			if got := pauseBefore(n, 0); got < longest/2 || got > longest {
				t.Fatalf("pause %d is %s, want %s to %s", n, got, longest/2, longest)
			}
		}
	}
}

func TestCallEndsWithItsContext(t *testing.T) {
	gateway := &script{answers: []answer{{status: 503, body: busy}, {status: 503, body: busy}}}
	c, _ := gateway.start(t)
	ctx, cancel := context.WithCancel(t.Context())
	c.pause = func(ctx context.Context, _ time.Duration) error {
		cancel()
		return ctx.Err()
	}
	var problem *Problem
	if err := c.AckPrompt(ctx, "a", "b", "t"); !errors.As(err, &problem) || problem.Detail != "later" {
		t.Errorf("got %v, want the last answer", err)
	}
	if got := len(gateway.seen()); got != 1 {
		t.Errorf("%d tries", got)
	}
}

func TestGapNamesWhatIsExpected(t *testing.T) {
	gateway := &script{answers: []answer{{status: 409, body: `{"status":409,"code":"conflict","detail":"d","expected":"6","actual":"9"}`}}}
	c, _ := gateway.start(t)
	_, err := c.AppendEvents(t.Context(), "a", "b", []openapi.Event{{Sequence: 9, Type: "x"}})
	var problem *Problem
	if !errors.As(err, &problem) || problem.Expected != "6" || problem.Code != openapi.ProblemCodeConflict {
		t.Errorf("got %v", err)
	}
}

func TestForeignAnswersArePutInWords(t *testing.T) {
	for name, tc := range map[string]struct {
		contentType, body, want string
	}{
		"no text":      {"text/plain", "", "HTTP 403: Forbidden"},
		"some text":    {"text/html", "<p>go\n\naway</p>", "HTTP 403: <p>go away</p>"},
		"a long text":  {"text/plain", strings.Repeat("x", 1000), "HTTP 403: " + strings.Repeat("x", maxShownBody)},
		"broken JSON":  {"application/problem+json", "{", "HTTP 403: {"},
		"a wrong code": {"application/problem+json; charset=utf-8", `{"status":200,"detail":"d"}`, "HTTP 403: d"},
	} {
		t.Run(name, func(t *testing.T) {
			response := &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {tc.contentType}}}
			if got := problemOf(response, []byte(tc.body)).Error(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAddressMustBeHTTP(t *testing.T) {
	for _, address := range []string{"", "/api/v1", "gateway:8443", "ftp://gateway/api/v1", "https://", "http://a b/"} {
		if _, err := New(address, "the-token", ""); err == nil {
			t.Errorf("%q was taken", address)
		}
	}
}

func TestTrust(t *testing.T) {
	gateway := httptest.NewTLSServer(&script{answers: []answer{{status: 204}}})
	t.Cleanup(gateway.Close)
	directory := t.TempDir()
	file := func(name string, data []byte) string {
		path := filepath.Join(directory, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	trusted := file("ca.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: gateway.Certificate().Raw}))

	c, err := New(gateway.URL+"/api/v1", "the-token", trusted)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AckPrompt(t.Context(), "a", "b", "t"); err != nil {
		t.Errorf("the gateway's own certificate was refused: %v", err)
	}
	if _, err := New(gateway.URL, "the-token", file("empty.crt", []byte("no certificate"))); err == nil {
		t.Error("a file without certificates was taken")
	}
	if _, err := New(gateway.URL, "the-token", filepath.Join(directory, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	stranger, err := New(gateway.URL+"/api/v1", "the-token", "")
	if err != nil {
		t.Fatal(err)
	}
	stranger.pause = func(context.Context, time.Duration) error { return context.Canceled }
	if err := stranger.AckPrompt(t.Context(), "a", "b", "t"); err == nil {
		t.Error("an unknown certificate was trusted")
	}
}

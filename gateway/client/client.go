package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/apitomy/axiom-operator/gateway/openapi"
)

// TokenHeader carries the token of a session or of an action attempt.
const TokenHeader = "X-Axiom-Session-Token"

const (
	// callTimeout bounds one try of a call that the gateway answers at once.
	callTimeout = 30 * time.Second
	// pollSlack is what a long poll gets beyond the time it asked for.
	pollSlack = 15 * time.Second
)

// A Client calls one gateway with one token. It may be used by several
// goroutines at once. It is made by [New].
type Client struct {
	calls openapi.ClientInterface
	// pause waits, or returns the context's error if that ends first.
	pause func(context.Context, time.Duration) error
}

// New makes a client of the gateway at baseURL, which includes the path
// /api/v1. The file caFile holds the certificates to trust, in PEM; without
// one it is those of the system.
func New(baseURL, token, caFile string) (*Client, error) {
	transport, err := newTransport(caFile)
	if err != nil {
		return nil, err
	}
	return NewOver(transport, baseURL, token)
}

// NewOver makes a client that reaches the gateway at baseURL in a way of the
// caller's own.
func NewOver(transport http.RoundTripper, baseURL, token string) (*Client, error) {
	if address, err := url.Parse(baseURL); err != nil || address.Host == "" || address.Scheme != "https" && address.Scheme != "http" {
		return nil, fmt.Errorf("make gateway client: %q is no HTTP address", baseURL)
	}
	addToken := func(_ context.Context, request *http.Request) error {
		request.Header.Set(TokenHeader, token)
		return nil
	}
	calls, err := openapi.NewClient(baseURL,
		openapi.WithHTTPClient(&http.Client{Transport: transport, CheckRedirect: refuseRedirect}),
		openapi.WithRequestEditorFn(addToken))
	if err != nil {
		return nil, fmt.Errorf("make gateway client: %w", err)
	}
	return &Client{calls: calls, pause: pause}, nil
}

// refuseRedirect takes a redirection for the answer: the gateway has none, and
// the token must not follow somebody else's.
func refuseRedirect(*http.Request, []*http.Request) error {
	return http.ErrUseLastResponse
}

func newTransport(caFile string) (*http.Transport, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	// The pod reaches the gateway directly or not at all, and an agent's image
	// must not be able to lead the token elsewhere.
	transport.Proxy = nil
	if caFile == "" {
		return transport, nil
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("read gateway certificates: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read gateway certificates: no certificate in %s", caFile)
	}
	transport.TLSClientConfig.RootCAs = roots
	return transport, nil
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// GetAgentComposition returns the composition as its agent sees it.
func (c *Client) GetAgentComposition(ctx context.Context, namespace, name string) (*openapi.AgentComposition, error) {
	var answer openapi.AgentComposition
	err := c.do(ctx, call{
		timeout: callTimeout, answer: &answer,
		try: func(ctx context.Context) (*http.Response, error) {
			return c.calls.GetAgentComposition(ctx, namespace, name)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("get composition: %w", err)
	}
	return &answer, nil
}

// ProposeWorkflowChanges proposes a change set, any JSON value, and returns
// what came of it. A refused change set is no error. One whose answer was lost
// is sent again; if it had been taken, it is stale then, and its author finds
// it in the draft.
func (c *Client) ProposeWorkflowChanges(ctx context.Context, namespace, name string, changeSet json.RawMessage) (*openapi.ProposalResult, error) {
	var answer openapi.ProposalResult
	err := c.do(ctx, call{
		timeout: callTimeout, answer: &answer,
		try: func(ctx context.Context) (*http.Response, error) {
			body, err := encode(changeSet)
			if err != nil {
				return nil, err
			}
			return c.calls.ProposeAgentWorkflowChangesWithBody(ctx, namespace, name, contentType, body)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("propose workflow changes: %w", err)
	}
	return &answer, nil
}

// EvaluateExpression evaluates an expression as a run would. An expression
// without a value is no error.
func (c *Client) EvaluateExpression(ctx context.Context, evaluation openapi.Evaluation) (*openapi.EvaluationResult, error) {
	var answer openapi.EvaluationResult
	err := c.do(ctx, call{
		timeout: callTimeout, answer: &answer,
		try: func(ctx context.Context) (*http.Response, error) {
			return c.calls.EvaluateExpression(ctx, nil, evaluation)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("evaluate expression: %w", err)
	}
	return &answer, nil
}

// GetSession returns how to set the session's agent up.
func (c *Client) GetSession(ctx context.Context, namespace, name string) (*openapi.Session, error) {
	var answer openapi.Session
	err := c.do(ctx, call{
		timeout: callTimeout, answer: &answer,
		try: func(ctx context.Context) (*http.Response, error) {
			return c.calls.GetSession(ctx, namespace, name)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("get session: %w", err)
	}
	return &answer, nil
}

// NextPrompt waits, at most wait (whole seconds, up to 55), for a prompt newer
// than after, or for the cancellation of that one. It returns nil when there
// was nothing new.
func (c *Client) NextPrompt(ctx context.Context, namespace, name string, after int64, wait time.Duration) (*openapi.Prompt, error) {
	params := &openapi.NextPromptParams{After: after, Wait: int64(wait / time.Second)}
	answer := &openapi.Prompt{}
	err := c.do(ctx, call{
		timeout: wait + pollSlack, answer: answer,
		try: func(ctx context.Context) (*http.Response, error) {
			return c.calls.NextPrompt(ctx, namespace, name, params)
		},
	})
	if errors.Is(err, errNoContent) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get next prompt: %w", err)
	}
	return answer, nil
}

// AckPrompt tells that the prompt arrived.
func (c *Client) AckPrompt(ctx context.Context, namespace, name, id string) error {
	err := c.do(ctx, call{
		timeout: callTimeout,
		try: func(ctx context.Context) (*http.Response, error) {
			return c.calls.AckPrompt(ctx, namespace, name, id)
		},
	})
	if err != nil {
		return fmt.Errorf("acknowledge prompt: %w", err)
	}
	return nil
}

// OpenConversation asks which conversation the agent of a new pod shall have.
func (c *Client) OpenConversation(ctx context.Context, namespace, name string, query openapi.ConversationQuery) (*openapi.Conversation, error) {
	return get[openapi.Conversation](ctx, c, "open conversation", func(ctx context.Context) (*http.Response, error) {
		return c.calls.OpenConversation(ctx, namespace, name, query)
	})
}

// CommitConversation holds the session to the conversation that its agent began.
func (c *Client) CommitConversation(ctx context.Context, namespace, name, id string) error {
	err := c.do(ctx, call{
		timeout: callTimeout,
		try: func(ctx context.Context) (*http.Response, error) {
			return c.calls.CommitConversation(ctx, namespace, name, openapi.ConversationCommit{ID: id})
		},
	})
	if err != nil {
		return fmt.Errorf("commit conversation: %w", err)
	}
	return nil
}

// FinishPrompt tells how the prompt ended.
func (c *Client) FinishPrompt(ctx context.Context, namespace, name, id string, result openapi.PromptResult) error {
	err := c.do(ctx, call{
		timeout: callTimeout,
		try: func(ctx context.Context) (*http.Response, error) {
			return c.calls.FinishPrompt(ctx, namespace, name, id, result)
		},
	})
	if err != nil {
		return fmt.Errorf("finish prompt: %w", err)
	}
	return nil
}

// AppendEvents appends events to the session's journal, or, without events,
// shows that the runner lives. It returns the sequence of the newest event of
// this pod in the journal. A gap is a [*Problem] whose Expected is the sequence
// to go on with.
func (c *Client) AppendEvents(ctx context.Context, namespace, name string, events []openapi.Event) (int64, error) {
	batch := openapi.EventBatch{Events: append([]openapi.Event{}, events...)} // never null
	var answer openapi.EventReceipt
	err := c.do(ctx, call{
		timeout: callTimeout, answer: &answer,
		try: func(ctx context.Context) (*http.Response, error) {
			return c.calls.AppendEvents(ctx, namespace, name, batch)
		},
	})
	if err != nil {
		return 0, fmt.Errorf("append events: %w", err)
	}
	return answer.AcceptedThrough, nil
}

// PostAttemptResult tells how the script of an action attempt ended.
func (c *Client) PostAttemptResult(ctx context.Context, namespace, pod string, result openapi.AttemptResult) error {
	err := c.do(ctx, call{
		timeout: callTimeout,
		try: func(ctx context.Context) (*http.Response, error) {
			body, err := encode(result)
			if err != nil {
				return nil, err
			}
			return c.calls.PostAttemptResultWithBody(ctx, namespace, pod, contentType, body)
		},
	})
	if err != nil {
		return fmt.Errorf("post attempt result: %w", err)
	}
	return nil
}

package runner

import (
	"encoding/json"
	"sync"

	acp "github.com/coder/acp-go-sdk"

	"github.com/apitomy/axiom-operator/runner/permission"
)

// acpClient is the runner's side of the Agent Client Protocol: it takes the
// agent's updates, answers its permission requests and lends it nothing.
type acpClient struct {
	transcript *transcript
	policy     permission.Policy
	// refuse means that asking for anything, or calling any tool, fails the
	// prompt.
	refuse bool
	// violations tells, without waiting, what the agent was refused.
	violations chan string

	mu         sync.Mutex
	session    acp.SessionId
	cancelling bool
	// loading: the agent tells what was said in the conversation that it takes up,
	// which is no news. isOther: it told of another conversation.
	loading, isOther bool
}

func newACPClient(transcript *transcript, policy permission.Policy, refuse bool) *acpClient {
	return &acpClient{transcript: transcript, policy: policy, refuse: refuse, violations: make(chan string, 1)}
}

// Request implements rpc.Handler.
func (c *acpClient) Request(method string, params json.RawMessage) (any, *acp.RequestError) {
	if method == acp.ClientMethodSessionRequestPermission {
		return c.requestPermission(params)
	}
	c.violate(method)
	return nil, acp.NewMethodNotFound(method)
}

func (c *acpClient) requestPermission(params json.RawMessage) (any, *acp.RequestError) {
	var request permissionRequest
	if err := decodeParams(params, &request); err != nil {
		return nil, acp.NewInvalidParams(err.Error())
	}
	call := c.transcript.ask(request)
	outcome, allowed := c.decide(request, call)
	c.transcript.resolve(request.ToolCall.ToolCallID, allowed)
	return acp.RequestPermissionResponse{Outcome: outcome}, nil
}

func (c *acpClient) decide(request permissionRequest, call permission.Call) (acp.RequestPermissionOutcome, bool) {
	if c.isCancelling() {
		return permission.Cancelled(), false
	}
	if c.refuse {
		c.violate(call.Name)
		return permission.Answer(request.Options, false)
	}
	return permission.Answer(request.Options, c.policy.Allows(call))
}

// Notify implements rpc.Handler.
func (c *acpClient) Notify(method string, params json.RawMessage) {
	if method != acp.ClientMethodSessionUpdate {
		return
	}
	var notice sessionUpdate
	if decodeParams(params, &notice) != nil {
		c.transcript.add(update{Kind: updateMalformed})
		return
	}
	if c.isReplay(notice.SessionID) || !c.isOf(notice.SessionID) {
		return
	}
	if tool, isCall := c.transcript.add(notice.Update); isCall {
		c.violate(tool)
	}
}

// violate notes the first thing that the agent had no business with; the
// others add nothing.
func (c *acpClient) violate(what string) {
	if !c.refuse {
		return
	}
	if what == "" {
		what = "a tool without a name"
	}
	select {
	case c.violations <- what:
	default:
	}
}

// begin makes the client ready for a prompt.
func (c *acpClient) begin() {
	c.mu.Lock()
	c.cancelling = false
	c.mu.Unlock()

	select {
	case <-c.violations:
	default:
	}
	c.transcript.begin()
}

// cancel makes every permission request from now on be answered as cancelled.
func (c *acpClient) cancel() {
	c.mu.Lock()
	c.cancelling = true
	c.mu.Unlock()

	c.transcript.interrupt()
}

func (c *acpClient) isCancelling() bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.cancelling
}

// beginLoad makes updates count as what was said before, until endLoad.
func (c *acpClient) beginLoad(session acp.SessionId) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.session, c.loading, c.isOther = session, true, false
}

// endLoad tells whether any of those updates was of another conversation.
func (c *acpClient) endLoad() (isOther bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.loading = false
	return c.isOther
}

// isReplay reports whether an update is of what was said before.
func (c *acpClient) isReplay(session acp.SessionId) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.loading && session != c.session {
		c.isOther = true
	}
	return c.loading
}

// isOf reports whether an update is of the present conversation. Those that
// come while a conversation is being opened are: its id is in an answer that
// the agent may send after them.
func (c *acpClient) isOf(session acp.SessionId) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.session == "" || c.session == session
}

func (c *acpClient) setSession(session acp.SessionId) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.session = session
}

func (c *acpClient) currentSession() acp.SessionId {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.session
}

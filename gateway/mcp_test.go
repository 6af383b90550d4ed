package gateway_test

import (
	"context"
	"encoding/pem"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/internal/testing/testenv"
)

// withToken adds a session's token to every request, as an agent's settings do.
type withToken struct {
	token string
	next  http.RoundTripper
}

func (t withToken) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("X-Axiom-Session-Token", t.token)
	return t.next.RoundTrip(request)
}

// overHTTP connects an agent to the gateway's own server.
func (w *world) overHTTP(path, token string) *mcp.ClientSession {
	GinkgoHelper()
	return connect(w.ctx, &mcp.StreamableClientTransport{
		Endpoint:   w.url + path,
		HTTPClient: &http.Client{Transport: withToken{token, issuer.Client().Transport}},
	})
}

// overStdio connects an agent to the program that is in every pod.
func (w *world) overStdio(binary, server, token string, env ...string) *mcp.ClientSession {
	GinkgoHelper()
	caFile := filepath.Join(GinkgoT().TempDir(), "ca.crt")
	Expect(os.WriteFile(caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: issuer.Certificate().Raw}), 0o600)).To(Succeed())
	command := exec.Command(binary, "--server", server)
	command.Env = append(slices.Clone(env), "AXIOM_API_URL="+w.url+"/api/v1", "AXIOM_SESSION_TOKEN="+token, "AXIOM_CA_FILE="+caFile)
	return connect(w.ctx, &mcp.CommandTransport{Command: command})
}

func connect(ctx context.Context, transport mcp.Transport) *mcp.ClientSession {
	GinkgoHelper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(ctx, transport, nil)
	Expect(err).NotTo(HaveOccurred())
	// How a program ends that is no longer needed is nobody's concern.
	DeferCleanup(func() { _ = session.Close() })
	return session
}

type toolCall struct {
	tool      string
	arguments map[string]any
	want      string
}

var workbenchCalls = []toolCall{
	{"get_composition", nil, `"workflowRevision": "` + revisionText() + `"`},
	{"validate_composition", nil, "workflow 'triage': VALID"},
	{"upsert_item", map[string]any{"type": "tool", "item": map[string]any{"name": "ask", "description": "Asks", "scriptTemplate": "echo"}}, "VALID"},
	{"upsert_item", map[string]any{"type": "tool", "item": map[string]any{"name": "bad", "interpreter": "cobol"}}, "INVALID\n- [ERROR] interpreter INVALID_INTERPRETER: "},
	{"upsert_item", map[string]any{"type": "rule", "item": map[string]any{"name": "x"}}, "HTTP 400: Unknown type of item"},
	{"get_item", map[string]any{"type": "tool", "name": "ask"}, "\"description\": \"Asks\""},
	{"get_item", map[string]any{"type": "tool", "name": "../ask"}, "HTTP 404: The composition has no tool/../ask"},
	{"get_item", map[string]any{"type": "tool", "name": ".."}, "HTTP 404: "},
	{"remove_item", map[string]any{"type": "tool", "name": "nothing"}, "HTTP 404: The composition has no tool/nothing"},
	{"propose_workflow_changes", map[string]any{"changeSet": map[string]any{"id": "cs", "baseRevision": "sha256:00", "ops": []any{}}}, "REJECTED (stale): Base revision sha256:00"},
	{"propose_workflow_changes", map[string]any{"changeSet": "all"}, `want "object"`},
	{"list_stream_events", map[string]any{"type": "push", "limit": 1}, "e1 push gh r1 actor=- at - keys=[n]"},
	{"get_stream_event", map[string]any{"eventId": "e1", "path": "payload.n"}, "1"},
	{"get_stream_event", map[string]any{"eventId": "e1", "path": "payload.m"}, "No value at path payload.m"},
	{"evaluate_expression", map[string]any{"expression": "context.n + 1", "scope": "action-input", "context": map[string]any{"n": 41}}, "OK (number): 42"},
	{"evaluate_expression", map[string]any{"expression": "context.(", "scope": "action-input"}, "ERROR: "},
	{"axiom_list_action_types", nil, "[]"},
	{"axiom_get_action_type", map[string]any{"name": "nothing"}, "HTTP 404: "},
	{"axiom_list_tools", nil, `"name": "shared"`},
	{"axiom_get_tool", map[string]any{"name": "shared"}, `"description": "Shared"`},
	{"axiom_list_secrets", nil, "No secrets."},
}

var assistantCalls = []toolCall{
	{"axiom_put_item", map[string]any{"type": "tool", "item": map[string]any{"name": "ask", "description": "Asks", "scriptTemplate": "echo"}}, "VALID"},
	{"axiom_list_items", nil, "tool 'ask': VALID"},
	{"axiom_get_item", map[string]any{"type": "tool", "name": "ask"}, `"name": "ask"`},
	{"axiom_validate_item", map[string]any{"type": "tool", "item": map[string]any{"name": "bad", "interpreter": "cobol"}}, "INVALID\n"},
	{"axiom_remove_item", map[string]any{"type": "tool", "name": "nothing"}, "HTTP 404: The session has no draft of tool/nothing"},
	{"axiom_list_tools", nil, `"name": "shared"`},
}

var _ = Describe("The tools of agents", func() {
	var w *world

	BeforeEach(func(ctx context.Context) {
		w = newWorld(ctx, interceptor.Funcs{})
		comp := w.composition("triage", blank())
		w.operate()
		w.session("triage-agent", "triage")
		w.turn(w.observed(comp), "triage-1")
		helper := w.session("helper", "")
		helper.Status.Capabilities = []string{"config-items"}
		Expect(k8s.Status().Update(ctx, helper)).To(Succeed())
		w.event("e1", "push", "gh", "r1", map[string]any{"n": 1})
		Expect(k8s.Create(ctx, &api.Tool{ObjectMeta: meta(w, "shared"), Spec: api.ToolSpec{Description: "Shared", ScriptTemplate: "echo"}})).To(Succeed())
	}, NodeTimeout(time.Minute))

	It("workbench 50: are the same over stdio and HTTP, with their types and their texts", func(ctx context.Context) {
		w.ctx = ctx
		binary := filepath.Join(GinkgoT().TempDir(), "axiom-mcp")
		build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/axiom-mcp")
		build.Dir = testenv.Root()
		output, err := build.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(output))

		for _, tc := range []struct {
			server, path, session, env string
			calls                      []toolCall
		}{
			{"workbench", "/mcp", "triage-agent", "AXIOM_COMPOSITION_ID=" + w.namespace + "/triage", workbenchCalls},
			{"axiom", "/mcp/axiom", "helper", "AXIOM_ASSISTANT_SESSION_ID=" + w.namespace + "/helper", assistantCalls},
		} {
			token := tokenOf(w, tc.session)
			stdio, web := w.overStdio(binary, tc.server, token, tc.env), w.overHTTP(tc.path, token)
			local, err := stdio.ListTools(ctx, nil)
			Expect(err).NotTo(HaveOccurred())
			remote, err := web.ListTools(ctx, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(compactJSON(remote.Tools)).To(MatchJSON(compactJSON(local.Tools)))
			Expect(web.InitializeResult().ServerInfo.Name).To(Equal(tc.server))
			for _, call := range tc.calls {
				By(call.tool + " " + compactJSON(call.arguments))
				w.clock.Step(time.Second)
				params := &mcp.CallToolParams{Name: call.tool, Arguments: call.arguments}
				one, err := stdio.CallTool(ctx, params)
				Expect(err).NotTo(HaveOccurred())
				other, err := web.CallTool(ctx, params)
				Expect(err).NotTo(HaveOccurred())
				Expect(compactJSON(other)).To(Equal(compactJSON(one)))
				Expect(one.Content).To(HaveLen(1))
				Expect(one.Content[0].(*mcp.TextContent).Text).To(ContainSubstring(call.want))
				isFailure := strings.HasPrefix(call.want, "HTTP ") || strings.HasPrefix(call.want, "No value") || strings.HasPrefix(call.want, "want ")
				Expect(one.IsError).To(Equal(isFailure))
			}
		}
	}, NodeTimeout(2*time.Minute))

	It("need a token on every request over HTTP, and work on what it opens", func(ctx context.Context) {
		w.ctx = ctx
		initialize := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
		for _, path := range []string{"/mcp", "/mcp/axiom"} {
			for _, bad := range []string{"", "wrong", hashOf(tokenOf(w, "triage-agent"))} {
				expectProblem(w.call("POST", path, bad, initialize), http.StatusUnauthorized, openapi.ProblemCodeUnauthorized, badToken)
			}
			expectProblem(w.call("POST", path, "wrong", strings.Repeat(" ", 577<<10)), http.StatusRequestEntityTooLarge, openapi.ProblemCodeTooLarge, "")
			Expect(w.call("GET", path, tokenOf(w, "triage-agent"), nil).status).To(Equal(http.StatusMethodNotAllowed))
		}
		By("a token that was revoked in between")
		agent := w.overHTTP("/mcp", tokenOf(w, "triage-agent"))
		_, err := agent.CallTool(ctx, &mcp.CallToolParams{Name: "get_composition"})
		Expect(err).NotTo(HaveOccurred())
		session := reload(w, &api.AgentSession{ObjectMeta: meta(w, "triage-agent")})
		session.Status.TokenHash = ""
		Expect(k8s.Status().Update(ctx, session)).To(Succeed())
		_, err = agent.CallTool(ctx, &mcp.CallToolParams{Name: "get_composition"})
		Expect(err).To(HaveOccurred())

		By("a session that is bound to nothing, and one that may not draft")
		helper := w.overHTTP("/mcp", tokenOf(w, "helper"))
		got, err := helper.CallTool(ctx, &mcp.CallToolParams{Name: "get_composition"})
		Expect(err).NotTo(HaveOccurred())
		Expect(got.IsError).To(BeTrue())
		w.session("plain", "")
		got, err = w.overHTTP("/mcp/axiom", tokenOf(w, "plain")).CallTool(ctx, &mcp.CallToolParams{Name: "axiom_list_items"})
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Content[0].(*mcp.TextContent).Text).To(Equal("HTTP 400: Items are only available for Configuration Assistant sessions"))
	}, NodeTimeout(time.Minute))

	It("are counted once over HTTP", func(ctx context.Context) {
		w.ctx = ctx
		call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_composition","arguments":{}}}`
		w.headers = map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
		for i := range 40 {
			got := w.call("POST", "/mcp", tokenOf(w, "triage-agent"), call)
			Expect(got.status).To(Equal(http.StatusOK), "%d: %s", i, got.body)
		}
		expectProblem(w.call("POST", "/mcp", tokenOf(w, "triage-agent"), call), http.StatusTooManyRequests, openapi.ProblemCodeRateLimited, "")
	}, NodeTimeout(time.Minute))
})

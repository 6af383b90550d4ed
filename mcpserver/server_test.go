package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/apitomy/axiom-operator/gateway/client"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/mcpserver"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// fake is a gateway with one answer for each route.
type fake struct {
	composition *openapi.AgentComposition
	proposal    *openapi.ProposalResult
	evaluation  *openapi.EvaluationResult
	err         error

	// asked is what the last call was about.
	asked    string
	deadline time.Time
}

func (f *fake) GetAgentComposition(ctx context.Context, namespace, name string) (*openapi.AgentComposition, error) {
	f.deadline, _ = ctx.Deadline()
	f.asked = fmt.Sprintf("composition %s of %s", name, namespace)
	return f.composition, f.err
}

func (f *fake) ProposeWorkflowChanges(ctx context.Context, namespace, name string, changeSet json.RawMessage) (*openapi.ProposalResult, error) {
	f.deadline, _ = ctx.Deadline()
	f.asked = fmt.Sprintf("changes of %s of %s: %s", name, namespace, changeSet)
	return f.proposal, f.err
}

func (f *fake) EvaluateExpression(ctx context.Context, evaluation openapi.Evaluation) (*openapi.EvaluationResult, error) {
	f.deadline, _ = ctx.Deadline()
	asked, err := json.Marshal(evaluation)
	f.asked = string(asked)
	return f.evaluation, errors.Join(f.err, err)
}

// connect returns an agent's session with a server.
func connect(t *testing.T, options mcpserver.Options) *mcp.ClientSession {
	t.Helper()
	here, there := mcp.NewInMemoryTransports()
	if _, err := mcpserver.New(options).Connect(t.Context(), there, nil); err != nil {
		t.Fatal(err)
	}
	agent := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
	session, err := agent.Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Errorf("close session: %v", err)
		}
	})
	return session
}

func TestSchemas(t *testing.T) {
	session := connect(t, mcpserver.Options{Gateway: &fake{}, Version: "1"})
	if got := session.InitializeResult().ServerInfo.Name; got != "workbench" {
		t.Errorf("server is called %q", got)
	}
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools.Tools {
		t.Run(tool.Name, func(t *testing.T) {
			got, err := json.MarshalIndent(tool, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, '\n')
			golden := filepath.Join("testdata", tool.Name+".json")
			if *update {
				if err := os.WriteFile(golden, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("schema (-want +got):\n%s", diff)
			}
		})
	}
	if len(tools.Tools) != 4 {
		t.Errorf("%d tools", len(tools.Tools))
	}
}

func TestTools(t *testing.T) {
	problems := []openapi.ItemProblem{
		{Severity: "error", Path: "content", Code: "c", Message: "m"},
		{Severity: "warning", Path: "nodes[a]", Code: "d", Message: "n"},
	}
	refused := fmt.Errorf("get composition: %w", &client.Problem{Problem: openapi.Problem{Status: 409, Detail: "No AI turn is running"}})
	for name, tc := range map[string]struct {
		gateway   fake
		tool      string
		arguments map[string]any
		asked     string
		want      string
		fails     bool
	}{
		"get_composition gives indented JSON": {
			fake{composition: &openapi.AgentComposition{
				CompositionID: "team-a/triage", WorkflowRevision: "sha256:3f", Items: []openapi.Item{},
				Workflow: json.RawMessage(`{"name":"a \u003c b","n":9007199254740993}`),
			}},
			"get_composition", nil, "composition triage of team-a",
			"{\n  \"compositionId\": \"team-a/triage\",\n  \"items\": [],\n  \"workflow\": {\n    \"n\": 9007199254740993,\n" +
				"    \"name\": \"a < b\"\n  },\n  \"workflowRevision\": \"sha256:3f\"\n}", false,
		},
		"get_composition tells a refusal": {
			fake{err: refused}, "get_composition", nil, "composition triage of team-a", "HTTP 409: No AI turn is running", true,
		},
		"propose_workflow_changes applied": {
			fake{proposal: &openapi.ProposalResult{Applied: true, ContentRevision: "sha256:a1"}},
			"propose_workflow_changes",
			map[string]any{"changeSet": map[string]any{"id": "cs-1", "ops": []any{}}},
			`changes of triage of team-a: {"id":"cs-1","ops":[]}`, "APPLIED. New revision: sha256:a1", false,
		},
		"propose_workflow_changes applied with problems": {
			fake{proposal: &openapi.ProposalResult{Applied: true, ContentRevision: "sha256:a1", Problems: problems}},
			"propose_workflow_changes",
			map[string]any{"changeSet": map[string]any{}},
			`changes of triage of team-a: {}`,
			"APPLIED. New revision: sha256:a1\n- [ERROR] content c: m\n- [WARNING] nodes[a] d: n", false,
		},
		"propose_workflow_changes rejected at an operation": {
			fake{proposal: &openapi.ProposalResult{Error: &openapi.Rejection{Code: "target-missing", OpIndex: new(int), Reason: "no node x"}}},
			"propose_workflow_changes",
			map[string]any{"changeSet": map[string]any{}},
			`changes of triage of team-a: {}`, "REJECTED (target-missing at op 0): no node x", false,
		},
		"propose_workflow_changes rejected as a whole": {
			fake{proposal: &openapi.ProposalResult{Error: &openapi.Rejection{Code: "stale", Reason: "call get_composition"}}},
			"propose_workflow_changes",
			map[string]any{"changeSet": map[string]any{}},
			`changes of triage of team-a: {}`, "REJECTED (stale): call get_composition", false,
		},
		"propose_workflow_changes without its parameter": {
			fake{},
			"propose_workflow_changes",
			map[string]any{},
			"",
			`validating "arguments": validating root: required: missing properties: ["changeSet"]`, true,
		},
		"evaluate_expression with a value": {
			fake{evaluation: &openapi.EvaluationResult{Ok: true, ValueJSON: "42", ValueType: "number"}},
			"evaluate_expression",
			map[string]any{
				"expression": "context.n + 1", "scope": "action-input", "context": map[string]any{"n": 41}, "eventId": "e1",
			},
			`{"context":{"n":41},"eventId":"e1","expression":"context.n + 1","scope":"action-input"}`, "OK (number): 42", false,
		},
		"evaluate_expression without one": {
			fake{evaluation: &openapi.EvaluationResult{Error: "no such key: n"}},
			"evaluate_expression",
			map[string]any{"expression": "context.n", "scope": "action-input"},
			`{"expression":"context.n","scope":"action-input"}`, "ERROR: no such key: n", false,
		},
		"evaluate_expression while the gateway is away": {
			fake{err: errors.New("connection refused")},
			"evaluate_expression",
			map[string]any{"expression": "1", "scope": "action-input"},
			`{"expression":"1","scope":"action-input"}`, "connection refused", true,
		},
		"validate_composition tells of every item": {
			fake{composition: &openapi.AgentComposition{Items: []openapi.Item{
				{Type: "workflow", Name: "triage", Problems: problems},
				{Type: "action-type", Name: "ask", Valid: true, Problems: problems[1:]},
				{Type: "tool", Name: "find-logs", Valid: true},
			}}},
			"validate_composition", nil, "composition triage of team-a",
			"workflow 'triage': INVALID\n- [ERROR] content c: m\n- [WARNING] nodes[a] d: n\n" +
				"action-type 'ask': VALID with warnings\n- [WARNING] nodes[a] d: n\ntool 'find-logs': VALID", false,
		},
		"validate_composition without items": {
			fake{composition: &openapi.AgentComposition{}},
			"validate_composition", nil, "composition triage of team-a",
			"The composition has no items.", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			session := connect(t, mcpserver.Options{Gateway: &tc.gateway, Composition: "team-a/triage"})
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tc.tool, Arguments: tc.arguments})
			if err != nil {
				t.Fatal(err)
			}
			if got := textOf(t, result); got != tc.want || result.IsError != tc.fails {
				t.Errorf("got %q, error %v; want %q, error %v", got, result.IsError, tc.want, tc.fails)
			}
			if tc.gateway.asked != tc.asked {
				t.Errorf("asked for %s, want %s", tc.gateway.asked, tc.asked)
			}
			if tc.asked != "" && tc.gateway.deadline.IsZero() {
				t.Error("the call may take for ever")
			}
		})
	}
}

func textOf(t *testing.T, result *mcp.CallToolResult) string {
	t.Helper()
	if len(result.Content) != 1 || result.StructuredContent != nil {
		t.Fatalf("result is not one text: %+v", result)
	}
	return result.Content[0].(*mcp.TextContent).Text
}

func TestToolsWithoutCompositionSayWhatIsMissing(t *testing.T) {
	for _, composition := range []string{"", "triage", "team-a/", "/triage"} {
		gateway := &fake{evaluation: &openapi.EvaluationResult{Ok: true, ValueJSON: "1", ValueType: "number"}}
		session := connect(t, mcpserver.Options{Gateway: gateway, Composition: composition})
		for tool, arguments := range map[string]any{
			"get_composition":          nil,
			"validate_composition":     nil,
			"propose_workflow_changes": map[string]any{"changeSet": map[string]any{}},
		} {
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
			if err != nil {
				t.Fatal(err)
			}
			want := "this session is not bound to a composition: AXIOM_COMPOSITION_ID is not set to <namespace>/<name>"
			if got := textOf(t, result); got != want || !result.IsError {
				t.Errorf("%s in %q: %q", tool, composition, got)
			}
		}
		if gateway.asked != "" {
			t.Errorf("asked for %s", gateway.asked)
		}
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{
			Name: "evaluate_expression", Arguments: map[string]any{"expression": "1", "scope": "action-input"},
		})
		if err != nil || result.IsError {
			t.Errorf("evaluate_expression in %q: %v, %v", composition, result, err)
		}
	}
}

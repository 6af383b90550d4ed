package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/apitomy/axiom-operator/gateway/client"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/mcpserver"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// fake is a gateway that gives one answer, and remembers what it was asked.
type fake struct {
	// answer is the JSON of whatever is asked for.
	answer string
	err    error

	asked    string
	deadline time.Time
}

// ask remembers a call.
func (f *fake) ask(ctx context.Context, format string, args ...any) error {
	f.deadline, _ = ctx.Deadline()
	f.asked = fmt.Sprintf(format, args...)
	return f.err
}

// answerOf is the fake's answer to a call.
func answerOf[T any](ctx context.Context, f *fake, format string, args ...any) (*T, error) {
	if err := f.ask(ctx, format, args...); err != nil {
		return nil, err
	}
	value := new(T)
	return value, json.Unmarshal([]byte(f.answer), value)
}

func rawOf(ctx context.Context, f *fake, format string, args ...any) (json.RawMessage, error) {
	return json.RawMessage(f.answer), f.ask(ctx, format, args...)
}

func (f *fake) GetAgentComposition(ctx context.Context, namespace, name string) (*openapi.AgentComposition, error) {
	return answerOf[openapi.AgentComposition](ctx, f, "composition %s/%s", namespace, name)
}

func (f *fake) GetAgentItem(ctx context.Context, namespace, name string, kind openapi.ItemType, item string) (json.RawMessage, error) {
	return rawOf(ctx, f, "item %s/%s of %s/%s", kind, item, namespace, name)
}

func (f *fake) UpsertAgentItem(ctx context.Context, namespace, name string, change openapi.ItemChange) (*openapi.Item, error) {
	return answerOf[openapi.Item](ctx, f, "upsert in %s/%s: %s", namespace, name, compact(change))
}

func (f *fake) RemoveAgentItem(ctx context.Context, namespace, name string, item openapi.ItemRef, base *string) error {
	return f.ask(ctx, "remove %s/%s of %s/%s, base %s", item.Type, item.Name, namespace, name, compact(base))
}

func (f *fake) ProposeWorkflowChanges(ctx context.Context, namespace, name string, changeSet json.RawMessage) (*openapi.ProposalResult, error) {
	return answerOf[openapi.ProposalResult](ctx, f, "changes of %s/%s: %s", namespace, name, changeSet)
}

func (f *fake) ListItems(ctx context.Context, namespace, name string) (*openapi.Items, error) {
	return answerOf[openapi.Items](ctx, f, "drafts of %s/%s", namespace, name)
}

func (f *fake) GetItem(ctx context.Context, namespace, name string, kind openapi.ItemType, item string) (json.RawMessage, error) {
	return rawOf(ctx, f, "draft %s/%s of %s/%s", kind, item, namespace, name)
}

func (f *fake) PutItem(ctx context.Context, namespace, name string, change openapi.ItemChange) (*openapi.Item, error) {
	return answerOf[openapi.Item](ctx, f, "put in %s/%s: %s", namespace, name, compact(change))
}

func (f *fake) RemoveItem(ctx context.Context, namespace, name string, item openapi.ItemRef, base *string) error {
	return f.ask(ctx, "forget %s/%s of %s/%s, base %s", item.Type, item.Name, namespace, name, compact(base))
}

func (f *fake) ValidateItem(ctx context.Context, namespace, name string, validation openapi.Validation) (*openapi.ValidationResult, error) {
	return answerOf[openapi.ValidationResult](ctx, f, "validate in %s/%s: %s", namespace, name, compact(validation))
}

func (f *fake) ListStreamEvents(ctx context.Context, filter openapi.ListStreamEventsParams) (*openapi.StreamEvents, error) {
	return answerOf[openapi.StreamEvents](ctx, f, "events %s", compact(filter))
}

func (f *fake) GetStreamEvent(ctx context.Context, id string) (json.RawMessage, error) {
	return rawOf(ctx, f, "event %s", id)
}

func (f *fake) EvaluateExpression(ctx context.Context, evaluation openapi.Evaluation) (*openapi.EvaluationResult, error) {
	return answerOf[openapi.EvaluationResult](ctx, f, "evaluate %s", compact(evaluation))
}

func (f *fake) ListLibrary(ctx context.Context, kind openapi.LibraryKind) (*openapi.Library, error) {
	return answerOf[openapi.Library](ctx, f, "library %s", kind)
}

func (f *fake) GetLibrary(ctx context.Context, kind openapi.LibraryKind, name string) (json.RawMessage, error) {
	return rawOf(ctx, f, "library %s %s", kind, name)
}

func compact(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// connect returns an agent's session with a server.
func connect(t *testing.T, name string, options mcpserver.Options) *mcp.ClientSession {
	t.Helper()
	here, there := mcp.NewInMemoryTransports()
	if _, err := mcpserver.New(name, options).Connect(t.Context(), there, nil); err != nil {
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

var libraryTools = []string{"axiom_get_action_type", "axiom_get_tool", "axiom_list_action_types", "axiom_list_secrets", "axiom_list_tools"}

// toolsOf are the names of each server's tools, sorted.
var toolsOf = map[string][]string{
	"workbench": slices.Sorted(slices.Values(append([]string{
		"get_composition", "get_item", "upsert_item", "remove_item", "propose_workflow_changes", "validate_composition",
		"list_stream_events", "get_stream_event", "evaluate_expression",
	}, libraryTools...))),
	"axiom": slices.Sorted(slices.Values(append([]string{
		"axiom_list_items", "axiom_get_item", "axiom_put_item", "axiom_remove_item", "axiom_validate_item",
	}, libraryTools...))),
}

func TestSchemas(t *testing.T) {
	for name, wanted := range toolsOf {
		session := connect(t, name, mcpserver.Options{Gateway: &fake{}, Version: "1"})
		if got := session.InitializeResult().ServerInfo.Name; got != name {
			t.Errorf("server %s is called %q", name, got)
		}
		tools, err := session.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range tools.Tools {
			names = append(names, tool.Name)
			t.Run(name+"/"+tool.Name, func(t *testing.T) { compareGolden(t, tool) })
		}
		slices.Sort(names)
		if diff := cmp.Diff(wanted, names); diff != "" {
			t.Errorf("tools of %s (-want +got):\n%s", name, diff)
		}
	}
}

func compareGolden(t *testing.T, tool *mcp.Tool) {
	t.Helper()
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
}

func TestThereAreNoOtherServers(t *testing.T) {
	if server := mcpserver.New("nobody", mcpserver.Options{}); server != nil {
		t.Errorf("there is one: %+v", server)
	}
}

// call is one call of a tool and what shall come of it.
type call struct {
	// answer of the gateway, in JSON; or its refusal.
	answer string
	err    error

	server, tool string
	arguments    map[string]any
	asked        string
	want         string
	fails        bool
}

func (c call) run(t *testing.T) {
	gateway := &fake{answer: c.answer, err: c.err}
	session := connect(t, c.server, mcpserver.Options{Gateway: gateway, Target: "team-a/triage"})
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: c.tool, Arguments: c.arguments})
	if err != nil {
		t.Fatal(err)
	}
	if got := textOf(t, result); got != c.want || result.IsError != c.fails {
		t.Errorf("got %q, error %v; want %q, error %v", got, result.IsError, c.want, c.fails)
	}
	if gateway.asked != c.asked {
		t.Errorf("asked for %s, want %s", gateway.asked, c.asked)
	}
	if c.asked != "" && gateway.deadline.IsZero() {
		t.Error("the call may take for ever")
	}
}

const (
	oneProblem   = `[{"severity":"error","path":"content","code":"c","message":"m"},{"severity":"warning","path":"nodes[a]","code":"d","message":"n"}]`
	problemLines = "- [ERROR] content c: m\n- [WARNING] nodes[a] d: n"
)

var errRefused = fmt.Errorf("get composition: %w", &client.Problem{Problem: openapi.Problem{Status: 409, Detail: "No AI turn is running"}})

func TestWorkbench(t *testing.T) {
	workflow := map[string]any{"changeSet": map[string]any{"id": "cs-1", "ops": []any{}}}
	for name, tc := range map[string]call{
		"get_composition gives indented JSON": {
			answer: `{"compositionId":"team-a/triage","workflowRevision":"sha256:3f","items":[],"workflow":{"name":"a \u003c b","n":9007199254740993}}`,
			tool:   "get_composition", asked: "composition team-a/triage",
			want: "{\n  \"compositionId\": \"team-a/triage\",\n  \"items\": [],\n  \"workflow\": {\n    \"n\": 9007199254740993,\n" +
				"    \"name\": \"a < b\"\n  },\n  \"workflowRevision\": \"sha256:3f\"\n}",
		},
		"get_composition tells a refusal": {
			err: errRefused, tool: "get_composition", asked: "composition team-a/triage", want: "HTTP 409: No AI turn is running", fails: true,
		},
		"get_item gives indented JSON": {
			answer: `{"name":"ask","description":"<b>"}`, tool: "get_item", arguments: map[string]any{"type": "tool", "name": "ask"},
			asked: "item tool/ask of team-a/triage", want: "{\n  \"description\": \"<b>\",\n  \"name\": \"ask\"\n}",
		},
		"upsert_item that is valid": {
			answer: `{"type":"tool","name":"ask","contentRevision":"r","valid":true,"problems":[]}`,
			tool:   "upsert_item", arguments: map[string]any{"type": "tool", "item": map[string]any{"name": "ask"}},
			asked: `upsert in team-a/triage: {"content":{"name":"ask"},"type":"tool"}`, want: "VALID",
		},
		"upsert_item that replaces the user's": {
			answer: `{"problems":[{"severity":"warning","path":"p","code":"c","message":"m"}]}`,
			tool:   "upsert_item",
			arguments: map[string]any{
				"type": "tool", "item": map[string]any{"name": "ask"}, "baseRevision": "sha256:9c",
			},
			asked: `upsert in team-a/triage: {"baseRevision":"sha256:9c","content":{"name":"ask"},"type":"tool"}`,
			want:  "VALID with warnings\n- [WARNING] p c: m",
		},
		"upsert_item that is invalid": {
			answer: `{"problems":` + oneProblem + `}`, tool: "upsert_item",
			arguments: map[string]any{"type": "tool", "item": map[string]any{"name": "ask"}, "baseRevision": ""},
			asked:     `upsert in team-a/triage: {"baseRevision":"","content":{"name":"ask"},"type":"tool"}`,
			want:      "INVALID\n" + problemLines,
		},
		"upsert_item of no object": {
			tool: "upsert_item", arguments: map[string]any{"type": "tool", "item": "ask"},
			want: `validating "arguments": validating root: validating /properties/item: type: ask has type "string", want "object"`, fails: true,
		},
		"remove_item": {
			tool: "remove_item", arguments: map[string]any{"type": "tool", "name": "ask"},
			asked: "remove tool/ask of team-a/triage, base null", want: "REMOVED tool/ask",
		},
		"propose_workflow_changes applied": {
			answer: `{"applied":true,"contentRevision":"sha256:a1","problems":[]}`, tool: "propose_workflow_changes", arguments: workflow,
			asked: `changes of team-a/triage: {"id":"cs-1","ops":[]}`, want: "APPLIED. New revision: sha256:a1",
		},
		"propose_workflow_changes applied with problems": {
			answer: `{"applied":true,"contentRevision":"sha256:a1","problems":` + oneProblem + `}`,
			tool:   "propose_workflow_changes", arguments: workflow,
			asked: `changes of team-a/triage: {"id":"cs-1","ops":[]}`, want: "APPLIED. New revision: sha256:a1\n" + problemLines,
		},
		"propose_workflow_changes rejected at an operation": {
			answer: `{"applied":false,"error":{"code":"target-missing","opIndex":0,"reason":"no node x"}}`,
			tool:   "propose_workflow_changes", arguments: workflow,
			asked: `changes of team-a/triage: {"id":"cs-1","ops":[]}`, want: "REJECTED (target-missing at op 0): no node x",
		},
		"propose_workflow_changes rejected as a whole": {
			answer: `{"applied":false,"error":{"code":"stale","reason":"call get_composition"}}`,
			tool:   "propose_workflow_changes", arguments: workflow,
			asked: `changes of team-a/triage: {"id":"cs-1","ops":[]}`, want: "REJECTED (stale): call get_composition",
		},
		"propose_workflow_changes without its parameter": {
			tool: "propose_workflow_changes", arguments: map[string]any{},
			want: `validating "arguments": validating root: required: missing properties: ["changeSet"]`, fails: true,
		},
		"validate_composition tells of every item": {
			answer: `{"items":[{"type":"workflow","name":"triage","problems":` + oneProblem + `},
				{"type":"action-type","name":"ask","valid":true,"problems":[{"severity":"warning","path":"nodes[a]","code":"d","message":"n"}]},
				{"type":"tool","name":"find-logs","valid":true,"problems":[]}]}`,
			tool: "validate_composition", asked: "composition team-a/triage",
			want: "workflow 'triage': INVALID\n" + problemLines +
				"\naction-type 'ask': VALID with warnings\n- [WARNING] nodes[a] d: n\ntool 'find-logs': VALID",
		},
		"validate_composition without items": {
			answer: `{"items":[]}`, tool: "validate_composition", asked: "composition team-a/triage", want: "The composition has no items.",
		},
	} {
		tc.server = "workbench"
		t.Run(name, tc.run)
	}
}

func TestSurroundings(t *testing.T) {
	const event = `{"id":"e1","type":"issue.comment.created","eventSourceId":"gh","ref":"r","timestamp":"t","actor":{"login":"octo"},` +
		`"payload":{"issue":{"labels":[{"name":"bug"}],"milestone":null},"comment":{"body":"b"}}}`
	for name, tc := range map[string]call{
		"list_stream_events by default": {
			answer: `{"items":[` + event + `,{}]}`, tool: "list_stream_events", arguments: map[string]any{}, asked: `events {"limit":10}`,
			want: "e1 issue.comment.created gh r actor=octo at t keys=[comment, issue]\n- - - - actor=- at - keys=[]",
		},
		"list_stream_events filtered": {
			answer: `{"items":[]}`, tool: "list_stream_events",
			arguments: map[string]any{"type": "push", "eventSourceId": "gh", "ref": "r", "limit": 3},
			asked:     `events {"filterType":"push","filterEventSourceId":"gh","filterRef":"r","limit":3}`, want: "No events.",
		},
		"list_stream_events at most 20": {
			answer: `{"items":[]}`, tool: "list_stream_events", arguments: map[string]any{"limit": 1e9}, asked: `events {"limit":20}`,
			want: "No events.",
		},
		"list_stream_events at least one": {
			answer: `{"items":[]}`, tool: "list_stream_events", arguments: map[string]any{"limit": -3.5}, asked: `events {"limit":1}`,
			want: "No events.",
		},
		"get_stream_event": {
			answer: `{"id":"e1","payload":{"n":1}}`, tool: "get_stream_event", arguments: map[string]any{"eventId": "e1"}, asked: "event e1",
			want: "{\n  \"id\": \"e1\",\n  \"payload\": {\n    \"n\": 1\n  }\n}",
		},
		"get_stream_event of a part": {
			answer: event, tool: "get_stream_event", arguments: map[string]any{"eventId": "e1", "path": "payload.issue.labels[0].name"},
			asked: "event e1", want: `"bug"`,
		},
		"get_stream_event of a null": {
			answer: event, tool: "get_stream_event", arguments: map[string]any{"eventId": "e1", "path": "payload.issue.milestone"},
			asked: "event e1", want: "null",
		},
		"get_stream_event of no part": {
			answer: event, tool: "get_stream_event", arguments: map[string]any{"eventId": "e1", "path": "payload.issue.assignee"},
			asked: "event e1", want: "No value at path payload.issue.assignee", fails: true,
		},
		"get_stream_event cuts what is long": {
			answer: `{"s":"` + strings.Repeat("x", 2001) + `"}`, tool: "get_stream_event",
			arguments: map[string]any{"eventId": "e1", "path": "s"}, asked: "event e1",
			want: `"` + strings.Repeat("x", 2000) + `…[truncated 1 chars]"`,
		},
		"evaluate_expression with a value": {
			answer: `{"ok":true,"valueJson":"42","valueType":"number"}`, tool: "evaluate_expression",
			arguments: map[string]any{
				"expression": "context.n + 1", "scope": "action-input", "context": map[string]any{"n": 41}, "eventId": "e1",
			},
			asked: `evaluate {"context":{"n":41},"eventId":"e1","expression":"context.n + 1","scope":"action-input"}`, want: "OK (number): 42",
		},
		"evaluate_expression without one": {
			answer: `{"ok":false,"error":"no such key: n"}`, tool: "evaluate_expression",
			arguments: map[string]any{"expression": "context.n", "scope": "action-input"},
			asked:     `evaluate {"expression":"context.n","scope":"action-input"}`, want: "ERROR: no such key: n",
		},
		"evaluate_expression while the gateway is away": {
			err: errors.New("connection refused"), tool: "evaluate_expression",
			arguments: map[string]any{"expression": "1", "scope": "action-input"},
			asked:     `evaluate {"expression":"1","scope":"action-input"}`, want: "connection refused", fails: true,
		},
	} {
		tc.server = "workbench"
		t.Run(name, tc.run)
	}
}

func TestLibrary(t *testing.T) {
	for name, tc := range map[string]call{
		"axiom_list_action_types": {
			answer: `{"items":[{"name":"ask","description":"Asks"},{"name":"say","description":""}]}`,
			tool:   "axiom_list_action_types", asked: "library action-types",
			want: "[\n  {\n    \"description\": \"Asks\",\n    \"name\": \"ask\"\n  },\n  {\n    \"description\": \"\",\n    \"name\": \"say\"\n  }\n]",
		},
		"axiom_list_tools without any": {answer: `{"items":[]}`, tool: "axiom_list_tools", asked: "library tools", want: "[]"},
		"axiom_get_action_type": {
			answer: `{"mode":"script"}`, tool: "axiom_get_action_type", arguments: map[string]any{"name": "ask"},
			asked: "library action-types ask", want: "{\n  \"mode\": \"script\"\n}",
		},
		"axiom_get_tool": {
			answer: `{"scriptTemplate":"echo"}`, tool: "axiom_get_tool", arguments: map[string]any{"name": "say"},
			asked: "library tools say", want: "{\n  \"scriptTemplate\": \"echo\"\n}",
		},
		"axiom_list_secrets": {
			answer: `{"items":[{"name":"a","description":""},{"name":"b","description":""}]}`,
			tool:   "axiom_list_secrets", asked: "library secrets", want: "a\nb",
		},
		"axiom_list_secrets without any": {answer: `{"items":[]}`, tool: "axiom_list_secrets", asked: "library secrets", want: "No secrets."},
	} {
		for _, server := range []string{"workbench", "axiom"} {
			tc.server = server
			t.Run(server+": "+name, tc.run)
		}
	}
}

func TestAssistant(t *testing.T) {
	for name, tc := range map[string]call{
		"axiom_list_items": {
			answer: `{"items":[{"type":"tool","name":"ask","problems":` + oneProblem + `},{"type":"tool","name":"say","problems":[]}]}`,
			tool:   "axiom_list_items", asked: "drafts of team-a/triage", want: "tool 'ask': INVALID\n" + problemLines + "\ntool 'say': VALID",
		},
		"axiom_list_items without any": {
			answer: `{"items":[]}`, tool: "axiom_list_items", asked: "drafts of team-a/triage", want: "No items.",
		},
		"axiom_get_item": {
			answer: `{"name":"ask"}`, tool: "axiom_get_item", arguments: map[string]any{"type": "tool", "name": "ask"},
			asked: "draft tool/ask of team-a/triage", want: "{\n  \"name\": \"ask\"\n}",
		},
		"axiom_put_item": {
			answer: `{"problems":` + oneProblem + `}`, tool: "axiom_put_item",
			arguments: map[string]any{"type": "tool", "item": map[string]any{"name": "ask"}},
			asked:     `put in team-a/triage: {"content":{"name":"ask"},"type":"tool"}`, want: "INVALID\n" + problemLines,
		},
		"axiom_remove_item": {
			tool: "axiom_remove_item", arguments: map[string]any{"type": "tool", "name": "ask", "baseRevision": "r"},
			asked: `forget tool/ask of team-a/triage, base "r"`, want: "REMOVED tool/ask",
		},
		"axiom_validate_item": {
			answer: `{"valid":true,"problems":[]}`, tool: "axiom_validate_item",
			arguments: map[string]any{"type": "tool", "item": map[string]any{"name": "ask"}},
			asked:     `validate in team-a/triage: {"item":{"name":"ask"},"type":"tool"}`, want: "VALID",
		},
		"a refusal": {
			err: errRefused, tool: "axiom_list_items", asked: "drafts of team-a/triage", want: "HTTP 409: No AI turn is running", fails: true,
		},
	} {
		tc.server = "axiom"
		t.Run(name, tc.run)
	}
}

func textOf(t *testing.T, result *mcp.CallToolResult) string {
	t.Helper()
	if len(result.Content) != 1 || result.StructuredContent != nil {
		t.Fatalf("result is not one text: %+v", result)
	}
	return result.Content[0].(*mcp.TextContent).Text
}

// sample is a call that each tool takes.
var sample = map[string]map[string]any{
	"get_item":                 {"type": "tool", "name": "a"},
	"upsert_item":              {"type": "tool", "item": map[string]any{}},
	"remove_item":              {"type": "tool", "name": "a"},
	"propose_workflow_changes": {"changeSet": map[string]any{}},
	"get_stream_event":         {"eventId": "e1"},
	"evaluate_expression":      {"expression": "1", "scope": "action-input"},
	"axiom_get_action_type":    {"name": "a"},
	"axiom_get_tool":           {"name": "a"},
	"axiom_get_item":           {"type": "tool", "name": "a"},
	"axiom_put_item":           {"type": "tool", "item": map[string]any{}},
	"axiom_remove_item":        {"type": "tool", "name": "a"},
	"axiom_validate_item":      {"type": "tool", "item": map[string]any{}},
}

func TestToolsWithoutTargetSayWhatIsMissing(t *testing.T) {
	for server, want := range map[string]string{
		"workbench": "this session is not bound to a composition: AXIOM_COMPOSITION_ID is not set to <namespace>/<name>",
		"axiom":     "the session is not known: AXIOM_ASSISTANT_SESSION_ID is not set to <namespace>/<name>",
	} {
		for _, target := range []string{"", "triage", "team-a/", "/triage"} {
			gateway := &fake{answer: `{}`}
			session := connect(t, server, mcpserver.Options{Gateway: gateway, Target: target})
			for _, tool := range toolsOf[server] {
				gateway.asked = ""
				result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: sample[tool]})
				if err != nil {
					t.Fatal(err)
				}
				isForAll := slices.Contains(libraryTools, tool) ||
					slices.Contains([]string{"list_stream_events", "get_stream_event", "evaluate_expression"}, tool)
				if isForAll {
					if result.IsError || gateway.asked == "" {
						t.Errorf("%s in %q: %q", tool, target, textOf(t, result))
					}
					continue
				}
				if got := textOf(t, result); got != want || !result.IsError || gateway.asked != "" {
					t.Errorf("%s in %q: %q, asked %q", tool, target, got, gateway.asked)
				}
			}
		}
	}
}

func TestToolsWithoutGatewaySayWhy(t *testing.T) {
	session := connect(t, "workbench", mcpserver.Options{Trouble: errors.New("no gateway"), Target: "team-a/triage"})
	for _, tool := range toolsOf["workbench"] {
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: sample[tool]})
		if err != nil {
			t.Fatal(err)
		}
		if got := textOf(t, result); got != "no gateway" || !result.IsError {
			t.Errorf("%s: %q", tool, got)
		}
	}
}

//go:build interop

package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// call is one of a tool, and what its answer must have in it.
type call struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`

	want string
}

type object = map[string]any

// workbenchCalls call every tool of the server workbench. The event is one that
// happened, and the revision that of the blank workflow.
func workbenchCalls(event, revision string) []call {
	return []call{
		{"get_composition", nil, `"workflowRevision": "` + revision + `"`},
		{"upsert_item", object{"type": "tool", "item": draftTool()}, "VALID"},
		{"upsert_item", object{"type": "tool", "item": object{"name": "odd", "interpreter": "cobol"}}, "INVALID\n- [ERROR] interpreter INVALID_INTERPRETER: "},
		{"get_item", object{"type": "tool", "name": "ask"}, `"description": "Asks"`},
		{"remove_item", object{"type": "tool", "name": "odd"}, "REMOVED tool/odd"},
		{"remove_item", object{"type": "tool", "name": "odd"}, "HTTP 404: The composition has no tool/odd"},
		{"propose_workflow_changes", object{"changeSet": object{"id": "cs-0", "baseRevision": "sha256:00", "summary": "Nothing", "ops": []any{}}}, "REJECTED (stale): "},
		{"propose_workflow_changes", object{"changeSet": waits(revision)}, "APPLIED. New revision: sha256:"},
		{"validate_composition", nil, "workflow 'triage': VALID"},
		{"list_stream_events", object{"type": "issue.created", "limit": 1}, event + " issue.created " + sourceName + " issues/7 actor=- at 2026-05-04T10:11:12"},
		{"get_stream_event", object{"eventId": event, "path": "payload.labels[0]"}, `"bug"`},
		{"evaluate_expression", object{"expression": "event.payload.number + 1", "scope": "correlation-event-key", "eventId": event}, "OK (number): 8"},
		{"evaluate_expression", object{"expression": "context.a && !context.b", "scope": "edge-condition", "context": object{"a": true, "b": false}}, "OK (boolean): true"},
		{"axiom_list_action_types", nil, `"name": "notify"`},
		{"axiom_get_action_type", object{"name": "notify"}, `"description": "Notifies"`},
		{"axiom_list_tools", nil, `"name": "shared"`},
		{"axiom_get_tool", object{"name": "shared"}, `"description": "Shared"`},
		{"axiom_list_secrets", nil, "model-key"},
	}
}

// waits is a change set that puts a wait into the blank workflow of a revision.
func waits(revision string) object {
	return object{
		"id": "cs-1", "baseRevision": revision, "summary": "Wait an hour", "ops": []any{
			object{"op": "removeEdge", "id": "edge-1"},
			object{"op": "addNode", "node": object{"id": "wait-1", "type": "wait", "name": "Wait an hour", "config": object{"duration": "PT1H"}}},
			object{"op": "addEdge", "edge": object{"id": "edge-2", "source": "start-1", "target": "wait-1", "priority": 0, "isDefault": true}},
			object{"op": "addEdge", "edge": object{"id": "edge-3", "source": "wait-1", "target": "end-1", "priority": 0, "isDefault": true}},
		},
	}
}

// assistantCalls call every tool of the server axiom.
func assistantCalls() []call {
	return []call{
		{"axiom_put_item", object{"type": "tool", "item": draftTool()}, "VALID"},
		{"axiom_list_items", nil, "tool 'ask': VALID"},
		{"axiom_get_item", object{"type": "tool", "name": "ask"}, `"description": "Asks"`},
		{"axiom_validate_item", object{"type": "tool", "item": object{"name": "odd", "interpreter": "cobol"}}, "INVALID\n"},
		{"axiom_remove_item", object{"type": "tool", "name": "ask"}, "REMOVED tool/ask"},
		{"axiom_remove_item", object{"type": "tool", "name": "ask"}, "HTTP 404: "},
		{"axiom_list_action_types", nil, `"name": "notify"`},
		{"axiom_get_action_type", object{"name": "notify"}, `"description": "Notifies"`},
		{"axiom_list_tools", nil, `"name": "shared"`},
		{"axiom_get_tool", object{"name": "shared"}, `"description": "Shared"`},
		{"axiom_list_secrets", nil, "model-key"},
	}
}

func draftTool() object {
	return object{"name": "ask", "description": "Asks", "scriptTemplate": "echo"}
}

// result is the answer to a call.
type result struct {
	Content []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
	IsError bool `json:"isError,omitempty"`
}

// session is what a client got out of a server.
type session struct {
	Server  any      `json:"server"`
	Tools   []object `json:"tools"`
	Results []result `json:"results"`
}

// transport is how a client reaches a server.
type transport struct {
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
}

// server is one of the two, with a session to call its tools for.
type server struct {
	name, path string
	// variable and target say what its tools work on, over stdio.
	variable, target string
	token            string
	calls            []call
}

func (s server) overStdio() transport {
	return transport{Command: filepath.Join(programs, "axiom-mcp"), Args: []string{"--server", s.name}, Env: map[string]string{
		"AXIOM_API_URL": "https://" + address + "/api/v1", "AXIOM_CA_FILE": caFile, "AXIOM_SESSION_TOKEN": s.token, s.variable: s.target,
	}}
}

func (s server) overHTTP() transport {
	return transport{URL: "https://" + address + s.path, Headers: map[string]string{tokenHeader: s.token}}
}

// furnish makes a world with something for every tool of the workbench to find,
// and an agent that leaves the talking to the test.
func furnish() (w *world, workbench server) {
	GinkgoHelper()
	w = newWorld()
	w.credential("MODEL_KEY")
	w.create(&api.Tool{ObjectMeta: w.meta("shared"), Spec: api.ToolSpec{Description: "Shared", ScriptTemplate: "echo"}})
	w.create(&api.ActionType{ObjectMeta: w.meta("notify"), Spec: api.ActionTypeSpec{
		Description: "Notifies", Mode: api.ModeScript, Script: api.ScriptAction{Interpreter: "bash", ScriptTemplate: "echo"},
	}})
	event := w.happens()
	comp := w.compose(api.CompositionAgent{Runtime: w.idle()})
	w.ask("Wait an hour before closing.")
	return w, server{
		name: "workbench", path: "/mcp", variable: "AXIOM_COMPOSITION_ID", target: w.namespace + "/" + compositionName,
		token: w.token(compositionName+"-agent", api.SessionWorking), calls: workbenchCalls(event, comp.Status.WorkflowRevision),
	}
}

// assistant starts a session of the configuration assistant.
func (w *world) assistant() server {
	GinkgoHelper()
	helper := &api.AgentSession{ObjectMeta: w.meta("helper")}
	helper.Spec.TemplateRef.Name = "axiom-config-assistant"
	helper.Spec.Runtime.PlaybookRef = &api.KeyRef{Name: "idle", Key: "playbook.yaml"}
	w.create(helper)
	return server{
		name: "axiom", path: "/mcp/axiom", variable: "AXIOM_ASSISTANT_SESSION_ID", target: w.namespace + "/helper",
		token: w.token("helper", api.SessionReady), calls: assistantCalls(),
	}
}

// sdk is the client of the official TypeScript SDK.
func sdk(ctx context.Context, via transport, calls []call) session {
	GinkgoHelper()
	job, err := json.Marshal(object{"transport": via, "calls": calls})
	Expect(err).NotTo(HaveOccurred())
	cmd := exec.CommandContext(ctx, "node", filepath.Join(interop(), "call-tools.mjs"))
	cmd.Stdin = bytes.NewReader(job)
	var got session
	Expect(json.Unmarshal(output(cmd), &got)).To(Succeed())
	return got
}

// inspector is the command line of the MCP Inspector, which is a process for
// each request.
func inspector(ctx context.Context, via transport, calls []call) session {
	GinkgoHelper()
	var got session
	Expect(json.Unmarshal(inspect(ctx, via, "tools/list"), &got)).To(Succeed())
	for _, c := range calls {
		args := []string{"--tool-name", c.Tool}
		for _, name := range sortedKeys(c.Arguments) {
			value, err := json.Marshal(c.Arguments[name])
			Expect(err).NotTo(HaveOccurred())
			args = append(args, "--tool-arg", name+"="+string(value))
		}
		var answer result
		Expect(json.Unmarshal(inspect(ctx, via, "tools/call", args...), &answer)).To(Succeed())
		got.Results = append(got.Results, answer)
	}
	return got
}

// inspect has the Inspector make one request. It takes flags of the server's for
// its own, so a server that is a program is configured in a file.
func inspect(ctx context.Context, via transport, method string, more ...string) []byte {
	GinkgoHelper()
	args := []string{"--cli"}
	if via.URL == "" {
		config, err := json.Marshal(object{"mcpServers": object{"it": via}})
		Expect(err).NotTo(HaveOccurred())
		file := filepath.Join(GinkgoT().TempDir(), "mcp.json")
		Expect(os.WriteFile(file, config, 0o600)).To(Succeed())
		args = append(args, "--config", file, "--server", "it")
	} else {
		args = append(args, via.URL, "--transport", "http")
		for _, name := range sortedKeys(via.Headers) {
			args = append(args, "--header", name+": "+via.Headers[name])
		}
	}
	cmd := exec.CommandContext(ctx, "mcp-inspector-cli", append(append(args, "--method", method), more...)...)
	// It looks for its own package.json from the working directory.
	cmd.Dir = filepath.Join(interop(), "node_modules", "@modelcontextprotocol", "inspector-cli", "build")
	return output(cmd)
}

// output runs a program of Node and returns what it prints.
func output(cmd *exec.Cmd) []byte {
	GinkgoHelper()
	cmd.Env = append(os.Environ(), "NODE_EXTRA_CA_CERTS="+caFile)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	Expect(cmd.Run()).To(Succeed(), "%s\n%s%s", strings.Join(cmd.Args, " "), out.String(), complaints.String())
	return out.Bytes()
}

// check compares what a client got with what each call wants.
func (s server) check(got session) {
	GinkgoHelper()
	var names, called []string
	for _, tool := range got.Tools {
		names = append(names, tool["name"].(string))
	}
	Expect(got.Results).To(HaveLen(len(s.calls)))
	for i, c := range s.calls {
		called = append(called, c.Tool)
		Expect(got.Results[i].Content).To(HaveLen(1), c.Tool)
		text := got.Results[i].Content[0].Text
		Expect(text).To(ContainSubstring(c.want), c.Tool)
		Expect(got.Results[i].IsError).To(Equal(strings.HasPrefix(text, "HTTP ")), "%s: %s", c.Tool, text)
	}
	slices.Sort(called)
	Expect(slices.Compact(called)).To(ConsistOf(names), "every tool is called")
}

// in takes the name of the world out of what a client got, so that what it got in
// another can be compared.
func (s session) in(w *world) string {
	GinkgoHelper()
	text, err := json.MarshalIndent(session{Tools: s.Tools, Results: s.Results}, "", " ")
	Expect(err).NotTo(HaveOccurred())
	return strings.ReplaceAll(string(text), w.namespace, "<namespace>")
}

var clients = []struct {
	name string
	talk func(context.Context, transport, []call) session
}{{"@modelcontextprotocol/sdk", sdk}, {"@modelcontextprotocol/inspector-cli", inspector}}

var transports = []struct {
	name string
	to   func(server) transport
}{{"stdio", server.overStdio}, {"streamable HTTP", server.overHTTP}}

// meetEverybody has each client call a server's tools over each transport, in a
// world of its own, and compares what they got.
func meetEverybody(ctx context.Context, pick func(w *world, workbench server) server) {
	GinkgoHelper()
	var first, name string
	for _, c := range clients {
		for _, t := range transports {
			w, workbench := furnish()
			s := pick(w, workbench)
			By(fmt.Sprintf("%s calls the tools of %s over %s", c.name, s.name, t.name))
			got := c.talk(ctx, t.to(s), s.calls)
			s.check(got)
			if first == "" {
				first, name = got.in(w), s.name
				tell.section("Tools of server `%s`", s.name)
				tell.calls(s, got, w)
			}
			Expect(got.in(w)).To(Equal(first), "%s over %s gets something else", c.name, t.name)
			tell.line("- `%s` over %s: %d tools, %d calls, the same answers", c.name, t.name, len(got.Tools), len(got.Results))
		}
	}
	AddReportEntry(name + " answers all clients alike")
}

var _ = Describe("The tools", Ordered, func() {
	It("of the workbench are the same to every client over both transports", func(ctx SpecContext) {
		meetEverybody(ctx, func(_ *world, workbench server) server { return workbench })
	})

	It("of the configuration assistant are the same to every client over both transports", func(ctx SpecContext) {
		meetEverybody(ctx, func(w *world, _ server) server { return w.assistant() })
	})
})

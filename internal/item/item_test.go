package item_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/item"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

func rawOf(t *testing.T, value any) *runtime.RawExtension {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return &runtime.RawExtension{Raw: data}
}

func draft(name string, doc *runtime.RawExtension) *api.Composition {
	comp := &api.Composition{}
	comp.Name, comp.Spec.Workflow = name, doc
	return comp
}

func tool(name, script string) api.NamedTool {
	return api.NamedTool{Name: name, ToolSpec: api.ToolSpec{Description: "Does " + name, ScriptTemplate: script}}
}

func TestItemsOfADraft(t *testing.T) {
	blank := workflow.Blank("triage")
	comp := draft("triage", rawOf(t, blank))
	comp.Spec.ActionTypes = []api.NamedActionType{{Name: "zeta"}, {Name: "alpha"}}
	comp.Spec.Tools = []api.NamedTool{tool("find-logs", "echo hi"), tool("ask", "echo hi")}
	views, err := item.Of(comp, expression.NewCache())
	if err != nil {
		t.Fatal(err)
	}
	type brief struct {
		Type  api.ItemType
		Name  string
		Valid bool
	}
	var got []brief
	for _, view := range views {
		got = append(got, brief{view.Type, view.Name, view.IsValid()})
	}
	want := []brief{
		{api.ItemWorkflow, "triage", true},
		{api.ItemActionType, "alpha", false},
		{api.ItemActionType, "zeta", false},
		{api.ItemTool, "ask", true},
		{api.ItemTool, "find-logs", true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("items differ (-want +got):\n%s", diff)
	}
	if want, err := changeset.Revision(blank); err != nil || views[0].Revision != want {
		t.Errorf("workflow revision %s, want %s (%v)", views[0].Revision, want, err)
	}
	if comp.Spec.Tools[0].Name != "find-logs" {
		t.Error("the draft's own list was sorted")
	}
}

func TestTheWorkflowAsAnItem(t *testing.T) {
	for name, tc := range map[string]struct{ given, want any }{
		"it is named as it says":           {"Triage of issues", "Triage of issues"},
		"without a name it is the draft's": {"", "triage"},
		"a name that is no text is none":   {7, "triage"},
		"a name that is too long is cut":   {strings.Repeat("ä", 200), strings.Repeat("ä", 125) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			doc := workflow.Blank("w")
			doc["name"] = tc.given
			views, err := item.Of(draft("triage", rawOf(t, doc)), nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(views) != 1 || views[0].Name != tc.want {
				t.Errorf("items are %+v, want one named %q", views, tc.want)
			}
		})
	}
}

func TestRevisionsOfLibraryItemsFollowTheirContent(t *testing.T) {
	revision := func(tool api.NamedTool) string {
		t.Helper()
		comp := draft("d", nil)
		comp.Spec.Tools = []api.NamedTool{tool}
		views, err := item.Library(comp, nil)
		if err != nil {
			t.Fatal(err)
		}
		return views[0].Revision
	}
	first, second := tool("a", "echo 1"), tool("a", "echo 2")
	if got := revision(first); got != revision(first) || got == revision(second) {
		t.Errorf("revisions %s and %s: want another for another content", got, revision(second))
	}
	// What is hashed has nothing taken out.
	want, err := changeset.ContentRevision(map[string]any{"name": "a", "description": "Does a", "scriptTemplate": "echo 1"})
	if got := revision(first); err != nil || got != want {
		t.Errorf("revision %s, want that of the item's JSON, %s (%v)", got, want, err)
	}
}

func TestUnreadableDraftsAreErrors(t *testing.T) {
	for name, raw := range map[string]string{"a list": "[]", "a cut text": "{", "an endless number": `{"n":1e400}`} {
		t.Run(name, func(t *testing.T) {
			if _, err := item.Of(draft("d", &runtime.RawExtension{Raw: []byte(raw)}), nil); err == nil {
				t.Error("it was read")
			}
		})
	}
}

func TestProblemsOfAWorkflow(t *testing.T) {
	long := strings.Repeat("x", 10000)
	doc := workflow.Blank("w")
	doc["nodes"] = append(doc["nodes"].([]any), map[string]any{"id": long, "type": "nonsense", "name": "n"})
	dangling := workflow.Blank("w")
	dangling["edges"] = append(dangling["edges"].([]any), map[string]any{"id": "edge-9", "source": "start-1", "target": "nowhere"})
	found := item.WorkflowProblems(dangling, nil)
	if !slices.ContainsFunc(found, func(p api.Problem) bool { return p.Path == "edges[edge-9]" }) {
		t.Errorf("no problem at the edge: %+v", found)
	}
	problems := item.WorkflowProblems(doc, nil)
	if item.IsValid(problems) {
		t.Fatalf("the workflow is valid: %+v", problems)
	}
	isNode := func(p api.Problem) bool { return strings.HasPrefix(p.Path, "nodes[xxx") }
	if !slices.ContainsFunc(problems, isNode) {
		t.Errorf("no problem at the node: %+v", problems)
	}
	isWarned := false
	for _, problem := range problems {
		if len(problem.Path) > 512 || len(problem.Message) > 2048 {
			t.Errorf("path of %d and message of %d bytes", len(problem.Path), len(problem.Message))
		}
		if isWarned && problem.Severity == api.SeverityError {
			t.Errorf("error %s after a warning", problem.Code)
		}
		isWarned = problem.Severity == api.SeverityWarning
	}
	if got := item.WorkflowProblems(map[string]any{}, nil); len(got) == 0 || got[0].Path != "content" {
		t.Errorf("problems of an empty object: %+v", got)
	}
}

func TestReadContent(t *testing.T) {
	type brief struct{ Severity, Path, Code string }
	for name, tc := range map[string]struct {
		kind    api.ItemType
		content map[string]any
		valid   bool
		want    []brief
		value   map[string]any
	}{
		"a tool": {
			kind:    api.ItemTool,
			content: map[string]any{"name": "a", "description": "d", "scriptTemplate": "echo"},
			valid:   true,
			value:   map[string]any{"name": "a", "description": "d", "scriptTemplate": "echo"},
		},
		"an invalid tool is content all the same": {
			kind:    api.ItemTool,
			content: map[string]any{"name": "a", "description": "d", "scriptTemplate": "echo", "interpreter": "cobol"},
			want:    []brief{{"error", "interpreter", "INVALID_INTERPRETER"}},
			value:   map[string]any{"name": "a", "description": "d", "scriptTemplate": "echo", "interpreter": "cobol"},
		},
		"what the API has no member for is left out, and told": {
			kind: api.ItemTool,
			content: map[string]any{
				"name": "a", "description": "d", "scriptTemplate": "echo $AXIOM_PARAM_p", "Labels": []any{"x"},
				"parameters": []any{map[string]any{"name": "p", "description": "d", "default": 7}},
			},
			valid: true,
			want:  []brief{{"warning", "Labels", "UNKNOWN_MEMBER"}, {"warning", "parameters[0].default", "UNKNOWN_MEMBER"}},
			value: map[string]any{
				"name": "a", "description": "d", "scriptTemplate": "echo $AXIOM_PARAM_p",
				"parameters": []any{map[string]any{"name": "p", "description": "d"}},
			},
		},
		"a workflow keeps everything": {
			kind:    api.ItemWorkflow,
			content: map[string]any{"name": "w", "anything": nil},
			want:    []brief{{"error", "content", "-"}},
			value:   map[string]any{"name": "w", "anything": nil},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := item.Read(tc.kind, tc.content, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got.Name != tc.content["name"] || got.Type != tc.kind || got.IsValid() != tc.valid {
				t.Errorf("read %s/%s, valid %t", got.Type, got.Name, got.IsValid())
			}
			if diff := cmp.Diff(tc.value, got.Value); diff != "" {
				t.Errorf("value (-want +got):\n%s", diff)
			}
			if len(tc.want) > 0 && tc.want[0].Code == "-" { // whatever a workflow of that sort lacks
				return
			}
			var problems []brief
			for _, p := range got.Problems {
				problems = append(problems, brief{string(p.Severity), p.Path, p.Code})
			}
			if diff := cmp.Diff(tc.want, problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestContentThatTheAPICannotHold(t *testing.T) {
	for name, content := range map[string]map[string]any{
		"a text where a list belongs": {"name": "a", "parameters": "none"},
		"a number for a name":         {"name": 7},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := item.Read(api.ItemTool, content, nil); err == nil {
				t.Errorf("read %+v", got)
			}
		})
	}
	if _, err := item.Read("nonsense", map[string]any{"name": "a"}, nil); err == nil {
		t.Error("read an item of a type that does not exist")
	}
}

func TestReadGivesTheRevisionThatTheDraftWillHave(t *testing.T) {
	content := map[string]any{"name": "ask", "mode": "script", "inputs": []any{map[string]any{"name": "n", "required": false}}, "unknown": 1}
	read, err := item.Read(api.ItemActionType, content, nil)
	if err != nil {
		t.Fatal(err)
	}
	comp := draft("d", nil)
	if err := item.Set(comp, api.ItemActionType, read.Data); err != nil {
		t.Fatal(err)
	}
	views, err := item.Library(comp, nil)
	if err != nil || len(views) != 1 || views[0].Revision != read.Revision {
		t.Errorf("the draft has %+v, want revision %s (%v)", views, read.Revision, err)
	}
}

func TestSetAndUnset(t *testing.T) {
	before := draft("d", nil)
	before.Spec.Tools = []api.NamedTool{tool("a", "1"), tool("b", "2")}
	comp := before.DeepCopy()
	comp.Spec.Tools = before.Spec.Tools // a change must not reach into what is shared
	data, err := json.Marshal(tool("a", "changed"))
	if err != nil {
		t.Fatal(err)
	}
	if err := item.Set(comp, api.ItemTool, data); err != nil {
		t.Fatal(err)
	}
	item.Unset(comp, api.ItemTool, "b")
	item.Unset(comp, api.ItemActionType, "b")
	if diff := cmp.Diff([]api.NamedTool{tool("a", "changed")}, comp.Spec.Tools); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]api.NamedTool{tool("a", "1"), tool("b", "2")}, before.Spec.Tools); diff != "" {
		t.Errorf("the shared list changed (-want +got):\n%s", diff)
	}
	if err := item.Set(comp, api.ItemWorkflow, []byte(`{"name":"w"}`)); err != nil || string(comp.Spec.Workflow.Raw) != `{"name":"w"}` {
		t.Errorf("workflow %s (%v)", comp.Spec.Workflow.Raw, err)
	}
	item.Unset(comp, api.ItemWorkflow, "w")
	if comp.Spec.Workflow != nil {
		t.Errorf("workflow %s", comp.Spec.Workflow.Raw)
	}
	for _, kind := range []api.ItemType{api.ItemTool, api.ItemActionType} {
		if err := item.Set(comp, kind, []byte("[]")); err == nil {
			t.Errorf("a list was taken for a %s", kind)
		}
	}
}

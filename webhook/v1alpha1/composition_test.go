package v1alpha1

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

const smallFlow = `{"id":"t","name":"t","nodes":[{"id":"s","type":"start","name":"S"},{"id":"e","type":"end","name":"E"}],"edges":[{"id":"x","source":"s","target":"e"}]}`

func draft(flow string) *api.Composition {
	c := &api.Composition{ObjectMeta: metav1.ObjectMeta{Name: "triage"}}
	if flow != "" {
		c.Spec.Workflow = &runtime.RawExtension{Raw: []byte(flow)}
	}
	return c
}

func tool(name, script string) api.NamedTool {
	return api.NamedTool{Name: name, ToolSpec: api.ToolSpec{ScriptTemplate: script}}
}

func messages(errs field.ErrorList) []string {
	var lines []string
	for _, err := range errs {
		lines = append(lines, err.Error())
	}
	return lines
}

func TestValidateComposition(t *testing.T) {
	longest := strings.Repeat("é", maxCompositionName)
	// 27 bytes are the JSON around the script.
	full := strings.Repeat("<", maxItemBytes-len(`{"name":"a","scriptTemplate":""}`))
	cases := map[string]struct {
		change func(*api.Composition)
		want   []string
	}{
		"nothing at all":   {change: func(c *api.Composition) { *c = api.Composition{} }},
		"the longest name": {change: func(c *api.Composition) { c.Name = longest }},
		"one character more": {
			change: func(c *api.Composition) { c.Name = longest + "é" },
			want:   []string{"metadata.name: Too long: has 53 characters, the limit is 52"},
		},
		"a draft with problems": {change: func(c *api.Composition) { c.Spec.Workflow.Raw = []byte(`{"nodes":7}`) }},
		"a workflow that is a list": {
			change: func(c *api.Composition) { c.Spec.Workflow.Raw = []byte(`[]`) },
			want:   []string{"spec.workflow: Invalid value: a workflow must be an object"},
		},
		"a workflow that is no JSON": {
			change: func(c *api.Composition) { c.Spec.Workflow.Raw = []byte(`{`) },
			want:   []string{"spec.workflow: Invalid value: decode value: unexpected EOF"},
		},
		"the largest item": {change: func(c *api.Composition) { c.Spec.Tools = []api.NamedTool{tool("a", full)} }},
		"one byte more": {
			change: func(c *api.Composition) { c.Spec.Tools = []api.NamedTool{tool("a", full+"<")} },
			want:   []string{"spec.tools[a]: Too long: has 131073 bytes of JSON, the limit is 131072"},
		},
		"as much as all items may be": {
			change: func(c *api.Composition) { c.Spec.Tools = []api.NamedTool{tool("a", full), tool("b", full)} },
		},
		"one item more": {
			change: func(c *api.Composition) {
				c.Spec.Tools = []api.NamedTool{tool("a", full), tool("b", full)}
				c.Spec.ActionTypes = []api.NamedActionType{{Name: "c"}}
			},
			want: []string{"spec: Too long: has 262156 bytes of JSON in action types and tools, the limit is 262144"},
		},
		"an agent that never suspends": {change: func(c *api.Composition) { c.Spec.Agent.IdleTimeout = &metav1.Duration{} }},
		"an agent without time": {
			change: func(c *api.Composition) { c.Spec.Agent.TurnTimeout = &metav1.Duration{} },
			want:   []string{`spec.agent.turnTimeout: Invalid value: "0s": must be positive`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := draft(smallFlow)
			tc.change(c)
			if diff := cmp.Diff(tc.want, messages(validateComposition(c, newVerdicts(nil).of(c.Spec.Workflow)))); diff != "" {
				t.Errorf("validateComposition() mismatch (-want +got):\n%s", diff)
			}
		})
	}
}

func TestContentsEqual(t *testing.T) {
	base := func() *api.Composition {
		c := draft(smallFlow)
		c.Spec.Tools = []api.NamedTool{tool("a", "x"), tool("b", "y")}
		return c
	}
	cases := map[string]struct {
		change func(*api.Composition)
		want   bool
	}{
		"nothing":            {func(*api.Composition) {}, true},
		"the goal":           {func(c *api.Composition) { c.Spec.Goal = "g" }, true},
		"a position":         {func(c *api.Composition) { replaceFlow(c, `"type":"start"`, `"type":"start","position":{"x":1}`) }, true},
		"spelling":           {func(c *api.Composition) { replaceFlow(c, `"nodes":[`, ` "nodes" : [`) }, true},
		"the order of tools": {func(c *api.Composition) { c.Spec.Tools[0], c.Spec.Tools[1] = c.Spec.Tools[1], c.Spec.Tools[0] }, true},
		"an empty list":      {func(c *api.Composition) { c.Spec.ActionTypes = []api.NamedActionType{} }, true},
		"a name":             {func(c *api.Composition) { replaceFlow(c, `"name":"t"`, `"name":"u"`) }, false},
		"an unknown member":  {func(c *api.Composition) { replaceFlow(c, `"id":"t"`, `"id":"t","x-a":null`) }, false},
		"a tool":             {func(c *api.Composition) { c.Spec.Tools[1].ScriptTemplate = "z" }, false},
		"a tool's end":       {func(c *api.Composition) { c.Spec.Tools = c.Spec.Tools[:1] }, false},
		"a tool's successor": {func(c *api.Composition) { c.Spec.Tools[1].Name = "c" }, false},
		"a type for a tool": {func(c *api.Composition) {
			c.Spec.Tools = c.Spec.Tools[:1]
			c.Spec.ActionTypes = []api.NamedActionType{{Name: "b"}}
		}, false},
		"the workflow's end": {func(c *api.Composition) { c.Spec.Workflow = nil }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before, errBefore := contentsOf(base(), newVerdicts(nil).of(base().Spec.Workflow))
			changed := base()
			tc.change(changed)
			after, errAfter := contentsOf(changed, newVerdicts(nil).of(changed.Spec.Workflow))
			if errBefore != nil || errAfter != nil {
				t.Fatalf("contentsOf() errors: %v, %v", errBefore, errAfter)
			}
			if got := before.equal(after); got != tc.want {
				t.Errorf("equal() = %t, want %t", got, tc.want)
			}
		})
	}
}

func replaceFlow(c *api.Composition, was, is string) {
	c.Spec.Workflow.Raw = []byte(strings.Replace(string(c.Spec.Workflow.Raw), was, is, 1))
}

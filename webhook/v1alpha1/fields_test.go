package v1alpha1

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

func TestChangedMembers(t *testing.T) {
	before := map[string]any{"same": []any{int64(1), nil}, "gone": true, "null": nil, "number": int64(9007199254740993)}
	after := map[string]any{"same": []any{int64(1), nil}, "added": nil, "number": int64(9007199254740992)}
	want := []string{"added", "gone", "null", "number"}
	if diff := cmp.Diff(want, changedMembers(before, after)); diff != "" {
		t.Errorf("changedMembers() mismatch (-want +got):\n%s", diff)
	}
	if got := changedMembers(nil, nil); len(got) != 0 {
		t.Errorf("changedMembers(nil, nil) = %q, want none", got)
	}
	if diff := cmp.Diff([]string{"a"}, changedMembers(nil, map[string]any{"a": int64(1)})); diff != "" {
		t.Errorf("changedMembers() from nothing mismatch (-want +got):\n%s", diff)
	}
	if len(before) != 4 {
		t.Error("changedMembers() changed its argument")
	}
}

func TestSameJSON(t *testing.T) {
	value := func(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }
	cases := map[string]struct {
		a, b *runtime.RawExtension
		want bool
	}{
		"nothing and nothing": {nil, nil, true},
		"nothing and null":    {nil, value(`null`), false},
		"spelling":            {value(`{"a":1,"b":[2.50]}`), value(` {"b":[2.5],"a":1.0}`), true},
		"beyond the doubles":  {value(`9007199254740993`), value(`9007199254740992`), false},
		"what cannot be read": {value(`{`), value(`{`), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := sameJSON(tc.a, tc.b); got != tc.want {
				t.Errorf("sameJSON() = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestValidateISODuration(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":          {"", ""},
		"a day":            {"P1D", ""},
		"a nanosecond":     {"pt0.000000001s", ""},
		"no time":          {"PT0S", "must be positive"},
		"a negative time":  {"-PT1S", "must be positive"},
		"another notation": {"1h", "must be an ISO 8601 duration"},
		"a month":          {"P1M", "must be an ISO 8601 duration"},
		"a space before":   {" PT1S", "must be an ISO 8601 duration"},
	} {
		got := strings.Join(messages(validateISODuration(tc.text, field.NewPath("spec", "d"))), "; ")
		if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: validateISODuration(%q) = %q, want %q", name, tc.text, got, tc.want)
		}
	}
}

func TestValidateTemplateSpec(t *testing.T) {
	valid := func() *api.SessionTemplateSpec {
		return &api.SessionTemplateSpec{SystemPrompt: "p", MCPServers: []api.MCPServer{{Name: "docs__v2", URL: "https://example.com/mcp"}}}
	}
	cases := map[string]struct {
		change func(*api.SessionTemplateSpec)
		want   string
	}{
		"nothing else":             {func(*api.SessionTemplateSpec) {}, ""},
		"a blank prompt":           {func(s *api.SessionTemplateSpec) { s.SystemPrompt = " " }, "spec.systemPrompt: Required value"},
		"a declared server's tool": {func(s *api.SessionTemplateSpec) { s.AllowedTools = []string{"mcp__docs__v2__search"} }, ""},
		"a server without a tool":  {func(s *api.SessionTemplateSpec) { s.AllowedTools = []string{"mcp__docs__v2__"} }, "spec.allowedTools[0]"},
		"half a server's name":     {func(s *api.SessionTemplateSpec) { s.AllowedTools = []string{"mcp__docs__search"} }, "spec.allowedTools[0]"},
		"a built-in server's tools": {func(s *api.SessionTemplateSpec) {
			s.AllowedTools = []string{"mcp__workbench__get_item", "mcp__axiom__axiom_get_item"}
		}, ""},
		"a tool of the agent's own":  {func(s *api.SessionTemplateSpec) { s.AllowedTools = []string{"Read"} }, ""},
		"a command":                  {func(s *api.SessionTemplateSpec) { s.AllowedTools = []string{"Bash(git log *)"} }, ""},
		"any command":                {func(s *api.SessionTemplateSpec) { s.AllowedTools = []string{"Bash(*)"} }, "spec.allowedTools[0]"},
		"any command, nearly hidden": {func(s *api.SessionTemplateSpec) { s.AllowedTools = []string{"Bash( *)"} }, "spec.allowedTools[0]"},
		"a pattern for a tool":       {func(s *api.SessionTemplateSpec) { s.AllowedTools = []string{"mcp__workbench__*"} }, "spec.allowedTools[0]"},
		"a built-in server":          {func(s *api.SessionTemplateSpec) { s.MCPServers = []api.MCPServer{{Name: "@axiom-assistant"}} }, ""},
		"a built-in server elsewhere": {func(s *api.SessionTemplateSpec) {
			s.MCPServers = []api.MCPServer{{Name: "@axiom-assistant", URL: "https://x"}}
		}, "spec.mcpServers[@axiom-assistant].url"},
		"an unknown alias": {func(s *api.SessionTemplateSpec) { s.MCPServers = []api.MCPServer{{Name: "@other"}} }, "spec.mcpServers[@other].name"},
		"a built-in server's name": {func(s *api.SessionTemplateSpec) {
			s.MCPServers = []api.MCPServer{{Name: "workbench", URL: "https://x"}}
		}, "must not be the name of a built-in server"},
		"a server without an address": {func(s *api.SessionTemplateSpec) { s.MCPServers = []api.MCPServer{{Name: "x"}} }, "spec.mcpServers[x].url"},
		"a server in a file":          {func(s *api.SessionTemplateSpec) { s.MCPServers = []api.MCPServer{{Name: "x", URL: "file:///x"}} }, "spec.mcpServers[x].url"},
		"a pattern for tool names":    {func(s *api.SessionTemplateSpec) { s.ToolNamePatterns = []string{`^(?P<server>\w+)/(?P<tool>\w+)$`} }, ""},
		"a pattern for server names":  {func(s *api.SessionTemplateSpec) { s.ToolNamePatterns = []string{`^(?P<server>\w+)$`} }, "spec.toolNamePatterns[0]"},
		"a pattern that is none":      {func(s *api.SessionTemplateSpec) { s.ToolNamePatterns = []string{`(?P<tool>\w+`} }, "must be a regular expression"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := valid()
			tc.change(spec)
			got := strings.Join(messages(validateTemplateSpec(spec, field.NewPath("spec"))), "; ")
			if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("validateTemplateSpec() = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestPromptWarnings(t *testing.T) {
	got := promptWarnings("{{reference}} {{ reference }} {{changesetReference}} {{}} { {x} }")
	want := []string{"spec.systemPrompt: {{ reference }} is not replaced", "spec.systemPrompt: {{}} is not replaced"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("promptWarnings() mismatch (-want +got):\n%s", diff)
	}
}

package template_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/template"
)

func TestServers(t *testing.T) {
	for name, tc := range map[string]struct {
		declared []api.MCPServer
		tools    []string
		want     []api.MCPServer
	}{
		"none":                           {nil, []string{"Bash(jq *)", "workbench", "mcp__"}, nil},
		"tools of the workbench alone":   {nil, []string{"mcp__workbench__get_item"}, []api.MCPServer{{Name: "@axiom-workbench"}}},
		"tools of the assistant alone":   {nil, []string{"mcp__axiom__axiom_get_tool"}, []api.MCPServer{{Name: "@axiom-assistant"}}},
		"a server's name without a tool": {nil, []string{"mcp__workbench__", "mcp__workbench"}, nil},
		"declared and used": {
			[]api.MCPServer{{Name: "@axiom-workbench"}}, []string{"mcp__workbench__get_item"}, []api.MCPServer{{Name: "@axiom-workbench"}},
		},
		"others come first": {
			[]api.MCPServer{{Name: "search", URL: "https://example.com"}},
			[]string{"mcp__axiom__a", "mcp__workbench__b", "mcp__search__c"},
			[]api.MCPServer{{Name: "search", URL: "https://example.com"}, {Name: "@axiom-workbench"}, {Name: "@axiom-assistant"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := template.Servers(api.SessionTemplateSpec{MCPServers: tc.declared, AllowedTools: tc.tools})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("servers differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBuiltInsDeclareWhatTheyUse(t *testing.T) {
	if diff := cmp.Diff([]string{"axiom-config-assistant", "axiom-workbench", "general-assistant", "subject-assistant"}, template.Names()); diff != "" {
		t.Errorf("names differ (-want +got):\n%s", diff)
	}
	for _, name := range template.Names() {
		spec, _ := template.BuiltIn(name)
		if diff := cmp.Diff(template.Servers(spec), spec.MCPServers); diff != "" {
			t.Errorf("servers of %s differ (-want +got):\n%s", name, diff)
		}
		if spec.SystemPrompt == "" || spec.DisplayName == "" || spec.Description == "" {
			t.Errorf("%s is not complete: %+v", name, spec)
		}
	}
	for _, name := range []string{template.General, template.Subject} {
		if spec, _ := template.BuiltIn(name); len(spec.AllowedTools) > 0 {
			t.Errorf("%s has tools", name)
		}
	}
}

func TestUnknownPlaceholders(t *testing.T) {
	got := template.UnknownPlaceholders("{{reference}} {{other}} {{changesetReference}} {{ reference }} {{other}} {{}} {{{x}}} {single}")
	if diff := cmp.Diff([]string{"{{other}}", "{{ reference }}", "{{}}", "{{x}}"}, got); diff != "" {
		t.Errorf("placeholders differ (-want +got):\n%s", diff)
	}
}

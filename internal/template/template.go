// Package template holds the session templates that are compiled in, and
// renders their system prompts. Users cannot change a built-in; their own
// templates are SessionTemplate objects.
package template

import (
	_ "embed"
	"strings"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// Capabilities that built-in templates grant.
const (
	// CapabilityComposition opens the routes of one composition.
	CapabilityComposition = "composition"
)

// General is the built-in template of an agent that is good for anything words
// can do, and has no tools.
const General = "general-assistant"

// ServerWorkbench is the alias of the built-in MCP server for compositions.
const ServerWorkbench = "@axiom-workbench"

// workbenchTools are the tools of the server `workbench`, in the order an
// agent meets them.
var workbenchTools = []string{
	"get_composition",
	"get_item",
	"upsert_item",
	"remove_item",
	"propose_workflow_changes",
	"validate_composition",
	"list_stream_events",
	"get_stream_event",
	"evaluate_expression",
	"axiom_list_action_types",
	"axiom_get_action_type",
	"axiom_list_tools",
	"axiom_get_tool",
	"axiom_list_secrets",
}

//go:embed workbench.md
var workbenchPrompt string

//go:embed general.md
var generalPrompt string

//go:embed reference.md
var reference string

//go:embed changesets.md
var changesetReference string

// WorkbenchTools are the names of the workbench's tools as an MCP client of
// the server sees them.
func WorkbenchTools() []string {
	return append([]string(nil), workbenchTools...)
}

// BuiltIn returns a built-in template by name, its system prompt rendered.
func BuiltIn(name string) (api.SessionTemplateSpec, bool) {
	switch name {
	case api.TemplateWorkbench:
		return workbench(), true
	case General:
		return general(), true
	}
	return api.SessionTemplateSpec{}, false
}

// Capabilities of a session of the template, sorted. A session that is bound
// to a composition has its capability whatever the template.
func Capabilities(name string, bound bool) []string {
	if bound || name == api.TemplateWorkbench {
		return []string{CapabilityComposition}
	}
	return []string{}
}

// Render replaces the placeholders of a system prompt.
func Render(systemPrompt string) string {
	return strings.NewReplacer(
		"{{reference}}", strings.TrimSpace(reference),
		"{{changesetReference}}", strings.TrimSpace(changesetReference),
	).Replace(systemPrompt)
}

func general() api.SessionTemplateSpec {
	return api.SessionTemplateSpec{
		DisplayName:  "General assistant",
		Description:  "Answers in words. It has no tools.",
		SystemPrompt: strings.TrimSpace(generalPrompt),
	}
}

func workbench() api.SessionTemplateSpec {
	allowed := make([]string, 0, len(workbenchTools)+1)
	for _, tool := range workbenchTools {
		allowed = append(allowed, "mcp__workbench__"+tool)
	}
	return api.SessionTemplateSpec{
		DisplayName:    "Axiom workbench",
		Description:    "Edits the workflow of one composition together with a person.",
		SystemPrompt:   Render(workbenchPrompt),
		WelcomeMessage: "Tell me what this workflow should do, or select something on the canvas and ask me to change it.",
		MCPServers:     []api.MCPServer{{Name: ServerWorkbench}},
		AllowedTools:   append(allowed, "Bash(jq *)"),
	}
}

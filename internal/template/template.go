// Package template holds the session templates that are compiled in, and
// renders their system prompts. Users cannot change a built-in; their own
// templates are SessionTemplate objects.
package template

import (
	_ "embed"
	"maps"
	"slices"
	"strings"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/capability"
)

// Names of the built-in templates beside that of compositions.
const (
	// ConfigAssistant drafts action types and tools for the library.
	ConfigAssistant = "axiom-config-assistant"
	// General is that of an agent that is good for anything words can do, and has
	// no tools.
	General = "general-assistant"
	// Subject is that of an agent that answers questions about one object.
	Subject = "subject-assistant"
)

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

// assistantTools are those of the server `axiom`.
var assistantTools = []string{
	"axiom_list_items",
	"axiom_get_item",
	"axiom_put_item",
	"axiom_remove_item",
	"axiom_validate_item",
	"axiom_list_action_types",
	"axiom_get_action_type",
	"axiom_list_tools",
	"axiom_get_tool",
	"axiom_list_secrets",
}

//go:embed workbench.md
var workbenchPrompt string

//go:embed assistant.md
var assistantPrompt string

//go:embed general.md
var generalPrompt string

//go:embed subject.md
var subjectPrompt string

// builtIns make the templates that are compiled in, by name.
var builtIns = map[string]func() api.SessionTemplateSpec{
	api.TemplateWorkbench: workbench,
	ConfigAssistant:       configAssistant,
	General:               general,
	Subject:               subject,
}

// Names of the built-in templates, sorted.
func Names() []string { return slices.Sorted(maps.Keys(builtIns)) }

// BuiltIn returns a built-in template by name, its system prompt rendered.
func BuiltIn(name string) (api.SessionTemplateSpec, bool) {
	build, isBuiltIn := builtIns[name]
	if !isBuiltIn {
		return api.SessionTemplateSpec{}, false
	}
	return build(), true
}

// Capabilities of a session of the template. Only built-ins grant any; a session
// that is bound to a composition has that one whatever the template.
func Capabilities(name string, bound bool) capability.Set {
	spec, _ := BuiltIn(name)
	granted := capability.Parse(spec.Capabilities)
	if bound {
		return granted.With(capability.Composition)
	}
	return granted
}

func workbench() api.SessionTemplateSpec {
	return api.SessionTemplateSpec{
		DisplayName:    "Axiom workbench",
		Description:    "Edits the workflow of one composition together with a person.",
		SystemPrompt:   Render(workbenchPrompt),
		WelcomeMessage: "Tell me what this workflow should do, or select something on the canvas and ask me to change it.",
		MCPServers:     []api.MCPServer{{Name: Workbench.Alias}},
		AllowedTools:   append(Workbench.tools(workbenchTools), "Bash(jq *)"),
		Capabilities:   []string{capability.Composition},
	}
}

func configAssistant() api.SessionTemplateSpec {
	return api.SessionTemplateSpec{
		DisplayName:    "Configuration assistant",
		Description:    "Drafts action types and tools for the library of a namespace.",
		SystemPrompt:   Render(assistantPrompt),
		WelcomeMessage: "Tell me what a step of your workflows should do, and I will draft an action type or a tool for it.",
		MCPServers:     []api.MCPServer{{Name: Assistant.Alias}},
		AllowedTools:   Assistant.tools(assistantTools),
		Capabilities:   []string{capability.ConfigItems, capability.ValidationFeedback},
	}
}

func general() api.SessionTemplateSpec {
	return api.SessionTemplateSpec{
		DisplayName:  "General assistant",
		Description:  "Answers in words. It has no tools.",
		SystemPrompt: strings.TrimSpace(generalPrompt),
	}
}

func subject() api.SessionTemplateSpec {
	return api.SessionTemplateSpec{
		DisplayName:  "Subject assistant",
		Description:  "Answers questions about one object, whose manifest it is given. It has no tools.",
		SystemPrompt: strings.TrimSpace(subjectPrompt),
	}
}

// tools are the names of the server's tools as its clients see them.
func (s Server) tools(names []string) []string {
	tools := make([]string, 0, len(names))
	for _, name := range names {
		tools = append(tools, s.prefix()+name)
	}
	return slices.Clip(tools)
}

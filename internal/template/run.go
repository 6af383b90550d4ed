package template

import (
	_ "embed"
	"strings"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

//go:embed run.md
var runRules string

// InRun is what is left of a template for an agent inside a run: it has no tools
// whatever the template lends, and is told the rules that hold there.
func InRun(spec api.SessionTemplateSpec) api.SessionTemplateSpec {
	spec.MCPServers, spec.AllowedTools, spec.ToolNamePatterns, spec.WelcomeMessage = nil, nil, nil, ""
	spec.SystemPrompt = strings.TrimSpace(runRules) + "\n\n" + strings.TrimSpace(spec.SystemPrompt)
	return spec
}

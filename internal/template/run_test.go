package template_test

import (
	"strings"
	"testing"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/template"
)

func TestAnAgentInARunHasNoTools(t *testing.T) {
	for _, name := range []string{api.TemplateWorkbench, template.General} {
		spec, found := template.BuiltIn(name)
		if !found {
			t.Fatalf("there is no template %s", name)
		}
		before := spec.SystemPrompt
		got := template.InRun(spec)
		if len(got.MCPServers)+len(got.AllowedTools)+len(got.ToolNamePatterns) > 0 || got.WelcomeMessage != "" {
			t.Errorf("%s lends tools: %+v", name, got)
		}
		if !strings.HasPrefix(got.SystemPrompt, "You work inside a workflow run.") || !strings.HasSuffix(got.SystemPrompt, strings.TrimSpace(before)) {
			t.Errorf("%s is told %q", name, got.SystemPrompt)
		}
	}
}

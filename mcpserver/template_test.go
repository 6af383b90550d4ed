package mcpserver_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/template"
	"github.com/apitomy/axiom-operator/mcpserver"
)

// The built-in templates may use every tool of their server, and no tool that it
// does not have.
func TestTheTemplatesKnowTheServersTools(t *testing.T) {
	for name, server := range map[string]string{"axiom-workbench": mcpserver.Workbench, "axiom-config-assistant": mcpserver.Assistant} {
		t.Run(name, func(t *testing.T) {
			spec, _ := template.BuiltIn(name)
			var allowed []string
			for _, tool := range spec.AllowedTools {
				if short, isServers := strings.CutPrefix(tool, "mcp__"+server+"__"); isServers {
					allowed = append(allowed, short)
				}
			}
			slices.Sort(allowed)
			if diff := cmp.Diff(toolsOf[server], allowed); diff != "" {
				t.Errorf("tools differ (-server +template):\n%s", diff)
			}
		})
	}
}

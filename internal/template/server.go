package template

import (
	"slices"
	"strings"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

const (
	// MCPPrefix begins the name of every tool of an MCP server.
	MCPPrefix = "mcp__"
	separator = "__"
)

// Server is an MCP server as the names of its tools show it.
type Server struct {
	// Alias that templates write; empty for a server of a user's.
	Alias string
	// Name in `mcp__<name>__<tool>`.
	Name string
}

// The operator's own servers.
var (
	Workbench = Server{Alias: "@axiom-workbench", Name: "workbench"}
	Assistant = Server{Alias: "@axiom-assistant", Name: "axiom"}
)

// OwnServers are the operator's own. Their tools may be allowed without naming
// them.
func OwnServers() []Server { return []Server{Workbench, Assistant} }

// Has tells whether a tool is, by its name, one of the server's.
func (s Server) Has(tool string) bool {
	return strings.HasPrefix(tool, s.prefix()) && len(tool) > len(s.prefix())
}

func (s Server) prefix() string { return MCPPrefix + s.Name + separator }

// Servers are the MCP servers of a template's sessions: those that it declares,
// and the operator's own that its tools imply.
func Servers(spec api.SessionTemplateSpec) []api.MCPServer {
	servers := slices.Clone(spec.MCPServers)
	for _, own := range OwnServers() {
		isDeclared := slices.ContainsFunc(servers, func(s api.MCPServer) bool { return s.Name == own.Alias })
		if !isDeclared && slices.ContainsFunc(spec.AllowedTools, own.Has) {
			servers = append(servers, api.MCPServer{Name: own.Alias})
		}
	}
	return servers
}

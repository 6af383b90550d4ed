package runner

import (
	"cmp"
	"fmt"

	acp "github.com/coder/acp-go-sdk"

	"github.com/apitomy/axiom-operator/gateway/openapi"
)

// Aliases of the servers that come with the runner.
const (
	aliasWorkbench = "@axiom-workbench"
	aliasAssistant = "@axiom-assistant"
)

// builtIn names the servers behind the aliases.
var builtIn = map[string]string{aliasWorkbench: "workbench", aliasAssistant: "axiom"}

// serverNames are the names by which the agent knows its servers.
func serverNames(declared []openapi.MCPServer) []string {
	names := make([]string, 0, len(declared))
	for _, server := range declared {
		names = append(names, cmp.Or(builtIn[server.Name], server.Name))
	}
	return names
}

// servers returns the MCP servers for the agent to connect to. Only an agent
// that announces HTTP can reach those that have a URL.
func (e Environment) servers(declared []openapi.MCPServer, http bool) ([]acp.McpServer, error) {
	servers := make([]acp.McpServer, 0, len(declared))
	for _, server := range declared {
		switch {
		case server.Name == aliasWorkbench:
			servers = append(servers, e.stdioServer(builtIn[server.Name], nil))
		case server.Name == aliasAssistant:
			assistant := acp.EnvVariable{Name: envAssistant, Value: e.Namespace + "/" + e.Name}
			servers = append(servers, e.stdioServer(builtIn[server.Name], []string{"--server", builtIn[server.Name]}, assistant))
		case server.URL == "":
			return nil, fmt.Errorf("MCP server %q is neither built in nor has it a URL", server.Name)
		case !http:
			return nil, fmt.Errorf("the agent cannot connect to MCP server %q: it announces no HTTP", server.Name)
		default:
			servers = append(servers, acp.McpServer{Http: &acp.McpServerHttpInline{
				Type: "http", Name: server.Name, Url: server.URL, Headers: []acp.HttpHeader{},
			}})
		}
	}
	return servers, nil
}

func (e Environment) stdioServer(name string, args []string, more ...acp.EnvVariable) acp.McpServer {
	env := []acp.EnvVariable{
		{Name: EnvAPIURL, Value: e.APIURL},
		{Name: EnvToken, Value: e.Token},
	}
	if e.CAFile != "" {
		env = append(env, acp.EnvVariable{Name: EnvCAFile, Value: e.CAFile})
	}
	if e.Composition != "" {
		env = append(env, acp.EnvVariable{Name: EnvComposition, Value: e.Composition})
	}
	return acp.McpServer{Stdio: &acp.McpServerStdio{
		Name: name, Command: e.MCPCommand,
		Args: append([]string{}, args...),
		Env:  append(env, more...),
	}}
}

package scripted

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"slices"
	"strings"

	acp "github.com/coder/acp-go-sdk"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// toolbox holds the MCP servers of a conversation.
type toolbox struct {
	servers []server
}

type server struct {
	name    string
	session *mcp.ClientSession
	tools   []string
}

// openToolbox connects to every server and reads what tools it has. Servers
// that are programs get env besides their own variables, and write their
// standard error to stderr.
func openToolbox(ctx context.Context, declared []acp.McpServer, env []string, stderr io.Writer) (*toolbox, error) {
	box := &toolbox{}
	for _, one := range declared {
		name, transport, err := transportOf(one, env, stderr)
		if err != nil {
			return nil, errors.Join(err, box.close())
		}
		opened, err := openServer(ctx, name, transport)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("connect to MCP server %s: %w", name, err), box.close())
		}
		box.servers = append(box.servers, opened)
	}
	return box, nil
}

func transportOf(declared acp.McpServer, env []string, stderr io.Writer) (string, mcp.Transport, error) {
	switch {
	case declared.Stdio != nil:
		cmd := exec.Command(declared.Stdio.Command, declared.Stdio.Args...)
		cmd.Env = slices.Clone(env)
		for _, variable := range declared.Stdio.Env {
			cmd.Env = append(cmd.Env, variable.Name+"="+variable.Value)
		}
		cmd.Stderr = stderr
		return declared.Stdio.Name, &mcp.CommandTransport{Command: cmd}, nil
	case declared.Http != nil:
		headers := http.Header{}
		for _, header := range declared.Http.Headers {
			headers.Add(header.Name, header.Value)
		}
		return declared.Http.Name, &mcp.StreamableClientTransport{
			Endpoint:   declared.Http.Url,
			HTTPClient: &http.Client{Transport: withHeaders{headers}},
		}, nil
	default:
		return "", nil, errors.New("only MCP servers over stdio and HTTP are supported")
	}
}

// withHeaders adds headers to every request.
type withHeaders struct{ headers http.Header }

func (t withHeaders) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	maps.Copy(request.Header, t.headers)
	return http.DefaultTransport.RoundTrip(request)
}

func openServer(ctx context.Context, name string, transport mcp.Transport) (server, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: agentName, Version: agentVersion}, nil)
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		return server{}, err
	}
	opened := server{name: name, session: session}
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			return server{}, errors.Join(fmt.Errorf("list tools: %w", err), session.Close())
		}
		opened.tools = append(opened.tools, tool.Name)
	}
	return opened, nil
}

func (b *toolbox) close() error {
	var failed error
	for _, one := range b.servers {
		failed = errors.Join(failed, one.session.Close())
	}
	return failed
}

// find returns the server that has the tool, and the tool's name there. The
// tool may be given as mcp__<server>__<name>.
func (b *toolbox) find(tool, wanted string) (server, string, error) {
	var found []server
	name := tool
	for _, one := range b.servers {
		plain, qualified := strings.CutPrefix(tool, "mcp__"+one.name+"__")
		if qualified {
			wanted, name = one.name, plain
		}
		if (wanted == "" || wanted == one.name) && slices.Contains(one.tools, plain) {
			found = append(found, one)
		}
	}
	switch len(found) {
	case 1:
		return found[0], name, nil
	case 0:
		return server{}, "", fmt.Errorf("no MCP server has a tool %s", tool)
	default:
		return server{}, "", fmt.Errorf("several MCP servers have a tool %s; name the server", tool)
	}
}

// callTool returns the text of the result, and whether the tool says that it
// failed.
func (s server) callTool(ctx context.Context, tool string, args map[string]any) (text string, failed bool, err error) {
	result, err := s.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return "", false, err
	}
	var texts []string
	for _, content := range result.Content {
		if block, ok := content.(*mcp.TextContent); ok {
			texts = append(texts, block.Text)
		}
	}
	return strings.Join(texts, "\n"), result.IsError, nil
}

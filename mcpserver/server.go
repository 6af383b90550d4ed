package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/apitomy/axiom-operator/gateway/client"
	"github.com/apitomy/axiom-operator/gateway/openapi"
)

// Name of the server; agents see its tools as mcp__workbench__<tool>.
const Name = "workbench"

// callTimeout bounds one tool call, with all tries of it while the gateway is away.
const callTimeout = time.Minute

// Gateway is what the tools call.
type Gateway interface {
	GetAgentComposition(ctx context.Context, namespace, name string) (*openapi.AgentComposition, error)
	ProposeWorkflowChanges(ctx context.Context, namespace, name string, changeSet json.RawMessage) (*openapi.ProposalResult, error)
	EvaluateExpression(ctx context.Context, evaluation openapi.Evaluation) (*openapi.EvaluationResult, error)
}

// Options are what a server works with.
type Options struct {
	Gateway Gateway
	// Composition is the id of the composition, namespace and name with a slash
	// between. Without one the tools that need it say so.
	Composition string
	// Version of the program.
	Version string
}

// New makes a server with all tools.
func New(options Options) *mcp.Server {
	server := mcp.NewServer(
		&mcp.Implementation{Name: Name, Title: "Axiom workbench", Version: options.Version},
		&mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}},
	)
	t := toolbox{gateway: options.Gateway}
	t.namespace, t.name, _ = strings.Cut(options.Composition, "/")
	t.addGetComposition(server)
	t.addProposeWorkflowChanges(server)
	t.addEvaluateExpression(server)
	t.addValidateComposition(server)
	return server
}

// toolbox is what all tools share.
type toolbox struct {
	gateway         Gateway
	namespace, name string
}

// errUnbound reports a tool that needs a composition in a session without one.
var errUnbound = errors.New("this session is not bound to a composition: AXIOM_COMPOSITION_ID is not set to <namespace>/<name>")

// bound returns an error when there is no composition to work on.
func (t toolbox) bound() error {
	if t.namespace == "" || t.name == "" {
		return errUnbound
	}
	return nil
}

// noInput is the input of a tool without parameters.
type noInput struct{}

// add adds a tool that answers with one text.
func add[In any](server *mcp.Server, tool *mcp.Tool, call func(context.Context, In) (string, error)) {
	mcp.AddTool(server, tool, func(ctx context.Context, _ *mcp.CallToolRequest, input In) (*mcp.CallToolResult, any, error) {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		text, err := call(ctx, input)
		if err != nil {
			return nil, nil, refusal(err)
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	})
}

// refusal is the error as the agent shall read it: what the gateway says, and
// nothing of who passed it on.
func refusal(err error) error {
	if problem, ok := errors.AsType[*client.Problem](err); ok {
		return problem
	}
	return err
}

// readOnly marks a tool that changes nothing.
func readOnly() *mcp.ToolAnnotations {
	closed := false
	return &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &closed}
}

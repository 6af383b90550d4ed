package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/apitomy/axiom-operator/gateway/client"
	"github.com/apitomy/axiom-operator/gateway/openapi"
)

// Names of the servers; agents see a tool as mcp__<server>__<tool>.
const (
	// Workbench edits a composition.
	Workbench = "workbench"
	// Assistant drafts library objects.
	Assistant = "axiom"
)

// callTimeout bounds one tool call, with all tries of it while the gateway is away.
const callTimeout = time.Minute

// Compositions is what the tools call for a composition.
type Compositions interface {
	GetAgentComposition(ctx context.Context, namespace, name string) (*openapi.AgentComposition, error)
	GetAgentItem(ctx context.Context, namespace, name string, kind openapi.ItemType, item string) (json.RawMessage, error)
	UpsertAgentItem(ctx context.Context, namespace, name string, change openapi.ItemChange) (*openapi.Item, error)
	RemoveAgentItem(ctx context.Context, namespace, name string, item openapi.ItemRef, base *string) error
	ProposeWorkflowChanges(ctx context.Context, namespace, name string, changeSet json.RawMessage) (*openapi.ProposalResult, error)
}

// Drafts is what the tools call for the drafts of a session.
type Drafts interface {
	ListItems(ctx context.Context, namespace, name string) (*openapi.Items, error)
	GetItem(ctx context.Context, namespace, name string, kind openapi.ItemType, item string) (json.RawMessage, error)
	PutItem(ctx context.Context, namespace, name string, change openapi.ItemChange) (*openapi.Item, error)
	RemoveItem(ctx context.Context, namespace, name string, item openapi.ItemRef, base *string) error
	ValidateItem(ctx context.Context, namespace, name string, validation openapi.Validation) (*openapi.ValidationResult, error)
}

// Surroundings is what the tools call for the rest of the namespace.
type Surroundings interface {
	ListStreamEvents(ctx context.Context, filter openapi.ListStreamEventsParams) (*openapi.StreamEvents, error)
	GetStreamEvent(ctx context.Context, id string) (json.RawMessage, error)
	EvaluateExpression(ctx context.Context, evaluation openapi.Evaluation) (*openapi.EvaluationResult, error)
	ListLibrary(ctx context.Context, kind openapi.LibraryKind) (*openapi.Library, error)
	GetLibrary(ctx context.Context, kind openapi.LibraryKind, name string) (json.RawMessage, error)
}

// Gateway is what the tools call.
type Gateway interface {
	Compositions
	Drafts
	Surroundings
}

// Options are what a server works with.
type Options struct {
	// Gateway may be nil if there is Trouble.
	Gateway Gateway
	// Trouble is why there is no gateway; every tool tells it.
	Trouble error
	// Target is the id of what the tools work on, namespace and name with a slash
	// between: for the workbench a composition, for the assistant a session.
	// Without one the tools that need it say so.
	Target string
	// Version of the program; empty: as it was built.
	Version string
}

// New makes the server of a name, nil if there is no such server.
func New(name string, options Options) *mcp.Server {
	t := toolbox{gateway: options.Gateway, trouble: options.Trouble}
	t.namespace, t.name, _ = strings.Cut(options.Target, "/")
	switch name {
	case Workbench:
		t.unbound = errNoComposition
		server := newServer(name, "Axiom workbench", options.Version)
		t.addWorkbench(server)
		return server
	case Assistant:
		t.unbound = errNoSession
		server := newServer(name, "Axiom configuration assistant", options.Version)
		t.addAssistant(server)
		return server
	}
	return nil
}

func newServer(name, title, version string) *mcp.Server {
	if version == "" {
		version = buildVersion()
	}
	return mcp.NewServer(
		&mcp.Implementation{Name: name, Title: title, Version: version},
		&mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}},
	)
}

// buildVersion is that of the main module.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "unknown"
	}
	return info.Main.Version
}

func (t toolbox) addWorkbench(server *mcp.Server) {
	t.addGetComposition(server)
	t.addGetItem(server)
	t.addUpsertItem(server)
	t.addRemoveItem(server)
	t.addProposeWorkflowChanges(server)
	t.addValidateComposition(server)
	t.addListStreamEvents(server)
	t.addGetStreamEvent(server)
	t.addEvaluateExpression(server)
	t.addLibrary(server)
}

func (t toolbox) addAssistant(server *mcp.Server) {
	t.addListDrafts(server)
	t.addGetDraft(server)
	t.addPutDraft(server)
	t.addRemoveDraft(server)
	t.addValidateDraft(server)
	t.addLibrary(server)
}

func (t toolbox) addLibrary(server *mcp.Server) {
	t.addListActionTypes(server)
	t.addGetActionType(server)
	t.addListTools(server)
	t.addGetTool(server)
	t.addListSecrets(server)
}

// toolbox is what all tools share.
type toolbox struct {
	gateway         Gateway
	trouble         error
	namespace, name string
	// unbound is what a tool says that needs a target in a session without one.
	unbound error
}

var (
	errNoComposition = errors.New("this session is not bound to a composition: AXIOM_COMPOSITION_ID is not set to <namespace>/<name>")
	errNoSession     = errors.New("the session is not known: AXIOM_ASSISTANT_SESSION_ID is not set to <namespace>/<name>")
)

// noInput is the input of a tool without parameters.
type noInput struct{}

// addBound adds a tool that needs a target.
func addBound[In any](t toolbox, server *mcp.Server, tool *mcp.Tool, call func(context.Context, In) (string, error)) {
	add(t, server, tool, func(ctx context.Context, input In) (string, error) {
		if t.namespace == "" || t.name == "" {
			return "", t.unbound
		}
		return call(ctx, input)
	})
}

// add adds a tool that answers with one text.
func add[In any](t toolbox, server *mcp.Server, tool *mcp.Tool, call func(context.Context, In) (string, error)) {
	tool.InputSchema = schemaOf[In]()
	mcp.AddTool(server, tool, func(ctx context.Context, _ *mcp.CallToolRequest, input In) (*mcp.CallToolResult, any, error) {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		if t.trouble != nil {
			return nil, nil, t.trouble
		}
		text, err := call(ctx, input)
		if err != nil {
			return nil, nil, refusal(err)
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	})
}

// schemaOf is the schema of a tool's parameters. One that may be left out is a
// pointer here; that makes it no less a string.
func schemaOf[In any]() *jsonschema.Schema {
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		panic(fmt.Sprintf("schema of %T: %v", *new(In), err)) // only a mistake in this package gets here
	}
	for _, parameter := range schema.Properties {
		if len(parameter.Types) == 2 && parameter.Types[0] == "null" {
			parameter.Type, parameter.Types = parameter.Types[1], nil
		}
	}
	return schema
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

// replacing marks a tool that puts something in the place of what there is, or
// takes it away; doing it twice does no more.
func replacing() *mcp.ToolAnnotations {
	closed, destroys := false, true
	return &mcp.ToolAnnotations{IdempotentHint: true, DestructiveHint: &destroys, OpenWorldHint: &closed}
}

package mcpserver

import (
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/apitomy/axiom-operator/gateway/openapi"
)

type nameInput struct {
	Name string `json:"name" jsonschema:"the name, as the list has it"`
}

func (t toolbox) addListActionTypes(server *mcp.Server) {
	add(t, server, &mcp.Tool{
		Name:        "axiom_list_action_types",
		Description: "List the action types that the namespace's library offers, with what each is for.",
		Annotations: readOnly(),
	}, t.lister(openapi.LibraryKindActionTypes))
}

func (t toolbox) addGetActionType(server *mcp.Server) {
	add(t, server, &mcp.Tool{
		Name:        "axiom_get_action_type",
		Description: "Get an action type of the library: its inputs and outputs, and how it runs.",
		Annotations: readOnly(),
	}, t.getter(openapi.LibraryKindActionTypes))
}

func (t toolbox) addListTools(server *mcp.Server) {
	add(t, server, &mcp.Tool{
		Name:        "axiom_list_tools",
		Description: "List the tools that the namespace's library offers, with what each is for.",
		Annotations: readOnly(),
	}, t.lister(openapi.LibraryKindTools))
}

func (t toolbox) addGetTool(server *mcp.Server) {
	add(t, server, &mcp.Tool{
		Name:        "axiom_get_tool",
		Description: "Get a tool of the library: its parameters and its script.",
		Annotations: readOnly(),
	}, t.getter(openapi.LibraryKindTools))
}

func (t toolbox) addListSecrets(server *mcp.Server) {
	add(t, server, &mcp.Tool{
		Name:        "axiom_list_secrets",
		Description: "List the names of the Secrets that scripts may refer to, one a line. Their values cannot be read.",
		Annotations: readOnly(),
	}, t.listSecrets)
}

// lister lists one part of the library.
func (t toolbox) lister(kind openapi.LibraryKind) func(context.Context, noInput) (string, error) {
	return func(ctx context.Context, _ noInput) (string, error) {
		library, err := t.gateway.ListLibrary(ctx, kind)
		if err != nil {
			return "", err
		}
		return formatJSON(append([]openapi.LibraryEntry{}, library.Items...)) // never null
	}
}

// getter gets one object of a part of the library.
func (t toolbox) getter(kind openapi.LibraryKind) func(context.Context, nameInput) (string, error) {
	return func(ctx context.Context, input nameInput) (string, error) {
		spec, err := t.gateway.GetLibrary(ctx, kind, input.Name)
		if err != nil {
			return "", err
		}
		return formatJSON(spec)
	}
}

func (t toolbox) listSecrets(ctx context.Context, _ noInput) (string, error) {
	library, err := t.gateway.ListLibrary(ctx, openapi.LibraryKindSecrets)
	if err != nil {
		return "", err
	}
	if len(library.Items) == 0 {
		return "No secrets.", nil
	}
	names := make([]string, 0, len(library.Items))
	for _, secret := range library.Items {
		names = append(names, secret.Name)
	}
	return strings.Join(names, "\n"), nil
}

package mcpserver

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/apitomy/axiom-operator/gateway/openapi"
)

type removeInput struct {
	Type         string  `json:"type" jsonschema:"the type of the item: action-type or tool"`
	Name         string  `json:"name" jsonschema:"the name of the item"`
	BaseRevision *string `json:"baseRevision,omitempty" jsonschema:"the item's revision, to remove what the user made of it during this turn"`
}

func (i removeInput) ref() openapi.ItemRef {
	return openapi.ItemRef{Type: openapi.ItemType(i.Type), Name: i.Name}
}

func (t toolbox) addRemoveItem(server *mcp.Server) {
	addBound(t, server, &mcp.Tool{
		Name:        "remove_item",
		Description: "Remove an action type or a tool from the composition. A workflow cannot be removed.",
		Annotations: replacing(),
	}, t.removeItem)
}

func (t toolbox) removeItem(ctx context.Context, input removeInput) (string, error) {
	if err := t.gateway.RemoveAgentItem(ctx, t.namespace, t.name, input.ref(), input.BaseRevision); err != nil {
		return "", err
	}
	return formatRemoval(input), nil
}

func formatRemoval(input removeInput) string {
	return "REMOVED " + input.Type + "/" + input.Name
}

package mcpserver

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/apitomy/axiom-operator/gateway/openapi"
)

type itemInput struct {
	Type string `json:"type" jsonschema:"the type of the item: workflow, action-type or tool"`
	Name string `json:"name" jsonschema:"the name of the item"`
}

func (t toolbox) addGetItem(server *mcp.Server) {
	addBound(t, server, &mcp.Tool{
		Name:        "get_item",
		Description: "Get the content of one item of the composition: its workflow, an action type or a tool.",
		Annotations: readOnly(),
	}, t.getItem)
}

func (t toolbox) getItem(ctx context.Context, input itemInput) (string, error) {
	content, err := t.gateway.GetAgentItem(ctx, t.namespace, t.name, openapi.ItemType(input.Type), input.Name)
	if err != nil {
		return "", err
	}
	return formatJSON(content)
}

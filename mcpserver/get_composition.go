package mcpserver

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func (t toolbox) addGetComposition(server *mcp.Server) {
	addBound(t, server, &mcp.Tool{
		Name: "get_composition",
		Description: "Get the composition as it is now: its goal, its workflow with the workflowRevision to base changes on, " +
			"and every item with its revision and problems. During a turn the workflow includes the changes that were already applied in it.",
		Annotations: readOnly(),
	}, t.getComposition)
}

func (t toolbox) getComposition(ctx context.Context, _ noInput) (string, error) {
	composition, err := t.gateway.GetAgentComposition(ctx, t.namespace, t.name)
	if err != nil {
		return "", err
	}
	return formatJSON(composition)
}

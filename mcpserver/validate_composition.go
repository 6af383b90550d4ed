package mcpserver

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/apitomy/axiom-operator/gateway/openapi"
)

func (t toolbox) addValidateComposition(server *mcp.Server) {
	addBound(t, server, &mcp.Tool{
		Name:        "validate_composition",
		Description: "Check the workflow and every other item of the composition, and list the problems of each.",
		Annotations: readOnly(),
	}, t.validateComposition)
}

func (t toolbox) validateComposition(ctx context.Context, _ noInput) (string, error) {
	composition, err := t.gateway.GetAgentComposition(ctx, t.namespace, t.name)
	if err != nil {
		return "", err
	}
	return formatItems(composition.Items), nil
}

func formatItems(items []openapi.Item) string {
	if len(items) == 0 {
		return "The composition has no items."
	}
	texts := make([]string, 0, len(items))
	for _, item := range items {
		head := fmt.Sprintf("%s '%s': %s", item.Type, item.Name, verdict(item.Problems))
		texts = append(texts, lines(head, openapi.ProblemLines(item.Problems)))
	}
	return strings.Join(texts, "\n")
}

package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/apitomy/axiom-operator/gateway/openapi"
)

type upsertInput struct {
	Type         string         `json:"type" jsonschema:"the type of the item: action-type or tool; workflow only while there is none"`
	Item         map[string]any `json:"item" jsonschema:"the whole content, with the item's name as its name"`
	BaseRevision *string        `json:"baseRevision,omitempty" jsonschema:"the item's revision in get_composition, to replace what the user made of it during this turn"`
}

func (t toolbox) addUpsertItem(server *mcp.Server) {
	addBound(t, server, &mcp.Tool{
		Name: "upsert_item",
		Description: "Create an action type or a tool of the composition, or give it another content; or create the workflow while there " +
			"is none. The content is kept even if it is INVALID: fix every problem that the answer lists and send the whole item again.",
		Annotations: replacing(),
	}, t.upsertItem)
}

func (t toolbox) upsertItem(ctx context.Context, input upsertInput) (string, error) {
	change, err := changeOf(input)
	if err != nil {
		return "", err
	}
	item, err := t.gateway.UpsertAgentItem(ctx, t.namespace, t.name, change)
	if err != nil {
		return "", err
	}
	return formatVerdict(item.Problems), nil
}

func changeOf(input upsertInput) (openapi.ItemChange, error) {
	content, err := json.Marshal(input.Item)
	if err != nil {
		return openapi.ItemChange{}, fmt.Errorf("encode item: %w", err)
	}
	return openapi.ItemChange{Type: openapi.ItemType(input.Type), Content: content, BaseRevision: input.BaseRevision}, nil
}

// formatVerdict tells whether something is valid, and what is wrong with it.
func formatVerdict(problems []openapi.ItemProblem) string {
	return lines(verdict(problems), openapi.ProblemLines(problems))
}

package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/apitomy/axiom-operator/gateway/openapi"
)

type draftInput struct {
	Type string `json:"type" jsonschema:"the type of the draft: action-type or tool"`
	Name string `json:"name" jsonschema:"the name of the draft"`
}

type putInput struct {
	Type         string         `json:"type" jsonschema:"the type of the draft: action-type or tool"`
	Item         map[string]any `json:"item" jsonschema:"the whole content, with the draft's name as its name"`
	BaseRevision *string        `json:"baseRevision,omitempty" jsonschema:"the revision that the draft must have; empty when it must not exist"`
}

type validateInput struct {
	Type string         `json:"type" jsonschema:"the type of the content: action-type or tool"`
	Item map[string]any `json:"item" jsonschema:"the whole content, with a name"`
}

func (t toolbox) addListDrafts(server *mcp.Server) {
	addBound(t, server, &mcp.Tool{
		Name:        "axiom_list_items",
		Description: "List what you have drafted in this session, with the problems of each draft.",
		Annotations: readOnly(),
	}, t.listDrafts)
}

func (t toolbox) addGetDraft(server *mcp.Server) {
	addBound(t, server, &mcp.Tool{
		Name:        "axiom_get_item",
		Description: "Get the content of one of your drafts.",
		Annotations: readOnly(),
	}, t.getDraft)
}

func (t toolbox) addPutDraft(server *mcp.Server) {
	addBound(t, server, &mcp.Tool{
		Name: "axiom_put_item",
		Description: "Draft an action type or a tool for the library, or replace your draft of it. It is kept even if it is INVALID: fix " +
			"every problem that the answer lists. The user puts drafts into the library.",
		Annotations: replacing(),
	}, t.putDraft)
}

func (t toolbox) addRemoveDraft(server *mcp.Server) {
	addBound(t, server, &mcp.Tool{
		Name:        "axiom_remove_item",
		Description: "Throw one of your drafts away. The library stays as it is.",
		Annotations: replacing(),
	}, t.removeDraft)
}

func (t toolbox) addValidateDraft(server *mcp.Server) {
	addBound(t, server, &mcp.Tool{
		Name:        "axiom_validate_item",
		Description: "Check a content without drafting it, and list its problems.",
		Annotations: readOnly(),
	}, t.validateDraft)
}

func (t toolbox) listDrafts(ctx context.Context, _ noInput) (string, error) {
	drafts, err := t.gateway.ListItems(ctx, t.namespace, t.name)
	if err != nil {
		return "", err
	}
	if len(drafts.Items) == 0 {
		return "No items.", nil
	}
	return formatItems(drafts.Items), nil
}

func (t toolbox) getDraft(ctx context.Context, input draftInput) (string, error) {
	content, err := t.gateway.GetItem(ctx, t.namespace, t.name, openapi.ItemType(input.Type), input.Name)
	if err != nil {
		return "", err
	}
	return formatJSON(content)
}

func (t toolbox) putDraft(ctx context.Context, input putInput) (string, error) {
	change, err := changeOf(upsertInput(input))
	if err != nil {
		return "", err
	}
	draft, err := t.gateway.PutItem(ctx, t.namespace, t.name, change)
	if err != nil {
		return "", err
	}
	return formatVerdict(draft.Problems), nil
}

func (t toolbox) removeDraft(ctx context.Context, input removeInput) (string, error) {
	if err := t.gateway.RemoveItem(ctx, t.namespace, t.name, input.ref(), input.BaseRevision); err != nil {
		return "", err
	}
	return formatRemoval(input), nil
}

func (t toolbox) validateDraft(ctx context.Context, input validateInput) (string, error) {
	content, err := json.Marshal(input.Item)
	if err != nil {
		return "", fmt.Errorf("encode item: %w", err)
	}
	result, err := t.gateway.ValidateItem(ctx, t.namespace, t.name, openapi.Validation{Type: openapi.ItemType(input.Type), Item: content})
	if err != nil {
		return "", err
	}
	return formatVerdict(result.Problems), nil
}

package mcpserver

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

type getEventInput struct {
	EventID string `json:"eventId" jsonschema:"the id of the event, from list_stream_events"`
	Path    string `json:"path,omitempty" jsonschema:"a part of the event, such as payload.issue.labels[0].name"`
}

func (t toolbox) addGetStreamEvent(server *mcp.Server) {
	add(t, server, &mcp.Tool{
		Name: "get_stream_event",
		Description: "Get a real event as expressions see it in the variable event, or a part of it. Long texts and lists are cut; " +
			"ask for a part to see more of it.",
		Annotations: readOnly(),
	}, t.getStreamEvent)
}

func (t toolbox) getStreamEvent(ctx context.Context, input getEventInput) (string, error) {
	text, err := t.gateway.GetStreamEvent(ctx, input.EventID)
	if err != nil {
		return "", err
	}
	event, err := jsonvalue.Decode(text)
	if err != nil {
		return "", fmt.Errorf("decode event: %w", err)
	}
	part, found := pickPath(event, input.Path)
	if !found {
		return "", fmt.Errorf("No value at path %s", input.Path) //nolint:staticcheck // the agent reads it as it is
	}
	return formatJSON(truncateDeep(part, maxString, maxItems))
}

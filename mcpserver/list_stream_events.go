package mcpserver

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

const (
	defaultEvents = 10
	maxEvents     = 20
)

type listEventsInput struct {
	Type          string   `json:"type,omitempty" jsonschema:"only events of this type, such as issue.comment.created"`
	EventSourceID string   `json:"eventSourceId,omitempty" jsonschema:"only events that this source took in"`
	Ref           string   `json:"ref,omitempty" jsonschema:"only events about this, such as the URL of an issue"`
	Limit         *float64 `json:"limit,omitempty" jsonschema:"how many at most: 10 unless told, and never more than 20"`
}

func (t toolbox) addListStreamEvents(server *mcp.Server) {
	add(t, server, &mcp.Tool{
		Name: "list_stream_events",
		Description: "List the newest real events that came in from outside, a line each: id, type, source, ref, actor, time and the " +
			"members of the payload.",
		Annotations: readOnly(),
	}, t.listStreamEvents)
}

func (t toolbox) listStreamEvents(ctx context.Context, input listEventsInput) (string, error) {
	limit := limitOf(input.Limit)
	events, err := t.gateway.ListStreamEvents(ctx, openapi.ListStreamEventsParams{
		FilterType: input.Type, FilterEventSourceID: input.EventSourceID, FilterRef: input.Ref, Limit: &limit,
	})
	if err != nil {
		return "", err
	}
	if len(events.Items) == 0 {
		return "No events.", nil
	}
	texts := make([]string, 0, len(events.Items))
	for _, item := range events.Items {
		event, err := jsonvalue.Decode(item)
		if err != nil {
			return "", fmt.Errorf("decode event: %w", err)
		}
		texts = append(texts, summarizeEvent(event))
	}
	return strings.Join(texts, "\n"), nil
}

// limitOf takes any number that a model may come up with.
func limitOf(asked *float64) int {
	switch {
	case asked == nil:
		return defaultEvents
	case *asked >= maxEvents:
		return maxEvents
	case *asked >= 1:
		return int(*asked)
	}
	return 1
}

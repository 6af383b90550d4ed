package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi/server"
	"github.com/apitomy/axiom-operator/internal/journal"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/streamevent"
)

// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=streamevents,verbs=get;list;watch

const (
	defaultEvents = 20
	maxEvents     = 100
	// maxListedPayload is the size in bytes up to which a list tells a payload;
	// of larger ones it has the members and short values.
	maxListedPayload = 8 << 10
	maxListedText    = 200
)

// ListStreamEvents tells of the newest events of the caller's namespace.
func (s *Server) ListStreamEvents(
	ctx context.Context, request server.ListStreamEventsRequestObject,
) (server.ListStreamEventsResponseObject, error) {
	params := request.Params
	limit := defaultEvents
	if params.Limit != nil {
		limit = *params.Limit
	}
	if limit < 1 || limit > maxEvents {
		return nil, invalid("limit must be from 1 to %d", maxEvents)
	}
	list := &api.StreamEventList{}
	if err := s.cached.List(ctx, list, client.InNamespace(callerOf(ctx).namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	found := slices.DeleteFunc(slices.Clone(list.Items), func(event api.StreamEvent) bool {
		spec := &event.Spec
		return !matches(params.FilterType, spec.Type) || !matches(params.FilterEventSourceID, spec.EventSourceID) || !matches(params.FilterRef, spec.Ref)
	})
	streamevent.Sort(found)
	answer := server.ListStreamEvents200JSONResponse{Items: []json.RawMessage{}}
	for _, event := range slices.Backward(found) {
		if len(answer.Items) == limit {
			break
		}
		text, err := shownEvent(&event, abridged)
		if err != nil {
			return nil, err
		}
		answer.Items = append(answer.Items, text)
	}
	return answer, nil
}

// matches tells whether a value passes a filter; an absent one lets all pass.
func matches(filter, value string) bool { return filter == "" || filter == value }

// GetStreamEvent tells of one event all there is.
func (s *Server) GetStreamEvent(ctx context.Context, request server.GetStreamEventRequestObject) (server.GetStreamEventResponseObject, error) {
	event := &api.StreamEvent{}
	found, err := s.find(ctx, types.NamespacedName{Namespace: callerOf(ctx).namespace, Name: request.ID}, event)
	if err != nil {
		return nil, fmt.Errorf("read event: %w", err)
	}
	if !found {
		return nil, notFound("Event %s not found", cut(request.ID, maxShownRevision))
	}
	text, err := shownEvent(event, func(payload any) any { return payload })
	if err != nil {
		return nil, err
	}
	return jsonText(text), nil
}

// shownEvent is an event as expressions see it, under the name by which it can
// be asked for.
func shownEvent(event *api.StreamEvent, shorten func(any) any) (json.RawMessage, error) {
	shown, err := streamevent.Map(event)
	if err != nil {
		return nil, err
	}
	shown["id"] = event.Name
	if payload, ok := shown["payload"]; ok {
		shown["payload"] = shorten(payload)
	}
	text, err := json.Marshal(shown)
	if err != nil {
		return nil, fmt.Errorf("encode event %s: %w", event.Name, err)
	}
	return text, nil
}

// abridged keeps every member of a payload, and of a large one only short values.
func abridged(payload any) any {
	members, isObject := payload.(map[string]any)
	if !isObject || jsonvalue.Size(payload) <= maxListedPayload {
		return payload
	}
	short := make(map[string]any, len(members))
	for name, value := range members {
		switch value.(type) {
		case map[string]any:
			short[name] = map[string]any{}
		case []any:
			short[name] = []any{}
		default:
			short[name] = journal.Truncate(value, maxListedText, 0)
		}
	}
	return short
}

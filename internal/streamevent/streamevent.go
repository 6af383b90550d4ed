// Package streamevent turns stored events into what pure packages work with,
// and what senders sent into objects to store.
//
// It reads and makes objects of the API, and talks to nobody.
package streamevent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/event"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// Map is an event as expressions see it: its spec, with absent members absent.
func Map(e *api.StreamEvent) (map[string]any, error) {
	data, err := json.Marshal(e.Spec)
	if err != nil {
		return nil, fmt.Errorf("encode event %s: %w", e.Name, err)
	}
	value, err := jsonvalue.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("decode event %s: %w", e.Name, err)
	}
	object, _ := value.(map[string]any)
	return object, nil
}

// Identity tells events apart, whoever stored them and under which names.
func Identity(e *api.StreamEvent) string {
	return engine.EventIdentity(e.Spec.EventSourceID, e.Spec.ID)
}

// Sort puts events in the order of their arrival, those of the same second by
// name.
func Sort(events []api.StreamEvent) {
	slices.SortFunc(events, func(a, b api.StreamEvent) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
}

// New is the object that stores what a sender said to an ingest source.
func New(namespace, eventSourceID string, e event.Event) (*api.StreamEvent, error) {
	name := e.Name(eventSourceID)
	object := &api.StreamEvent{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: api.StreamEventSpec{
			ID: name, Type: e.Type, Source: e.Source, EventSourceID: eventSourceID, Ref: e.Ref, Timestamp: e.Timestamp,
		},
	}
	if e.Actor != nil {
		object.Spec.Actor = &api.EventActor{
			Login: e.Actor.Login, DisplayName: e.Actor.DisplayName, AvatarURL: e.Actor.AvatarURL, URL: e.Actor.URL,
		}
	}
	var err error
	object.Spec.Payload, err = payloadOf(e.Payload)
	return object, err
}

// payloadOf keeps an absent payload absent.
func payloadOf(payload map[string]any) (*runtime.RawExtension, error) {
	if payload == nil {
		return nil, nil //nolint:nilnil // no payload is none
	}
	data, err := json.Marshal(payload)
	if err != nil {
		return nil, fmt.Errorf("encode payload: %w", err)
	}
	return &runtime.RawExtension{Raw: data}, nil
}

package gateway

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/gateway/openapi/server"
	"github.com/apitomy/axiom-operator/internal/event"
	"github.com/apitomy/axiom-operator/internal/streamevent"
)

// maxBatch is how many events may come together: all of them are to be stored
// while their sender waits.
const maxBatch = 100

// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=streamevents,verbs=get;create

// IngestEvent stores what a sender says, once.
func (s *Server) IngestEvent(ctx context.Context, request server.IngestEventRequestObject) (server.IngestEventResponseObject, error) {
	sent := callerOf(ctx).delivery
	events, err := s.readDelivery(sent)
	if err != nil {
		return nil, unreadable(err)
	}
	if len(events) > maxBatch {
		return nil, invalid("A batch must have at most %d events, and has %d", maxBatch, len(events))
	}
	if len(events) == 0 {
		return server.IngestEvent204Response{}, nil
	}
	stored := make([]openapi.IngestedEvent, len(events))
	for i, e := range events {
		if stored[i], err = s.store(ctx, request.Namespace, request.EventSourceID, e); err != nil {
			return nil, err
		}
	}
	receipt := server.IngestEvent200JSONResponse{ID: stored[0].ID, Duplicate: stored[0].Duplicate}
	if sent.message.IsBatch() {
		receipt.Events, receipt.Duplicate = stored, areDuplicates(stored)
	}
	return receipt, nil
}

func areDuplicates(stored []openapi.IngestedEvent) bool {
	for _, e := range stored {
		if !e.Duplicate {
			return false
		}
	}
	return true
}

// readDelivery reads the events of a request; none if it is of no interest.
func (s *Server) readDelivery(sent *delivery) ([]event.Event, error) {
	if !sent.isGitHub {
		return sent.message.CloudEvents()
	}
	e, err := event.GitHub(sent.kind, sent.id, sent.message.Body, s.clock.Now())
	if err != nil || e == nil {
		return nil, err
	}
	return []event.Event{*e}, nil
}

// unreadable tells a sender what is wrong with an event.
func unreadable(err error) error {
	if size, isSize := errors.AsType[*event.SizeError](err); isSize {
		return tooLarge("The payload has %d bytes of JSON, the limit is %d", size.Bytes, event.MaxPayloadBytes)
	}
	if format, isFormat := errors.AsType[*event.FormatError](err); isFormat {
		return invalid("The event cannot be read: %s", format)
	}
	return fmt.Errorf("read event: %w", err)
}

// store creates the object of an event, unless it is there.
func (s *Server) store(ctx context.Context, namespace, source string, e event.Event) (openapi.IngestedEvent, error) {
	object, err := streamevent.New(namespace, source, e)
	if err != nil {
		return openapi.IngestedEvent{}, err
	}
	stored := openapi.IngestedEvent{ID: object.Name}
	err = s.live.Create(ctx, object)
	if apierrors.IsAlreadyExists(err) {
		stored.Duplicate = true
		return stored, s.checkDuplicate(ctx, object)
	}
	if err != nil {
		return stored, fmt.Errorf("store event: %w", err)
	}
	return stored, nil
}

// checkDuplicate makes sure that what is stored under the name is the event:
// anybody with the right to create events may choose a name.
func (s *Server) checkDuplicate(ctx context.Context, sent *api.StreamEvent) error {
	kept := &api.StreamEvent{}
	if err := s.live.Get(ctx, client.ObjectKeyFromObject(sent), kept); err != nil {
		return fmt.Errorf("read event: %w", err)
	}
	if streamevent.Identity(kept) != streamevent.Identity(sent) {
		return conflict("StreamEvent %s is another event", sent.Name)
	}
	return nil
}

package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi/server"
	"github.com/apitomy/axiom-operator/internal/journal"
	"github.com/apitomy/axiom-operator/internal/journal/store"
)

// ReadEvents shows a session's journal to a person, and goes on as it grows if
// that is wanted.
func (s *Server) ReadEvents(ctx context.Context, request server.ReadEventsRequestObject) (server.ReadEventsResponseObject, error) {
	after, err := cursorOf(request.Params.After, request.Params.LastEventID)
	if err != nil {
		return nil, err
	}
	who := callerOf(ctx)
	extent, err := s.journals.Extent(ctx, who.session)
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	if after < extent.First-1 || after > extent.Last {
		after = 0 // beyond the journal: all of it
	}
	reader := &journalReader{server: s, session: who.session, last: after, follows: request.Params.Follow, isStream: who.wantsStream}
	media := mediaLines
	if who.wantsStream {
		media = mediaStream
	}
	return s.newStream(ctx, media, reader.run)
}

// cursorOf is the number of the newest event that the caller knows.
func cursorOf(after int64, lastEventID string) (int64, error) {
	if lastEventID != "" {
		id, err := strconv.ParseInt(lastEventID, 10, 64)
		if err != nil {
			return 0, nil //nolint:nilerr // an id of something else is beyond this journal
		}
		after = id
	}
	if after < 0 {
		return 0, invalid("after must not be negative")
	}
	return after, nil
}

// journalReader is one person's way through a journal.
type journalReader struct {
	server  *Server
	session *api.AgentSession
	// last is the number of the event that was sent last.
	last     int64
	follows  bool
	isStream bool
	out      *output
}

func (j *journalReader) run(ctx context.Context, out *output) error {
	j.out = out
	for {
		err := j.follow(ctx)
		if err != nil || !j.follows || ctx.Err() != nil {
			return err
		}
	}
}

// follow sends what there is, and what comes until the API server ends the watch.
func (j *journalReader) follow(ctx context.Context) error {
	if !j.follows {
		return j.catchUp(ctx)
	}
	// Watching begins before the first look, so that nothing falls in between.
	changes, err := j.watch(ctx)
	if err != nil {
		return err
	}
	defer changes.Stop()
	quiet := j.server.clock.NewTimer(commentInterval)
	defer quiet.Stop()
	for {
		if err := j.catchUp(ctx); err != nil {
			return err
		}
		open, err := j.await(ctx, changes.ResultChan(), quiet)
		if err != nil || !open {
			return err
		}
	}
}

func (j *journalReader) watch(ctx context.Context) (watch.Interface, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMapList"})
	changes, err := j.server.watcher.Watch(ctx, list, store.ChunksOf(j.session)...)
	if err != nil {
		return nil, fmt.Errorf("watch journal: %w", err)
	}
	return changes, nil
}

// await returns when the journal may have grown; open is false when the watch,
// or the stream, is over.
func (j *journalReader) await(ctx context.Context, changes <-chan watch.Event, quiet clock.Timer) (open bool, err error) {
	for {
		select {
		case <-ctx.Done():
			return false, nil
		case <-quiet.C():
			quiet.Reset(commentInterval)
			if !j.isStream {
				continue
			}
			if err := j.out.comment(); err != nil {
				return false, err
			}
		case event, ok := <-changes:
			if !ok || event.Type == watch.Error {
				return false, nil
			}
			drain(changes)
			return true, nil
		}
	}
}

// drain takes what else is there: one look sees it all.
func drain(changes <-chan watch.Event) {
	for {
		select {
		case _, open := <-changes:
			if !open {
				return
			}
		default:
			return
		}
	}
}

func (j *journalReader) catchUp(ctx context.Context) error {
	last, err := j.server.journals.Walk(ctx, j.session, j.last, j.send)
	j.last = max(j.last, last)
	if err != nil {
		return fmt.Errorf("read journal: %w", err)
	}
	return nil
}

func (j *journalReader) send(line journal.Line) error {
	event := map[string]any{"sequence": line.Number, "type": line.Type, "data": line.Data}
	if j.isStream {
		return j.out.event(line.Number, line.Type, event)
	}
	text, err := json.Marshal(event)
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	return j.out.send(string(text) + "\n")
}

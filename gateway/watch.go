package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi/server"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// compositionWatcher is a person who may watch the composition named in the path.
func (s *Server) compositionWatcher(r *http.Request) (caller, error) {
	return s.personCaller(r, r.PathValue("namespace"), toWatchComposition)
}

// WatchComposition tells a person what happens to a composition, as it happens.
func (s *Server) WatchComposition(
	ctx context.Context, request server.WatchCompositionRequestObject,
) (server.WatchCompositionResponseObject, error) {
	comp := &api.Composition{}
	key := types.NamespacedName{Namespace: request.Namespace, Name: request.Name}
	found, err := s.find(ctx, key, comp)
	if err != nil {
		return nil, fmt.Errorf("read composition: %w", err)
	}
	if !found {
		return nil, notFound("Composition %s not found", key)
	}
	watcher := &compositionWatch{server: s, comp: comp}
	return s.newStream(ctx, mediaStream, watcher.run)
}

// compositionWatch is one person's view of a composition as it changes.
type compositionWatch struct {
	server *Server
	// comp as it was told last; at first, as it was when the person came.
	comp *api.Composition
	out  *output
	// told is the turn whose change set was told last.
	told string
}

// errGone ends a stream whose object is no more.
var errGone = errors.New("the composition is gone")

func (c *compositionWatch) run(ctx context.Context, out *output) error {
	c.out = out
	if err := c.tell(ctx, present(&c.comp.Status)); err != nil {
		return err
	}
	for {
		err := c.follow(ctx)
		if err == nil && ctx.Err() == nil {
			// The watch came to its end; what it missed is caught up with.
			err = c.reread(ctx)
		}
		if errors.Is(err, errGone) || ctx.Err() != nil {
			return nil //nolint:nilerr // the composition, or the person, is gone: both are good ends
		}
		if err != nil {
			return err
		}
	}
}

func (c *compositionWatch) reread(ctx context.Context) error {
	now := &api.Composition{}
	err := c.server.live.Get(ctx, client.ObjectKeyFromObject(c.comp), now)
	if apierrors.IsNotFound(err) {
		return errGone
	}
	if err != nil {
		return fmt.Errorf("read composition: %w", err)
	}
	return c.change(ctx, now)
}

// follow tells of every version of the composition until the API server ends
// the watch.
func (c *compositionWatch) follow(ctx context.Context) error {
	versions, err := c.server.watcher.Watch(ctx, &api.CompositionList{},
		client.InNamespace(c.comp.Namespace), client.MatchingFields{"metadata.name": c.comp.Name},
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: c.comp.ResourceVersion}})
	if err != nil {
		return fmt.Errorf("watch composition: %w", err)
	}
	defer versions.Stop()
	quiet := c.server.clock.NewTimer(commentInterval)
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-quiet.C():
			if err := c.out.comment(); err != nil {
				return err
			}
			quiet.Reset(commentInterval)
		case event, open := <-versions.ResultChan():
			if !open || event.Type == watch.Error {
				return nil
			}
			if err := c.see(ctx, event); err != nil {
				return err
			}
		}
	}
}

func (c *compositionWatch) see(ctx context.Context, event watch.Event) error {
	now, isComposition := event.Object.(*api.Composition)
	switch {
	case !isComposition || event.Type == watch.Bookmark:
		return nil
	case event.Type == watch.Deleted || now.UID != c.comp.UID:
		return errGone
	}
	return c.change(ctx, now)
}

// change tells of what is different in another version.
func (c *compositionWatch) change(ctx context.Context, now *api.Composition) error {
	if now.UID != c.comp.UID {
		return errGone
	}
	news := changes(&c.comp.Status, &now.Status)
	c.comp = now
	return c.tell(ctx, news)
}

// news is one thing that happened to a composition.
type news struct {
	kind string
	turn string
	// state of a news of turns.
	state api.TurnState
	// item of a news of items, its revision empty when it is gone.
	item api.ItemStatus
}

// Kinds of news, as callers know them.
const (
	newsTurn      = "composition-turn"
	newsChangeSet = "composition-changeset"
	newsItem      = "composition-item-changed"
)

// present is what somebody who just came has to be told.
func present(now *api.CompositionStatus) []news {
	found := []news{{kind: newsTurn, turn: now.CurrentTurn, state: stateOf(now)}}
	if now.PendingTurn != "" {
		found = append(found, news{kind: newsChangeSet, turn: now.PendingTurn})
	}
	return found
}

func stateOf(status *api.CompositionStatus) api.TurnState {
	if status.TurnState == "" {
		return api.TurnStateIdle
	}
	return status.TurnState
}

// changes are what happened between two versions of a status: items first, then
// the end of a turn, with its change set ahead of it, then the beginning of one.
func changes(before, now *api.CompositionStatus) []news {
	found := itemChanges(before, now)
	wasWorking, isWorking := stateOf(before) == api.TurnStateWorking, stateOf(now) == api.TurnStateWorking
	isOther := before.CurrentTurn != now.CurrentTurn
	if wasWorking && (!isWorking || isOther) {
		found = append(found,
			news{kind: newsChangeSet, turn: before.CurrentTurn},
			news{kind: newsTurn, turn: before.CurrentTurn, state: api.TurnStateIdle})
	}
	if now.PendingTurn != "" && now.PendingTurn != before.PendingTurn && !wasWorking {
		found = append(found, news{kind: newsChangeSet, turn: now.PendingTurn})
	}
	if isWorking && (!wasWorking || isOther) {
		found = append(found, news{kind: newsTurn, turn: now.CurrentTurn, state: api.TurnStateWorking})
	}
	return found
}

func itemChanges(before, now *api.CompositionStatus) []news {
	var found []news
	for _, item := range now.Items {
		old := findItem(before, item)
		if old == nil || old.ContentRevision != item.ContentRevision {
			found = append(found, news{kind: newsItem, item: item})
		}
	}
	for _, item := range before.Items {
		if findItem(now, item) == nil {
			found = append(found, news{kind: newsItem, item: api.ItemStatus{Type: item.Type, Name: item.Name}})
		}
	}
	return found
}

func findItem(status *api.CompositionStatus, wanted api.ItemStatus) *api.ItemStatus {
	for i := range status.Items {
		if status.Items[i].Type == wanted.Type && status.Items[i].Name == wanted.Name {
			return &status.Items[i]
		}
	}
	return nil
}

func (c *compositionWatch) tell(ctx context.Context, all []news) error {
	for _, n := range all {
		var err error
		switch n.kind {
		case newsTurn:
			err = c.out.event(0, n.kind, map[string]any{"compositionId": c.id(), "turnId": n.turn, "state": n.state})
		case newsChangeSet:
			err = c.tellChangeSet(ctx, n)
		case newsItem:
			err = c.tellItem(ctx, n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *compositionWatch) id() string { return c.comp.Namespace + "/" + c.comp.Name }

// tellChangeSet tells the combined change set of a turn, once, if it has one.
func (c *compositionWatch) tellChangeSet(ctx context.Context, n news) error {
	if n.turn == c.told {
		return nil
	}
	turn := &api.Turn{}
	err := c.server.live.Get(ctx, types.NamespacedName{Namespace: c.comp.Namespace, Name: n.turn}, turn)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read turn: %w", err)
	}
	set, ok, err := turns.Combined(ctx, c.server.contents, turn)
	if err != nil {
		return fmt.Errorf("read change set: %w", err)
	}
	if !ok {
		return nil
	}
	c.told = n.turn
	return c.out.event(0, n.kind, map[string]any{"compositionId": c.id(), "turnId": n.turn, "changeSet": set})
}

func (c *compositionWatch) tellItem(ctx context.Context, n news) error {
	author, turn := n.item.LastAuthor, n.item.LastTurn
	if n.item.ContentRevision == "" {
		author, turn = c.whoRemoved(ctx, n.item)
	}
	if author == "" {
		author = api.AuthorUser
	}
	data := map[string]any{
		"compositionId": c.id(), "type": n.item.Type, "name": n.item.Name, "contentRevision": n.item.ContentRevision, "author": author,
	}
	if turn != "" {
		data["turnId"] = turn
	}
	return c.out.event(0, n.kind, data)
}

// whoRemoved is who took an item away, as far as history knows.
func (c *compositionWatch) whoRemoved(ctx context.Context, item api.ItemStatus) (api.Author, string) {
	object := &appsv1.ControllerRevision{}
	key := types.NamespacedName{Namespace: c.comp.Namespace, Name: c.comp.Status.Snapshot}
	if err := c.server.live.Get(ctx, key, object); err != nil {
		return "", ""
	}
	found, err := readSnapshot(object)
	if err != nil {
		return "", ""
	}
	for _, entry := range found.Items {
		if entry.Type == item.Type && entry.Name == item.Name {
			return entry.Author, entry.Turn
		}
	}
	return "", ""
}

package gateway

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/gateway/openapi/server"
	"github.com/apitomy/axiom-operator/internal/item"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// maxDrafts of one session.
const maxDrafts = 50

// ListItems tells which library objects the session's agent drafts.
func (s *Server) ListItems(ctx context.Context, _ server.ListItemsRequestObject) (server.ListItemsResponseObject, error) {
	answer := server.ListItems200JSONResponse{Items: []openapi.Item{}}
	for _, draft := range callerOf(ctx).session.Status.Items {
		answer.Items = append(answer.Items, shownDraft(draft))
	}
	return answer, nil
}

func shownDraft(draft api.SessionItem) openapi.Item {
	return openapi.Item{
		Type: openapi.ItemType(draft.Type), Name: draft.Name, ContentRevision: draft.ContentRevision,
		Valid: draft.Valid, Problems: shownProblems(draft.Problems),
	}
}

// GetItem tells what a draft holds.
func (s *Server) GetItem(ctx context.Context, request server.GetItemRequestObject) (server.GetItemResponseObject, error) {
	wanted, err := draftName(request.Type, request.Item)
	if err != nil {
		return nil, err
	}
	session := callerOf(ctx).session
	draft := findDraft(&session.Status, wanted)
	if draft == nil {
		return nil, noDraft(wanted)
	}
	text, err := s.contents.Get(ctx, session.Namespace, draft.Digest)
	if err != nil {
		return nil, fmt.Errorf("read draft: %w", err)
	}
	return jsonText(text), nil
}

// draftName names a draft. A session drafts what a library holds, and so no
// workflow.
func draftName(kind openapi.ItemType, name string) (turns.Item, error) {
	if kind != openapi.ItemTypeActionType && kind != openapi.ItemTypeTool {
		return turns.Item{}, invalid("Unknown type of item; use action-type or tool")
	}
	return turns.Item{Type: api.ItemType(kind), Name: name}, nil
}

func noDraft(wanted turns.Item) error {
	return notFound("The session has no draft of %s", cut(wanted.String(), maxShownRevision))
}

// findDraft points into the status; it is nil when there is no such draft.
func findDraft(status *api.AgentSessionStatus, wanted turns.Item) *api.SessionItem {
	for i := range status.Items {
		if status.Items[i].Type == wanted.Type && status.Items[i].Name == wanted.Name {
			return &status.Items[i]
		}
	}
	return nil
}

// PutItem drafts a library object.
func (s *Server) PutItem(ctx context.Context, request server.PutItemRequestObject) (server.PutItemResponseObject, error) {
	change, err := readDraftChange(request.Body)
	if err != nil {
		return nil, err
	}
	who := callerOf(ctx)
	if err := checkDraft(&who.session.Status, change); err != nil {
		return nil, err
	}
	content, err := s.judge(change)
	if err != nil {
		return nil, err
	}
	ref, err := s.contents.Put(ctx, who.session, content.Data)
	if err != nil {
		return nil, fmt.Errorf("store draft: %w", err)
	}
	base, err := s.libraryVersion(ctx, who.namespace, change.item)
	if err != nil {
		return nil, err
	}
	err = s.updateSession(ctx, who, func(status *api.AgentSessionStatus) (bool, error) {
		if err := checkDraft(status, change); err != nil {
			return false, err
		}
		changed := putDraft(status, content, ref.Digest, base)
		return noteEffect(status) || changed, nil
	})
	if err != nil {
		return nil, err
	}
	return server.PutItem200JSONResponse(shownContent(content)), nil
}

func readDraftChange(body *openapi.ItemChange) (itemChange, error) {
	if _, err := draftName(body.Type, ""); err != nil {
		return itemChange{}, err
	}
	return readItemChange(body)
}

func (s *Server) judge(change itemChange) (item.Content, error) {
	content, err := item.Read(change.item.Type, change.content, s.expressions)
	if err != nil {
		return item.Content{}, unprocessable("The content cannot be kept: " + err.Error())
	}
	return content, nil
}

// checkDraft holds a change against the drafts as they are.
func checkDraft(status *api.AgentSessionStatus, change itemChange) error {
	draft := findDraft(status, change.item)
	revision := ""
	if draft != nil {
		revision = draft.ContentRevision
	}
	switch {
	case change.content == nil && draft == nil:
		return noDraft(change.item)
	case change.base != nil && *change.base != revision:
		p := conflict("%s has another revision than baseRevision", change.item)
		p.Expected, p.Actual = revision, cut(*change.base, maxShownRevision)
		return p
	case draft == nil && len(status.Items) >= maxDrafts:
		return tooLarge("This session has %d drafts, which is as many as it may; remove some", maxDrafts)
	}
	return nil
}

// putDraft puts a content into the drafts. The base is the version of the
// library object, which counts if this is the first put.
func putDraft(status *api.AgentSessionStatus, content item.Content, digest, base string) (changed bool) {
	draft := findDraft(status, turns.Item{Type: content.Type, Name: content.Name})
	if draft == nil {
		status.Items = append(status.Items, api.SessionItem{Type: content.Type, Name: content.Name, Base: base})
		draft = &status.Items[len(status.Items)-1]
	}
	if draft.ContentRevision == content.Revision {
		return false
	}
	draft.ContentRevision, draft.Digest = content.Revision, digest
	draft.Valid, draft.Problems = content.IsValid(), content.Problems[:min(len(content.Problems), maxProblems)]
	draft.Applied = nil
	return true
}

// noteEffect keeps the agent's prompt from being given to another pod: what it
// drafted would be drafted again.
func noteEffect(status *api.AgentSessionStatus) (changed bool) {
	prompt := status.Prompt
	if prompt == nil || prompt.State == api.PromptDone || prompt.Effect {
		return false
	}
	prompt.Effect = true
	return true
}

// libraryVersion is the resource version of a library object, empty when there
// is none.
func (s *Server) libraryVersion(ctx context.Context, namespace string, wanted turns.Item) (string, error) {
	object := newLibraryObject(wanted.Type)
	found, err := s.find(ctx, types.NamespacedName{Namespace: namespace, Name: wanted.Name}, object)
	if err != nil {
		return "", fmt.Errorf("read library object: %w", err)
	}
	if !found {
		return "", nil
	}
	return object.GetResourceVersion(), nil
}

func newLibraryObject(kind api.ItemType) client.Object {
	if kind == api.ItemActionType {
		return &api.ActionType{}
	}
	return &api.Tool{}
}

// RemoveItem forgets a draft.
func (s *Server) RemoveItem(ctx context.Context, request server.RemoveItemRequestObject) (server.RemoveItemResponseObject, error) {
	wanted, err := draftName(request.Type, request.Item)
	if err != nil {
		return nil, err
	}
	change := itemChange{item: wanted, base: request.Params.BaseRevision}
	err = s.updateSession(ctx, callerOf(ctx), func(status *api.AgentSessionStatus) (bool, error) {
		if err := checkDraft(status, change); err != nil {
			return false, err
		}
		status.Items = slices.DeleteFunc(status.Items, func(draft api.SessionItem) bool {
			return draft.Type == wanted.Type && draft.Name == wanted.Name
		})
		noteEffect(status)
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	return server.RemoveItem204Response{}, nil
}

// ValidateItem tells what is wrong with a content that nobody keeps.
func (s *Server) ValidateItem(_ context.Context, request server.ValidateItemRequestObject) (server.ValidateItemResponseObject, error) {
	change, err := readDraftChange(&openapi.ItemChange{Type: request.Body.Type, Content: request.Body.Item})
	if err != nil {
		return nil, err
	}
	content, err := s.judge(change)
	if err != nil {
		return nil, err
	}
	return server.ValidateItem200JSONResponse{Valid: content.IsValid(), Problems: shownProblems(content.Problems)}, nil
}

// isConflict tells whether an object is not as it was when a write was computed.
func isConflict(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}

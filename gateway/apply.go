package gateway

import (
	"context"
	"encoding/json"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/gateway/openapi/server"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=actiontypes;tools,verbs=create;update

// maxUsername is what the status takes of a user's name, in characters.
const maxUsername = 1024

// ApplyItems puts drafts into the library for a person, who must be allowed to
// write there. Every draft is tried before the first is written, so that one
// that would be refused leaves the others alone.
func (s *Server) ApplyItems(ctx context.Context, request server.ApplyItemsRequestObject) (server.ApplyItemsResponseObject, error) {
	named, err := readApplication(request.Body)
	if err != nil {
		return nil, err
	}
	who := callerOf(ctx)
	pending, err := s.prepareApplication(ctx, who, named)
	if err != nil {
		return nil, err
	}
	for _, p := range pending {
		if err := s.writeLibrary(ctx, p, true); err != nil {
			return nil, err
		}
	}
	answer := server.ApplyItems200JSONResponse{Applied: []openapi.AppliedItem{}}
	for _, p := range pending {
		if err := s.writeLibrary(ctx, p, false); err != nil {
			return nil, err
		}
		if err := s.noteApplied(ctx, who, p); err != nil {
			return nil, err
		}
		answer.Applied = append(answer.Applied, openapi.AppliedItem{
			Type: openapi.ItemType(p.draft.Type), Name: p.draft.Name, ResourceVersion: p.object.GetResourceVersion(),
		})
	}
	return answer, nil
}

func readApplication(body *openapi.Application) ([]turns.Item, error) {
	if len(body.Items) == 0 || len(body.Items) > maxDrafts {
		return nil, invalid("items must name 1 to %d drafts", maxDrafts)
	}
	seen := map[turns.Item]bool{}
	var named []turns.Item
	for _, ref := range body.Items {
		wanted, err := draftName(ref.Type, ref.Name)
		if err != nil {
			return nil, err
		}
		if seen[wanted] {
			return nil, invalid("%s is named twice", cut(wanted.String(), maxShownRevision))
		}
		seen[wanted] = true
		named = append(named, wanted)
	}
	return named, nil
}

// pendingItem is a draft on its way into the library.
type pendingItem struct {
	draft api.SessionItem
	// object as it shall be.
	object client.Object
	// isNew tells whether the library has no such object yet.
	isNew bool
}

// prepareApplication makes the checks that need nothing but reading, in the
// order in which a caller may learn of them.
func (s *Server) prepareApplication(ctx context.Context, who caller, named []turns.Item) ([]pendingItem, error) {
	pending := make([]pendingItem, 0, len(named))
	for _, wanted := range named {
		p, err := s.pendingItem(ctx, who, wanted)
		if err != nil {
			return nil, err
		}
		pending = append(pending, p)
	}
	for _, p := range pending {
		if p.object.GetResourceVersion() != p.draft.Base {
			problem := conflict("%s/%s changed in the library since it was drafted", p.draft.Type, p.draft.Name)
			problem.Expected, problem.Actual = p.draft.Base, p.object.GetResourceVersion()
			return nil, problem
		}
	}
	for _, p := range pending {
		if !p.draft.Valid {
			problem := unprocessable(fmt.Sprintf("%s/%s has errors", p.draft.Type, p.draft.Name))
			problem.Problems = shownProblems(p.draft.Problems)
			return nil, problem
		}
		if err := s.fill(ctx, who, p); err != nil {
			return nil, err
		}
	}
	return pending, nil
}

// pendingItem looks up one draft and its library object, and whether the person
// may write that.
func (s *Server) pendingItem(ctx context.Context, who caller, wanted turns.Item) (pendingItem, error) {
	object := newLibraryObject(wanted.Type)
	exists, err := s.find(ctx, types.NamespacedName{Namespace: who.namespace, Name: wanted.Name}, object)
	if err != nil {
		return pendingItem{}, fmt.Errorf("read library object: %w", err)
	}
	if err := s.authorize(ctx, who.person, toWrite(who.namespace, wanted, exists)); err != nil {
		return pendingItem{}, err
	}
	draft := findDraft(&who.session.Status, wanted)
	if draft == nil {
		return pendingItem{}, noDraft(wanted)
	}
	return pendingItem{draft: *draft, object: object, isNew: !exists}, nil
}

func toWrite(namespace string, wanted turns.Item, exists bool) authorizationv1.ResourceAttributes {
	resource := "tools"
	if wanted.Type == api.ItemActionType {
		resource = "actiontypes"
	}
	if !exists {
		return may("create", namespace, resource, "")
	}
	return may("update", namespace, resource, wanted.Name)
}

// fill gives the object what the draft has.
func (s *Server) fill(ctx context.Context, who caller, p pendingItem) error {
	data, err := s.contents.Get(ctx, who.namespace, p.draft.Digest)
	if err != nil {
		return fmt.Errorf("read draft: %w", err)
	}
	var spec any
	switch object := p.object.(type) {
	case *api.ActionType:
		object.Spec = api.ActionTypeSpec{}
		spec = &object.Spec
	case *api.Tool:
		object.Spec = api.ToolSpec{}
		spec = &object.Spec
	}
	if err := json.Unmarshal(data, spec); err != nil {
		return fmt.Errorf("decode draft: %w", err)
	}
	p.object.SetNamespace(who.namespace)
	p.object.SetName(p.draft.Name)
	annotations := p.object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[api.AnnotationAppliedBy] = who.person.Username
	p.object.SetAnnotations(annotations)
	return nil
}

// writeLibrary creates or updates a library object, or tries to.
func (s *Server) writeLibrary(ctx context.Context, p pendingItem, isTrial bool) error {
	object := p.object
	if isTrial {
		object, _ = p.object.DeepCopyObject().(client.Object)
	}
	var err error
	switch {
	case p.isNew && isTrial:
		err = s.live.Create(ctx, object, client.DryRunAll)
	case p.isNew:
		err = s.live.Create(ctx, object)
	case isTrial:
		err = s.live.Update(ctx, object, client.DryRunAll)
	default:
		err = s.live.Update(ctx, object)
	}
	if isConflict(err) {
		return conflict("%s/%s changed in the library since it was drafted", p.draft.Type, p.draft.Name)
	}
	if err != nil {
		return fmt.Errorf("write library object: %w", err)
	}
	return nil
}

// noteApplied records in the draft that it is in the library. A draft that was
// put again meanwhile has nothing to do with that, but for its base.
func (s *Server) noteApplied(ctx context.Context, who caller, p pendingItem) error {
	applied := &api.AppliedItem{
		By: cut(who.person.Username, maxUsername), At: metav1.NewTime(s.clock.Now()), ResourceVersion: p.object.GetResourceVersion(),
	}
	err := s.updateSession(ctx, who, func(status *api.AgentSessionStatus) (bool, error) {
		draft := findDraft(status, turns.Item{Type: p.draft.Type, Name: p.draft.Name})
		if draft == nil {
			return false, nil
		}
		draft.Base = applied.ResourceVersion
		if draft.ContentRevision == p.draft.ContentRevision {
			draft.Applied = applied
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("record applied item: %w", err)
	}
	return nil
}

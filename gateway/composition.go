package gateway

import (
	"context"
	"encoding/json"
	"fmt"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/gateway/openapi/server"
	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/item"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// codeChangedByUser is the code of the warning that a staged item would replace
// what a person made of it meanwhile.
const codeChangedByUser = "CHANGED_BY_USER"

// GetAgentComposition shows a composition to its agent.
func (s *Server) GetAgentComposition(
	ctx context.Context, request server.GetAgentCompositionRequestObject,
) (server.GetAgentCompositionResponseObject, error) {
	seen, err := s.see(ctx, request.Namespace, request.Name)
	if err != nil {
		return nil, err
	}
	answer := openapi.AgentComposition{
		CompositionID: request.Namespace + "/" + request.Name,
		Goal:          seen.draft.Spec.Goal,
		Items:         []openapi.Item{},
	}
	if seen.turn != nil {
		answer.TurnID = seen.turn.Name
	}
	if seen.workflow != nil {
		if err := s.addWorkflow(&answer, seen); err != nil {
			return nil, err
		}
	}
	library, err := item.Library(seen.draft, s.expressions)
	if err != nil {
		return nil, err
	}
	for _, view := range library {
		view.Problems = append(view.Problems, seen.warnings[turns.Item{Type: view.Type, Name: view.Name}]...)
		answer.Items = append(answer.Items, shownItem(view))
	}
	return server.GetAgentComposition200JSONResponse(answer), nil
}

// GetAgentItem shows the content of one item to the agent.
func (s *Server) GetAgentItem(ctx context.Context, request server.GetAgentItemRequestObject) (server.GetAgentItemResponseObject, error) {
	if err := checkItemType(request.Type); err != nil {
		return nil, err
	}
	seen, err := s.see(ctx, request.Namespace, request.Name)
	if err != nil {
		return nil, err
	}
	wanted := turns.Item{Type: api.ItemType(request.Type), Name: request.Item}
	content, err := seen.content(wanted)
	if err != nil {
		return nil, err
	}
	if content == nil {
		return nil, noItem(wanted)
	}
	return jsonText(content), nil
}

func noItem(wanted turns.Item) error {
	return notFound("The composition has no %s", cut(wanted.String(), maxShownRevision))
}

// sight is a composition as its agent sees it.
type sight struct {
	// draft has the live content, with what waits in the turn in its place.
	draft *api.Composition
	// turn that works, nil when none does.
	turn *api.Turn
	// workflow is what the agent works on: the working document of the turn, else
	// the live workflow; nil if there is none.
	workflow changeset.Document
	// warnings of items that wait in the turn.
	warnings map[turns.Item][]api.Problem
}

// see reads a composition for its agent.
func (s *Server) see(ctx context.Context, namespace, name string) (sight, error) {
	comp, err := s.composition(ctx, namespace, name)
	if err != nil {
		return sight{}, err
	}
	turn, err := s.runningTurn(ctx, comp)
	if err != nil {
		return sight{}, err
	}
	seen := sight{draft: comp, turn: turn}
	if err := s.overlay(ctx, &seen); err != nil {
		return sight{}, err
	}
	seen.workflow, err = s.visibleWorkflow(ctx, comp, turn)
	return seen, err
}

func (s *Server) visibleWorkflow(ctx context.Context, comp *api.Composition, turn *api.Turn) (changeset.Document, error) {
	if turn == nil {
		doc, err := turns.Document(comp.Spec.Workflow)
		if err != nil {
			return nil, fmt.Errorf("read workflow of composition %s: %w", comp.Name, err)
		}
		return doc, nil
	}
	if turn.Status.WorkingRevision == "" {
		return nil, nil
	}
	return s.working(ctx, turn)
}

// overlay puts what waits in the turn in the place of what is live.
func (s *Server) overlay(ctx context.Context, seen *sight) error {
	if seen.turn == nil {
		return nil
	}
	live := seen.draft
	seen.draft = live.DeepCopy()
	seen.warnings = map[turns.Item][]api.Problem{}
	for _, write := range turns.Staged(&seen.turn.Status) {
		if write.Type == api.ItemWorkflow {
			continue // the working document has it
		}
		if err := s.overlayItem(ctx, seen.draft, write); err != nil {
			return err
		}
		revision, err := turns.LiveRevision(live, turns.ItemOf(write))
		if err != nil {
			return err
		}
		if revision != turns.RevisionOf(write.Before) {
			seen.warnings[turns.ItemOf(write)] = []api.Problem{changedByUser(revision)}
		}
	}
	return nil
}

func (s *Server) overlayItem(ctx context.Context, draft *api.Composition, write *api.ItemWrite) error {
	if write.After == nil {
		item.Unset(draft, write.Type, write.Name)
		return nil
	}
	data, err := s.contents.Get(ctx, draft.Namespace, write.After.Digest)
	if err != nil {
		return fmt.Errorf("read staged item: %w", err)
	}
	return item.Set(draft, write.Type, data)
}

func changedByUser(revision string) api.Problem {
	message := "the user removed this item during the turn; send an empty baseRevision to keep yours"
	if revision != "" {
		message = "the user changed this item during the turn; send " + revision + " as baseRevision to replace theirs"
	}
	return api.Problem{Severity: api.SeverityWarning, Path: "content", Code: codeChangedByUser, Message: message}
}

// content is what the agent sees of an item, as JSON text; nil when there is no
// such item.
func (v sight) content(wanted turns.Item) ([]byte, error) {
	if wanted.Type != api.ItemWorkflow {
		found, err := turns.Live(v.draft, wanted)
		if err != nil || found == nil {
			return nil, err
		}
		return found.Data, nil
	}
	if v.workflow == nil || item.WorkflowName(v.workflow, v.draft.Name) != wanted.Name {
		return nil, nil
	}
	text, err := json.Marshal(v.workflow)
	if err != nil {
		return nil, fmt.Errorf("encode workflow: %w", err)
	}
	return text, nil
}

func (s *Server) addWorkflow(answer *openapi.AgentComposition, seen sight) error {
	view, err := item.OfWorkflow(seen.workflow, seen.draft.Name, s.expressions)
	if err != nil {
		return err
	}
	text, err := json.Marshal(seen.workflow)
	if err != nil {
		return fmt.Errorf("encode workflow: %w", err)
	}
	answer.Workflow, answer.WorkflowName, answer.WorkflowRevision = text, view.Name, view.Revision
	answer.Items = append(answer.Items, shownItem(view))
	return nil
}

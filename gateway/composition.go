package gateway

import (
	"context"
	"encoding/json"
	"fmt"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/gateway/openapi/server"
	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// GetAgentComposition shows a composition to its agent.
func (s *Server) GetAgentComposition(
	ctx context.Context, request server.GetAgentCompositionRequestObject,
) (server.GetAgentCompositionResponseObject, error) {
	comp, err := s.composition(ctx, request.Namespace, request.Name)
	if err != nil {
		return nil, err
	}
	turn, err := s.runningTurn(ctx, comp)
	if err != nil {
		return nil, err
	}
	doc, err := s.visibleWorkflow(ctx, comp, turn)
	if err != nil {
		return nil, err
	}
	answer := openapi.AgentComposition{
		CompositionID: comp.Namespace + "/" + comp.Name,
		Goal:          comp.Spec.Goal,
		Items:         []openapi.Item{},
	}
	if turn != nil {
		answer.TurnID = turn.Name
	}
	if doc != nil {
		if err := s.addWorkflow(&answer, comp.Name, doc); err != nil {
			return nil, err
		}
	}
	items, err := libraryItems(comp)
	if err != nil {
		return nil, err
	}
	answer.Items = append(answer.Items, items...)
	return server.GetAgentComposition200JSONResponse(answer), nil
}

// visibleWorkflow is what the agent works on: the working document of the
// turn, else the live workflow; nil if there is none.
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

func (s *Server) addWorkflow(answer *openapi.AgentComposition, fallbackName string, doc changeset.Document) error {
	revision, err := changeset.Revision(doc)
	if err != nil {
		return fmt.Errorf("take revision of workflow: %w", err)
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return fmt.Errorf("encode workflow: %w", err)
	}
	name, _ := doc["name"].(string)
	if name == "" {
		name = fallbackName
	}
	problems := s.workflowProblems(doc)
	answer.Workflow, answer.WorkflowName, answer.WorkflowRevision = text, name, revision
	answer.Items = append(answer.Items, openapi.Item{
		Type: openapi.ItemTypeWorkflow, Name: name, ContentRevision: revision, Valid: isValid(problems), Problems: problems,
	})
	return nil
}

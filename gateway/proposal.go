package gateway

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/gateway/openapi/server"
	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/turns"
)

const (
	// maxRecordedID bounds the id that is kept of a change set, in characters.
	maxRecordedID = 1024
	// maxShownRevision bounds how much of a proposal's base is repeated, in characters.
	maxShownRevision = 80
)

// ProposeAgentWorkflowChanges adds a change set to the running turn, or says why
// it does not fit.
func (s *Server) ProposeAgentWorkflowChanges(
	ctx context.Context, request server.ProposeAgentWorkflowChangesRequestObject,
) (server.ProposeAgentWorkflowChangesResponseObject, error) {
	proposed, err := readProposal(*request.Body)
	if err != nil {
		return nil, err
	}
	var result openapi.ProposalResult
	err = s.settleFor(ctx, callerOf(ctx), func() error {
		result, err = s.propose(ctx, request.Namespace, request.Name, proposed)
		return err
	})
	if err != nil {
		return nil, err
	}
	return server.ProposeAgentWorkflowChanges200JSONResponse(result), nil
}

// propose checks a proposal against the turn as it is now, and records what
// came of it. When the turn changed meanwhile nothing was recorded, and the
// error is the API's conflict.
func (s *Server) propose(ctx context.Context, namespace, name string, p proposal) (openapi.ProposalResult, error) {
	none := openapi.ProposalResult{}
	comp, err := s.composition(ctx, namespace, name)
	if err != nil {
		return none, err
	}
	turn, err := s.runningTurn(ctx, comp)
	if err != nil {
		return none, err
	}
	if turn == nil {
		return none, noTurn()
	}
	if err := s.catchUp(ctx, comp, turn, turns.Item{}); err != nil {
		return none, err
	}
	switch {
	case turn.Status.WorkingRevision == "":
		return none, invalid(detailNoWorkflow)
	case !p.fits(turn):
		return none, tooLarge(detailTurnFull)
	}
	working, err := s.working(ctx, turn)
	if err != nil {
		return none, err
	}
	result, revision, rejection := changeset.ApplyChecked(working, p.value)
	if rejection != nil {
		return s.reject(ctx, turn, p, rejection)
	}
	if err := s.accept(ctx, turn, p, revision); err != nil {
		return none, err
	}
	return openapi.ProposalResult{Applied: true, ContentRevision: revision, Problems: s.workflowProblems(result)}, nil
}

func (s *Server) reject(ctx context.Context, turn *api.Turn, p proposal, rejection *changeset.Rejection) (openapi.ProposalResult, error) {
	turn.Status.RejectedProposals++
	if err := s.live.Status().Update(ctx, turn); err != nil {
		return openapi.ProposalResult{}, fmt.Errorf("count rejected proposal: %w", err)
	}
	reason := rejection.Reason
	if rejection.Code == changeset.CodeStale {
		reason = fmt.Sprintf("Base revision %s is not the current working revision %s; call get_composition", p.base(), turn.Status.WorkingRevision)
	}
	return openapi.ProposalResult{
		Problems: []openapi.ItemProblem{},
		Error:    &openapi.Rejection{Code: openapi.RejectionCode(rejection.Code), OpIndex: rejection.OpIndex, Reason: reason},
	}, nil
}

func (s *Server) accept(ctx context.Context, turn *api.Turn, p proposal, revision string) error {
	accepted := api.AcceptedChangeSet{ID: cut(p.set.ID, maxRecordedID), Ops: int32(len(p.set.Ops)), Revision: revision}
	if len(p.stored) <= content.MaxInline {
		accepted.Content = &runtime.RawExtension{Raw: p.stored}
	} else {
		ref, err := s.contents.Put(ctx, turn, p.stored)
		if err != nil {
			return fmt.Errorf("store change set: %w", err)
		}
		accepted.Ref = &ref
	}
	turn.Status.ChangeSets = append(turn.Status.ChangeSets, accepted)
	turn.Status.WorkingRevision = revision
	if err := s.live.Status().Update(ctx, turn); err != nil {
		return fmt.Errorf("record change set: %w", err)
	}
	return nil
}

// proposal is a change set by the agent.
type proposal struct {
	// value is what was sent, with its author overwritten if it is an object.
	value any
	// set is what counts of it, empty if it is no object.
	set changeset.ChangeSet
	// stored is the set as it would be recorded.
	stored []byte
}

func readProposal(body []byte) (proposal, error) {
	value, err := jsonvalue.Decode(body)
	if err != nil {
		return proposal{}, invalid("The change set is not JSON: %s", err)
	}
	object, isObject := value.(map[string]any)
	if !isObject {
		return proposal{value: value}, nil
	}
	object["author"] = api.AuthorWorkbench
	set, err := turns.SetOf(object)
	if err != nil {
		return proposal{}, fmt.Errorf("read change set: %w", err)
	}
	stored, err := jsonvalue.Canonical(map[string]any{
		"id": set.ID, "baseRevision": set.BaseRevision, "author": set.Author, "summary": set.Summary, "ops": set.Ops,
	})
	if err != nil {
		return proposal{}, invalid("The change set cannot be stored: %s", err)
	}
	return proposal{value: object, set: set, stored: stored}, nil
}

// base is the revision that the proposal was written for, for people.
func (p proposal) base() string {
	if p.set.BaseRevision == "" {
		return "(none)"
	}
	return cut(p.set.BaseRevision, maxShownRevision)
}

// fits tells whether the turn has room for the proposal.
func (p proposal) fits(turn *api.Turn) bool {
	ops, size := len(p.set.Ops), int64(len(p.stored))
	for i := range turn.Status.ChangeSets {
		accepted := &turn.Status.ChangeSets[i]
		ops += int(accepted.Ops)
		size += sizeOf(accepted)
	}
	return len(turn.Status.ChangeSets) < turns.MaxChangeSets && ops <= turns.MaxOps && size <= turns.MaxBytes
}

func sizeOf(accepted *api.AcceptedChangeSet) int64 {
	if accepted.Ref != nil {
		return accepted.Ref.Size
	}
	if accepted.Content == nil {
		return 0
	}
	return int64(len(accepted.Content.Raw))
}

// cut keeps the first n characters of a text.
func cut(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}

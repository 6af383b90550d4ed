package gateway

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// composition reads the composition of the calling agent live. One that was
// deleted and made again has nothing to do with the session of the one before.
func (s *Server) composition(ctx context.Context, namespace, name string) (*api.Composition, error) {
	comp := &api.Composition{}
	err := s.live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, comp)
	if apierrors.IsNotFound(err) {
		return nil, notFound("Composition %s/%s not found", namespace, name)
	}
	if err != nil {
		return nil, fmt.Errorf("read composition: %w", err)
	}
	if owner := metav1.GetControllerOf(callerOf(ctx).session); owner != nil && owner.UID != comp.UID {
		return nil, unauthorized()
	}
	return comp, nil
}

// runningTurn returns the turn that works on the composition, nil if none does.
// The composition names it, and the turn itself must agree.
func (s *Server) runningTurn(ctx context.Context, comp *api.Composition) (*api.Turn, error) {
	status := &comp.Status
	if status.TurnState != api.TurnStateWorking || status.CurrentTurn == "" {
		return nil, nil
	}
	turn := &api.Turn{}
	err := s.live.Get(ctx, types.NamespacedName{Namespace: comp.Namespace, Name: status.CurrentTurn}, turn)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read turn: %w", err)
	}
	isClaimant := status.Claim == nil || status.Claim.UID == string(turn.UID)
	if !isClaimant || turn.Status.State != api.TurnWorking || !turn.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	return turn, nil
}

// working returns the turn's working document.
func (s *Server) working(ctx context.Context, turn *api.Turn) (changeset.Document, error) {
	doc, err := turns.Working(ctx, s.contents, turn)
	if err != nil {
		return nil, fmt.Errorf("make working document: %w", err)
	}
	revision, err := changeset.Revision(doc)
	if err != nil {
		return nil, fmt.Errorf("take revision of working document: %w", err)
	}
	if revision != turn.Status.WorkingRevision {
		return nil, fmt.Errorf("working document of turn %s has revision %s, not the recorded %s", turn.Name, revision, turn.Status.WorkingRevision)
	}
	return doc, nil
}

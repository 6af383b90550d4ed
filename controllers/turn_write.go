package controllers

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/edit"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// edit writes a draft under the version that it was read with. A refusal is
// what the API server has against the content, which no repetition changes;
// conflicts are errors: whoever was faster decides what a fresh look finds.
func (r *TurnReconciler) edit(ctx context.Context, comp *api.Composition, edits turns.Edits) (refusal string, err error) {
	err = edit.Write(ctx, r.Direct, comp, edits)
	switch {
	case err == nil:
		return "", nil
	case apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsRequestEntityTooLargeError(err):
		return err.Error(), nil
	}
	return "", fmt.Errorf("write composition: %w", err)
}

// settleItems confirms the item writes that nobody confirmed because the
// gateway died between two of its steps. What was intended and still fits is
// written: the agent was, or would have been, told that it is. It tells whether
// all is settled; if not, what it did or waits for wakes the turn again.
func (r *TurnReconciler) settleItems(ctx context.Context, turn *api.Turn, comp *api.Composition) (bool, error) {
	open := turns.Unsettled(&turn.Status)
	if len(open) == 0 {
		return true, nil
	}
	if fresh, err := isFresh(ctx, r.Direct, turn); err != nil || !fresh {
		return false, err
	}
	for _, item := range open {
		live, err := turns.LiveRevision(comp, item)
		if err != nil {
			return false, err
		}
		switch turns.Judge(turns.FindWrite(&turn.Status, item), live) {
		case turns.VerdictWritten:
			turns.Confirm(&turn.Status, item)
		case turns.VerdictLost:
			turns.Revoke(&turn.Status, item)
		case turns.VerdictOpen:
			return false, r.completeItem(ctx, turn, comp, item)
		}
	}
	return false, nil
}

// completeItem writes what the gateway intended to.
func (r *TurnReconciler) completeItem(ctx context.Context, turn *api.Turn, comp *api.Composition, item turns.Item) error {
	if !isHistoryCurrent(comp) {
		return nil
	}
	value, err := r.contentOf(ctx, turn.Namespace, turns.FindWrite(&turn.Status, item).After)
	if isBeyondRepair(err) {
		turns.Revoke(&turn.Status, item)
		return nil
	}
	if err != nil {
		return err
	}
	refusal, err := r.edit(ctx, comp, turns.Edits{
		Mark: turns.MarkItem(turn, comp.Generation), By: turn.Annotations[api.AnnotationRequestedBy],
		Items: []turns.Edit{{Item: item, Value: value}},
	})
	switch {
	case err != nil:
		return err
	case refusal != "":
		turns.Revoke(&turn.Status, item)
	default:
		turns.Confirm(&turn.Status, item)
	}
	return nil
}

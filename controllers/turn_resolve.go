package controllers

import (
	"context"
	"fmt"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// resolve carries out the decision on a finished turn: a person's, that of the
// composition's policy, or the fact that somebody applied the result already.
func (r *TurnReconciler) resolve(ctx context.Context, turn *api.Turn) (step, error) {
	comp, err := r.readComposition(ctx, turn)
	if err != nil {
		return step{}, err
	}
	if comp == nil {
		fail(turn, "the composition is gone", turn.Status.FinishedAt)
		return step{}, nil
	}
	done := step{comp: comp}
	resolution := turn.Spec.Resolution
	if resolution == "" && comp.Spec.Agent.ChangeSetPolicy == api.ChangeSetAutomatic {
		resolution = api.ResolutionAccepted
	}
	plan, err := turns.PlanAccept(comp, turn)
	if err != nil {
		return done, err
	}
	switch resolution {
	case api.ResolutionRejected:
		settle(turn, api.TurnRejected, string(api.ResolutionRejected), "")
	case api.ResolutionStale:
		settle(turn, api.TurnStale, string(api.ResolutionStale), "the client could not apply the change set")
	case api.ResolutionApplied:
		settle(turn, api.TurnApplied, verdict(plan.IsDone()), "")
	case api.ResolutionAccepted:
		return done, r.accept(ctx, turn, comp, plan)
	default:
		return done, r.observe(ctx, turn, comp, plan)
	}
	return done, nil
}

// observe settles a turn that nobody resolved: its result is live by whatever
// hand, or a newer turn took its place.
func (r *TurnReconciler) observe(ctx context.Context, turn *api.Turn, comp *api.Composition, plan turns.Acceptance) error {
	if plan.IsDone() {
		settle(turn, api.TurnApplied, api.ReasonDetected, "")
		return nil
	}
	// The composition names the newest turn that waits, and its status wakes this
	// one when it does.
	name := comp.Status.PendingTurn
	if name == "" || name == turn.Name {
		return nil
	}
	pending, err := readTurn(ctx, r.Direct, turn.Namespace, name)
	if err != nil {
		return err
	}
	if pending != nil && pending.Status.State == api.TurnAwaitingResolution && isNewer(pending, turn) {
		settle(turn, api.TurnStale, api.ReasonSuperseded, "turn "+name+" took its place")
	}
	return nil
}

// accept writes the turn's result into the composition, workflow and staged
// items at once, if the draft is still the one that the turn was based on.
func (r *TurnReconciler) accept(ctx context.Context, turn *api.Turn, comp *api.Composition, plan turns.Acceptance) error {
	written, err := r.isAccepted(ctx, turn, comp)
	switch {
	case err != nil:
		return err
	case written:
		settleAccepted(turn)
		return nil
	case plan.IsDone():
		settle(turn, api.TurnApplied, string(api.ResolutionAccepted), "")
		return nil
	case plan.Mismatch != "":
		settle(turn, api.TurnStale, api.ReasonBaseChanged, plan.Mismatch)
		return nil
	case !isHistoryCurrent(comp):
		// What is about to be replaced must have its snapshot first; the status
		// that says so wakes this turn.
		return nil
	}
	edits, rejection, err := r.acceptedEdits(ctx, turn, comp, plan)
	switch {
	case isBeyondRepair(err):
		fail(turn, "the result is lost: "+err.Error(), turn.Status.FinishedAt)
		return nil
	case err != nil:
		return err
	case rejection != nil:
		settle(turn, api.TurnStale, api.ReasonBaseChanged, rejection.Code+": "+rejection.Reason)
		return nil
	}
	if fresh, err := isFresh(ctx, r.Direct, turn); err != nil || !fresh {
		return err
	}
	return r.writeAccepted(ctx, turn, comp, edits)
}

// isAccepted tells whether the turn's result was written before, whatever
// became of it since: the receipt of an earlier write may be lost.
func (r *TurnReconciler) isAccepted(ctx context.Context, turn *api.Turn, comp *api.Composition) (bool, error) {
	mark := turns.MarkAccept(turn)
	if isMarked(comp, nil, mark) {
		return true, nil
	}
	records, err := listSnapshots(ctx, r.Direct, comp)
	return isMarked(comp, records, mark), err
}

// acceptedEdits are what is left to write of the turn's result.
func (r *TurnReconciler) acceptedEdits(ctx context.Context, turn *api.Turn, comp *api.Composition, plan turns.Acceptance) (turns.Edits, *changeset.Rejection, error) {
	edits := turns.Edits{Mark: turns.MarkAccept(turn), By: decidedBy(turn), Turn: turn.Name}
	if plan.Workflow {
		result, rejection, err := r.result(ctx, turn, comp)
		if err != nil || rejection != nil {
			return edits, rejection, err
		}
		edits.Items = append(edits.Items, turns.Edit{Item: turns.Item{Type: api.ItemWorkflow}, Value: result})
	}
	for _, write := range plan.Items {
		value, err := r.contentOf(ctx, turn.Namespace, write.After)
		if err != nil {
			return edits, nil, err
		}
		edits.Items = append(edits.Items, turns.Edit{Item: turns.ItemOf(write), Value: value})
	}
	return edits, nil, nil
}

// result applies the combined change set, checked, to the live workflow, or to
// the one that waits in the turn.
func (r *TurnReconciler) result(ctx context.Context, turn *api.Turn, comp *api.Composition) (map[string]any, *changeset.Rejection, error) {
	doc, err := turns.Document(comp.Spec.Workflow)
	if err == nil && doc == nil {
		doc, err = turns.Base(ctx, r.content(), turn)
	}
	if err != nil {
		return nil, nil, err
	}
	combined, hasOps, err := turns.Combined(ctx, r.content(), turn)
	switch {
	case err != nil:
		return nil, nil, err
	case !hasOps && doc != nil && turn.Status.ResultRevision == turn.Status.BaseRevision:
		return doc, nil, nil
	case !hasOps:
		return nil, nil, fmt.Errorf("%w: the turn has no combined change set", turns.ErrDamaged)
	}
	result, _, rejection := changeset.ApplyChecked(doc, map[string]any{
		"id": combined.ID, "baseRevision": combined.BaseRevision, "author": combined.Author, "summary": combined.Summary, "ops": combined.Ops,
	})
	return result, rejection, nil
}

func (r *TurnReconciler) writeAccepted(ctx context.Context, turn *api.Turn, comp *api.Composition, edits turns.Edits) error {
	refusal, err := r.edit(ctx, comp, edits)
	switch {
	case err != nil:
		return err
	case refusal != "":
		fail(turn, "the result was refused: "+refusal, turn.Status.FinishedAt)
	default:
		settleAccepted(turn)
	}
	return nil
}

// settleAccepted ends a turn whose result the operator wrote, the staged items
// with it.
func settleAccepted(turn *api.Turn) {
	for _, write := range turns.Staged(&turn.Status) {
		write.State = api.ItemWritten
	}
	settle(turn, api.TurnApplied, string(api.ResolutionAccepted), "")
}

// decidedBy is the user whose decision the write carries out.
func decidedBy(turn *api.Turn) string {
	if user := turn.Annotations[api.AnnotationResolvedBy]; user != "" {
		return user
	}
	return turn.Annotations[api.AnnotationRequestedBy]
}

func verdict(isLive bool) string {
	if isLive {
		return api.ReasonVerified
	}
	return api.ReasonDeclared
}

package controllers

import (
	"context"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// wantsUndo tells whether somebody asked for the turn's undo and it is still to
// be done. A turn that is all in vain to undo is not tried again.
func wantsUndo(turn *api.Turn) bool {
	status := &turn.Status
	switch status.State {
	case api.TurnUndone, api.TurnRefused, api.TurnCancelled:
		return false
	default:
	}
	return turn.Spec.Undo && turns.IsOver(status.State) && !isVain(status)
}

func isVain(status *api.TurnStatus) bool {
	return status.Undo != nil && turns.IsVain(status.Undo)
}

// undo takes back what the turn left in the draft. What will be done is
// committed to status before the draft is written, and the draft bears a mark
// with it: whoever goes on after a crash knows by the mark that it was done, and
// by the status what.
func (r *TurnReconciler) undo(ctx context.Context, turn *api.Turn) (step, error) {
	comp, err := r.readComposition(ctx, turn)
	if err != nil || comp == nil {
		return step{}, err
	}
	done := step{comp: comp}
	records, err := listSnapshots(ctx, r.Direct, comp)
	if err != nil {
		return done, err
	}
	if isMarked(comp, records, turns.MarkUndo(turn)) {
		settleUndone(turn)
		return done, nil
	}
	if comp.Status.Claim != nil || !isHistoryCurrent(comp) {
		return done, nil // the status that ends this wakes the turn
	}
	plan, edits, err := r.planUndo(ctx, turn, comp, records)
	if err != nil {
		return done, err
	}
	isCommitted := turn.Status.Undo != nil && equalStatus(*turn.Status.Undo, plan.Report)
	turn.Status.Undo = &plan.Report
	switch {
	case turns.IsVain(&plan.Report):
		return done, nil
	case len(edits.Items) == 0:
		settleUndone(turn)
		return done, nil
	case !isCommitted:
		return done, nil // its own status wakes it
	}
	return done, r.writeUndo(ctx, turn, comp, edits)
}

// planUndo decides, and reads what is to be put back. What is lost cannot be.
func (r *TurnReconciler) planUndo(ctx context.Context, turn *api.Turn, comp *api.Composition, records []snapshotRecord) (turns.Undo, turns.Edits, error) {
	edits := turns.Edits{Mark: turns.MarkUndo(turn), By: turn.Annotations[api.AnnotationUndoneBy]}
	plan := turns.PlanUndo(turns.Undoing{
		Turn:         turn,
		IsAutomatic:  comp.Spec.Agent.ChangeSetPolicy == api.ChangeSetAutomatic,
		WorkflowName: workflowName(records),
		Whose:        func(item turns.Item) string { return lastEntry(records, item).Turn },
	})
	var lost []turns.Item
	for _, restore := range plan.Restores {
		value, err := r.contentOf(ctx, turn.Namespace, restore.Before)
		switch {
		case isBeyondRepair(err):
			lost = append(lost, restore.Item)
		case err != nil:
			return plan, edits, err
		default:
			edits.Items = append(edits.Items, turns.Edit{Item: restore.Item, Value: value})
		}
	}
	for _, item := range lost {
		plan.Skip(item)
	}
	return plan, edits, nil
}

// contentOf reads an item's stored content, nil for none.
func (r *TurnReconciler) contentOf(ctx context.Context, namespace string, stored *api.ItemContent) (any, error) {
	if stored == nil {
		return nil, nil
	}
	data, err := r.content().Get(ctx, namespace, stored.Digest)
	if err != nil {
		return nil, err
	}
	return jsonvalue.Decode(data)
}

func (r *TurnReconciler) writeUndo(ctx context.Context, turn *api.Turn, comp *api.Composition, edits turns.Edits) error {
	if fresh, err := isFresh(ctx, r.Direct, turn); err != nil || !fresh {
		return err
	}
	refusal, err := r.edit(ctx, comp, edits)
	switch {
	case err != nil:
		return err
	case refusal == "":
		settleUndone(turn)
		return nil
	}
	plan := turns.Undo{Report: *turn.Status.Undo}
	for _, edit := range edits.Items {
		plan.Skip(edit.Item)
	}
	turn.Status.Undo = &plan.Report
	conditionSetter{conditions: &turn.Status.Conditions, generation: turn.Generation}.
		set(api.ConditionUndone, metav1.ConditionFalse, api.ReasonUndoRefused, refusal)
	return nil
}

// settleUndone ends an undo. A result that still waited is dropped with it.
func settleUndone(turn *api.Turn) {
	status := &turn.Status
	if status.State == api.TurnAwaitingResolution {
		status.ChangeSet, status.ChangeSetRef, status.ResultRevision, status.Diff = nil, nil, "", ""
	}
	status.State = api.TurnUndone
}

// setUndone derives the condition. Why an undo was in vain is kept from when
// that turned out.
func setUndone(set conditionSetter, status *api.TurnStatus) {
	switch {
	case status.State == api.TurnUndone:
		set.set(api.ConditionUndone, metav1.ConditionTrue, string(api.TurnUndone), "")
	case !isVain(status):
		set.set(api.ConditionUndone, metav1.ConditionFalse, string(status.State), "")
	default:
		reason, message := api.ReasonSkipped, "everything was edited since"
		if len(status.Undo.Skipped) == 0 {
			reason, message = api.ReasonNothingToUndo, "the turn left nothing in the draft"
		}
		if found := apimeta.FindStatusCondition(*set.conditions, api.ConditionUndone); found != nil && found.Reason == api.ReasonUndoRefused {
			reason, message = found.Reason, found.Message
		}
		set.set(api.ConditionUndone, metav1.ConditionFalse, reason, message)
	}
}

// lastEntry is an item's newest entry of history; the zero entry when history
// has none. A removal is told by one snapshot only.
func lastEntry(records []snapshotRecord, item turns.Item) snapshotItem {
	if item.Type == api.ItemWorkflow {
		entry, _ := newestOf(records).data.workflow()
		return entry
	}
	for _, record := range slices.Backward(records) {
		if entry, known := record.data.item(item.Type, item.Name); known {
			return entry
		}
	}
	return snapshotItem{}
}

func workflowName(records []snapshotRecord) string {
	entry, _ := newestOf(records).data.workflow()
	return entry.Name
}

// isMarked tells whether a write of the operator's was made, however long ago.
func isMarked(comp *api.Composition, records []snapshotRecord, mark string) bool {
	if comp.Annotations[api.AnnotationWrite] == mark {
		return true
	}
	for _, record := range records {
		if record.data.Write == mark {
			return true
		}
	}
	return false
}

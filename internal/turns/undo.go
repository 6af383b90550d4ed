package turns

import (
	"slices"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// ChangedSomething tells whether there is anything to undo: an item that was
// written, or a result that was applied.
func ChangedSomething(turn *api.Turn) bool {
	return turn.Status.State == api.TurnApplied || slices.ContainsFunc(turn.Status.ItemWrites, isWritten)
}

func isWritten(write api.ItemWrite) bool {
	return write.State == api.ItemWritten
}

// Undoing is all that an undo depends on.
type Undoing struct {
	// Turn to take back; the agent's part of it is over.
	Turn *api.Turn
	// IsAutomatic: the composition lets the operator accept turns by itself.
	IsAutomatic bool
	// WorkflowName is what the draft's workflow is called now, or was last.
	WorkflowName string
	// Whose names the turn that made an item's newest entry of history; empty for
	// a person, and when history has none.
	Whose func(Item) string
}

// Undo is what an undo does.
type Undo struct {
	Report api.UndoReport
	// Restores are the items that the operator gives their earlier content.
	Restores []Restore
}

// Restore gives an item the content that it had ahead of the turn.
type Restore struct {
	Item Item
	// Before is that content, nil when there was none.
	Before *api.ItemContent
}

// PlanUndo decides item by item: what somebody edited since stays, what the
// operator wrote goes back, and what a client wrote is the client's to take back.
func PlanUndo(u Undoing) Undo {
	plan := Undo{}
	for i := range u.Turn.Status.ItemWrites {
		if write := &u.Turn.Status.ItemWrites[i]; write.Type != api.ItemWorkflow && reachedDraft(u.Turn, write) {
			plan.addItem(u, write)
		}
	}
	if wroteWorkflow(u.Turn) {
		plan.addWorkflow(u)
	}
	plan.sort()
	return plan
}

// reachedDraft tells whether a write got into the draft by somebody's hand.
func reachedDraft(turn *api.Turn, write *api.ItemWrite) bool {
	return write.State == api.ItemWritten || write.Staged && turn.Status.State == api.TurnApplied
}

func (u *Undo) addItem(undoing Undoing, write *api.ItemWrite) {
	item := ItemOf(write)
	report := &u.Report
	switch {
	case undoing.Whose(item) != undoing.Turn.Name:
		report.Skipped = append(report.Skipped, item.String())
		return
	case write.State != api.ItemWritten:
		report.ForClient = append(report.ForClient, item.String())
		return
	case write.Before == nil:
		report.Removed = append(report.Removed, item.String())
	default:
		report.Restored = append(report.Restored, item.String())
	}
	u.Restores = append(u.Restores, Restore{Item: item, Before: write.Before})
}

// wroteWorkflow tells whether the turn changed the draft's workflow.
func wroteWorkflow(turn *api.Turn) bool {
	write := FindWrite(&turn.Status, Item{Type: api.ItemWorkflow})
	isResult := turn.Status.State == api.TurnApplied && turn.Status.ResultRevision != ""
	return isResult || write != nil && reachedDraft(turn, write)
}

func (u *Undo) addWorkflow(undoing Undoing) {
	report, turn := &u.Report, undoing.Turn
	item := Item{Type: api.ItemWorkflow, Name: undoing.WorkflowName}
	before := workflowBefore(turn)
	if before != nil {
		report.WorkflowBefore = &api.ContentRef{Digest: before.Digest}
	}
	if undoing.Whose(item) != turn.Name {
		report.Skipped = append(report.Skipped, item.String())
		return
	}
	report.WorkflowRestorable = true
	if undoing.IsAutomatic || turn.Status.State == api.TurnApplied && turn.Spec.Resolution == api.ResolutionAccepted {
		report.WorkflowRestored = true
		u.Restores = append(u.Restores, Restore{Item: item, Before: before})
	}
}

// workflowBefore is the workflow ahead of the turn, nil when it had none.
func workflowBefore(turn *api.Turn) *api.ItemContent {
	status := &turn.Status
	if status.Base == nil || FindWrite(status, Item{Type: api.ItemWorkflow}) != nil {
		return nil
	}
	return &api.ItemContent{Revision: status.BaseRevision, Digest: status.Base.Digest}
}

// Skip takes an item out of the plan.
func (u *Undo) Skip(item Item) {
	name := item.String()
	isItem := func(n string) bool { return n == name }
	u.Report.Restored = slices.DeleteFunc(u.Report.Restored, isItem)
	u.Report.Removed = slices.DeleteFunc(u.Report.Removed, isItem)
	u.Restores = slices.DeleteFunc(u.Restores, func(r Restore) bool { return r.Item == item })
	if item.Type == api.ItemWorkflow {
		u.Report.WorkflowRestorable, u.Report.WorkflowRestored = false, false
	}
	u.Report.Skipped = append(u.Report.Skipped, name)
	u.sort()
}

func (u *Undo) sort() {
	for _, list := range [][]string{u.Report.Restored, u.Report.Removed, u.Report.Skipped, u.Report.ForClient} {
		slices.Sort(list)
	}
}

// IsVain tells whether a report says that nothing was taken back: everything
// was edited since, or there was nothing.
func IsVain(report *api.UndoReport) bool {
	return len(report.Restored)+len(report.Removed)+len(report.ForClient) == 0 && !report.WorkflowRestorable
}

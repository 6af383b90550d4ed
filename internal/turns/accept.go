package turns

import (
	"fmt"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// HasResult tells whether a finished turn leaves something to decide on.
func HasResult(status *api.TurnStatus) bool {
	return len(status.ChangeSets) > 0 || len(Staged(status)) > 0
}

// Acceptance is what is left to do for a turn's result to be in the draft.
type Acceptance struct {
	// Mismatch tells what of the draft is no longer as the turn knew it; empty:
	// the result still fits.
	Mismatch string
	// Workflow is true when the workflow has to be written.
	Workflow bool
	// Items are the staged items that have to be written.
	Items []*api.ItemWrite
}

// IsDone tells whether the draft has all of the result, by whatever hand.
func (a *Acceptance) IsDone() bool {
	return !a.Workflow && len(a.Items) == 0
}

// PlanAccept compares the draft with what the turn was based on. What already is
// as the turn wants it needs no base.
func PlanAccept(comp *api.Composition, turn *api.Turn) (Acceptance, error) {
	status := &turn.Status
	plan := Acceptance{}
	live, err := LiveRevision(comp, Item{Type: api.ItemWorkflow})
	if err != nil {
		return plan, err
	}
	if wants := status.ResultRevision; wants != "" && live != wants {
		plan.Workflow = true
		plan.expect(Item{Type: api.ItemWorkflow}, live, workflowBase(status))
	}
	for _, write := range Staged(status) {
		if write.Type == api.ItemWorkflow {
			continue // the result has it
		}
		if err := plan.addItem(comp, write); err != nil {
			return plan, err
		}
	}
	return plan, nil
}

// workflowBase is the live revision that the result counts on; empty: none. A
// workflow that waits in the turn needs that there is still none.
func workflowBase(status *api.TurnStatus) string {
	if write := FindWrite(status, Item{Type: api.ItemWorkflow}); write != nil && write.Staged {
		return ""
	}
	return status.BaseRevision
}

func (a *Acceptance) addItem(comp *api.Composition, write *api.ItemWrite) error {
	item := ItemOf(write)
	live, err := LiveRevision(comp, item)
	if err != nil || live == RevisionOf(write.After) {
		return err
	}
	a.Items = append(a.Items, write)
	a.expect(item, live, RevisionOf(write.Before))
	return nil
}

// expect notes the first item that somebody changed.
func (a *Acceptance) expect(item Item, live, base string) {
	if live == base || a.Mismatch != "" {
		return
	}
	what := item.String()
	if item.Type == api.ItemWorkflow {
		what = string(item.Type)
	}
	a.Mismatch = fmt.Sprintf("the live revision of the %s is %s, not %s, which the turn was based on", what, shown(live), shown(base))
}

func shown(revision string) string {
	if revision == "" {
		return "(none)"
	}
	return revision
}

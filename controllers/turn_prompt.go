package controllers

import (
	"cmp"
	"context"
	"slices"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/prompt"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// prompt is what the agent is told; it depends on the history up to the claim
// only, so that a repeated start says the same.
func (r *TurnReconciler) prompt(ctx context.Context, turn *api.Turn, comp *api.Composition) (string, error) {
	claim := comp.Status.Claim
	told := prompt.Turn{WorkflowRevision: claim.BaseRevision, First: claim.SinceGeneration == 0}
	if turn.Spec.Selection != nil {
		told.Selection = prompt.Selection{Nodes: turn.Spec.Selection.Nodes, Edges: turn.Spec.Selection.Edges}
	}
	if told.First {
		return prompt.Of(told, turn.Spec.Message), nil
	}
	records, err := listSnapshots(ctx, r.Direct, comp)
	if err != nil {
		return "", err
	}
	base, err := turns.Base(ctx, r.content(), turn)
	if err != nil {
		return "", err
	}
	told.Edits, err = editsBetween(records, claim.SinceGeneration, comp.Status.LastTurnGeneration, base)
	return prompt.Of(told, turn.Spec.Message), err
}

// itemKey names an item.
type itemKey struct {
	kind api.ItemType
	name string
}

// editsBetween lists what people changed after one generation, up to and
// including another, in the order of a composition's items. The document is the
// workflow as it is then.
func editsBetween(records []snapshotRecord, since, until int64, now changeset.Document) ([]prompt.Edit, error) {
	before := newestAt(records, since)
	earlier, err := turns.Document(before.data.Workflow)
	if err != nil {
		return nil, err
	}
	var edits []prompt.Edit
	for _, key := range editedBetween(records, since, until) {
		edit := prompt.Edit{Type: string(key.kind), Name: key.name}
		if key.kind == api.ItemWorkflow && before.name != "" {
			edit.Diff = changeset.Diff(earlier, now).String()
		}
		edits = append(edits, edit)
	}
	return edits, nil
}

// editedBetween are the items with an entry by a user after one generation, up
// to another.
func editedBetween(records []snapshotRecord, since, until int64) []itemKey {
	latest := newestAt(records, until).data
	var keys []itemKey
	for _, record := range records {
		if record.data.Generation <= since || record.data.Generation > until {
			continue
		}
		for _, item := range record.data.Items {
			// Under its former name a renamed workflow is no item of its own.
			isRenamed := item.Type == api.ItemWorkflow && latest.workflowRevision() != "" && !latest.has(item.Type, item.Name)
			if item.Author == api.AuthorUser && item.Generation > since && !isRenamed {
				keys = append(keys, itemKey{item.Type, item.Name})
			}
		}
	}
	slices.SortFunc(keys, func(a, b itemKey) int {
		return cmp.Or(cmp.Compare(rank(a.kind), rank(b.kind)), cmp.Compare(a.name, b.name))
	})
	return slices.Compact(keys)
}

// rank is where items of a type stand in a composition's status.
func rank(kind api.ItemType) int {
	return slices.Index([]api.ItemType{api.ItemWorkflow, api.ItemActionType, api.ItemTool}, kind)
}

package controllers

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/prompt"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// start claims the composition for the turn, then makes the turn Working. A
// fresh operator may repeat any part of it: the claim names the turn.
func (r *TurnReconciler) start(ctx context.Context, turn *api.Turn) (step, error) {
	if turn.Spec.CompositionRef == nil {
		refuse(turn, "turns of free-standing sessions are not served yet")
		return step{}, nil
	}
	comp, err := r.readComposition(ctx, turn)
	if err != nil {
		return step{}, err
	}
	if comp == nil {
		refuse(turn, fmt.Sprintf("composition %q does not exist", turn.Spec.CompositionRef.Name))
		return step{}, nil
	}
	if turn.Spec.Interrupt {
		fail(turn, "The turn was interrupted before it started", r.now())
		return step{comp: comp}, nil
	}
	held, err := r.claim(ctx, turn, comp)
	if err != nil || !held {
		return step{comp: comp}, err
	}
	return step{comp: comp}, r.begin(ctx, turn, comp)
}

// claim tells whether the turn holds the composition, after trying to get it.
func (r *TurnReconciler) claim(ctx context.Context, turn *api.Turn, comp *api.Composition) (bool, error) {
	if claim := comp.Status.Claim; claim != nil {
		return r.claimed(ctx, turn, claim)
	}
	if !isHistoryCurrent(comp) {
		turn.Status.State = api.TurnPending
		return false, nil
	}
	if err := r.own(ctx, turn, comp); err != nil {
		return false, err
	}
	base, err := r.storeBase(ctx, turn, comp)
	if err != nil {
		return false, err
	}
	now := metav1.NewMicroTime(r.Clock.Now())
	status := &comp.Status
	status.Claim = &api.Claim{
		Turn: turn.Name, UID: string(turn.UID), BaseRevision: status.WorkflowRevision, SinceGeneration: status.LastTurnGeneration,
	}
	if base != nil {
		status.Claim.BaseDigest = base.Digest
	}
	status.TurnState, status.CurrentTurn = api.TurnStateWorking, turn.Name
	status.LastTurnStartedAt, status.LastTurnGeneration = &now, comp.Generation
	if err := r.Direct.Status().Update(ctx, comp); err != nil {
		return false, fmt.Errorf("claim composition: %w", err)
	}
	return true, nil
}

// claimed looks at a claim that is there: the turn's own, that of a turn that
// works, or one that is about to be released.
func (r *TurnReconciler) claimed(ctx context.Context, turn *api.Turn, claim *api.Claim) (bool, error) {
	if claim.UID == string(turn.UID) {
		return true, nil
	}
	holder, err := readTurn(ctx, r.Direct, turn.Namespace, claim.Turn)
	if err != nil {
		return false, err
	}
	if holder != nil && string(holder.UID) == claim.UID && !turns.IsOver(holder.Status.State) {
		refuse(turn, "An AI turn is already running: "+holder.Name)
		return false, nil
	}
	turn.Status.State = api.TurnPending
	return false, nil
}

// own makes the turn go with its composition.
func (r *TurnReconciler) own(ctx context.Context, turn *api.Turn, comp *api.Composition) error {
	if metav1.IsControlledBy(turn, comp) {
		return nil
	}
	before := turn.DeepCopy()
	turn.OwnerReferences = append(turn.OwnerReferences, *metav1.NewControllerRef(comp, api.GroupVersion.WithKind("Composition")))
	// The patch answers with the stored object; the step's status is kept aside.
	stored := turn.DeepCopy()
	if err := r.Direct.Patch(ctx, stored, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("own turn: %w", err)
	}
	turn.ObjectMeta = stored.ObjectMeta
	return nil
}

func (r *TurnReconciler) storeBase(ctx context.Context, turn *api.Turn, comp *api.Composition) (*api.ContentRef, error) {
	doc, err := turns.Document(comp.Spec.Workflow)
	if err != nil || doc == nil {
		return nil, err
	}
	data, err := jsonvalue.Canonical(doc)
	if err != nil {
		return nil, fmt.Errorf("encode base workflow: %w", err)
	}
	ref, err := r.content().Put(ctx, turn, data)
	if err != nil {
		return nil, err
	}
	return &ref, nil
}

// begin records what the claim found and stores the prompt.
func (r *TurnReconciler) begin(ctx context.Context, turn *api.Turn, comp *api.Composition) error {
	claim := comp.Status.Claim
	status := &turn.Status
	if claim.BaseDigest != "" {
		data, err := r.content().Get(ctx, turn.Namespace, claim.BaseDigest)
		if err != nil {
			return err
		}
		status.Base = &api.ContentRef{Digest: claim.BaseDigest, Size: int64(len(data))}
	}
	text, err := r.prompt(ctx, turn, comp)
	if err != nil {
		return err
	}
	ref, err := r.content().Put(ctx, turn, []byte(text))
	if err != nil {
		return err
	}
	status.State, status.Prompt, status.StartedAt = api.TurnWorking, &ref, r.now()
	status.BaseRevision, status.WorkingRevision = claim.BaseRevision, claim.BaseRevision
	return nil
}

// prompt is what the agent is told; it depends on the history up to the claim
// only, so that a repeated start says the same.
func (r *TurnReconciler) prompt(ctx context.Context, turn *api.Turn, comp *api.Composition) (string, error) {
	records, err := listSnapshots(ctx, r.Direct, comp)
	if err != nil {
		return "", err
	}
	base, err := turns.Base(ctx, r.content(), turn)
	if err != nil {
		return "", err
	}
	told := prompt.Turn{WorkflowRevision: comp.Status.Claim.BaseRevision, First: comp.Status.Claim.SinceGeneration == 0}
	if turn.Spec.Selection != nil {
		told.Selection = prompt.Selection{Nodes: turn.Spec.Selection.Nodes, Edges: turn.Spec.Selection.Edges}
	}
	if !told.First {
		told.Edits, err = editsSince(records, comp.Status.Claim.SinceGeneration, comp.Status.LastTurnGeneration, base)
	}
	return prompt.Of(told, turn.Spec.Message), err
}

// editsSince lists what people changed after the generation of the turn before,
// up to the present turn's.
func editsSince(records []snapshotRecord, since, until int64, base changeset.Document) ([]prompt.Edit, error) {
	var newest, before *snapshotRecord
	for i := range records {
		if records[i].data.Generation <= until {
			newest = &records[i]
		}
		if records[i].data.Generation <= since {
			before = &records[i]
		}
	}
	if newest == nil {
		return nil, nil
	}
	var edits []prompt.Edit
	for _, item := range newest.data.Items {
		if item.Author != api.AuthorUser || item.Generation <= since {
			continue
		}
		edit := prompt.Edit{Type: string(item.Type), Name: item.Name}
		if item.Type == api.ItemWorkflow && before != nil {
			earlier, err := turns.Document(before.data.Workflow)
			if err != nil {
				return nil, err
			}
			edit.Diff = changeset.Diff(earlier, base).String()
		}
		edits = append(edits, edit)
	}
	return edits, nil
}

// isHistoryCurrent tells whether what the draft holds has its snapshot.
func isHistoryCurrent(comp *api.Composition) bool {
	return comp.Status.ObservedGeneration == comp.Generation && comp.Status.Snapshot != ""
}

func refuse(turn *api.Turn, detail string) {
	turn.Status.State, turn.Status.Detail = api.TurnRefused, detail
}

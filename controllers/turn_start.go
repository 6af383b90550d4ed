package controllers

import (
	"cmp"
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/turns"
)

const detailInterruptedBefore = "The turn was interrupted before it started"

// start claims the composition for the turn, then makes the turn Working. A
// fresh operator may repeat any part of it: the claim names the turn.
func (r *TurnReconciler) start(ctx context.Context, turn *api.Turn) (step, error) {
	if turn.Spec.CompositionRef == nil {
		return r.startFree(ctx, turn)
	}
	comp, err := r.readComposition(ctx, turn)
	if err != nil {
		return step{}, err
	}
	if comp == nil {
		refuse(turn, fmt.Sprintf("composition %q does not exist", turn.Spec.CompositionRef.Name))
		return step{}, nil
	}
	done := step{comp: comp}
	if err := r.own(ctx, turn, comp, compositionKind); err != nil {
		return done, err
	}
	turn.Status.ItemPolicy = cmp.Or(comp.Spec.Agent.ItemPolicy, api.ItemDirect)
	if turn.Spec.Interrupt {
		fail(turn, detailInterruptedBefore, r.now())
		return done, nil
	}
	held, err := r.claim(ctx, turn, comp)
	if err != nil || !held {
		return done, err
	}
	err = r.begin(ctx, turn, comp)
	if isBeyondRepair(err) {
		failAgent(turn, "The turn could not be started: "+err.Error(), r.now())
		return done, nil
	}
	return done, err
}

// claim tells whether the turn holds the composition, after trying to get it.
// A turn that has to wait is woken by the composition's next status.
func (r *TurnReconciler) claim(ctx context.Context, turn *api.Turn, comp *api.Composition) (bool, error) {
	if claim := comp.Status.Claim; claim != nil {
		return r.claimed(ctx, turn, claim)
	}
	if !isHistoryCurrent(comp) {
		return false, nil
	}
	if fresh, err := isFresh(ctx, r.Direct, turn); err != nil || !fresh {
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
	status.TurnCount++
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
	if isHeld(claim, holder) {
		refuse(turn, "An AI turn is already running: "+holder.Name)
	}
	return false, nil
}

// own makes the turn go with what it is for. It is a plain owner: somebody
// else may be the turn's controller.
func (r *TurnReconciler) own(ctx context.Context, turn *api.Turn, owner client.Object, kind string) error {
	if isOwnedBy(turn, owner.GetUID()) {
		return nil
	}
	// The patch answers with the stored object; the step's status is kept aside.
	stored := turn.DeepCopy()
	stored.OwnerReferences = append(stored.OwnerReferences, metav1.OwnerReference{
		APIVersion: api.GroupVersion.String(), Kind: kind, Name: owner.GetName(), UID: owner.GetUID(),
	})
	if err := r.Direct.Patch(ctx, stored, client.MergeFromWithOptions(turn.DeepCopy(), client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("own turn: %w", err)
	}
	turn.ObjectMeta = stored.ObjectMeta
	return nil
}

func (r *TurnReconciler) storeBase(ctx context.Context, turn *api.Turn, comp *api.Composition) (*api.ContentRef, error) {
	live, err := turns.Live(comp, turns.Item{Type: api.ItemWorkflow})
	if err != nil || live == nil {
		return nil, err
	}
	ref, err := r.content().Put(ctx, turn, live.Data)
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
	status.Number = comp.Status.TurnCount
	return nil
}

func refuse(turn *api.Turn, detail string) {
	turn.Status.State, turn.Status.Detail = api.TurnRefused, truncate(detail, maxDetail)
}

package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	live, err := liveRevision(comp)
	if err != nil {
		return done, err
	}
	switch resolution {
	case api.ResolutionRejected:
		settle(turn, api.TurnRejected, string(api.ResolutionRejected), "")
	case api.ResolutionStale:
		settle(turn, api.TurnStale, string(api.ResolutionStale), "the client could not apply the change set")
	case api.ResolutionApplied:
		settle(turn, api.TurnApplied, verdict(live == turn.Status.ResultRevision), "")
	case api.ResolutionAccepted:
		return done, r.accept(ctx, turn, comp, live)
	default:
		return done, r.observe(ctx, turn, comp, live)
	}
	return done, nil
}

// observe settles a turn that nobody resolved: its result is live by whatever
// hand, or a newer turn took its place.
func (r *TurnReconciler) observe(ctx context.Context, turn *api.Turn, comp *api.Composition, live string) error {
	if live == turn.Status.ResultRevision {
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

// accept writes the turn's result into the composition if the draft is still
// the one that the turn was based on.
func (r *TurnReconciler) accept(ctx context.Context, turn *api.Turn, comp *api.Composition, live string) error {
	written, err := r.isWritten(ctx, turn, comp, live)
	switch {
	case err != nil:
		return err
	case written:
		settle(turn, api.TurnApplied, string(api.ResolutionAccepted), "")
		return nil
	case live != turn.Status.BaseRevision:
		settle(turn, api.TurnStale, api.ReasonBaseChanged, fmt.Sprintf("the live revision %q is not the base revision %q", live, turn.Status.BaseRevision))
		return nil
	case !isHistoryCurrent(comp):
		// What is about to be replaced must have its snapshot first; the status
		// that says so wakes this turn.
		return nil
	}
	result, rejection, err := r.result(ctx, turn, comp)
	switch {
	case isBeyondRepair(err):
		fail(turn, "the change set is lost: "+err.Error(), turn.Status.FinishedAt)
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
	return r.write(ctx, turn, comp, result)
}

// isWritten tells whether the turn's result is in the draft, or was before
// somebody edited it: the receipt of an earlier write may be lost.
func (r *TurnReconciler) isWritten(ctx context.Context, turn *api.Turn, comp *api.Composition, live string) (bool, error) {
	if live == turn.Status.ResultRevision {
		return true, nil
	}
	if comp.Annotations[api.AnnotationTurn] != turn.Name {
		return false, nil
	}
	if live != turn.Status.BaseRevision {
		return true, nil
	}
	// Either somebody put the annotation there and nothing else, or the result
	// was written and taken back.
	records, err := listSnapshots(ctx, r.Direct, comp)
	return isRecorded(records, turn.Name), err
}

// result applies the combined change set to the live workflow, checked.
func (r *TurnReconciler) result(ctx context.Context, turn *api.Turn, comp *api.Composition) (changeset.Document, *changeset.Rejection, error) {
	doc, err := turns.Document(comp.Spec.Workflow)
	if err != nil {
		return nil, nil, err
	}
	combined, ok, err := turns.Combined(ctx, r.content(), turn)
	if err != nil {
		return nil, nil, err
	}
	if !ok {
		return nil, nil, fmt.Errorf("%w: the turn has no combined change set", turns.ErrDamaged)
	}
	result, _, rejection := changeset.ApplyChecked(doc, map[string]any{
		"id": combined.ID, "baseRevision": combined.BaseRevision, "author": combined.Author, "summary": combined.Summary, "ops": combined.Ops,
	})
	return result, rejection, nil
}

// patchOp is one operation of a JSON patch (RFC 6902).
type patchOp struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// write replaces the workflow and nothing else, under the resource version it
// was computed from: a typed update could reword the rest of the draft.
func (r *TurnReconciler) write(ctx context.Context, turn *api.Turn, comp *api.Composition, result changeset.Document) error {
	annotations := maps.Clone(comp.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[api.AnnotationBaseRevision] = turn.Status.BaseRevision
	annotations[api.AnnotationTurn] = turn.Name
	annotations[api.AnnotationEditedBy] = decidedBy(turn)
	patch, err := json.Marshal([]patchOp{
		{Op: "replace", Path: "/metadata/resourceVersion", Value: comp.ResourceVersion},
		{Op: "add", Path: "/metadata/annotations", Value: annotations},
		{Op: "add", Path: "/spec/workflow", Value: result},
	})
	if err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	target := &api.Composition{}
	target.Name, target.Namespace = comp.Name, comp.Namespace
	err = r.Direct.Patch(ctx, target, client.RawPatch(types.JSONPatchType, patch))
	switch {
	case err == nil:
		settle(turn, api.TurnApplied, string(api.ResolutionAccepted), "")
	case apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsRequestEntityTooLargeError(err):
		fail(turn, "the result was refused: "+err.Error(), turn.Status.FinishedAt)
	default:
		// Conflicts included: whoever was faster decides what a fresh look finds.
		return fmt.Errorf("apply turn: %w", err)
	}
	return nil
}

// decidedBy is the user whose decision the write carries out.
func decidedBy(turn *api.Turn) string {
	if user := turn.Annotations[api.AnnotationResolvedBy]; user != "" {
		return user
	}
	return turn.Annotations[api.AnnotationRequestedBy]
}

func liveRevision(comp *api.Composition) (string, error) {
	doc, err := turns.Document(comp.Spec.Workflow)
	if err != nil || doc == nil {
		return "", err
	}
	revision, err := changeset.Revision(doc)
	if err != nil {
		return "", fmt.Errorf("take live revision: %w", err)
	}
	return revision, nil
}

func verdict(isLive bool) string {
	if isLive {
		return api.ReasonVerified
	}
	return api.ReasonDeclared
}

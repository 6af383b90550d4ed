package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/item"
	"github.com/apitomy/axiom-operator/internal/turns"
)

const (
	failedNoticePrefix = "The AI turn ended with an error: "
	failedNoticeDirect = " Workflow changes from this turn were discarded; action type and tool changes were kept (use Undo AI turn to revert them)."
	failedNoticeStaged = " All changes from this turn were discarded."
	detailSessionEnded = "The agent session ended"

	maxDetail = 4096
	maxDiff   = 65536
)

// finish records what came of the agent's work: a combined change set that
// waits for a person, nothing to resolve, or a failure.
func (r *TurnReconciler) finish(ctx context.Context, turn *api.Turn, comp *api.Composition, prompt *api.SessionPrompt) error {
	result := prompt.Result
	if result == nil {
		result = &api.PromptResult{Outcome: api.OutcomeFailed}
	}
	if settled, err := r.settleItems(ctx, turn, comp); err != nil || !settled {
		return err
	}
	status := &turn.Status
	status.Reply, status.ReplyRef, status.Usage = result.Reply, result.ReplyRef, result.Usage
	if err := r.keepReply(ctx, turn); err != nil {
		return err
	}
	switch {
	case result.Outcome == api.OutcomeFailed:
		failAgent(turn, result.Detail, r.now())
		return nil
	case result.Outcome == api.OutcomeInterrupted && prompt.Cancel && !turn.Spec.Interrupt:
		// Nobody but the operator asked for the stop, because time was up.
		failAgent(turn, detailTimedOut, r.now())
		return nil
	}
	err := r.combine(ctx, turn)
	if isBeyondRepair(err) {
		failAgent(turn, "The turn's change sets cannot be combined: "+err.Error(), r.now())
		return nil
	}
	return err
}

// keepReply makes a long reply the turn's too: it was stored for the session,
// which may go sooner. A reply that is lost is no reason to lose the turn.
func (r *TurnReconciler) keepReply(ctx context.Context, turn *api.Turn) error {
	ref := turn.Status.ReplyRef
	if ref == nil {
		return nil
	}
	err := r.content().Share(ctx, turn, ref.Digest)
	if isBeyondRepair(err) {
		turn.Status.ReplyRef = nil
		return nil
	}
	return err
}

func (r *TurnReconciler) combine(ctx context.Context, turn *api.Turn) error {
	status := &turn.Status
	sets, err := turns.ChangeSets(ctx, r.content(), turn)
	if err != nil {
		return err
	}
	combined, hasOps := changeset.Combine(turn.Name, status.BaseRevision, api.AuthorWorkbench, sets)
	switch {
	case hasOps:
		if err := r.publish(ctx, turn, combined); err != nil {
			return err
		}
	case len(turns.Staged(status)) == 0:
		status.State, status.FinishedAt = api.TurnCompleted, r.now()
		return nil
	default:
		if err := r.publishStaged(ctx, turn); err != nil {
			return err
		}
	}
	status.State, status.FinishedAt = api.TurnAwaitingResolution, r.now()
	return nil
}

// publishStaged shows what waits when no change set does: a workflow that the
// turn created, or action types and tools alone.
func (r *TurnReconciler) publishStaged(ctx context.Context, turn *api.Turn) error {
	status := &turn.Status
	if write := turns.FindWrite(status, turns.Item{Type: api.ItemWorkflow}); write == nil || !write.Staged {
		return nil
	}
	doc, err := turns.Base(ctx, r.content(), turn)
	if err != nil {
		return err
	}
	status.ResultRevision = status.BaseRevision
	status.Diff = truncate(changeset.Diff(nil, doc).String(), maxDiff)
	status.Problems = r.problems(doc)
	return nil
}

// publish verifies the combined change set against the turn's base before
// anybody may decide on it.
func (r *TurnReconciler) publish(ctx context.Context, turn *api.Turn, combined changeset.ChangeSet) error {
	base, err := turns.Base(ctx, r.content(), turn)
	if err != nil {
		return err
	}
	result, rejection := changeset.Apply(base, combined.Ops)
	if rejection != nil {
		return fmt.Errorf("%w: the combined change set does not apply: %s: %s", turns.ErrDamaged, rejection.Code, rejection.Reason)
	}
	revision, err := changeset.Revision(result)
	if err != nil {
		return fmt.Errorf("take result revision: %w", err)
	}
	status := &turn.Status
	if revision != status.WorkingRevision {
		return fmt.Errorf("%w: the combined change set gives %s, not the working revision %s", turns.ErrDamaged, revision, status.WorkingRevision)
	}
	if err := r.keepCombined(ctx, turn, combined); err != nil {
		return err
	}
	status.Ops = int32(min(len(combined.Ops), turns.MaxOps)) //nolint:gosec // bounded by the line itself
	status.ResultRevision = revision
	status.Diff = truncate(changeset.Diff(base, result).String(), maxDiff)
	status.Problems = r.problems(result)
	return nil
}

func (r *TurnReconciler) problems(doc changeset.Document) []api.Problem {
	problems := item.WorkflowProblems(doc, r.Expressions)
	return problems[:min(len(problems), maxProblems)]
}

func (r *TurnReconciler) keepCombined(ctx context.Context, turn *api.Turn, combined changeset.ChangeSet) error {
	data, err := json.Marshal(combined)
	if err != nil {
		return fmt.Errorf("encode combined change set: %w", err)
	}
	if len(data) <= content.MaxInline {
		turn.Status.ChangeSet = &runtime.RawExtension{Raw: data}
		return nil
	}
	ref, err := r.content().Put(ctx, turn, data)
	if err != nil {
		return err
	}
	turn.Status.ChangeSetRef = &ref
	return nil
}

// isBeyondRepair tells whether what a turn recorded is lost or was changed, so
// that no repetition helps.
func isBeyondRepair(err error) bool {
	return errors.Is(err, turns.ErrDamaged) || errors.Is(err, content.ErrDamaged) || errors.Is(err, content.ErrGone) || apierrors.IsNotFound(err)
}

// failAgent ends a turn whose agent failed, and says to the person what became
// of its changes.
func failAgent(turn *api.Turn, detail string, now *metav1.Time) {
	if detail == "" {
		detail = detailSessionEnded
	}
	fail(turn, detail, now)
	suffix := failedNoticeSuffix(turn)
	told := truncate(detail, maxDetail-len(failedNoticePrefix)-len(suffix))
	turn.Status.Notices = append(turn.Status.Notices, failedNoticePrefix+told+suffix)
}

// failedNoticeSuffix tells what became of a failed turn's changes. What it wrote
// into the draft is there, whatever the policy is by now.
func failedNoticeSuffix(turn *api.Turn) string {
	switch {
	case turn.Spec.CompositionRef == nil:
		return ""
	case turn.Status.ItemPolicy == api.ItemStaged:
		return failedNoticeStaged
	}
	return failedNoticeDirect
}

func fail(turn *api.Turn, detail string, now *metav1.Time) {
	turn.Status.State, turn.Status.Detail, turn.Status.FinishedAt = api.TurnFailed, truncate(detail, maxDetail), now
}

package controllers

import (
	"context"
	"fmt"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

const (
	// staleRetryPrompt is the message of a turn that repeats a stale one.
	staleRetryPrompt = "Your workflow changes from the last turn could not be applied because the user changed the workflow while you were working. " +
		"Call get_composition to see the current workflow, then resubmit the workflow changes that still make sense."
	// secondStaleNotice tells a person that the operator gives up.
	secondStaleNotice = "The workflow changed again before my changes could be applied, so I stopped. Ask me to try again when you are ready."

	retrySuffix = "-retry"
)

// wantsFollowUp tells whether a stale turn is still to be repeated or given up.
// One that a newer turn superseded is neither.
func wantsFollowUp(turn *api.Turn) bool {
	status := &turn.Status
	if status.State != api.TurnStale || status.Retry != "" || slices.Contains(status.Notices, secondStaleNotice) {
		return false
	}
	resolved := apimeta.FindStatusCondition(status.Conditions, api.ConditionResolved)
	return resolved != nil && resolved.Reason != api.ReasonSuperseded
}

// followUp repeats a stale turn once, and tells the person when it was the
// second time, or when somebody else has the agent.
func (r *TurnReconciler) followUp(ctx context.Context, turn *api.Turn) (step, error) {
	comp, err := r.readComposition(ctx, turn)
	if err != nil || comp == nil {
		return step{}, err
	}
	done := step{comp: comp}
	retry, err := readTurn(ctx, r.Direct, turn.Namespace, turn.Name+retrySuffix)
	if err != nil {
		return done, err
	}
	if isGivenUp(turn, retry, comp) {
		turn.Status.Notices = append(turn.Status.Notices, secondStaleNotice)
		return done, nil
	}
	if retry == nil {
		if fresh, err := isFresh(ctx, r.Direct, turn); err != nil || !fresh {
			return done, err
		}
		// Should somebody else be faster with the name, the next look finds out.
		if err := r.Direct.Create(ctx, retryFor(turn, comp)); err != nil {
			return done, fmt.Errorf("create retry of turn %s: %w", turn.Name, err)
		}
	}
	turn.Status.Retry = turn.Name + retrySuffix
	return done, nil
}

// isGivenUp tells whether a stale turn is not repeated: it is a repetition
// itself, somebody else's turn has the name, or one has the agent. A retry that
// exists may well be the one that has it.
func isGivenUp(turn, retry *api.Turn, comp *api.Composition) bool {
	if retry != nil && !isRetryOf(retry, turn) {
		return true
	}
	return turn.Spec.RetryOf != "" || retry == nil && comp.Status.Claim != nil
}

func isRetryOf(retry, turn *api.Turn) bool {
	return retry.Spec.RetryOf == turn.Name && !retry.CreationTimestamp.Before(&turn.CreationTimestamp)
}

// retryFor asks again on behalf of whoever asked first.
func retryFor(turn *api.Turn, comp *api.Composition) *api.Turn {
	return &api.Turn{
		ObjectMeta: metav1.ObjectMeta{
			Name: turn.Name + retrySuffix, Namespace: turn.Namespace,
			Annotations: map[string]string{api.AnnotationRequestedBy: turn.Annotations[api.AnnotationRequestedBy]},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: api.GroupVersion.String(), Kind: compositionKind, Name: comp.Name, UID: comp.UID,
			}},
		},
		Spec: api.TurnSpec{CompositionRef: &api.LocalRef{Name: comp.Name}, Message: staleRetryPrompt, RetryOf: turn.Name},
	}
}

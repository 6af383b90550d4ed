package v1alpha1

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/secretscan"
)

// judgeCheckpoint asks, of an answer that is fine by itself, whether the
// supervised run still waits for it, and whether it may be kept.
func (h taskDoors) judgeCheckpoint(ctx context.Context, c taskChange) error {
	if err := h.judgeAwaited(ctx, c); err != nil {
		return err
	}
	path := field.NewPath("status")
	if answer := c.after[memberAnswer]; answer != nil {
		return c.invalid(validateNoSecret(h.scanner, answer, path.Child(memberAnswer)))
	}
	return c.invalid(validateNoSecret(h.scanner, c.after[memberFailure], path.Child(memberFailure)))
}

// judgeAwaited refuses what no run waits for any more, with a read that no cache
// delays.
func (h taskDoors) judgeAwaited(ctx context.Context, c taskChange) error {
	asker := c.task.Spec.RunRef
	if asker == nil {
		return c.conflict("the task names no run that asks")
	}
	run := &api.WorkflowRun{}
	err := h.live.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: asker.Name}, run)
	switch {
	case apierrors.IsNotFound(err), err == nil && string(run.UID) != asker.UID:
		return c.conflict("the run that asks is gone")
	case err != nil:
		return fault("read run %s: %w", asker.Name, err)
	case run.Status.Phase.IsTerminal():
		return c.conflict("run %s is %s", run.Name, run.Status.Phase)
	case run.DeletionTimestamp != nil:
		return c.conflict("run %s is being deleted", run.Name)
	case run.Spec.Cancel || apimeta.IsStatusConditionTrue(run.Status.Conditions, api.ConditionCancelling):
		return c.conflict("run %s is being cancelled", run.Name)
	case !isAwaited(run, c.task):
		return c.conflict("run %s does not wait for this answer", run.Name)
	}
	return nil
}

// isAwaited tells whether a run has the task's activation open, with this task
// and this question.
func isAwaited(run *api.WorkflowRun, task *api.HumanTask) bool {
	return slices.ContainsFunc(run.Status.Intents, func(intent api.RunIntent) bool {
		return intent.Activation == task.Spec.RunRef.Activation && intent.Task == task.Name && intent.Fingerprint == task.Spec.Fingerprint
	})
}

// validateNoSecret refuses a value with a secret in it by rule and place. A
// scanner that cannot tell finds one.
func validateNoSecret(scanner *secretscan.Scanner, value any, path *field.Path) field.ErrorList {
	if hit := scanner.Value(value); hit != nil {
		return hidden(path, hit.Error())
	}
	return nil
}

package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/humantask"
)

// runLeftovers are children that no open activation needs any more.
type runLeftovers struct {
	// tasks that are open and that nobody needs answered.
	tasks []*api.HumanTask
	// attempts that are over, by the name of their pod.
	attempts []string
	// agents of attempts that are over.
	agents []*api.AgentSession
}

func (l runLeftovers) none() bool {
	return len(l.tasks)+len(l.attempts)+len(l.agents) == 0
}

// leftovers of a run: whatever is not named by an open activation.
func leftovers(run *api.WorkflowRun, children runChildren) runLeftovers {
	needed := map[string]bool{}
	if run.Status.Instance != nil && !isRunFinished(run) {
		for _, branch := range run.Status.Instance.ActiveBranches {
			if branch.Child != nil {
				needed[branch.Child.Name] = true
			}
		}
	}
	var left runLeftovers
	for _, name := range slices.Sorted(maps.Keys(children.tasks)) {
		if task := children.tasks[name]; !needed[name] && humantask.IsOpen(task) {
			left.tasks = append(left.tasks, task)
		}
	}
	left.agents = leftAgents(children.agents, needed)
	left.attempts = slices.DeleteFunc(attemptsIn(children), func(name string) bool { return needed[name] })
	return left
}

// attemptsIn names the attempts of which anything is left, sorted.
func attemptsIn(children runChildren) []string {
	attempts := map[string]bool{}
	for name, pod := range children.pods {
		if pod.DeletionTimestamp == nil || controllerutil.ContainsFinalizer(pod, api.FinalizerCollect) {
			attempts[name] = true
		}
	}
	for name := range children.configs {
		attempts[strings.TrimSuffix(name, runInputName(""))] = true
	}
	return slices.Sorted(maps.Keys(attempts))
}

// cleanUp closes tasks and removes attempts that no open activation needs, and
// tells whether there was nothing to do.
func (r *WorkflowRunReconciler) cleanUp(ctx context.Context, state *runState, committed *api.WorkflowRun) (bool, error) {
	if leftovers(committed, state.children).none() {
		return true, nil
	}
	// A cache that lags behind could take the child of a new activation for one
	// that is over; the live run names every child before it is created.
	live, err := r.asStored(ctx, state, committed)
	if err != nil || live == nil {
		return false, err
	}
	left := leftovers(live, state.children)
	var errs []error
	for _, task := range left.tasks {
		errs = append(errs, r.store().closeTask(ctx, live, task, metav1.NewTime(state.now).Rfc3339Copy()))
	}
	for _, session := range left.agents {
		errs = append(errs, r.stopAgent(ctx, session))
	}
	for _, name := range left.attempts {
		errs = append(errs, r.endAttempt(ctx, live, state.children, name))
	}
	return left.none(), errors.Join(errs...)
}

// closeMessage tells people why nobody needs their answer any more.
func closeMessage(run *api.WorkflowRun) string {
	if run.Status.Instance == nil {
		return "branch closed"
	}
	switch engine.Status(run.Status.Instance.Status) {
	case engine.StatusCompleted:
		return "run completed"
	case engine.StatusCancelled:
		return "run cancelled"
	case engine.StatusFailed:
		if failure := run.Status.Instance.Failure; failure != nil {
			return "run failed: " + failure.Code
		}
		return "run failed"
	case engine.StatusWaiting:
	}
	return "branch closed"
}

// endAttempt takes an attempt's objects away: its token first, and last what
// marks that the token may be there.
func (r *WorkflowRunReconciler) endAttempt(ctx context.Context, run *api.WorkflowRun, children runChildren, name string) error {
	if err := r.revoke(ctx, run, name); err != nil {
		return err
	}
	if pod := children.pods[name]; pod != nil {
		if err := r.removePod(ctx, pod); err != nil {
			return err
		}
	}
	for _, config := range []string{name, runInputName(name)} {
		if object := children.configs[config]; object != nil {
			if err := r.remove(ctx, object); err != nil {
				return err
			}
		}
	}
	return nil
}

// revoke deletes the attempt's Secret, if it is the run's own.
func (r *WorkflowRunReconciler) revoke(ctx context.Context, run *api.WorkflowRun, name string) error {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: run.Namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at secret %s: %w", name, err)
	}
	if !metav1.IsControlledBy(secret, run) {
		return nil
	}
	return r.remove(ctx, secret)
}

// removePod lets go of a pod whose end was committed, and deletes it.
func (r *WorkflowRunReconciler) removePod(ctx context.Context, pod *corev1.Pod) error {
	if err := r.release(ctx, pod); err != nil {
		return err
	}
	if !pod.DeletionTimestamp.IsZero() {
		return nil
	}
	return r.remove(ctx, pod)
}

func (r *WorkflowRunReconciler) release(ctx context.Context, pod *corev1.Pod) error {
	released := pod.DeepCopy()
	if !controllerutil.RemoveFinalizer(released, api.FinalizerCollect) {
		return nil
	}
	// The list of finalizers is replaced as a whole, so it must not have changed.
	patch := client.MergeFromWithOptions(pod, client.MergeFromWithOptimisticLock{})
	if err := client.IgnoreNotFound(r.Client.Patch(ctx, released, patch)); err != nil {
		return fmt.Errorf("release pod %s: %w", pod.Name, err)
	}
	return nil
}

// remove deletes the very object that was seen.
func (r *WorkflowRunReconciler) remove(ctx context.Context, object client.Object) error {
	uid := object.GetUID()
	err := r.Client.Delete(ctx, object, client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete %s: %w", object.GetName(), err)
	}
	return nil
}

// releaseOrphans lets go of pods whose run is gone; with it went the record
// that their end would have entered. The garbage collector deletes them.
func (r *WorkflowRunReconciler) releaseOrphans(ctx context.Context, name types.NamespacedName, uid types.UID) error {
	var pods corev1.PodList
	err := r.Client.List(ctx, &pods, client.InNamespace(name.Namespace), client.MatchingFields{fieldHeldBy: name.Name})
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	var errs []error
	for i := range pods.Items {
		owner := metav1.GetControllerOf(&pods.Items[i])
		if owner == nil || owner.Name != name.Name || owner.UID == uid || len(pods.Items[i].Finalizers) == 0 {
			continue
		}
		isGone, err := r.isGone(ctx, name, owner.UID)
		if err == nil && isGone {
			err = r.release(ctx, &pods.Items[i])
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// isGone asks the API server whether the run of that UID is gone or going.
func (r *WorkflowRunReconciler) isGone(ctx context.Context, name types.NamespacedName, uid types.UID) (bool, error) {
	run := &api.WorkflowRun{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, UID: uid}}
	live, err := r.live(ctx, run)
	return err == nil && live == nil, err
}

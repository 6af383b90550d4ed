package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/humantask"
)

// What the controller of runs does comes back to it as news: its commits, the
// children it made. A pass leaves nothing for these to remind it of, so they
// wake nobody. Whatever anybody else wrote does, also another manager.

// Fields by which the cache finds what belongs to a run without looking at
// everything in the namespace.
const (
	// fieldRun is the UID of the run in an object's label.
	fieldRun = "axiom.run"
	// fieldAsksFor is the UID of the run that an open task belongs to.
	fieldAsksFor = "axiom.asksFor"
	// fieldHeldBy is the name of the run that a pod with a finalizer belongs to.
	fieldHeldBy = "axiom.heldBy"
	// fieldAwaits is the composition that a run without a definition needs.
	fieldAwaits = "axiom.awaits"
)

// indexRuns makes the cache find children by run, and runs by the composition
// that they wait for.
func indexRuns(mgr ctrl.Manager) error {
	ctx := context.Background() //nolint:forbidigo // set-up has no context, and the call waits for nothing
	indexer := mgr.GetFieldIndexer()
	err := errors.Join(
		indexer.IndexField(ctx, &api.HumanTask{}, fieldAsksFor, runOfOpenTask),
		indexer.IndexField(ctx, &corev1.Pod{}, fieldRun, runOfObject),
		indexer.IndexField(ctx, &corev1.ConfigMap{}, fieldRun, runOfObject),
		indexer.IndexField(ctx, &api.AgentSession{}, fieldRun, runOfObject),
		indexer.IndexField(ctx, &api.Turn{}, fieldRun, runOfObject),
		indexer.IndexField(ctx, &corev1.Pod{}, fieldHeldBy, holderOfPod),
		indexer.IndexField(ctx, &api.WorkflowRun{}, fieldAwaits, awaitedComposition),
	)
	if err != nil {
		return fmt.Errorf("index children of runs: %w", err)
	}
	return nil
}

func runOfObject(object client.Object) []string {
	if uid := object.GetLabels()[api.LabelRun]; uid != "" {
		return []string{uid}
	}
	return nil
}

func runOfOpenTask(object client.Object) []string {
	if task, isTask := object.(*api.HumanTask); !isTask || !humantask.IsOpen(task) {
		return nil
	}
	return runOfObject(object)
}

func holderOfPod(object client.Object) []string {
	owner := metav1.GetControllerOf(object)
	if owner == nil || object.GetLabels()[api.LabelComponent] != api.ComponentAction || len(object.GetFinalizers()) == 0 {
		return nil
	}
	return []string{owner.Name}
}

func awaitedComposition(object client.Object) []string {
	run, isRun := object.(*api.WorkflowRun)
	if !isRun || run.Status.Definition != nil || isRunFinished(run) {
		return nil
	}
	return []string{run.Spec.CompositionRef.Name}
}

// runCommits remembers which version of a run this process wrote last. The zero
// value is ready.
type runCommits struct {
	mu   sync.Mutex
	last map[types.UID]runCommit
}

// runCommit is what is known of the writes of a run's status.
type runCommit struct {
	// version that the last of them made; empty: none.
	version string
	// writing is the status that is being written, nil if none is. A watch may be
	// faster than the answer.
	writing *api.WorkflowRunStatus
	// children are the names of those that the version waits for.
	children map[string]bool
}

func (c *runCommits) begin(uid types.UID, status *api.WorkflowRunStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		c.last = map[types.UID]runCommit{}
	}
	c.last[uid] = runCommit{version: c.last[uid].version, writing: status.DeepCopy()}
}

// end notes the version that was written. Of a write that failed it is not
// known what came of it.
func (c *runCommits) end(run *api.WorkflowRun, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		delete(c.last, run.UID)
		return
	}
	c.last[run.UID] = runCommit{version: run.ResourceVersion, children: openChildren(run)}
}

// waitsFor tells whether the version that this process wrote last waits for the
// child of that name.
func (c *runCommits) waitsFor(uid types.UID, name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last[uid].children[name]
}

// openChildren are the names of the children that a run waits for.
func openChildren(run *api.WorkflowRun) map[string]bool {
	if run.Status.Instance == nil || isRunFinished(run) {
		return nil
	}
	names := map[string]bool{}
	for _, branch := range run.Status.Instance.ActiveBranches {
		if branch.Child != nil {
			names[branch.Child.Name] = true
		}
	}
	return names
}

func (c *runCommits) forget(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.last, uid)
}

// made tells whether this process wrote the version that follows another. It
// was then computed from the version before it, since a commit carries that
// version, and so from all that came before.
func (c *runCommits) made(before, after *api.WorkflowRun) bool {
	c.mu.Lock()
	commit := c.last[after.UID]
	c.mu.Unlock()
	if commit.version != "" && commit.version == after.ResourceVersion {
		return true
	}
	return commit.writing != nil && isStatusChange(before, after) && apiequality.Semantic.DeepEqual(commit.writing, &after.Status)
}

// isBehind tells whether a run is older than what this process wrote last. The
// version that it wrote wakes nobody, so a look at an older one would be the last
// one at what else came to pass.
func (c *runCommits) isBehind(run *api.WorkflowRun) bool {
	c.mu.Lock()
	version := c.last[run.UID].version
	c.mu.Unlock()
	if version == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(run.ResourceVersion, version)
	return err != nil || order < 0
}

// isStatusChange tells whether two versions have the same specification and
// metadata, as far as these mean something to the controller.
func isStatusChange(before, after *api.WorkflowRun) bool {
	return before.Generation == after.Generation && before.DeletionTimestamp.Equal(after.DeletionTimestamp) &&
		maps.Equal(before.Labels, after.Labels) && maps.Equal(before.Annotations, after.Annotations) &&
		slices.Equal(before.Finalizers, after.Finalizers)
}

// news of runs are all versions but the controller's own.
func (r *WorkflowRunReconciler) news() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e ctrlevent.UpdateEvent) bool {
			before, wasRun := e.ObjectOld.(*api.WorkflowRun)
			after, isRun := e.ObjectNew.(*api.WorkflowRun)
			return !wasRun || !isRun || before.ResourceVersion == after.ResourceVersion || !r.commits.made(before, after)
		},
		DeleteFunc: func(e ctrlevent.DeleteEvent) bool {
			r.commits.forget(e.Object.GetUID())
			r.told.forget(e.Object.GetUID())
			r.events.told.forget(e.Object.GetUID())
			return true
		},
	}
}

// taskNews are what a run has to know of a task: that it is no longer open, or
// no longer there, or no longer the run's.
func taskNews() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e ctrlevent.CreateEvent) bool {
			task, isTask := e.Object.(*api.HumanTask)
			return !isTask || !humantask.IsOpen(task)
		},
		UpdateFunc: func(e ctrlevent.UpdateEvent) bool {
			before, wasTask := e.ObjectOld.(*api.HumanTask)
			after, isTask := e.ObjectNew.(*api.HumanTask)
			return !wasTask || !isTask || humantask.IsOpen(before) != humantask.IsOpen(after) || isMoved(before, after)
		},
	}
}

// unexpected are children that come when their run does not wait for them any
// more. The pass that closed their activation may not have seen them.
func (r *WorkflowRunReconciler) unexpected() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(e ctrlevent.CreateEvent) bool { return !r.expects(e.Object) },
		UpdateFunc:  func(ctrlevent.UpdateEvent) bool { return false },
		DeleteFunc:  func(ctrlevent.DeleteEvent) bool { return false },
		GenericFunc: func(ctrlevent.GenericEvent) bool { return false },
	}
}

// expects tells whether the newest version of the run that this process knows
// waits for the child, or for that which the child is for.
func (r *WorkflowRunReconciler) expects(child client.Object) bool {
	owner := metav1.GetControllerOf(child)
	if owner == nil {
		return false
	}
	run := &api.WorkflowRun{}
	ctx := context.Background() //nolint:forbidigo // an event has no context, and the cache does not let wait
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: child.GetNamespace(), Name: owner.Name}, run)
	if err != nil || run.UID != owner.UID {
		return false
	}
	name := strings.TrimSuffix(child.GetName(), runInputName(""))
	if r.commits.isBehind(run) {
		return r.commits.waitsFor(run.UID, name)
	}
	return openChildren(run)[name]
}

// configNews are those of results; what an attempt is given is no news.
func configNews() predicate.Predicate {
	return predicate.Funcs{CreateFunc: func(e ctrlevent.CreateEvent) bool {
		return !strings.HasSuffix(e.Object.GetName(), runInputName(""))
	}}
}

// isMoved tells whether a child came to belong to another run.
func isMoved(before, after client.Object) bool {
	return !maps.Equal(before.GetLabels(), after.GetLabels()) ||
		!slices.EqualFunc(before.GetOwnerReferences(), after.GetOwnerReferences(), func(a, b metav1.OwnerReference) bool { return a.UID == b.UID })
}

// opensSilently tells whether a commit opened an activation that has no child:
// what it waits for may be there already, and nothing else would say so.
func opensSilently(before, after *api.WorkflowRun) bool {
	if after.Status.Instance == nil || isRunFinished(after) {
		return false
	}
	known := map[string]bool{}
	if before.Status.Instance != nil {
		for i := range before.Status.Instance.ActiveBranches {
			known[before.Status.Instance.ActiveBranches[i].Activation] = true
		}
	}
	return slices.ContainsFunc(after.Status.Instance.ActiveBranches, func(b api.ActiveBranch) bool {
		return b.Child == nil && !known[b.Activation]
	})
}

// noteMade remembers that a child was created.
func (s *runState) noteMade(name string) {
	if s.made == nil {
		s.made = map[string]bool{}
	}
	s.made[name] = true
}

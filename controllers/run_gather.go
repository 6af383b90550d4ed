package controllers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/engine"
)

// runState is all that one pass over a run depends on.
type runState struct {
	// run as it was read; a commit is computed from its resource version.
	run *api.WorkflowRun
	now time.Time
	// startTimeout is what an attempt's pod has to start its containers; zero: as
	// by default.
	startTimeout time.Duration
	// definition that the run executes, nil if there is none. A started run
	// without it can still be ended.
	definition *runDefinition
	// verdict says why there is no definition.
	verdict *runVerdict
	// instance of a started run. Values that are kept outside are not in it
	// until the run is hydrated.
	instance   engine.Instance
	isHydrated bool
	// agents tells, by node, which of the actions that are parked next are for agents.
	agents   map[string]bool
	children runChildren
	// offers of the stored events, by activation that waits for one.
	offers map[string]runOffer
	// made are the names of children that this reconcile created.
	made map[string]bool
	// isLost: the run has children but no instance.
	isLost bool
}

// runChildren are the objects that the run controls, by name.
type runChildren struct {
	tasks   map[string]*api.HumanTask
	pods    map[string]*corev1.Pod
	configs map[string]*corev1.ConfigMap
	agents  runAgents
}

func (c runChildren) task(child *engine.Child) *api.HumanTask {
	if child == nil {
		return nil
	}
	return c.tasks[child.Name]
}

// uid of the child, empty if it was not seen.
func (c runChildren) uid(kind, name string) string {
	if task, ok := c.tasks[name]; ok && kind == childHumanTask {
		return string(task.UID)
	}
	if pod, ok := c.pods[name]; ok && kind == childPod {
		return string(pod.UID)
	}
	if kind == childAgentSession {
		return c.agents.uid(name)
	}
	return ""
}

// wants tells whether there is something to be made for the child: itself, or what
// follows a reply that was not in the right form.
func (c runChildren) wants(child *api.ChildRef) bool {
	return c.uid(child.Kind, child.Name) == "" || child.Kind == childAgentSession && c.agents.replies[child.Name].repair != ""
}

func isRunFinished(run *api.WorkflowRun) bool {
	return run.Status.FinishedAt != nil
}

// gather reads what the pass needs.
func (r *WorkflowRunReconciler) gather(ctx context.Context, run *api.WorkflowRun) (*runState, error) {
	state := &runState{run: run, now: r.Clock.Now(), startTimeout: r.Options.StartTimeout}
	var err error
	switch {
	case run.Status.Instance != nil:
		state.children, err = r.gatherChildren(ctx, run)
		if err == nil && !isRunFinished(run) {
			err = r.gatherInstance(ctx, state)
		}
	case !isRunFinished(run):
		err = r.gatherStart(ctx, state)
	}
	return state, err
}

func (r *WorkflowRunReconciler) gatherInstance(ctx context.Context, state *runState) error {
	var err error
	if state.definition, err = r.pinned(ctx, state.run); err != nil {
		return err
	}
	if state.definition == nil {
		state.verdict = awaitDefinition("snapshot " + state.run.Status.Definition.Snapshot + " is gone")
	}
	if state.instance, err = runInstance(state.run.Status.Instance); err != nil {
		return err
	}
	if err := r.gatherReplies(ctx, state); err != nil {
		return err
	}
	return r.awaitResults(ctx, state)
}

// gatherStart looks for the definition of a run that has not begun, or for
// signs that it had begun before.
func (r *WorkflowRunReconciler) gatherStart(ctx context.Context, state *runState) error {
	var err error
	if state.isLost, err = r.hasLiveChildren(ctx, state.run); err != nil || state.isLost || state.run.Spec.Cancel {
		return err
	}
	state.definition, state.verdict, err = r.pin(ctx, state.run)
	return err
}

// gatherChildren reads the objects that carry the run's label and are its own.
func (r *WorkflowRunReconciler) gatherChildren(ctx context.Context, run *api.WorkflowRun) (runChildren, error) {
	children := runChildren{pods: map[string]*corev1.Pod{}, configs: map[string]*corev1.ConfigMap{}}
	var err error
	if children.tasks, err = r.gatherTasks(ctx, run); err != nil {
		return children, err
	}
	var pods corev1.PodList
	var configs corev1.ConfigMapList
	for _, list := range []client.ObjectList{&pods, &configs} {
		if err := r.Client.List(ctx, list, client.InNamespace(run.Namespace), client.MatchingFields{fieldRun: string(run.UID)}); err != nil {
			return children, fmt.Errorf("list children of run: %w", err)
		}
	}
	for i := range pods.Items {
		if metav1.IsControlledBy(&pods.Items[i], run) {
			children.pods[pods.Items[i].Name] = &pods.Items[i]
		}
	}
	for i := range configs.Items {
		if metav1.IsControlledBy(&configs.Items[i], run) {
			children.configs[configs.Items[i].Name] = &configs.Items[i]
		}
	}
	children.agents, err = r.gatherAgents(ctx, run)
	return children, err
}

// gatherTasks reads the tasks that are open and those that the run waits for. A
// long run has many others, which are over and which nobody asks about.
func (r *WorkflowRunReconciler) gatherTasks(ctx context.Context, run *api.WorkflowRun) (map[string]*api.HumanTask, error) {
	var open api.HumanTaskList
	if err := r.Client.List(ctx, &open, client.InNamespace(run.Namespace), client.MatchingFields{fieldAsksFor: string(run.UID)}); err != nil {
		return nil, fmt.Errorf("list tasks of run: %w", err)
	}
	tasks := map[string]*api.HumanTask{}
	note := func(task *api.HumanTask) {
		if metav1.IsControlledBy(task, run) {
			tasks[task.Name] = task
		}
	}
	for i := range open.Items {
		note(&open.Items[i])
	}
	for _, branch := range run.Status.Instance.ActiveBranches {
		if branch.Child == nil || branch.Child.Kind != childHumanTask || tasks[branch.Child.Name] != nil {
			continue
		}
		task := &api.HumanTask{}
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: branch.Child.Name}, task)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read task %s: %w", branch.Child.Name, err)
		}
		note(task)
	}
	return tasks, nil
}

func ofRun(run *api.WorkflowRun) client.MatchingLabels {
	return client.MatchingLabels{api.LabelRun: string(run.UID)}
}

// awaitResults reads the results of ended pods from the API server where the
// cache has none: a pod's end may be seen before the result that came first.
func (r *WorkflowRunReconciler) awaitResults(ctx context.Context, state *runState) error {
	for _, branch := range state.instance.ActiveBranches {
		if branch.Child == nil || branch.Child.Kind != childPod {
			continue
		}
		name := branch.Child.Name
		pod := state.children.pods[name]
		if pod == nil || state.children.configs[name] != nil || attemptPodDelivery(pod, state.startTimeout, state.now) == nil {
			continue
		}
		result := &corev1.ConfigMap{}
		err := r.Live.Get(ctx, client.ObjectKey{Namespace: state.run.Namespace, Name: name}, result)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read result %s: %w", name, err)
		}
		if metav1.IsControlledBy(result, state.run) {
			state.children.configs[name] = result
		}
	}
	return nil
}

// hasLiveChildren asks the API server for children that serve an activation: a
// run has none before its first commit.
func (r *WorkflowRunReconciler) hasLiveChildren(ctx context.Context, run *api.WorkflowRun) (bool, error) {
	for _, kind := range []string{childHumanTask, childPod, childAgentSession, "ConfigMap"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(childKinds[kind].GroupVersion().WithKind(kind + "List"))
		if err := r.Live.List(ctx, list, client.InNamespace(run.Namespace), ofRun(run)); err != nil {
			return false, fmt.Errorf("list children of run: %w", err)
		}
		for i := range list.Items {
			if list.Items[i].Annotations[api.AnnotationActivation] != "" {
				return true, nil
			}
		}
	}
	return false, nil
}

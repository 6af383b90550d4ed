package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// play is everybody around the runs of one namespace: it sees tasks and runs as
// watches bring them, and answers.
type play struct {
	world     *world
	namespace string
	runs      watch.Interface
	tasks     watch.Interface
	// asked are the open tasks that were seen, by run and activation.
	asked map[string]*api.HumanTask
	// shown are the runs as last seen, by name.
	shown map[string]*api.WorkflowRun
}

func (w *world) play(ctx context.Context) (*play, error) {
	namespace, err := w.namespace(ctx)
	if err != nil {
		return nil, err
	}
	p := &play{world: w, namespace: namespace, asked: map[string]*api.HumanTask{}, shown: map[string]*api.WorkflowRun{}}
	if p.runs, err = w.admin.Watch(ctx, &api.WorkflowRunList{}, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("watch runs: %w", err)
	}
	if p.tasks, err = w.admin.Watch(ctx, &api.HumanTaskList{}, client.InNamespace(namespace)); err != nil {
		p.runs.Stop()
		return nil, fmt.Errorf("watch tasks: %w", err)
	}
	return p, nil
}

func (p *play) close() {
	p.runs.Stop()
	p.tasks.Stop()
}

// look takes in the next thing that happens.
func (p *play) look(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case event, open := <-p.runs.ResultChan():
		return p.take(event, open)
	case event, open := <-p.tasks.ResultChan():
		return p.take(event, open)
	}
}

func (p *play) take(event watch.Event, open bool) error {
	if !open {
		return errors.New("a watch ended")
	}
	switch object := event.Object.(type) {
	case *api.WorkflowRun:
		p.shown[object.Name] = object
	case *api.HumanTask:
		if object.Spec.RunRef != nil {
			p.asked[object.Spec.RunRef.Name+"/"+object.Spec.RunRef.Activation] = object
		}
	}
	return nil
}

// await looks until something is so.
func (p *play) await(ctx context.Context, what string, isSo func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, fmt.Errorf("waited too long for %s", what))
	defer cancel()
	for !isSo() {
		if err := p.look(ctx); err != nil {
			return err
		}
	}
	return nil
}

// begin creates a run.
func (p *play) begin(ctx context.Context, comp *api.Composition) (*api.WorkflowRun, error) {
	run := newRun(comp, p.world.name("run"))
	if err := p.world.person.Create(ctx, run); err != nil {
		return nil, fmt.Errorf("create run: %w", err)
	}
	return run, nil
}

// task waits until the task of an activation is there.
func (p *play) task(ctx context.Context, run *api.WorkflowRun, activation string) (*api.HumanTask, error) {
	key := run.Name + "/" + activation
	err := p.await(ctx, "the task of "+key, func() bool { return p.asked[key] != nil })
	return p.asked[key], err
}

// isParkedAt tells whether a run was seen with an activation open.
func (p *play) isParkedAt(run *api.WorkflowRun, activation string) bool {
	seen := p.shown[run.Name]
	return seen != nil && seen.Status.Instance != nil &&
		slices.ContainsFunc(seen.Status.Instance.ActiveBranches, func(b api.ActiveBranch) bool { return b.Activation == activation })
}

func (p *play) isCompleted(run *api.WorkflowRun) bool {
	seen := p.shown[run.Name]
	return seen != nil && seen.Status.Phase == api.RunCompleted
}

// step completes the i-th node of a run as soon as it can be.
type step func(p *play, ctx context.Context, run *api.WorkflowRun, i int) error

// answerNode answers the node's task.
func (p *play) answerNode(ctx context.Context, run *api.WorkflowRun, i int) error {
	task, err := p.task(ctx, run, activation(i))
	if err != nil {
		return err
	}
	return p.world.answer(ctx, task)
}

// sendNode sends the event that the node waits for.
func (p *play) sendNode(ctx context.Context, run *api.WorkflowRun, i int) error {
	if err := p.await(ctx, "the node", func() bool { return p.isParkedAt(run, activation(i)) }); err != nil {
		return err
	}
	if err := p.world.person.Create(ctx, newEvent(run, i)); err != nil {
		return fmt.Errorf("send event: %w", err)
	}
	return nil
}

// answer says yes to a task.
func (w *world) answer(ctx context.Context, task *api.HumanTask) error {
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"answer":{"ok":true}}}`))
	if err := w.person.Status().Patch(ctx, task.DeepCopy(), patch); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return nil
}

package controllers

import (
	"context"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/definition"
	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/turns"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// runDefinition is what a run executes, ready to be executed.
type runDefinition struct {
	*Snapshot
	engine   *engine.Definition
	problems []workflow.Problem
}

// maxRunID is how long ids of nodes and edges may be, in bytes: activations,
// which are made from them, must fit the status.
const maxRunID = 1000

// runVerdict says whether a run may start.
type runVerdict struct {
	// reason of the condition Accepted.
	reason string
	// message for people.
	message string
	// final verdicts end the run, others may yet change.
	final bool
}

func refuseRun(reason, format string, args ...any) *runVerdict {
	return &runVerdict{reason: reason, message: fmt.Sprintf(format, args...), final: true}
}

// judge refuses definitions that no run of a composition may execute; nil
// accepts.
func (d *runDefinition) judge() *runVerdict {
	for _, p := range d.problems {
		if p.IsError() {
			return refuseRun(api.ReasonInvalidDefinition, "the workflow has errors, the first is %s: %s", p.Code, p.Message)
		}
	}
	flow := d.engine.Workflow()
	supervised, needsGit := definition.UsesSupervised(flow)
	for _, node := range flow.Nodes() {
		if len(node.ID()) > maxRunID {
			return refuseRun(api.ReasonInvalidDefinition, "a node id is longer than %d bytes", maxRunID)
		}
		if needsGit && node.ID() == supervised {
			return refuseRun(api.ReasonInvalidDefinition, definition.CodeSupervisedOnly+": node %q needs a run that is defined in Git", node.ID())
		}
	}
	for _, edge := range flow.Edges() {
		if len(edge.ID()) > maxRunID {
			return refuseRun(api.ReasonInvalidDefinition, "an edge id is longer than %d bytes", maxRunID)
		}
	}
	return nil
}

// runActionType is the name of the action type that an action node wants.
func runActionType(config map[string]any) string {
	name, _ := config["actionType"].(string)
	return name
}

// pin finds the snapshot that a new run executes. A verdict says why there is
// none, for now or for good.
func (r *WorkflowRunReconciler) pin(ctx context.Context, run *api.WorkflowRun) (*runDefinition, *runVerdict, error) {
	comp := &api.Composition{}
	// Live, so that a run created right after an edit executes the edit.
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: run.Namespace, Name: run.Spec.CompositionRef.Name}, comp)
	if apierrors.IsNotFound(err) {
		return nil, awaitDefinition("the composition does not exist"), nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read composition: %w", err)
	}
	live, err := runLiveRevision(comp)
	if err != nil {
		return nil, nil, err
	}
	wanted := run.Spec.CompositionRef.Revision
	switch {
	case wanted == "" && live == "":
		return nil, awaitDefinition("the composition has no workflow"), nil
	case wanted == "" || wanted == live:
		return r.pinLive(ctx, comp, live)
	}
	return r.pinOld(ctx, run, comp)
}

// pinOld finds a revision in the composition's history.
func (r *WorkflowRunReconciler) pinOld(ctx context.Context, run *api.WorkflowRun, comp *api.Composition) (*runDefinition, *runVerdict, error) {
	wanted := run.Spec.CompositionRef.Revision
	// Refusing is for good, so it is not left to a cache.
	for _, reader := range []client.Reader{r.Client, r.Live} {
		snapshot, err := findSnapshot(ctx, reader, comp, wanted)
		if err != nil {
			return nil, nil, err
		}
		if snapshot == nil {
			continue
		}
		isHeld, err := r.hold(ctx, run, snapshot.Name)
		if err != nil {
			return nil, nil, err
		}
		if isHeld {
			return r.definitions.prepare(run.Namespace, snapshot, r.Expressions), nil, nil
		}
	}
	return nil, refuseRun(api.ReasonRevisionMismatch, "revision %s is neither the live one nor in the composition's history", wanted), nil
}

// annotationHeldFor on a snapshot names the run that was about to pin it last.
const annotationHeldFor = "axiom.apitomy.io/held-for"

// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=patch

// hold touches an old snapshot ahead of pinning it, and tells whether it was
// there: whoever read it before, to delete it, cannot do so any more, and whoever
// reads it later finds the run.
func (r *WorkflowRunReconciler) hold(ctx context.Context, run *api.WorkflowRun, name string) (bool, error) {
	object := &appsv1.ControllerRevision{}
	object.Name, object.Namespace = name, run.Namespace
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, annotationHeldFor, run.UID)
	err := r.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(patch)))
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("hold snapshot %s: %w", name, err)
	}
	return true, nil
}

// pinLive waits for the history of the composition's present generation: an
// older snapshot of the same workflow may hold older action types.
func (r *WorkflowRunReconciler) pinLive(ctx context.Context, comp *api.Composition, live string) (*runDefinition, *runVerdict, error) {
	unwritten := awaitDefinition("the composition's history is not written yet")
	if comp.Status.ObservedGeneration != comp.Generation || comp.Status.Snapshot == "" {
		return nil, unwritten, nil
	}
	// Live, since nothing would wake the run when a cache catches up.
	snapshot, err := loadSnapshot(ctx, r.Live, comp.Namespace, comp.Status.Snapshot)
	if err != nil {
		return nil, nil, err
	}
	if snapshot == nil || snapshot.Revision != live {
		return nil, unwritten, nil
	}
	return r.definitions.prepare(comp.Namespace, snapshot, r.Expressions), nil, nil
}

func awaitDefinition(message string) *runVerdict {
	return &runVerdict{reason: api.ReasonDefinitionNotFound, message: message}
}

func runLiveRevision(comp *api.Composition) (string, error) {
	doc, err := turns.Document(comp.Spec.Workflow)
	if err != nil {
		return "", fmt.Errorf("read workflow of composition %s: %w", comp.Name, err)
	}
	if doc == nil {
		return "", nil
	}
	revision, err := changeset.Revision(doc)
	if err != nil {
		return "", fmt.Errorf("take workflow revision of composition %s: %w", comp.Name, err)
	}
	return revision, nil
}

// pinned returns the definition that a run was pinned to, nil if somebody
// deleted it.
func (r *WorkflowRunReconciler) pinned(ctx context.Context, run *api.WorkflowRun) (*runDefinition, error) {
	name := run.Status.Definition.Snapshot
	if found := r.definitions.find(run.Namespace, name); found != nil {
		return found, nil
	}
	snapshot, err := loadSnapshot(ctx, r.Client, run.Namespace, name)
	if err == nil && snapshot == nil {
		snapshot, err = loadSnapshot(ctx, r.Live, run.Namespace, name)
	}
	if err != nil || snapshot == nil {
		return nil, err
	}
	return r.definitions.prepare(run.Namespace, snapshot, r.Expressions), nil
}

// maxRunDefinitions are kept prepared at a time.
const maxRunDefinitions = 64

// runDefinitions remembers prepared definitions, since preparing one validates
// its whole document. Snapshots never change and their names are never used
// again for something else. The zero value is ready.
type runDefinitions struct {
	mu    sync.Mutex
	known map[types.NamespacedName]*runDefinition
}

func (c *runDefinitions) find(namespace, name string) *runDefinition {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known[types.NamespacedName{Namespace: namespace, Name: name}]
}

func (c *runDefinitions) prepare(namespace string, snapshot *Snapshot, x *expression.Cache) *runDefinition {
	if found := c.find(namespace, snapshot.Name); found != nil {
		return found
	}
	d := &runDefinition{Snapshot: snapshot}
	d.engine, d.problems = engine.New(snapshot.Workflow, x)

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= maxRunDefinitions {
		c.known = map[types.NamespacedName]*runDefinition{}
	}
	c.known[types.NamespacedName{Namespace: namespace, Name: snapshot.Name}] = d
	return d
}

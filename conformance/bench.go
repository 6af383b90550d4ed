package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// A bench is what one case works at.
type bench struct {
	Options
	name string
}

// made are the kinds of what the cases make.
func made() []client.Object {
	return []client.Object{&api.Turn{}, &api.WorkflowRun{}, &api.HumanTask{}, &api.Composition{}, &corev1.ConfigMap{}}
}

func (b *bench) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: b.Namespace, Name: "conformance-" + b.name, Labels: map[string]string{label: "true"}}
}

// composition reads a composition's workflow and action types from YAML, and has it be
// settled.
func (b *bench) compose(ctx context.Context, workflow, actionTypes string, how ...func(*api.Composition)) (*api.Composition, error) {
	comp := &api.Composition{ObjectMeta: b.meta()}
	doc, err := yaml.YAMLToJSON([]byte(workflow))
	if err != nil {
		return nil, fmt.Errorf("read workflow: %w", err)
	}
	comp.Spec.Workflow = &runtime.RawExtension{Raw: doc}
	if err := yaml.UnmarshalStrict([]byte(actionTypes), &comp.Spec.ActionTypes); err != nil {
		return nil, fmt.Errorf("read action types: %w", err)
	}
	for _, f := range how {
		f(comp)
	}
	if err := b.Client.Create(ctx, comp); err != nil {
		return nil, fmt.Errorf("create composition: %w", err)
	}
	err = b.until(ctx, comp, func() (bool, string) {
		return comp.Status.ObservedGeneration == comp.Generation && comp.Status.Snapshot != "", "the composition has no snapshot"
	})
	return comp, err
}

// start starts a run of the case's composition.
func (b *bench) start(ctx context.Context) (*api.WorkflowRun, error) {
	run := &api.WorkflowRun{ObjectMeta: b.meta()}
	run.Spec.CompositionRef.Name = run.Name
	if err := b.Client.Create(ctx, run); err != nil {
		return nil, fmt.Errorf("create run: %w", err)
	}
	return run, nil
}

// reaches waits for a phase of the run.
func (b *bench) reaches(ctx context.Context, run *api.WorkflowRun, phase api.RunPhase) error {
	return b.until(ctx, run, func() (bool, string) {
		if run.Status.Phase.IsTerminal() && run.Status.Phase != phase {
			return false, ""
		}
		return run.Status.Phase == phase, fmt.Sprintf("the run is %q, not %s", run.Status.Phase, phase)
	})
}

// ends has a workflow run to its end.
func (b *bench) ends(ctx context.Context, workflow, actionTypes string) (*api.WorkflowRun, error) {
	if _, err := b.compose(ctx, workflow, actionTypes); err != nil {
		return nil, err
	}
	run, err := b.start(ctx)
	if err != nil {
		return nil, err
	}
	return run, b.reaches(ctx, run, api.RunCompleted)
}

// look is how often an object is looked at.
const look = 200 * time.Millisecond

// until reads an object until it is as it should be. A check that says no without a word
// will never say yes.
func (b *bench) until(ctx context.Context, object client.Object, check func() (isSo bool, otherwise string)) error {
	begun := b.Clock.Now()
	for {
		if err := b.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return fmt.Errorf("read %s: %w", object.GetName(), err)
		}
		isSo, otherwise := check()
		switch {
		case isSo:
			return nil
		case otherwise == "":
			return fmt.Errorf("%s came to another end: %s", object.GetName(), statusOf(object))
		case b.Clock.Since(begun) > b.Patience:
			return fmt.Errorf("%s after %s", otherwise, b.Patience)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-b.Clock.After(look):
		}
	}
}

// maxStatus bounds what a message shows of a status, in bytes.
const maxStatus = 600

func statusOf(object client.Object) string {
	var status any
	switch object := object.(type) {
	case *api.WorkflowRun:
		status = object.Status.Conditions
	case *api.Turn:
		status = map[string]any{"state": object.Status.State, "detail": object.Status.Detail}
	}
	text, err := json.Marshal(status)
	if err != nil {
		return "unreadable"
	}
	return string(text[:min(len(text), maxStatus)])
}

// task waits for the question of a run.
func (b *bench) task(ctx context.Context, run *api.WorkflowRun) (*api.HumanTask, error) {
	name := ""
	err := b.until(ctx, run, func() (bool, string) {
		if run.Status.Instance == nil {
			return false, "the run has not begun"
		}
		for _, branch := range run.Status.Instance.ActiveBranches {
			if branch.Child != nil && branch.Child.Kind == "HumanTask" {
				name = branch.Child.Name
			}
		}
		return name != "", "the run asks nobody"
	})
	if err != nil {
		return nil, err
	}
	task := &api.HumanTask{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: name}}
	return task, b.appears(ctx, task)
}

// appears waits for an object to be there.
func (b *bench) appears(ctx context.Context, object client.Object) error {
	begun := b.Clock.Now()
	for {
		err := b.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
		switch {
		case err == nil:
			return nil
		case !apierrors.IsNotFound(err) || b.Clock.Since(begun) > b.Patience:
			return fmt.Errorf("read %s: %w", object.GetName(), err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-b.Clock.After(look):
		}
	}
}

// patch changes an object, or its status.
func (b *bench) patch(ctx context.Context, object client.Object, text string) error {
	return b.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(text)))
}

func (b *bench) answer(ctx context.Context, task *api.HumanTask, text string) error {
	return b.Client.Status().Patch(ctx, task, client.RawPatch(types.MergePatchType, []byte(`{"status":{"answer":`+text+`}}`)))
}

// refused expects that a write is turned away with a code.
func refused(err error, code int32, what string) error {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return fmt.Errorf("%s was let in", what)
	case !errors.As(err, &status) || status.Status().Code != code:
		return fmt.Errorf("%s was not refused with %d: %w", what, code, err)
	}
	return nil
}

package controllers

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/humantask"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// runStore keeps what runs, supervised or not, have in objects of their own:
// values and the children of their steps.
type runStore struct {
	// client writes; it may read from a cache, which nothing here relies on.
	client client.Client
	// live reads from the API server.
	live client.Reader
}

// contents is the store of values; it must not read from a cache.
func (s runStore) contents() content.Store {
	return content.Store{Client: runLiveClient{Client: s.client, live: s.live}}
}

// readContent hands the content to a function, if there is a reference to one.
func (s runStore) readContent(ctx context.Context, namespace string, ref *api.ContentRef, use func([]byte) error) error {
	if ref == nil {
		return nil
	}
	data, err := s.contents().Get(ctx, namespace, ref.Digest)
	if err != nil {
		return err
	}
	return use(data)
}

// hydrateInstance loads the values that an instance only refers to; stored is what
// the run's status has of it.
func (s runStore) hydrateInstance(ctx context.Context, run *api.WorkflowRun, stored *api.RunInstance, in *engine.Instance) error {
	for _, key := range slices.Sorted(maps.Keys(in.ContextRefs)) {
		var value any
		if err := s.loadValue(ctx, run.Namespace, in.ContextRefs[key].Digest, &value); err != nil {
			return fmt.Errorf("load context key %q: %w", key, err)
		}
		in.Context[key] = value
	}
	in.ContextRefs = nil
	for i := range in.ActiveBranches {
		branch := &stored.ActiveBranches[i]
		if branch.InputRef == nil {
			continue
		}
		input, err := s.loadInput(ctx, run, branch)
		if err != nil {
			return err
		}
		in.ActiveBranches[i].Input = input
	}
	return nil
}

// loadInput returns the resolved input of an open activation.
func (s runStore) loadInput(ctx context.Context, run *api.WorkflowRun, branch *api.ActiveBranch) (engine.Values, error) {
	var value any
	switch {
	case branch.InputRef != nil:
		if err := s.loadValue(ctx, run.Namespace, branch.InputRef.Digest, &value); err != nil {
			return nil, fmt.Errorf("load input of %s: %w", branch.Activation, err)
		}
	case branch.Input != nil:
		var err error
		if value, err = jsonvalue.Decode(branch.Input.Raw); err != nil {
			return nil, fmt.Errorf("decode input of %s: %w", branch.Activation, err)
		}
	}
	input, _ := value.(map[string]any)
	return input, nil
}

// loadValue decodes a stored value; one that is beyond repair is a lostValueError.
func (s runStore) loadValue(ctx context.Context, namespace, digest string, into *any) error {
	data, err := s.contents().Get(ctx, namespace, digest)
	if isBeyondRepair(err) {
		return &lostValueError{digest: digest, cause: err}
	}
	if err != nil {
		return err
	}
	*into, err = jsonvalue.Decode(data)
	return err
}

// create makes a child and returns what is stored. One that is there already
// is as good if it is the run's own. What the API server will never take
// becomes the refusal.
func (s runStore) create(ctx context.Context, run *api.WorkflowRun, child client.Object, refusal error) (client.Object, error) {
	err := s.client.Create(ctx, child)
	switch {
	case err == nil:
		return child, nil
	case apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err):
		return nil, refused(refusal, err)
	case !apierrors.IsAlreadyExists(err):
		return nil, fmt.Errorf("create %s: %w", child.GetName(), err)
	}
	stored, err := s.stored(ctx, child)
	if err != nil {
		return nil, err
	}
	if !metav1.IsControlledBy(stored, run) {
		return nil, failChild(engine.PhaseExecution, codeNameTaken, "%s exists and is not of this run", child.GetName())
	}
	return stored, nil
}

// stored reads the object of the same kind and name from the API server.
func (s runStore) stored(ctx context.Context, like client.Object) (client.Object, error) {
	kind, err := apiutil.GVKForObject(like, s.client.Scheme())
	if err != nil {
		return nil, fmt.Errorf("name kind of %s: %w", like.GetName(), err)
	}
	object, err := s.client.Scheme().New(kind)
	if err != nil {
		return nil, fmt.Errorf("make %s: %w", kind.Kind, err)
	}
	stored, isObject := object.(client.Object)
	if !isObject {
		return nil, fmt.Errorf("make %s: it is no object", kind.Kind)
	}
	if err := s.live.Get(ctx, client.ObjectKeyFromObject(like), stored); err != nil {
		return nil, fmt.Errorf("read %s: %w", like.GetName(), err)
	}
	return stored, nil
}

// closeTask ends a task that nobody needs to answer any more.
func (s runStore) closeTask(ctx context.Context, run *api.WorkflowRun, task *api.HumanTask, now metav1.Time) error {
	closing := task.DeepCopy()
	closing.Status.Closed = &api.TaskClosed{Reason: api.CloseCancelled, Message: closeMessage(run), At: now}
	humantask.Observe(task, &closing.Status, now.Time)
	err := s.client.Status().Update(ctx, closing)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		// Somebody was faster; what they did brings the run here again.
		return nil
	}
	if err != nil {
		return fmt.Errorf("close task %s: %w", task.Name, err)
	}
	return nil
}

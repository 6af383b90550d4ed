package live

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/console"
)

// watched are the kinds whose changes the page hears of, by what it calls them.
var watched = map[string]string{
	"composition": "CompositionList", "turn": "TurnList", "task": "HumanTaskList", "run": "WorkflowRunList",
}

// watch tells of every change to what the page shows. Only the metadata is watched:
// the page reads what it shows.
func (d *consoleDesk) watch(ctx context.Context, tell func(console.Event) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var turn sync.Mutex
	inTurn := func(event console.Event) error {
		turn.Lock()
		defer turn.Unlock()
		return tell(event)
	}
	var all sync.WaitGroup
	for kind, list := range watched {
		all.Go(func() {
			if err := d.watchKind(ctx, kind, list, inTurn); err != nil {
				stop(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// watchKind tells of a kind. Who may not watch it hears that, and of the others.
func (d *consoleDesk) watchKind(ctx context.Context, kind, list string, tell func(console.Event) error) error {
	objects := &metav1.PartialObjectMetadataList{}
	objects.SetGroupVersionKind(api.GroupVersion.WithKind(list))
	err := d.observe(ctx, objects, observer{
		listed: func() error { return tell(console.Event{Kind: kind}) },
		changed: func(_ watch.EventType, object runtime.Object) error {
			found, err := apimeta.Accessor(object)
			if err != nil {
				return fmt.Errorf("watch %s: %w", kind, err)
			}
			return tell(console.Event{Kind: kind, Name: found.GetName()})
		},
	}, client.InNamespace(d.namespace))
	if apierrors.IsForbidden(err) {
		if failed := tell(console.Event{Kind: kind, Blind: err.Error()}); failed != nil {
			return failed
		}
		<-ctx.Done()
		return nil
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

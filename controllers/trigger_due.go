package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/streamevent"
)

// dueTrigger is a trigger that has not seen an event.
type dueTrigger struct {
	comp    *api.Composition
	trigger api.Trigger
}

// fieldTriggerType is the field by which the cache finds the compositions that
// have triggers of an event type.
const fieldTriggerType = "spec.triggers.eventType"

// indexTriggers makes the cache find compositions by what triggers them, and
// events by what they started.
func indexTriggers(mgr ctrl.Manager) error {
	ctx := context.Background() //nolint:forbidigo // set-up has no context, and the call waits for nothing
	indexer := mgr.GetFieldIndexer()
	err := errors.Join(
		indexer.IndexField(ctx, &api.Composition{}, fieldTriggerType, func(object client.Object) []string {
			return triggerTypes(object.(*api.Composition))
		}),
		indexer.IndexField(ctx, &api.StreamEvent{}, fieldStartedRun, func(object client.Object) []string {
			var runs []string
			for _, t := range object.(*api.StreamEvent).Status.Triggers {
				if t.Run != "" {
					runs = append(runs, t.Run)
				}
			}
			return runs
		}),
	)
	if err != nil {
		return fmt.Errorf("index triggers: %w", err)
	}
	return nil
}

// dueTriggers are the triggers that are to see the event and have not, by
// composition and in the order of its spec. The cache says which compositions
// are worth a look; event and compositions are then read from the API server.
func (r *StreamEventReconciler) dueTriggers(ctx context.Context, e *api.StreamEvent) ([]dueTrigger, error) {
	var list api.CompositionList
	err := r.Client.List(ctx, &list, client.InNamespace(e.Namespace), client.MatchingFields{fieldTriggerType: e.Spec.Type}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list compositions: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b api.Composition) int { return cmp.Compare(a.Name, b.Name) })
	var due []dueTrigger
	for i := range list.Items {
		if len(triggersDue(&list.Items[i], e)) == 0 {
			continue
		}
		comp, err := r.liveComposition(ctx, &list.Items[i])
		if err != nil {
			return nil, err
		}
		if comp != nil {
			due = append(due, triggersDue(comp, e)...)
		}
	}
	if len(due) == 0 {
		return nil, nil
	}
	fresh, err := isFresh(ctx, r.Live, e)
	if err != nil || !fresh {
		// The next version of the event brings it here again.
		return nil, err
	}
	return due, nil
}

// liveComposition reads a composition from the API server, nil if it is gone.
func (r *StreamEventReconciler) liveComposition(ctx context.Context, seen *api.Composition) (*api.Composition, error) {
	live := &api.Composition{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(seen), live)
	if apierrors.IsNotFound(err) || err == nil && live.UID != seen.UID {
		return nil, nil //nolint:nilnil // a composition that is gone triggers nothing
	}
	if err != nil {
		return nil, fmt.Errorf("read composition %s: %w", seen.Name, err)
	}
	return live, nil
}

// triggersDue are a composition's triggers that are to see the event.
func triggersDue(comp *api.Composition, e *api.StreamEvent) []dueTrigger {
	if !comp.DeletionTimestamp.IsZero() {
		return nil
	}
	since := streamevent.TriggersSince(comp)
	var due []dueTrigger
	for _, t := range comp.Spec.Triggers {
		active, isActive := since[t.Name]
		switch {
		case t.EventType != e.Spec.Type || t.Suspend || !isActive:
		case e.CreationTimestamp.Time.Before(active.Truncate(time.Second)):
		case hasSeen(e, comp, t.Name):
		default:
			due = append(due, dueTrigger{comp: comp, trigger: t})
		}
	}
	return due
}

// hasSeen tells whether the trigger looked at the event.
func hasSeen(e *api.StreamEvent, comp *api.Composition, trigger string) bool {
	return slices.ContainsFunc(e.Status.Triggers, func(t api.EventTrigger) bool {
		return t.UID == string(comp.UID) && t.Trigger == trigger
	})
}

// eventsFor are the events that a composition's triggers are to see and have
// not: those that were looked at before the cache had the composition.
func (r *StreamEventReconciler) eventsFor(ctx context.Context, object client.Object) []reconcile.Request {
	comp, isComposition := object.(*api.Composition)
	if !isComposition {
		return nil
	}
	var requests []reconcile.Request
	for _, eventType := range triggerTypes(comp) {
		var list api.StreamEventList
		err := r.Client.List(ctx, &list, client.InNamespace(comp.Namespace), client.MatchingFields{fieldEventType: eventType}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil // the cache is not there yet, and then every event is looked at anyway
		}
		for i := range list.Items {
			if len(triggersDue(comp, &list.Items[i])) > 0 {
				requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: comp.Namespace, Name: list.Items[i].Name}})
			}
		}
	}
	return requests
}

// triggerTypes are the event types of a composition's triggers, each once.
func triggerTypes(comp *api.Composition) []string {
	var eventTypes []string
	for _, t := range comp.Spec.Triggers {
		eventTypes = append(eventTypes, t.EventType)
	}
	slices.Sort(eventTypes)
	return slices.Compact(eventTypes)
}

package controllers

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/streamevent"
)

// fieldFailedTrigger is the field by which the cache finds the events that
// could not start a run of a composition.
const fieldFailedTrigger = "status.triggers.failed"

// indexFailedTriggers makes the cache find events by whose triggers failed.
func indexFailedTriggers(mgr ctrl.Manager) error {
	ctx := context.Background() //nolint:forbidigo // set-up has no context, and the call waits for nothing
	err := mgr.GetFieldIndexer().IndexField(ctx, &api.StreamEvent{}, fieldFailedTrigger, func(object client.Object) []string {
		var uids []string
		for _, t := range object.(*api.StreamEvent).Status.Triggers {
			if t.Outcome == api.TriggerFailed {
				uids = append(uids, t.UID)
			}
		}
		return uids
	})
	if err != nil {
		return fmt.Errorf("index failed triggers: %w", err)
	}
	return nil
}

// failedTriggerHandler wakes compositions when an event that failed for them
// comes or goes.
func failedTriggerHandler() handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e ctrlevent.UpdateEvent, queue runQueue) {
			before, wasEvent := e.ObjectOld.(*api.StreamEvent)
			after, isEvent := e.ObjectNew.(*api.StreamEvent)
			if wasEvent && isEvent && len(before.Status.Triggers) != len(after.Status.Triggers) {
				enqueueFailed(queue, after)
			}
		},
		DeleteFunc: func(_ context.Context, e ctrlevent.DeleteEvent, queue runQueue) {
			if gone, isEvent := e.Object.(*api.StreamEvent); isEvent {
				enqueueFailed(queue, gone)
			}
		},
	}
}

func enqueueFailed(queue runQueue, e *api.StreamEvent) {
	for _, t := range e.Status.Triggers {
		if t.Outcome == api.TriggerFailed {
			queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: e.Namespace, Name: t.Composition}})
		}
	}
}

// failedTriggers are the failures of a composition's triggers by name, newest
// first, of the events that are stored.
func failedTriggers(ctx context.Context, reader client.Reader, comp *api.Composition) (map[string][]api.TriggerFailure, error) {
	if len(comp.Spec.Triggers) == 0 {
		return nil, nil
	}
	var list api.StreamEventList
	err := reader.List(ctx, &list, client.InNamespace(comp.Namespace), client.MatchingFields{fieldFailedTrigger: string(comp.UID)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list events that failed: %w", err)
	}
	failures := map[string][]api.TriggerFailure{}
	for i := range list.Items {
		for _, t := range list.Items[i].Status.Triggers {
			if t.UID == string(comp.UID) && t.Outcome == api.TriggerFailed {
				failures[t.Trigger] = append(failures[t.Trigger], api.TriggerFailure{
					Event: list.Items[i].Name, Message: t.Message, Generation: t.Generation, At: t.At,
				})
			}
		}
	}
	for name, some := range failures {
		slices.SortFunc(some, func(a, b api.TriggerFailure) int {
			return cmp.Or(b.At.Compare(a.At.Time), cmp.Compare(a.Event, b.Event))
		})
		failures[name] = some[:min(len(some), api.MaxTriggerFailures)]
	}
	return failures, nil
}

// setTriggerStatus says since when each trigger is active, what it failed at,
// and whether any failed since the last edit.
func setTriggerStatus(comp *api.Composition, failures map[string][]api.TriggerFailure) {
	status := &comp.Status
	status.Triggers = nil
	if len(comp.Spec.Triggers) == 0 {
		apimeta.RemoveStatusCondition(&status.Conditions, api.ConditionTriggersReady)
		return
	}
	since := streamevent.TriggersSince(comp)
	reason, message := api.ReasonListening, ""
	for _, t := range comp.Spec.Triggers {
		entry := api.TriggerStatus{Name: t.Name, Failures: failures[t.Name]}
		active, isNoted := since[t.Name]
		if isNoted && !t.Suspend {
			entry.Since = new(metav1.NewTime(active))
		}
		status.Triggers = append(status.Triggers, entry)
		switch {
		case reason == api.ReasonNotAdmitted:
		case !isNoted && !t.Suspend:
			reason, message = api.ReasonNotAdmitted, "admission did not note since when trigger "+t.Name+" is active"
		case reason == api.ReasonListening && len(entry.Failures) > 0 && entry.Failures[0].Generation == comp.Generation:
			failure := entry.Failures[0]
			reason, message = api.ReasonTriggerFailed, fmt.Sprintf("trigger %s, event %s: %s", t.Name, failure.Event, failure.Message)
		}
	}
	set := conditionSetter{conditions: &status.Conditions, generation: comp.Generation}
	set.set(api.ConditionTriggersReady, statusOf(reason == api.ReasonListening), reason, message)
}

// announce tells people of triggers that failed, at the composition that has
// them.
func (r *StreamEventReconciler) announce(before, after *api.StreamEvent) {
	if r.Recorder == nil {
		return
	}
	for _, t := range after.Status.Triggers {
		isNews := !slices.ContainsFunc(before.Status.Triggers, func(old api.EventTrigger) bool { return old.UID == t.UID && old.Trigger == t.Trigger })
		if t.Outcome != api.TriggerFailed || !isNews {
			continue
		}
		comp := &api.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: after.Namespace, Name: t.Composition, UID: types.UID(t.UID)}}
		r.Recorder.Eventf(comp, after, corev1.EventTypeWarning, api.ReasonTriggerFailed, "StartRun", "%s",
			truncate("trigger "+t.Trigger+": "+t.Message, maxRunNote))
	}
}

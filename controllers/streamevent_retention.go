package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/streamevent"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// EventRetention says how long events are kept.
type EventRetention struct {
	// After which an event goes that nobody may still need; zero: it stays.
	After time.Duration
	// Limit after which it goes whoever may need it; at least After.
	Limit time.Duration
}

const (
	// retentionPause gathers events that expire about the same time.
	retentionPause = time.Minute
	// retentionRecheck is when an event that was kept is looked at again.
	retentionRecheck = time.Hour
)

// EventRetentionReconciler deletes old events, namespace by namespace. An event
// whose time is over stays while a run could still take it: one that was there
// when it arrived, that is not finished, and that has a node for it which looks
// back so far. It also stays until all triggers have seen it.
type EventRetentionReconciler struct {
	// Client reads from the cache and deletes.
	Client client.Client
	// Clock tells the age of events.
	Clock clock.PassiveClock
	// Retention is the rule.
	Retention EventRetention
}

// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=streamevents,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=workflowruns,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch

// SetupWithManager registers the controller, unless events stay for ever.
func (r *EventRetentionReconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Retention.After <= 0 {
		return nil
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("streameventretention").
		Watches(&api.StreamEvent{}, handler.Funcs{
			CreateFunc: func(_ context.Context, e ctrlevent.CreateEvent, queue runQueue) {
				queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: e.Object.GetNamespace()}})
			},
		}).
		Complete(r)
}

// Reconcile deletes what is over in a namespace, and comes back when more is.
func (r *EventRetentionReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	namespace := client.InNamespace(req.Name)
	var stored api.StreamEventList
	if err := r.Client.List(ctx, &stored, namespace, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, fmt.Errorf("list events: %w", err)
	}
	old := retentionView{rule: r.Retention, now: r.Clock.Now()}
	if slices.ContainsFunc(stored.Items, old.isPast) {
		var runs api.WorkflowRunList
		if err := r.Client.List(ctx, &runs, namespace, client.UnsafeDisableDeepCopy); err != nil {
			return ctrl.Result{}, fmt.Errorf("list runs: %w", err)
		}
		var err error
		if old.holders, err = r.holders(ctx, runs.Items); err != nil {
			return ctrl.Result{}, err
		}
	}
	expired, again := old.judge(stored.Items)
	var errs []error
	for _, e := range expired {
		err := r.Client.Delete(ctx, e, client.Preconditions{UID: &e.UID})
		errs = append(errs, wrap("delete event "+e.Name, client.IgnoreNotFound(err)))
	}
	return ctrl.Result{RequeueAfter: again}, errors.Join(errs...)
}

// retentionView is what decides whether an event stays.
type retentionView struct {
	rule    EventRetention
	now     time.Time
	holders []eventHolder
}

// eventHolder is a run that is not finished, and its nodes that wait for events.
type eventHolder struct {
	run *api.WorkflowRun
	// isUnknown: it cannot be told what the run may wait for.
	isUnknown bool
	receivers []workflow.Node
}

func (v retentionView) isPast(e api.StreamEvent) bool {
	return !v.now.Before(e.CreationTimestamp.Add(v.rule.After))
}

// judge returns the events whose time is over, and how long until that must be
// asked again; zero: not before another event arrives.
func (v retentionView) judge(stored []api.StreamEvent) (expired []*api.StreamEvent, again time.Duration) {
	next := runMoments{now: v.now}
	for i := range stored {
		e := &stored[i]
		end := e.CreationTimestamp.Add(v.rule.Limit)
		switch {
		case !e.DeletionTimestamp.IsZero():
		case !v.isPast(*e):
			next.add(e.CreationTimestamp.Add(v.rule.After))
		case v.now.Before(end) && v.isNeeded(e):
			next.add(end)
			next.add(v.now.Add(retentionRecheck))
		default:
			expired = append(expired, e)
		}
	}
	if next.next.IsZero() {
		return expired, 0
	}
	return expired, max(next.until(), retentionPause)
}

func (v retentionView) isNeeded(e *api.StreamEvent) bool {
	isObserved := apimeta.FindStatusCondition(e.Status.Conditions, api.ConditionReady) != nil
	return !isObserved || slices.ContainsFunc(v.holders, func(h eventHolder) bool { return h.mayTake(e, v.now) })
}

// mayTake tells whether the run could still take the event.
func (h eventHolder) mayTake(e *api.StreamEvent, now time.Time) bool {
	if e.CreationTimestamp.Time.Before(h.run.CreationTimestamp.Time) {
		return false
	}
	return h.isUnknown || slices.ContainsFunc(h.receivers, func(node workflow.Node) bool {
		return node.EventType() == e.Spec.Type && !h.hasConsumed(node, e) && (h.isOpenFor(node, e) || looksBackTo(node, e, now))
	})
}

func (h eventHolder) hasConsumed(node workflow.Node, e *api.StreamEvent) bool {
	if h.run.Status.Instance == nil {
		return false
	}
	consumed := h.run.Status.Instance.Consumed[node.ID()]
	return slices.Contains(consumed.IDs, streamevent.Identity(e)) || e.CreationTimestamp.Time.Before(runMoment(consumed.Floor))
}

// isOpenFor tells whether the run waits at the node and counts the event.
func (h eventHolder) isOpenFor(node workflow.Node, e *api.StreamEvent) bool {
	if h.run.Status.Instance == nil {
		return false
	}
	return slices.ContainsFunc(h.run.Status.Instance.ActiveBranches, func(b api.ActiveBranch) bool {
		return b.Node == node.ID() && !e.CreationTimestamp.Time.Before(runMoment(b.Since))
	})
}

// looksBackTo tells whether a visit of the node that is yet to come could count
// the event.
func looksBackTo(node workflow.Node, e *api.StreamEvent, now time.Time) bool {
	switch lookback := node.Lookback(); lookback {
	case workflow.LookbackNone:
		return false
	case workflow.LookbackRunStart:
		return true
	default:
		reach, err := workflow.ParseDuration(lookback)
		return err != nil || !e.CreationTimestamp.Time.Before(now.Add(-reach).Truncate(time.Second))
	}
}

// holders are the runs that are not finished. Each definition is read once.
func (r *EventRetentionReconciler) holders(ctx context.Context, runs []api.WorkflowRun) ([]eventHolder, error) {
	known := map[string]eventHolder{}
	var holders []eventHolder
	for i := range runs {
		run := &runs[i]
		if isRunFinished(run) || !run.DeletionTimestamp.IsZero() {
			continue
		}
		name := ""
		if run.Status.Definition != nil {
			name = run.Status.Definition.Snapshot
		}
		if _, isKnown := known[name]; !isKnown {
			holder, err := r.holderOf(ctx, run.Namespace, name)
			if err != nil {
				return nil, err
			}
			known[name] = holder
		}
		holder := known[name]
		holder.run = run
		holders = append(holders, holder)
	}
	return holders, nil
}

// holderOf says what runs of a snapshot may wait for.
func (r *EventRetentionReconciler) holderOf(ctx context.Context, namespace, name string) (eventHolder, error) {
	if name == "" {
		return eventHolder{isUnknown: true}, nil
	}
	snapshot, err := loadSnapshot(ctx, r.Client, namespace, name)
	if err != nil || snapshot == nil {
		return eventHolder{isUnknown: true}, err
	}
	var receivers []workflow.Node
	for _, node := range workflow.Read(snapshot.Workflow).Nodes() {
		if node.Kind() == workflow.KindReceiveEvent {
			receivers = append(receivers, node)
		}
	}
	return eventHolder{receivers: receivers}, nil
}

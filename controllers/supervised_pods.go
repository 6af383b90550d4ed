package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// podsRetry is when pods that are on their way out are looked at again.
const podsRetry = time.Second

// sessionsOf are the agent sessions of a run, as they are stored.
func (r *SupervisedRunReconciler) sessionsOf(ctx context.Context, run *api.WorkflowRun) ([]api.AgentSession, error) {
	var all api.AgentSessionList
	if err := r.Live.List(ctx, &all, client.InNamespace(run.Namespace), client.MatchingLabels{api.LabelRun: string(run.UID)}); err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	var own []api.AgentSession
	for i := range all.Items {
		if metav1.IsControlledBy(&all.Items[i], run) {
			own = append(own, all.Items[i])
		}
	}
	return own, nil
}

// restSessions has all agents' pods go, and tells whether none is left. Their
// conversations go on later.
func (r *SupervisedRunReconciler) restSessions(ctx context.Context, run *api.WorkflowRun) (bool, error) {
	return r.quiet(ctx, run, func(spec *api.AgentSessionSpec) bool {
		isAwake := !spec.Suspended && !spec.Stopped
		spec.Suspended = true
		return isAwake
	})
}

// stopSessions ends all agents for good, and tells whether no pod is left.
func (r *SupervisedRunReconciler) stopSessions(ctx context.Context, run *api.WorkflowRun) (bool, error) {
	return r.quiet(ctx, run, func(spec *api.AgentSessionSpec) bool {
		goesOn := !spec.Stopped
		spec.Stopped = true
		return goesOn
	})
}

func (r *SupervisedRunReconciler) quiet(ctx context.Context, run *api.WorkflowRun, change func(*api.AgentSessionSpec) bool) (bool, error) {
	sessions, err := r.sessionsOf(ctx, run)
	if err != nil {
		return false, err
	}
	isQuiet := true
	var errs []error
	for i := range sessions {
		session := &sessions[i]
		changed := session.DeepCopy()
		if change(&changed.Spec) {
			if err := client.IgnoreNotFound(r.Client.Patch(ctx, changed, client.MergeFrom(session))); err != nil {
				errs = append(errs, fmt.Errorf("end pod of session %s: %w", session.Name, err))
			}
		}
		hasPod, err := r.hasPod(ctx, session)
		errs = append(errs, err)
		isQuiet = isQuiet && !hasPod && isAtRest(session)
	}
	return isQuiet, errors.Join(errs...)
}

// isAtRest tells whether no pod of the session will be made.
func isAtRest(session *api.AgentSession) bool {
	return session.Status.Phase == api.SessionSuspended || session.Status.Phase == api.SessionStopped || session.Status.Phase == api.SessionFailed
}

// hasPod asks the API server; a cache may not know the pod yet.
func (r *SupervisedRunReconciler) hasPod(ctx context.Context, session *api.AgentSession) (bool, error) {
	pods := &metav1.PartialObjectMetadataList{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	err := r.Live.List(ctx, pods, client.InNamespace(session.Namespace), client.MatchingLabels{api.LabelSession: session.Name})
	if err != nil {
		return false, fmt.Errorf("list pods: %w", err)
	}
	return len(pods.Items) > 0, nil
}

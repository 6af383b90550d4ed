package controllers

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/telemetry"
)

// report tells of a commit, after it: people by an Event and the log, machines
// by metrics and spans. All name places and codes, no values.
func (r *WorkflowRunReconciler) report(ctx context.Context, before, after *api.WorkflowRun, closed []engine.Entry) {
	announceRun(r.Recorder, before, after)
	r.Metrics.committed(before, after, closed)
	r.logCommit(ctx, before, after, closed)
	if r.Tracing != nil {
		r.traceCommit(ctx, after, closed)
	}
}

// announceRun tells people of what they should notice of a run: that it began, that
// it ended and how, and that it can get no further. What it asks of them is a
// task of its own.
func announceRun(recorder events.EventRecorder, before, after *api.WorkflowRun) {
	if recorder == nil {
		return
	}
	switch {
	case before.Status.FinishedAt == nil && after.Status.FinishedAt != nil:
		kind := corev1.EventTypeNormal
		if after.Status.Phase == api.RunFailed {
			kind = corev1.EventTypeWarning
		}
		note := "run is " + string(after.Status.Phase) + atFailure(after)
		recorder.Eventf(after, nil, kind, string(after.Status.Phase), "Finish", "%s", truncate(note, maxRunNote))
	case before.Status.StartedAt == nil && after.Status.StartedAt != nil:
		recorder.Eventf(after, nil, corev1.EventTypeNormal, "Started", "Start", "run has started")
	case isStatusLost(after) && !isStatusLost(before):
		recorder.Eventf(after, nil, corev1.EventTypeWarning, api.ReasonStatusLost, "Stop", "run has children but its status is gone")
	}
}

// maxRunNote is what an Event's note may have.
const maxRunNote = 1000

func isStatusLost(run *api.WorkflowRun) bool {
	stalled := apimeta.FindStatusCondition(run.Status.Conditions, api.ConditionStalled)
	return stalled != nil && stalled.Reason == api.ReasonStatusLost
}

// atFailure says what ended a run and where, with a leading colon; empty if
// nothing failed.
func atFailure(run *api.WorkflowRun) string {
	if run.Status.Instance == nil || run.Status.Instance.Failure == nil {
		return ""
	}
	failure := run.Status.Instance.Failure
	return ": " + failure.Code + " in " + failure.Phase + atActivation(failure.Activation)
}

func failureCode(run *api.WorkflowRun) string {
	if run.Status.Instance == nil || run.Status.Instance.Failure == nil {
		return ""
	}
	return run.Status.Instance.Failure.Code
}

func (r *WorkflowRunReconciler) logCommit(ctx context.Context, before, after *api.WorkflowRun, closed []engine.Entry) {
	log := ctrl.LoggerFrom(ctx).WithValues("run", after.Name, "uid", after.UID)
	if before.Status.StartedAt == nil && after.Status.StartedAt != nil {
		log.Info("Run started", "snapshot", after.Status.Definition.Snapshot, "traceID", after.Status.TraceID)
	}
	for i := range closed {
		entry := &closed[i]
		code := ""
		if entry.Error != nil {
			code = entry.Error.Code
		}
		log.V(1).Info("Activation closed", "activation", entry.Activation, "outcome", entry.Outcome, "code", code)
	}
	if before.Status.FinishedAt == nil && after.Status.FinishedAt != nil {
		log.Info("Run finished", "phase", after.Status.Phase, "code", failureCode(after))
	}
}

// retold is how far back what was closed before this process began is told once
// more: an operator that was killed may not have sent its last spans.
const retold = time.Minute

// runTold remembers which runs' spans this process sends as they come. The zero
// value is ready.
type runTold struct {
	mu    sync.Mutex
	since time.Time
	known map[types.UID]bool
}

// meet tells whether a run is seen for the first time, and from when on what
// closed is to be told of it.
func (t *runTold) meet(uid types.UID, now time.Time) (since time.Time, isNew bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known, t.since = map[types.UID]bool{}, now.Add(-retold)
	}
	isNew = !t.known[uid]
	t.known[uid] = true
	return t.since, isNew
}

func (t *runTold) forget(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, uid)
}

// traceAgain sends the spans of what closed shortly before this process began. A
// span that was sent already is the same span.
func (r *WorkflowRunReconciler) traceAgain(ctx context.Context, run *api.WorkflowRun) {
	if r.Tracing == nil || run == nil {
		return
	}
	since, isNew := r.told.meet(run.UID, r.Clock.Now())
	if !isNew || run.Status.StartedAt == nil {
		return
	}
	about := tracedRun(run)
	for i := range run.Status.History.Entries {
		if entry := &run.Status.History.Entries[i]; !runMoment(entry.CompletedOn).Before(since) {
			r.Tracing.Closed(ctx, about, tracedHistory(entry))
		}
	}
	if run.Status.FinishedAt != nil && !run.Status.FinishedAt.Time.Before(since) {
		r.Tracing.Ended(ctx, about, tracedEnding(run))
	}
}

func (r *WorkflowRunReconciler) traceCommit(ctx context.Context, after *api.WorkflowRun, closed []engine.Entry) {
	if after.Status.StartedAt == nil {
		return
	}
	about := tracedRun(after)
	for i := range closed {
		r.Tracing.Closed(ctx, about, tracedEntry(&closed[i]))
	}
	if after.Status.FinishedAt != nil {
		r.Tracing.Ended(ctx, about, tracedEnding(after))
	}
}

func tracedRun(run *api.WorkflowRun) telemetry.Run {
	return telemetry.Run{UID: string(run.UID), Namespace: run.Namespace, Name: run.Name, Started: run.Status.StartedAt.Time}
}

// tracedEnding is no earlier than what closed last, which is dated more finely.
func tracedEnding(run *api.WorkflowRun) telemetry.Ending {
	end := telemetry.Ending{Phase: string(run.Status.Phase), Code: failureCode(run), At: run.Status.FinishedAt.Time}
	for i := range run.Status.History.Entries {
		if completed := runMoment(run.Status.History.Entries[i].CompletedOn); completed.After(end.At) {
			end.At = completed
		}
	}
	return end
}

func tracedEntry(entry *engine.Entry) telemetry.Activation {
	a := telemetry.Activation{
		ID: entry.Activation, Node: entry.Node, Type: string(entry.Type), Branch: entry.Branch,
		Outcome: string(entry.Outcome), Attempts: entry.Attempts, Entered: entry.EnteredOn, Closed: entry.CompletedOn,
	}
	if entry.Error != nil {
		a.Code = entry.Error.Code
	}
	return a
}

func tracedHistory(entry *api.HistoryEntry) telemetry.Activation {
	a := telemetry.Activation{
		ID: entry.Activation, Node: entry.Node, Type: entry.Type, Branch: entry.Branch,
		Outcome: entry.Outcome, Attempts: int(entry.Attempts), Entered: runMoment(entry.EnteredOn), Closed: runMoment(entry.CompletedOn),
	}
	if entry.Error != nil {
		a.Code = entry.Error.Code
	}
	return a
}

package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/definition"
	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/frames"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/telemetry"
)

// maxExecutions are kept in a status.
const maxExecutions = 16

// supervisedPass is one run as a pass sees and changes it. What it changes counts
// when it is committed.
type supervisedPass struct {
	// run as it is stored.
	run    *api.WorkflowRun
	bundle *definition.Bundle
	def    frames.Definition
	now    time.Time

	state      frames.State
	intents    []api.RunIntent
	workspace  api.RunWorkspace
	sessions   []api.RunSession
	executions []api.RunExecution
	definition *api.RunDefinition

	// closed activations and their receipts, not committed yet.
	closed  []closedActivation
	outputs map[string]any
	outcome string
	// seenResumes: the resume requests so far are observed.
	seenResumes bool
	// source of the definition before this execution: Remote or Retained; empty: as it was.
	source string
	// refusedSession is why an agent's conversation could not be taken up again.
	refusedSession string
	// refusedAnswer is why an answer was refused; nil: as it was.
	refusedAnswer *string
	// answered checkpoints, for people.
	answered []string
	// stalled is the reason why the run can get no further by itself.
	stalled, stalledMessage string
	// isCancelling fences new steps.
	isCancelling bool
	// awaits is why there is no definition yet.
	awaits string
	// podsTerminating keeps the run from being suspended.
	podsTerminating bool

	objects *openObjects
}

// closedActivation is a history entry to be.
type closedActivation struct {
	frames.Entry
	receipt map[string]any
}

// receiptOf is what the entry of an activation tells besides.
type receiptOf struct {
	activation string
	receipt    map[string]any
}

// newPass looks at a run that is defined by a bundle.
func (r *SupervisedRunReconciler) newPass(run *api.WorkflowRun, bundle *definition.Bundle) *supervisedPass {
	p := r.passWithoutBundle(run)
	p.bundle, p.def = bundle, framesOf(bundle, r.Expressions)
	return p
}

// passWithoutBundle looks at a run whose definition cannot be read. It can be ended.
func (r *SupervisedRunReconciler) passWithoutBundle(run *api.WorkflowRun) *supervisedPass {
	p := &supervisedPass{
		run: run, now: r.Clock.Now(),
		intents: slices.Clone(run.Status.Intents), sessions: slices.Clone(run.Status.Sessions), executions: slices.Clone(run.Status.Executions),
		definition: run.Status.Definition,
	}
	if run.Status.Workspace != nil {
		p.workspace = *run.Status.Workspace.DeepCopy()
	}
	return p
}

// load reads the engine's state, with the values that are kept outside.
func (r *SupervisedRunReconciler) load(ctx context.Context, p *supervisedPass) error {
	root, err := r.loadInstance(ctx, p.run, p.run.Status.Instance)
	if err != nil {
		return err
	}
	p.state = frames.State{Root: root, Opened: map[string]int{}, Entries: int(p.run.Status.History.Total)}
	for path, count := range p.run.Status.Opened {
		p.state.Opened[path] = int(count)
	}
	for i := range p.run.Status.Frames {
		stored := &p.run.Status.Frames[i]
		instance, err := r.loadInstance(ctx, p.run, &stored.Instance)
		if err != nil {
			return err
		}
		p.state.Frames = append(p.state.Frames, frames.Frame{
			Path: stored.Path, Call: stored.Call, Component: stored.Component, Iteration: int(stored.Iteration), Item: int(stored.Item), Instance: instance,
		})
	}
	for i := range p.run.Status.Calls {
		state, err := r.loadCall(ctx, p.run, &p.run.Status.Calls[i])
		if err != nil {
			return err
		}
		p.state.Calls = append(p.state.Calls, state)
	}
	return nil
}

func (r *SupervisedRunReconciler) loadInstance(ctx context.Context, run *api.WorkflowRun, stored *api.RunInstance) (engine.Instance, error) {
	in, err := runInstance(stored)
	if err != nil {
		return in, err
	}
	return in, r.store().hydrateInstance(ctx, run, stored, &in)
}

func (r *SupervisedRunReconciler) loadCall(ctx context.Context, run *api.WorkflowRun, stored *api.RunCallState) (frames.CallState, error) {
	var value any
	var err error
	switch {
	case stored.StateRef != nil:
		err = r.store().loadValue(ctx, run.Namespace, stored.StateRef.Digest, &value)
	case stored.State != nil:
		value, err = jsonvalue.Decode(stored.State.Raw)
	}
	if err != nil {
		return frames.CallState{}, fmt.Errorf("load state of call %s: %w", stored.Call, err)
	}
	state := frames.CallState{Call: stored.Call}
	object, _ := value.(map[string]any)
	state.Items, _ = object["items"].([]any)
	state.Results, _ = object["results"].([]any)
	return state, nil
}

// component that a frame calls; the root without a name.
func (p *supervisedPass) component(name string) *definition.Component {
	if component, known := p.bundle.Component(name); known {
		return component
	}
	return p.bundle.Root()
}

// intent of an open activation, nil if there is none yet.
func (p *supervisedPass) intent(activation string) *api.RunIntent {
	for i := range p.intents {
		if p.intents[i].Activation == activation {
			return &p.intents[i]
		}
	}
	return nil
}

// take accepts a step. The receipt is that of the activation it was about.
func (p *supervisedPass) take(ctx context.Context, step frames.Step, about receiptOf) error {
	if !step.Applied {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("step does not apply: %s", step.Reason)
	}
	p.state = step.State
	for _, entry := range step.Closed {
		closed := closedActivation{Entry: entry}
		if entry.Activation == about.activation && entry.Call == nil {
			closed.receipt = about.receipt
		}
		p.closed = append(p.closed, closed)
		if entry.Call == nil {
			p.intents = slices.DeleteFunc(p.intents, func(i api.RunIntent) bool { return i.Activation == entry.Activation })
		}
	}
	if step.Outputs != nil {
		p.outputs = step.Outputs
	}
	if step.Outcome != "" {
		p.outcome = step.Outcome
	}
	return nil
}

// commit stores what the new status refers to, then writes the status. An error
// that isSuperseded says that it was computed from an old run and changed nothing.
func (r *SupervisedRunReconciler) commit(ctx context.Context, p *supervisedPass) error {
	status, pending, err := p.nextStatus()
	if err != nil {
		return err
	}
	if apiequality.Semantic.DeepEqual(&p.run.Status, status) {
		return nil
	}
	for _, digest := range slices.Sorted(maps.Keys(pending)) {
		if _, err := r.store().contents().Put(ctx, p.run, pending[digest]); err != nil {
			return err
		}
	}
	committed := p.run.DeepCopy()
	committed.Status = *status
	err = r.Client.Status().Update(ctx, committed)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return errSuperseded
	}
	if err != nil {
		return fmt.Errorf("update run status: %w", err)
	}
	r.announce(p, committed)
	p.run, p.closed, p.seenResumes = committed, nil, false
	return nil
}

func (r *SupervisedRunReconciler) announce(p *supervisedPass, committed *api.WorkflowRun) {
	announceRun(r.Recorder, p.run, committed)
	if p.seenResumes && committed.Status.Phase == api.RunSuspended && p.run.Status.ObservedResumeRequests < committed.Status.ObservedResumeRequests {
		r.tell(committed, "Normal", "NothingToResume", "Resume", "no answer is there to go on with")
	}
}

// nextStatus computes the status, and what must be stored before it.
func (p *supervisedPass) nextStatus() (*api.WorkflowRunStatus, map[string][]byte, error) {
	for i, limits := 0, runInlineLimits(); ; i++ {
		shelf := &runShelf{limit: limits[i], stored: runStoredValues(&p.run.Status)}
		status, err := p.statusWithin(shelf)
		if err != nil {
			return nil, nil, err
		}
		data, err := json.Marshal(status)
		if err != nil {
			return nil, nil, fmt.Errorf("encode status: %w", err)
		}
		if len(data) <= maxRunStatus || i == len(limits)-1 {
			return status, shelf.pending, nil
		}
	}
}

func (p *supervisedPass) statusWithin(shelf *runShelf) (*api.WorkflowRunStatus, error) {
	status := p.run.Status.DeepCopy()
	status.ObservedGeneration = p.run.Generation
	status.Definition, status.Sessions, status.Executions = p.definition, p.sessions, p.executions
	status.Intents = p.intents
	if p.seenResumes {
		status.ObservedResumeRequests = p.run.Spec.ResumeRequests
	}
	if !apiequality.Semantic.DeepEqual(p.workspace, api.RunWorkspace{}) {
		status.Workspace = p.workspace.DeepCopy()
	}
	if p.state.Root.Status != "" {
		if err := p.writeState(status, shelf); err != nil {
			return nil, err
		}
	}
	if err := p.writeHistory(&status.History, shelf); err != nil {
		return nil, err
	}
	p.conclude(status)
	p.writeConditions(status)
	return status, nil
}

// writeState writes instance, frames and calls.
func (p *supervisedPass) writeState(status *api.WorkflowRunStatus, shelf *runShelf) error {
	if status.StartedAt == nil {
		now := metav1.NewTime(p.now).Rfc3339Copy()
		status.StartedAt = &now
	}
	status.TraceID = telemetry.TraceID(string(p.run.UID)).String()
	if p.outcome != "" {
		status.Outcome = truncate(p.outcome, maxRunName)
	}
	var err error
	if status.Instance, err = statusInstance(p.state.Root, shelf); err != nil {
		return err
	}
	status.Instance.Outcome = status.Outcome
	status.Frames, status.Calls, status.Opened = nil, nil, nil
	for _, frame := range p.state.Frames {
		instance, err := statusInstance(frame.Instance, shelf)
		if err != nil {
			return fmt.Errorf("write frame %s: %w", frame.Path, err)
		}
		status.Frames = append(status.Frames, api.RunFrame{
			Path: frame.Path, Call: frame.Call, Component: frame.Component, Iteration: int64(frame.Iteration), Item: int64(frame.Item), Instance: *instance,
		})
	}
	for _, call := range p.state.Calls {
		written := api.RunCallState{Call: call.Call}
		if written.State, written.StateRef, err = shelf.place(map[string]any{"items": call.Items, "results": call.Results}); err != nil {
			return fmt.Errorf("write call %s: %w", call.Call, err)
		}
		status.Calls = append(status.Calls, written)
	}
	for path, count := range p.state.Opened {
		if status.Opened == nil {
			status.Opened = map[string]int64{}
		}
		status.Opened[path] = int64(count)
	}
	if p.outputs != nil {
		if status.Outputs, status.OutputsRef, err = shelf.place(p.outputs); err != nil {
			return fmt.Errorf("write outputs: %w", err)
		}
	}
	return nil
}

func (p *supervisedPass) writeHistory(history *api.RunHistory, shelf *runShelf) error {
	if err := shrinkHistory(history, shelf); err != nil {
		return err
	}
	for _, closed := range p.closed {
		written, err := statusEntry(closed.Entry.Entry, shelf)
		if err != nil {
			return err
		}
		if call := closed.Call; call != nil {
			written.Call = &api.HistoryCall{
				Path: call.Path, Component: call.Component, SourcePath: call.SourcePath, SourceHash: call.SourceHash,
				Iteration: int64(call.Iteration), Item: int64(call.Item),
			}
		}
		if closed.receipt != nil {
			if written.Receipt, written.ReceiptRef, err = shelf.place(closed.receipt); err != nil {
				return fmt.Errorf("write receipt of %s: %w", closed.Activation, err)
			}
		}
		history.Entries = append(history.Entries, written)
		history.Total = written.Seq
	}
	return pageHistory(history, shelf)
}

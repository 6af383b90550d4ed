package controllers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/telemetry"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// maxRunStatus is the size in bytes of compact JSON beyond which more values
// leave a status than those over content.MaxInline.
const maxRunStatus = 1 << 20

// runInlineLimits are tried in turn until the status fits.
func runInlineLimits() []int {
	return []int{content.MaxInline, 1024, 256, 64}
}

// nextRunStatus computes the status after a plan, and the values that must be
// stored before it is written. It changes nothing that it is given.
func nextRunStatus(state *runState, plan runPlan) (status *api.WorkflowRunStatus, pending map[string][]byte, err error) {
	if isRunFinished(state.run) {
		return observedRunStatus(state.run), nil, nil
	}
	for _, limit := range runInlineLimits() {
		shelf := &runShelf{limit: limit, stored: runStoredValues(&state.run.Status)}
		if status, err = runStatusWithin(state, plan, shelf); err != nil {
			return nil, nil, err
		}
		pending = shelf.pending
		data, err := json.Marshal(status)
		if err != nil {
			return nil, nil, fmt.Errorf("encode status: %w", err)
		}
		if len(data) <= maxRunStatus {
			break
		}
	}
	return status, pending, nil
}

// observedRunStatus is the status of a finished run, which nothing changes but
// that a later generation was seen.
func observedRunStatus(run *api.WorkflowRun) *api.WorkflowRunStatus {
	status := run.Status.DeepCopy()
	status.ObservedGeneration = run.Generation
	for i := range status.Conditions {
		status.Conditions[i].ObservedGeneration = run.Generation
	}
	return status
}

func runStatusWithin(state *runState, plan runPlan, shelf *runShelf) (*api.WorkflowRunStatus, error) {
	status := state.run.Status.DeepCopy()
	status.ObservedGeneration = state.run.Generation
	if plan.resumed {
		status.ObservedResumeRequests = state.run.Spec.ResumeRequests
	}
	if plan.instance != nil {
		if err := setRunInstance(status, state, plan, shelf); err != nil {
			return nil, err
		}
	}
	if status.FinishedAt == nil && (plan.isCancelled || isFinalVerdict(plan.verdict) || isTerminalInstance(status.Instance)) {
		now := metav1.NewTime(state.now).Rfc3339Copy()
		status.FinishedAt = &now
	}
	view := viewRun(state, plan, status)
	status.Phase, status.CurrentNode = view.phase, truncate(strings.Join(view.nodes, ", "), maxRunName)
	status.WaitsFor = view.waits()
	setRunConditions(state, plan, status, view)
	return status, nil
}

func isFinalVerdict(v *runVerdict) bool {
	return v != nil && v.final
}

func isTerminalInstance(instance *api.RunInstance) bool {
	return instance != nil && engine.Status(instance.Status).IsTerminal()
}

// setRunInstance writes the instance with the intents of what was just parked,
// and the history of what closed.
func setRunInstance(status *api.WorkflowRunStatus, state *runState, plan runPlan, shelf *runShelf) error {
	if status.Definition == nil {
		status.Definition = &api.RunDefinition{Snapshot: state.definition.Name, Revision: state.definition.Revision}
	}
	if status.StartedAt == nil {
		now := metav1.NewTime(state.now).Rfc3339Copy()
		status.StartedAt = &now
	}
	status.TraceID = telemetry.TraceID(string(state.run.UID)).String()
	if plan.outcome != "" {
		status.Outcome = truncate(plan.outcome, maxRunName)
	}
	instance, err := statusInstance(withIntents(state, *plan.instance), shelf)
	if err != nil {
		return err
	}
	instance.Outcome = status.Outcome
	status.Instance = instance
	if err := shrinkHistory(&status.History, shelf); err != nil {
		return err
	}
	return extendHistory(&status.History, plan.closed, shelf)
}

// shrinkHistory moves values of entries that are over the limit outside.
func shrinkHistory(history *api.RunHistory, shelf *runShelf) error {
	shrink := func(raw **runtime.RawExtension, ref **api.ValueRef) {
		if *raw != nil && len((*raw).Raw) > shelf.limit {
			kept := shelf.keep((*raw).Raw)
			*raw, *ref = nil, &kept
		}
	}
	for i := range history.Entries {
		entry := &history.Entries[i]
		shrink(&entry.Input, &entry.InputRef)
		shrink(&entry.Output, &entry.OutputRef)
		shrink(&entry.Receipt, &entry.ReceiptRef)
	}
	return nil
}

// withIntents names the child of each open activation that is to have one. It
// is not created before the status that names it is written.
func withIntents(state *runState, in engine.Instance) engine.Instance {
	in.ActiveBranches = slices.Clone(in.ActiveBranches)
	for i := range in.ActiveBranches {
		branch := &in.ActiveBranches[i]
		if branch.Child != nil {
			continue
		}
		switch state.kindOf(branch.Node) {
		case workflow.KindHumanTask:
			branch.Child = &engine.Child{Kind: childHumanTask, Name: runChildName(state.run, branch.Activation)}
		case workflow.KindAction:
			branch.Child = attemptChild(state, branch)
		case workflow.KindStart, workflow.KindEnd, workflow.KindReceiveEvent, workflow.KindWait, workflow.KindComponent:
		}
	}
	return in
}

func (s *runState) kindOf(node string) workflow.Kind {
	if s.definition == nil {
		return ""
	}
	n, _ := s.definition.engine.Workflow().Node(node)
	return n.Kind()
}

// setReceipts notes the UIDs of children that were seen. They ride on a write
// that happens anyway.
func setReceipts(status *api.WorkflowRunStatus, children runChildren) {
	if status.Instance == nil {
		return
	}
	for i := range status.Instance.ActiveBranches {
		child := status.Instance.ActiveBranches[i].Child
		if child != nil && child.UID == "" {
			child.UID = children.uid(child.Kind, child.Name)
		}
	}
}

// runView is what a status says to people.
type runView struct {
	phase api.RunPhase
	// nodes that are open.
	nodes []string
	// waitsFor are the sorts of things that are waited for, each once.
	waitsFor []string
	// activations that wait, and those of them that are answered already.
	activations []string
	answered    []string
	// troubles of pods that do not start.
	troubles []string
}

func viewRun(state *runState, plan runPlan, status *api.WorkflowRunStatus) runView {
	view := runView{answered: plan.held}
	if status.Instance == nil {
		view.phase = unstartedPhase(status, plan)
		return view
	}
	if phase, over := terminalPhase(engine.Status(status.Instance.Status)); over {
		view.phase = phase
		return view
	}
	view.phase = api.RunWaiting
	if state.run.Spec.IsExplicit() && state.run.Spec.ResumeRequests <= status.ObservedResumeRequests {
		view.phase = api.RunSuspended
	}
	for _, branch := range status.Instance.ActiveBranches {
		view.addBranch(state, branch)
	}
	return view
}

func (v *runView) addBranch(state *runState, branch api.ActiveBranch) {
	if !slices.Contains(v.nodes, branch.Node) {
		v.nodes = append(v.nodes, branch.Node)
	}
	reason := waitReason(state.kindOf(branch.Node))
	if reason == "" {
		v.phase = api.RunRunning
		if pod := state.podOf(branch); pod != "" {
			v.troubles = append(v.troubles, branch.Activation+": "+pod)
		}
		return
	}
	v.activations = append(v.activations, branch.Activation)
	if !slices.Contains(v.waitsFor, reason) {
		v.waitsFor = append(v.waitsFor, reason)
	}
}

// podOf says what keeps the pod of an activation from starting.
func (s *runState) podOf(branch api.ActiveBranch) string {
	if branch.Child == nil {
		return ""
	}
	pod := s.children.pods[branch.Child.Name]
	if pod == nil {
		return s.children.agents.trouble(branch.Child.Name)
	}
	return attemptTrouble(pod).reason
}

// waitReason of a node that waits for something outside, else empty.
func waitReason(kind workflow.Kind) string {
	switch kind {
	case workflow.KindHumanTask:
		return api.ReasonHumanTask
	case workflow.KindReceiveEvent:
		return api.ReasonEvent
	case workflow.KindWait:
		return api.ReasonTimer
	case workflow.KindStart, workflow.KindEnd, workflow.KindAction, workflow.KindComponent:
	}
	return ""
}

// waits says what a run waits for in one or a few words; empty while it does not.
func (v *runView) waits() string {
	switch v.phase {
	case api.RunSuspended:
		return api.ReasonResume
	case api.RunWaiting:
		return strings.Join(slices.Sorted(slices.Values(v.waitsFor)), ",")
	default:
		return ""
	}
}

func unstartedPhase(status *api.WorkflowRunStatus, plan runPlan) api.RunPhase {
	switch {
	case plan.isCancelled:
		return api.RunCancelled
	case isFinalVerdict(plan.verdict):
		return api.RunFailed
	case status.FinishedAt != nil:
		return status.Phase
	}
	return api.RunPending
}

func terminalPhase(status engine.Status) (api.RunPhase, bool) {
	switch status {
	case engine.StatusCompleted:
		return api.RunCompleted, true
	case engine.StatusFailed:
		return api.RunFailed, true
	case engine.StatusCancelled:
		return api.RunCancelled, true
	case engine.StatusWaiting:
	}
	return "", false
}

// runMoments collects moments and keeps the earliest to come.
type runMoments struct {
	now, next time.Time
}

func (m *runMoments) add(at time.Time) {
	if at.IsZero() || !at.After(m.now) {
		return
	}
	if m.next.IsZero() || at.Before(m.next) {
		m.next = at
	}
}

// until is the time to the earliest moment, zero if there is none.
func (m *runMoments) until() time.Duration {
	if m.next.IsZero() {
		return 0
	}
	return m.next.Sub(m.now)
}

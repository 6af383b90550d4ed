package controllers

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/definition"
	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/frames"
)

// conclude says in a status how far the run has come.
func (p *supervisedPass) conclude(status *api.WorkflowRunStatus) {
	status.Phase = api.RunPending
	status.CurrentNode, status.WaitsFor = "", ""
	if status.Instance == nil {
		return
	}
	if phase, isOver := terminalPhase(engine.Status(status.Instance.Status)); isOver {
		status.Phase, status.Intents = phase, nil
		p.endOpen(map[api.RunPhase]api.ExecutionEnd{
			api.RunCompleted: api.ExecutionCompleted, api.RunFailed: api.ExecutionFailed, api.RunCancelled: api.ExecutionCancelled,
		}[phase])
		status.Executions = p.executions
		if status.FinishedAt == nil {
			now := metav1.NewTime(p.now).Rfc3339Copy()
			status.FinishedAt = &now
		}
		return
	}
	status.Phase = api.RunSuspended
	if count := len(p.executions); count > 0 && p.executions[count-1].EndedAt == nil {
		status.Phase = api.RunRunning
	}
	status.CurrentNode = truncate(strings.Join(p.activations(status), ", "), maxRunName)
	status.WaitsFor = truncate(strings.Join(p.waitsFor(), ", "), maxWaitsFor)
}

// maxWaitsFor is what a status says at most of what a run waits for.
const maxWaitsFor = 256

// activations that are open, the calls left out.
func (p *supervisedPass) activations(status *api.WorkflowRunStatus) []string {
	var open []string
	for _, intent := range p.intents {
		open = append(open, intent.Activation)
	}
	if len(open) > 0 {
		return open
	}
	for _, branch := range status.Instance.ActiveBranches {
		open = append(open, branch.Activation)
	}
	return open
}

// waitsFor names tasks, effects and prompts, each in a few words without values.
func (p *supervisedPass) waitsFor() []string {
	var waits []string
	for _, intent := range p.intents {
		switch {
		case intent.Action == intentTask && slices.Contains(p.answered, intent.Activation):
			waits = append(waits, "task "+intent.Task+" (answered)")
		case intent.Action == intentTask:
			waits = append(waits, "task "+intent.Task)
		case intent.Action == definition.ActionAgentPrompt:
			waits = append(waits, "prompt")
		case intent.Reason != "":
			waits = append(waits, fmt.Sprintf("%s (%s)", intent.Action, intent.Reason))
		default:
			waits = append(waits, intent.Action)
		}
	}
	for _, parked := range frames.Parked(p.def, p.state) {
		if reason := waitReason(parked.Kind); reason != "" && reason != api.ReasonHumanTask && !slices.Contains(waits, reason) {
			waits = append(waits, reason)
		}
	}
	return waits
}

// writeConditions reports a run as health tools read it.
func (p *supervisedPass) writeConditions(status *api.WorkflowRunStatus) {
	set := runConditions{conditions: &status.Conditions, generation: p.run.Generation, now: metav1.NewTime(p.now).Rfc3339Copy()}
	p.writeAccepted(set, status)
	p.writeWaiting(set, status)
	if p.source != "" {
		set.set(api.ConditionDefinitionSource, metav1.ConditionTrue, p.source, "")
	}
	if p.refusedSession != "" {
		set.set(api.ConditionSessionRefused, metav1.ConditionTrue, p.refusedSession, "")
	}
	if p.refusedAnswer != nil {
		isRefused := *p.refusedAnswer != ""
		reason := "AnswerFits"
		if isRefused {
			reason = "AnswerRefused"
		}
		set.set(api.ConditionAnswerRefused, statusOf(isRefused), reason, *p.refusedAnswer)
	}
	p.writeSummary(set, status)
}

func (p *supervisedPass) writeAccepted(set runConditions, status *api.WorkflowRunStatus) {
	switch {
	case p.awaits != "":
		set.set(api.ConditionAccepted, metav1.ConditionUnknown, api.ReasonDefinitionUnavailable, p.awaits)
	case p.bundle != nil && status.Definition != nil && status.Definition.Descriptor != nil:
		set.set(api.ConditionAccepted, metav1.ConditionTrue, api.ReasonPinned, "commit "+status.Definition.Descriptor.Commit)
	case p.stalled != "":
		set.set(api.ConditionAccepted, metav1.ConditionUnknown, p.stalled, "")
	}
}

func (p *supervisedPass) writeWaiting(set runConditions, status *api.WorkflowRunStatus) {
	if status.Phase != api.RunSuspended {
		set.set(api.ConditionWaiting, metav1.ConditionFalse, string(status.Phase), "")
		return
	}
	message := status.CurrentNode
	if len(p.answered) > 0 {
		message += "; answered: " + strings.Join(p.answered, ", ")
	}
	set.set(api.ConditionWaiting, metav1.ConditionTrue, api.ReasonResume, message)
}

func (p *supervisedPass) writeSummary(set runConditions, status *api.WorkflowRunStatus) {
	summary, reason := p.summary(status), api.ReasonProgressing
	if p.podsTerminating {
		reason = api.ReasonPodsTerminating
	}
	switch {
	case p.stalled != "":
		set.set(api.ConditionReconciling, metav1.ConditionFalse, p.stalled, "")
		set.set(api.ConditionStalled, metav1.ConditionTrue, p.stalled, p.stalledMessage)
		set.set(api.ConditionReady, metav1.ConditionFalse, p.stalled, p.stalledMessage)
		return
	case status.Phase == api.RunFailed:
		set.set(api.ConditionStalled, metav1.ConditionTrue, string(status.Phase), summary)
	default:
		set.set(api.ConditionStalled, metav1.ConditionFalse, api.ReasonNotStalled, "")
	}
	if status.FinishedAt != nil {
		set.set(api.ConditionReconciling, metav1.ConditionFalse, string(status.Phase), "")
	} else {
		set.set(api.ConditionReconciling, metav1.ConditionTrue, reason, summary)
	}
	set.set(api.ConditionReady, statusOf(status.Phase == api.RunCompleted), string(status.Phase), summary)
}

// summary says in a line how it stands, in codes and places.
func (p *supervisedPass) summary(status *api.WorkflowRunStatus) string {
	if p.awaits != "" {
		return p.awaits
	}
	if status.Instance != nil && status.Instance.Failure != nil {
		failure := status.Instance.Failure
		return fmt.Sprintf("%s in %s%s", failure.Code, failure.Phase, atActivation(failure.Activation))
	}
	return ""
}

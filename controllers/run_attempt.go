package controllers

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/apitomy/axiom-operator/internal/action"
	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

const (
	// resultGrace is how long the result of an ended pod may be on its way.
	resultGrace = 30 * time.Second
	// startGrace is how long a pod may be unable to start its containers; what
	// keeps it from starting may be mended in that time.
	startGrace = 10 * time.Minute
	// lostGrace is how long a pod may stay behind the moment it should have gone.
	lostGrace = 30 * time.Second
)

// Keys of the ConfigMaps of an attempt.
const (
	// attemptResultKey holds what the gateway was told.
	attemptResultKey = "result.json"
	// attemptInputsKey, attemptScriptKey and attemptContractKey hold what the
	// attempt was given, and which outputs it must have.
	attemptInputsKey   = "inputs.json"
	attemptScriptKey   = "script"
	attemptContractKey = "outputs.json"
)

// attemptResult is what the runner reported of an attempt.
type attemptResult struct {
	ExitCode int             `json:"exitCode"`
	Outputs  json.RawMessage `json:"outputs"`
	Error    *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// attemptDelivery is what became of an action's attempt, nil while it is under
// way: its result, else the end of its pod, else its deadline.
func attemptDelivery(children runChildren, parked engine.ParkedActivation, now time.Time) *runDelivery {
	if parked.Child == nil {
		return deadlineDelivery(parked.Deadline, now)
	}
	name := parked.Child.Name
	if result := children.configs[name]; result != nil {
		return resultDelivery(result, children.configs[runInputName(name)])
	}
	if d := attemptPodDelivery(children.pods[name], now); d != nil {
		return d
	}
	return deadlineDelivery(parked.Deadline, now)
}

// resultDelivery reads a result and checks it against the outputs that were
// declared when the attempt began.
func resultDelivery(result, given *corev1.ConfigMap) *runDelivery {
	d := &runDelivery{at: result.CreationTimestamp.Time, outcome: outcomeFail}
	var reported attemptResult
	if err := json.Unmarshal([]byte(result.Data[attemptResultKey]), &reported); err != nil {
		d.failure = invalidResult("the result cannot be read")
		return d
	}
	if failure := reported.failure(); failure != nil {
		d.failure = *failure
		return d
	}
	outputs, err := reported.outputs()
	if err != nil {
		d.failure = invalidResult(err.Error())
		return d
	}
	if failure := outputFailure(given, outputs); failure != nil {
		d.failure = *failure
		return d
	}
	d.outcome, d.values = outcomeComplete, outputs
	return d
}

// failure is what the runner says went wrong, nil if nothing did.
func (r attemptResult) failure() *engine.Failure {
	if r.ExitCode != 0 {
		return &engine.Failure{
			Phase: engine.PhaseExecution, Code: codeExitCode, Message: fmt.Sprintf("the script ended with exit code %d", r.ExitCode),
		}
	}
	if r.Error == nil {
		return nil
	}
	failure := invalidResult(r.Error.Message)
	if r.Error.Code == codeResultTooLarge {
		failure.Code = codeResultTooLarge
	}
	if r.Error.Code == codeExitCode {
		failure.Phase, failure.Code = engine.PhaseExecution, codeExitCode
	}
	return &failure
}

func (r attemptResult) outputs() (engine.Values, error) {
	if len(r.Outputs) == 0 {
		return engine.Values{}, nil
	}
	decoded, err := jsonvalue.Decode(r.Outputs)
	if err != nil {
		return nil, errors.New("the outputs cannot be read")
	}
	outputs, isObject := decoded.(map[string]any)
	if !isObject {
		return nil, errors.New("the outputs are not a JSON object")
	}
	return outputs, nil
}

func invalidResult(message string) engine.Failure {
	return engine.Failure{Phase: engine.PhaseResultValidation, Code: engine.CodeInvalidResult, Message: message}
}

// outputFailure checks outputs against the contract kept with the attempt.
func outputFailure(given *corev1.ConfigMap, outputs engine.Values) *engine.Failure {
	var declared []action.Field
	if given == nil || json.Unmarshal([]byte(given.Data[attemptContractKey]), &declared) != nil {
		// What the attempt was given is kept until its result is committed.
		failure := invalidResult("the attempt's contract is gone")
		return &failure
	}
	return contractFailure(engine.PhaseOutputValidation, codeOutputContract, action.CheckContract(declared, outputs))
}

// contractFailure names fields and rules, never values.
func contractFailure(phase engine.Phase, code string, violations []action.Violation) *engine.Failure {
	if len(violations) == 0 {
		return nil
	}
	texts := make([]string, len(violations))
	for i, v := range violations {
		texts[i] = v.String()
	}
	return &engine.Failure{Phase: phase, Code: code, Field: violations[0].Field, Message: strings.Join(texts, "; ")}
}

// attemptPodDelivery is what a pod without a result tells: that it is lost, that it
// ended without one, or that it could not start.
func attemptPodDelivery(pod *corev1.Pod, now time.Time) *runDelivery {
	if pod == nil {
		return nil
	}
	end, hasEnded := attemptEnd(pod)
	fail := func(at time.Time, code, message string) *runDelivery {
		return &runDelivery{at: at, outcome: outcomeFail, failure: engine.Failure{
			Phase: engine.PhaseExecution, Code: code, Message: message,
		}}
	}
	switch {
	case isAttemptLost(pod, now):
		return fail(now, codePodLost, "the pod was removed from its node"+attemptBecause(pod.Status.Reason))
	case hasEnded && !now.Before(end.Add(resultGrace)):
		return fail(end.Add(resultGrace), codeResultMissing, "the pod ended without a result"+attemptBecause(attemptEndReason(pod)))
	}
	trouble := attemptTrouble(pod)
	if lastStart := pod.CreationTimestamp.Add(startGrace); trouble.cannotStart && !now.Before(lastStart) {
		return fail(lastStart, codePodLost, "the pod could not start"+attemptBecause(trouble.reason))
	}
	return nil
}

func attemptBecause(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// attemptMoment is when attemptPodDelivery may change its mind by itself, zero if it
// never does.
func attemptMoment(pod *corev1.Pod) time.Time {
	end, hasEnded := attemptEnd(pod)
	switch {
	case hasEnded:
		return end.Add(resultGrace)
	case pod.DeletionTimestamp != nil:
		return pod.DeletionTimestamp.Add(lostGrace)
	case attemptTrouble(pod).cannotStart:
		return pod.CreationTimestamp.Add(startGrace)
	}
	return time.Time{}
}

// isAttemptLost tells whether something other than the script ended the pod.
func isAttemptLost(pod *corev1.Pod, now time.Time) bool {
	_, hasEnded := attemptEnd(pod)
	if pod.DeletionTimestamp != nil {
		// Its containers may still work until they have ended, or their node has.
		return hasEnded || !now.Before(pod.DeletionTimestamp.Add(lostGrace))
	}
	if pod.Status.Phase != corev1.PodFailed {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	// The kubelet gives a pod a reason only when it ended it itself.
	return pod.Status.Reason != ""
}

// attemptEnd is when the last container of an ended pod ended.
func attemptEnd(pod *corev1.Pod) (time.Time, bool) {
	if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
		return time.Time{}, false
	}
	end := pod.CreationTimestamp.Time
	for _, status := range attemptContainers(pod) {
		if t := status.State.Terminated; t != nil && t.FinishedAt.After(end) {
			end = t.FinishedAt.Time
		}
	}
	return end, true
}

// attemptEndReason is the reason and code of the first container that did not end
// well.
func attemptEndReason(pod *corev1.Pod) string {
	for _, status := range attemptContainers(pod) {
		if t := status.State.Terminated; t != nil && t.ExitCode != 0 {
			return fmt.Sprintf("%s, exit code %d", t.Reason, t.ExitCode)
		}
	}
	return ""
}

func attemptContainers(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

// attemptTroubles keeps a pod from starting.
type attemptTroubles struct {
	// reason in one word; empty: no trouble.
	reason string
	// cannotStart: its own specification is at fault, as far as can be told.
	cannotStart bool
}

// attemptTrouble looks for what keeps a pod from starting. It uses reasons only,
// since messages change from try to try.
func attemptTrouble(pod *corev1.Pod) attemptTroubles {
	for _, status := range attemptContainers(pod) {
		if w := status.State.Waiting; w != nil && w.Reason != "" && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			return attemptTroubles{reason: fmt.Sprintf("%s (image %s)", steadyReason(w.Reason), status.Image), cannotStart: true}
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason != "" {
			return attemptTroubles{reason: c.Reason}
		}
	}
	return attemptTroubles{}
}

// steadyReason gives the two reasons between which a failing image pull swings
// one name, so that nothing is written at each swing.
func steadyReason(reason string) string {
	if reason == "ErrImagePull" {
		return "ImagePullBackOff"
	}
	return reason
}

package controllers

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/apitomy/axiom-operator/internal/action"
	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
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
func attemptDelivery(state *runState, parked engine.ParkedActivation) *runDelivery {
	children, now := state.children, state.now
	if parked.Child == nil {
		return deadlineDelivery(parked.Deadline, now)
	}
	if parked.Child.Kind == childAgentSession {
		return agentDelivery(state, parked)
	}
	name := parked.Child.Name
	if result := children.configs[name]; result != nil {
		return resultDelivery(result, children.configs[runInputName(name)], children.pods[name])
	}
	if d := attemptPodDelivery(children.pods[name], state.startTimeout, state.now); d != nil {
		return d
	}
	return deadlineDelivery(parked.Deadline, now)
}

// resultDelivery reads a result and checks it against the outputs that were
// declared when the attempt began. The pod, if it is still there, may know more
// about a script that did not end well.
func resultDelivery(result, given *corev1.ConfigMap, pod *corev1.Pod) *runDelivery {
	d := &runDelivery{at: result.CreationTimestamp.Time, outcome: outcomeFail}
	var reported attemptResult
	if err := json.Unmarshal([]byte(result.Data[attemptResultKey]), &reported); err != nil {
		d.failure = invalidResult("the result cannot be read")
		return d
	}
	if failure := reported.failure(isOutOfMemory(pod)); failure != nil {
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
func (r attemptResult) failure(isOutOfMemory bool) *engine.Failure {
	ended := engine.Failure{Phase: engine.PhaseExecution, Code: codeExitCode}
	switch {
	case r.Error == nil && r.ExitCode == 0:
		return nil
	case r.Error != nil && r.Error.Code == codeExitCode:
		ended.Message = r.Error.Message
	case r.ExitCode != 0:
		ended.Message = "the script ended with " + exitWords(r.ExitCode)
	case r.Error.Code == codeResultTooLarge:
		ended = invalidResult(r.Error.Message)
		ended.Code = codeResultTooLarge
	default:
		ended = invalidResult(r.Error.Message)
	}
	if ended.Code == codeExitCode && isOutOfMemory {
		ended.Message = words(reasonOOMKilled, ended.Message)
	}
	return &ended
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

// attemptPodDelivery is what a pod without a result tells by now.
func attemptPodDelivery(pod *corev1.Pod, grace time.Duration, now time.Time) *runDelivery {
	if pod == nil {
		return nil
	}
	verdict, isOver := judgeAttemptPod(pod, grace)
	if !isOver || now.Before(verdict.at) {
		return nil
	}
	d := &runDelivery{at: verdict.at, outcome: outcomeFail, failure: verdict.failure}
	if d.at.IsZero() {
		d.at = now
	}
	return d
}

// attemptMoment is when attemptPodDelivery may change its mind by itself, zero if it
// never does.
func attemptMoment(pod *corev1.Pod, grace time.Duration) time.Time {
	verdict, _ := judgeAttemptPod(pod, grace)
	return verdict.at
}

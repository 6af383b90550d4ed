package controllers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/apitomy/axiom-operator/internal/engine"
)

func resultOf(text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "p", CreationTimestamp: metav1.NewTime(runTestNow)}, Data: map[string]string{attemptResultKey: text},
	}
}

func TestResultDelivery(t *testing.T) {
	t.Parallel()
	given := &corev1.ConfigMap{Data: map[string]string{attemptContractKey: `[{"name":"n","type":"number","required":true}]`}}
	failed := func(phase engine.Phase, code, field, message string) engine.Failure {
		return engine.Failure{Phase: phase, Code: code, Field: field, Message: message}
	}
	for name, tc := range map[string]struct {
		result  string
		given   *corev1.ConfigMap
		values  engine.Values
		failure engine.Failure
		pod     *corev1.Pod
	}{
		"outputs":        {`{"exitCode":0,"outputs":{"n":"2","m":1.0}}`, given, engine.Values{"n": "2", "m": int64(1)}, engine.Failure{}, nil},
		"exit code":      {`{"exitCode":3,"outputs":{"n":2}}`, given, nil, failed(engine.PhaseExecution, codeExitCode, "", "the script ended with exit code 3"), nil},
		"no outputs":     {`{"exitCode":0}`, given, nil, failed(engine.PhaseOutputValidation, codeOutputContract, "n", "n: required"), nil},
		"wrong type":     {`{"exitCode":0,"outputs":{"n":"secret"}}`, given, nil, failed(engine.PhaseOutputValidation, codeOutputContract, "n", "n: type number"), nil},
		"no object":      {`{"exitCode":0,"outputs":[]}`, given, nil, failed(engine.PhaseResultValidation, engine.CodeInvalidResult, "", "the outputs are not a JSON object"), nil},
		"beyond numbers": {`{"exitCode":0,"outputs":{"n":1e999}}`, given, nil, failed(engine.PhaseResultValidation, engine.CodeInvalidResult, "", "the outputs cannot be read"), nil},
		"no JSON":        {`exit 0`, given, nil, failed(engine.PhaseResultValidation, engine.CodeInvalidResult, "", "the result cannot be read"), nil},
		"too large":      {`{"exitCode":0,"error":{"code":"RESULT_TOO_LARGE","message":"m"}}`, given, nil, failed(engine.PhaseResultValidation, codeResultTooLarge, "", "m"), nil},
		"other error":    {`{"exitCode":0,"error":{"code":"NEW","message":"m"}}`, given, nil, failed(engine.PhaseResultValidation, engine.CodeInvalidResult, "", "m"), nil},
		"contract lost":  {`{"exitCode":0}`, nil, nil, failed(engine.PhaseResultValidation, engine.CodeInvalidResult, "", "the attempt's contract is gone"), nil},
		"a signal": {
			`{"exitCode":143}`, given, nil, failed(engine.PhaseExecution, codeExitCode, "", "the script ended with exit code 143 (SIGTERM)"), nil,
		},
		"memory": {
			`{"exitCode":137}`, given, nil, failed(engine.PhaseExecution, codeExitCode, "", "OOMKilled: the script ended with exit code 137 (SIGKILL)"),
			testPod(ended(corev1.PodSucceeded, 0, terminated("OOMKilled", 0))),
		},
		"memory and a good end": {
			`{"exitCode":0,"outputs":{"n":2}}`, given, engine.Values{"n": int64(2)}, engine.Failure{}, testPod(ended(corev1.PodSucceeded, 0, terminated("OOMKilled", 0))),
		},
		"no interpreter": {
			`{"exitCode":127,"error":{"code":"EXIT_CODE","message":"the image has no node"}}`, given, nil,
			failed(engine.PhaseExecution, codeExitCode, "", "the image has no node"), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := resultDelivery(resultOf(tc.result), tc.given, tc.pod)
			if diff := cmp.Diff(tc.failure, d.failure); diff != "" {
				t.Errorf("failure (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.values, d.values); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
			if isComplete := d.outcome == outcomeComplete; isComplete != (tc.failure == engine.Failure{}) || !d.at.Equal(runTestNow) {
				t.Errorf("got outcome %v at %v", d.outcome, d.at)
			}
		})
	}
}

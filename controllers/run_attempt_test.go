package controllers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/apitomy/axiom-operator/internal/engine"
)

// testPod was created a minute ago.
func testPod(change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "pod", CreationTimestamp: metav1.NewTime(runTestNow.Add(-time.Minute))}}
	for _, f := range change {
		f(pod)
	}
	return pod
}

func ended(phase corev1.PodPhase, ago time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Phase = phase
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 137, Reason: "OOMKilled", FinishedAt: metav1.NewTime(runTestNow.Add(-ago)),
		}}}}
	}
}

func deleted(due time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.NewTime(runTestNow.Add(due))) }
}

func waits(reason string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Image: "i", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}},
		}}
	}
}

func aged(age time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.CreationTimestamp = metav1.NewTime(runTestNow.Add(-age)) }
}

func condition(kind corev1.PodConditionType, status corev1.ConditionStatus, reason string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = []corev1.PodCondition{{Type: kind, Status: status, Reason: reason}}
	}
}

func TestAttemptPodDelivery(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		pod *corev1.Pod
		// code of the failure, empty: none yet.
		code string
		// moment from now at which to look again, zero: none.
		moment time.Duration
	}{
		"runs":                             {testPod(), "", 0},
		"has just ended":                   {testPod(ended(corev1.PodFailed, 29*time.Second)), "", time.Second},
		"ended well but said nothing":      {testPod(ended(corev1.PodSucceeded, 30*time.Second)), "RESULT_MISSING", 0},
		"ended badly and said nothing":     {testPod(ended(corev1.PodFailed, 31*time.Second)), "RESULT_MISSING", -time.Second},
		"was evicted":                      {testPod(ended(corev1.PodFailed, 0), func(p *corev1.Pod) { p.Status.Reason = "Evicted" }), "POD_LOST", 30 * time.Second},
		"was disrupted":                    {testPod(ended(corev1.PodFailed, 0), condition(corev1.DisruptionTarget, corev1.ConditionTrue, "x")), "POD_LOST", 30 * time.Second},
		"is being deleted and still works": {testPod(deleted(10 * time.Second)), "", 40 * time.Second},
		"was deleted and ended":            {testPod(deleted(10*time.Second), ended(corev1.PodFailed, 0)), "POD_LOST", 30 * time.Second},
		"should have gone long ago":        {testPod(deleted(-30 * time.Second)), "POD_LOST", 0},
		"pulls in vain":                    {testPod(waits("ErrImagePull")), "", 9 * time.Minute},
		"pulled in vain for too long":      {testPod(waits("ImagePullBackOff"), aged(startGrace)), "POD_LOST", 0},
		"creates its containers":           {testPod(waits("ContainerCreating"), aged(time.Hour)), "", 0},
		"waits for its init container":     {testPod(waits("PodInitializing"), aged(time.Hour)), "", 0},
		"finds no node":                    {testPod(condition(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable"), aged(time.Hour)), "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if d := attemptPodDelivery(tc.pod, runTestNow); d != nil {
				got = d.failure.Code
				if d.outcome != outcomeFail || d.failure.Phase != engine.PhaseExecution || d.at.After(runTestNow) {
					t.Errorf("got delivery %+v", d)
				}
			}
			if got != tc.code {
				t.Errorf("got code %q, want %q", got, tc.code)
			}
			want := time.Time{}
			if tc.moment != 0 || tc.code == "RESULT_MISSING" || name == "should have gone long ago" || name == "pulled in vain for too long" {
				want = runTestNow.Add(tc.moment)
			}
			if moment := attemptMoment(tc.pod); !moment.Equal(want) {
				t.Errorf("got moment %v, want %v", moment, want)
			}
		})
	}
}

func TestAttemptTroubleIsSteady(t *testing.T) {
	t.Parallel()
	first, second := attemptTrouble(testPod(waits("ErrImagePull"))), attemptTrouble(testPod(waits("ImagePullBackOff")))
	if first != second {
		t.Errorf("a failing pull is told in two ways: %v, %v", first, second)
	}
}

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
	}{
		"outputs":        {`{"exitCode":0,"outputs":{"n":"2","m":1.0}}`, given, engine.Values{"n": "2", "m": int64(1)}, engine.Failure{}},
		"exit code":      {`{"exitCode":3,"outputs":{"n":2}}`, given, nil, failed(engine.PhaseExecution, codeExitCode, "", "the script ended with exit code 3")},
		"no outputs":     {`{"exitCode":0}`, given, nil, failed(engine.PhaseOutputValidation, codeOutputContract, "n", "n: required")},
		"wrong type":     {`{"exitCode":0,"outputs":{"n":"secret"}}`, given, nil, failed(engine.PhaseOutputValidation, codeOutputContract, "n", "n: type number")},
		"no object":      {`{"exitCode":0,"outputs":[]}`, given, nil, failed(engine.PhaseResultValidation, engine.CodeInvalidResult, "", "the outputs are not a JSON object")},
		"beyond numbers": {`{"exitCode":0,"outputs":{"n":1e999}}`, given, nil, failed(engine.PhaseResultValidation, engine.CodeInvalidResult, "", "the outputs cannot be read")},
		"no JSON":        {`exit 0`, given, nil, failed(engine.PhaseResultValidation, engine.CodeInvalidResult, "", "the result cannot be read")},
		"too large":      {`{"exitCode":0,"error":{"code":"RESULT_TOO_LARGE","message":"m"}}`, given, nil, failed(engine.PhaseResultValidation, codeResultTooLarge, "", "m")},
		"other error":    {`{"exitCode":0,"error":{"code":"NEW","message":"m"}}`, given, nil, failed(engine.PhaseResultValidation, engine.CodeInvalidResult, "", "m")},
		"contract lost":  {`{"exitCode":0}`, nil, nil, failed(engine.PhaseResultValidation, engine.CodeInvalidResult, "", "the attempt's contract is gone")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := resultDelivery(resultOf(tc.result), tc.given)
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

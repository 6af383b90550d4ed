package controllers

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

func TestNextTaskStatus(t *testing.T) {
	t.Parallel()
	answer := &runtime.RawExtension{Raw: []byte(`{"secret":1}`)}
	expired := &api.TaskClosed{Reason: api.CloseExpired, Message: "nobody answered in time", At: metav1.NewTime(runTestNow)}
	for name, tc := range map[string]struct {
		status  api.HumanTaskStatus
		expires string
		after   time.Duration
		phase   api.TaskPhase
		closed  *api.TaskClosed
		message string
		again   time.Duration
	}{
		"open for ever":      {api.HumanTaskStatus{}, "", time.Hour, api.TaskAwaitingInput, nil, "waits for an answer", 0},
		"open for a while":   {api.HumanTaskStatus{}, "PT2H", time.Hour, api.TaskAwaitingInput, nil, "waits for an answer", time.Hour},
		"open by mistake":    {api.HumanTaskStatus{}, "two days", time.Hour, api.TaskAwaitingInput, nil, "waits for an answer", 0},
		"its time is up":     {api.HumanTaskStatus{}, "PT1H", time.Hour, api.TaskExpired, expired, "nobody answered in time", 0},
		"answered":           {api.HumanTaskStatus{Answer: answer, AnsweredBy: &api.Answerer{Username: "ada"}}, "PT1H", time.Hour, api.TaskCompleted, nil, "answered by ada", 0},
		"answered unstamped": {api.HumanTaskStatus{Answer: answer}, "PT1H", time.Hour, api.TaskCompleted, nil, "", 0},
		"failed":             {api.HumanTaskStatus{Failure: &api.TaskFailure{Reason: "secret"}}, "PT1H", time.Hour, api.TaskFailed, nil, "", 0},
		"cancelled": {
			api.HumanTaskStatus{Closed: &api.TaskClosed{Reason: api.CloseCancelled, Message: "run cancelled"}},
			"PT1H", time.Hour,
			api.TaskCancelled, &api.TaskClosed{Reason: api.CloseCancelled, Message: "run cancelled"}, "run cancelled", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := &api.HumanTask{ObjectMeta: metav1.ObjectMeta{Generation: 1, CreationTimestamp: metav1.NewTime(runTestNow.Add(-tc.after))}, Status: tc.status}
			task.Spec.ExpiresAfter = tc.expires
			got := nextTaskStatus(task, runTestNow)
			ready := got.Conditions[0]
			if got.Phase != tc.phase || ready.Reason != string(tc.phase) || ready.Message != tc.message || got.ObservedGeneration != 1 {
				t.Errorf("got phase %s, condition %+v; want %s, message %q", got.Phase, ready, tc.phase, tc.message)
			}
			if isReady := ready.Status == metav1.ConditionTrue; isReady != (tc.phase == api.TaskCompleted) {
				t.Errorf("ready is %s", ready.Status)
			}
			switch {
			case (got.Closed == nil) != (tc.closed == nil):
				t.Errorf("got closed %+v, want %+v", got.Closed, tc.closed)
			case got.Closed != nil && *got.Closed != *tc.closed:
				t.Errorf("got closed %+v, want %+v", *got.Closed, *tc.closed)
			}
			if again := untilTaskExpires(task, got, runTestNow); again != tc.again {
				t.Errorf("looks again in %v, want %v", again, tc.again)
			}
		})
	}
}

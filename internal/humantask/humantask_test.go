package humantask_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/humantask"
)

var (
	made = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	now  = made.Add(time.Hour)
)

func condition(status metav1.ConditionStatus, phase api.TaskPhase, message string, since time.Time) metav1.Condition {
	return metav1.Condition{
		Type: api.ConditionReady, Status: status, Reason: string(phase), Message: message,
		ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(since),
	}
}

// fresh is the status of a new task by the schema's default.
func fresh() *api.HumanTaskStatus {
	return &api.HumanTaskStatus{
		Phase: api.TaskAwaitingInput, ObservedGeneration: 1,
		Conditions: []metav1.Condition{condition(metav1.ConditionFalse, api.TaskAwaitingInput, "waits for an answer", time.Unix(0, 0))},
	}
}

func TestObserve(t *testing.T) {
	t.Parallel()
	answer := &runtime.RawExtension{Raw: []byte(`{"secret":1}`)}
	for name, tc := range map[string]struct {
		change func(*api.HumanTaskStatus)
		phase  api.TaskPhase
		want   metav1.Condition
	}{
		"a new task stands as its default says": {
			func(*api.HumanTaskStatus) {}, api.TaskAwaitingInput,
			condition(metav1.ConditionFalse, api.TaskAwaitingInput, "waits for an answer", time.Unix(0, 0)),
		},
		"an answer completes it, by whom it was given": {
			func(s *api.HumanTaskStatus) { s.Answer, s.AnsweredBy = answer, &api.Answerer{Username: "ada"} },
			api.TaskCompleted, condition(metav1.ConditionTrue, api.TaskCompleted, "answered by ada", now),
		},
		"a refusal fails it, and keeps the reason to itself": {
			func(s *api.HumanTaskStatus) { s.Failure = &api.TaskFailure{Reason: "secret"} },
			api.TaskFailed, condition(metav1.ConditionFalse, api.TaskFailed, "", made),
		},
		"its time may pass": {
			func(s *api.HumanTaskStatus) {
				s.Closed = &api.TaskClosed{Reason: api.CloseExpired, Message: "nobody answered in time"}
			},
			api.TaskExpired, condition(metav1.ConditionFalse, api.TaskExpired, "nobody answered in time", made),
		},
		"nobody may need it any more": {
			func(s *api.HumanTaskStatus) {
				s.Closed = &api.TaskClosed{Reason: api.CloseCancelled, Message: "run cancelled"}
			},
			api.TaskCancelled, condition(metav1.ConditionFalse, api.TaskCancelled, "run cancelled", made),
		},
		"an answer wins over an end that came too late": {
			func(s *api.HumanTaskStatus) { s.Answer, s.Closed = answer, &api.TaskClosed{Reason: api.CloseExpired} },
			api.TaskCompleted, condition(metav1.ConditionTrue, api.TaskCompleted, "", now),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := &api.HumanTask{ObjectMeta: metav1.ObjectMeta{Generation: 1, CreationTimestamp: metav1.NewTime(made)}}
			status := fresh()
			tc.change(status)
			humantask.Observe(task, status, now)
			want := fresh()
			tc.change(want)
			want.Phase, want.Conditions = tc.phase, []metav1.Condition{tc.want}
			if diff := cmp.Diff(want, status); diff != "" {
				t.Errorf("Observe() mismatch (-want +got):\n%s", diff)
			}
			before := status.DeepCopy()
			humantask.Observe(task, status, now.Add(time.Hour))
			if diff := cmp.Diff(before, status); diff != "" {
				t.Errorf("Observe() says something else later (-want +got):\n%s", diff)
			}
		})
	}
}

func TestIsOpen(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*api.HumanTask){
		"answered":      func(task *api.HumanTask) { task.Status.Answer = &runtime.RawExtension{} },
		"failed":        func(task *api.HumanTask) { task.Status.Failure = &api.TaskFailure{} },
		"closed":        func(task *api.HumanTask) { task.Status.Closed = &api.TaskClosed{} },
		"being deleted": func(task *api.HumanTask) { task.DeletionTimestamp = &metav1.Time{Time: now} },
	} {
		task := &api.HumanTask{}
		if !humantask.IsOpen(task) {
			t.Fatal("a new task is not open")
		}
		if change(task); humantask.IsOpen(task) {
			t.Errorf("a task that is %s is open", name)
		}
	}
}

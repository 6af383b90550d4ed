package controllers

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/engine"
)

// told are deliveries in words, in order.
func told(deliveries []runDelivery) []string {
	var words []string
	for _, d := range deliveries {
		word := d.address.Activation
		switch d.outcome {
		case outcomeComplete:
			word += " completes"
		case outcomeFail:
			word += " fails " + d.failure.Code
		case outcomeTimeOut:
			word += " times out"
		case outcomeDeliver:
			word += " receives " + fmt.Sprint(d.event.Map["id"])
		}
		words = append(words, word)
	}
	return words
}

func answered(t *testing.T, state *runState, answer string) *api.HumanTask {
	t.Helper()
	task := &api.HumanTask{ObjectMeta: metav1.ObjectMeta{Name: childOf(t, state.run, "ask#1")}}
	task.Spec.Form = &api.TaskForm{Fields: []api.FormField{{Name: "n", Type: "number", Required: true}}}
	task.Status.Answer = &runtime.RawExtension{Raw: []byte(answer)}
	task.Status.AnsweredBy = &api.Answerer{Username: "ada"}
	task.Status.AnsweredAt = new(metav1.NewTime(runTestNow.Add(time.Minute)))
	return task
}

func TestCollectDeliveriesInTheOrderOfObservation(t *testing.T) {
	t.Parallel()
	state := startedState(t, runTestFlow)
	pod := childOf(t, state.run, "work#1")
	result := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: pod, CreationTimestamp: metav1.NewTime(runTestNow.Add(30 * time.Second))}}
	result.Data = map[string]string{attemptResultKey: `{"exitCode":0}`}
	given := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: runInputName(pod)}, Data: map[string]string{attemptContractKey: `null`}}
	state.now = runTestNow.Add(3 * time.Hour)
	got := told(collectDeliveries(state.withChildren(answered(t, state, `{"n":1}`), result, given)))
	want := []string{"work#1 completes", "ask#1 completes", "rest#1 times out"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("deliveries (-want +got):\n%s", diff)
	}
}

func TestAResultBeatsTheDeadline(t *testing.T) {
	t.Parallel()
	state := startedState(t, runTestFlow)
	state.now = runTestNow.Add(90 * time.Minute)
	if got := told(collectDeliveries(state.withChildren())); !cmp.Equal(got, []string{"work#1 times out"}) {
		t.Errorf("without a result: got %v", got)
	}
	pod := childOf(t, state.run, "work#1")
	late := resultOf(`{"exitCode":1}`)
	late.Name = pod
	if got := told(collectDeliveries(state.withChildren(late))); !cmp.Equal(got, []string{"work#1 fails EXIT_CODE"}) {
		t.Errorf("with a result: got %v", got)
	}
}

func TestTaskDelivery(t *testing.T) {
	t.Parallel()
	state := startedState(t, runTestFlow)
	closed := func(reason api.CloseReason) func(*api.HumanTask) {
		return func(task *api.HumanTask) {
			task.Status.Answer = nil
			task.Status.Closed = &api.TaskClosed{Reason: reason, At: metav1.NewTime(runTestNow)}
		}
	}
	for name, tc := range map[string]struct {
		answer string
		change func(*api.HumanTask)
		want   []string
	}{
		"open":              {`{}`, func(task *api.HumanTask) { task.Status.Answer = nil }, nil},
		"answer":            {`{"n":"2"}`, func(*api.HumanTask) {}, []string{"ask#1 completes"}},
		"answer in no form": {`{"n":"x"}`, func(*api.HumanTask) {}, []string{"ask#1 fails INVALID_RESULT"}},
		"answer of no JSON": {`{`, func(*api.HumanTask) {}, []string{"ask#1 fails INVALID_RESULT"}},
		"failure": {`{}`, func(task *api.HumanTask) {
			task.Status.Answer, task.Status.Failure = nil, &api.TaskFailure{Reason: "r"}
		}, []string{"ask#1 fails TASK_FAILED"}},
		"expiry":             {`{}`, closed(api.CloseExpired), []string{"ask#1 times out"}},
		"closed by mistake":  {`{}`, closed(api.CloseCancelled), []string{"ask#1 fails TASK_FAILED"}},
		"answer beats close": {`{"n":1}`, func(task *api.HumanTask) { task.Status.Closed = &api.TaskClosed{Reason: api.CloseExpired} }, []string{"ask#1 completes"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := *state
			task := answered(t, &own, tc.answer)
			tc.change(task)
			if diff := cmp.Diff(tc.want, told(collectDeliveries(own.withChildren(task)))); diff != "" {
				t.Errorf("deliveries (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnswersEnterAsTheFormReadsThem(t *testing.T) {
	t.Parallel()
	state := startedState(t, runTestFlow)
	d := collectDeliveries(state.withChildren(answered(t, state, `{"n":"2","note":"x"}`)))[0]
	if diff := cmp.Diff(engine.Values{"n": int64(2), "note": "x"}, d.values); diff != "" || d.by != "ada" {
		t.Errorf("by %q, values (-want +got):\n%s", d.by, diff)
	}
	bad := collectDeliveries(state.withChildren(answered(t, state, `{"n":"secret"}`)))[0]
	if want := "the answer is not valid: n: type"; bad.failure.Message != want {
		t.Errorf("got %q, want %q: paths and rules, never values", bad.failure.Message, want)
	}
}

func TestDecideStep(t *testing.T) {
	t.Parallel()
	explicit := func(run *api.WorkflowRun) { run.Spec.ResumePolicy = api.ResumeExplicit }
	for name, tc := range map[string]struct {
		change func(*api.WorkflowRun)
		after  time.Duration
		// status of the instance, empty: nothing was applied.
		status engine.Status
		closed []string
		held   []string
	}{
		"nothing came to pass":      {func(*api.WorkflowRun) {}, 0, "", nil, nil},
		"a timer":                   {func(*api.WorkflowRun) {}, 2 * time.Hour, engine.StatusWaiting, []string{"rest#1 Completed"}, nil},
		"a timer waits for resume":  {explicit, 2 * time.Hour, "", nil, []string{"rest#1"}},
		"a timer with the request":  {func(run *api.WorkflowRun) { explicit(run); run.Spec.ResumeRequests = 1 }, 2 * time.Hour, engine.StatusWaiting, []string{"rest#1 Completed"}, nil},
		"cancel beats everything":   {func(run *api.WorkflowRun) { run.Spec.Cancel, run.Spec.ActiveDeadline = true, "PT1H" }, 2 * time.Hour, engine.StatusCancelled, []string{"ask#1 Cancelled", "work#1 Cancelled", "rest#1 Cancelled"}, nil},
		"the deadline beats timers": {func(run *api.WorkflowRun) { run.Spec.ActiveDeadline = "PT1H" }, 2 * time.Hour, engine.StatusFailed, []string{"ask#1 Cancelled", "work#1 Cancelled", "rest#1 Cancelled"}, nil},
		"the deadline is not over":  {func(run *api.WorkflowRun) { run.Spec.ActiveDeadline = "PT3H" }, 2 * time.Hour, engine.StatusWaiting, []string{"rest#1 Completed"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state := startedState(t, runTestFlowUnhurried).withChildren()
			tc.change(state.run)
			state.now = runTestNow.Add(tc.after)
			plan, err := decideStep(t.Context(), state, collectDeliveries(state))
			if err != nil {
				t.Fatal(err)
			}
			var status engine.Status
			if plan.instance != nil {
				status = plan.instance.Status
			}
			var closed []string
			for _, entry := range plan.closed {
				closed = append(closed, entry.Activation+" "+string(entry.Outcome))
				if entry.Type == "" {
					t.Errorf("%s has no type", entry.Activation)
				}
			}
			if status != tc.status || !cmp.Equal(closed, tc.closed) || !cmp.Equal(plan.held, tc.held) {
				t.Errorf("got %q, closed %v, held %v; want %q, %v, %v", status, closed, plan.held, tc.status, tc.closed, tc.held)
			}
		})
	}
}

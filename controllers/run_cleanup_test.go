package controllers

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

func named[T any, P interface {
	*T
	metav1.Object
}](name string, change ...func(P)) P {
	object := P(new(T))
	object.SetName(name)
	for _, f := range change {
		f(object)
	}
	return object
}

func TestLeftovers(t *testing.T) {
	t.Parallel()
	state := startedState(t, runTestFlow)
	task, pod := childOf(t, state.run, "ask#1"), childOf(t, state.run, "work#1")
	old := runAttemptName(state.run, "work#1", 9)
	answered := func(task *api.HumanTask) { task.Status.Answer = &runtime.RawExtension{Raw: []byte(`{}`)} }
	leaving := func(pod *corev1.Pod) { deleted(0)(pod) }
	held := func(pod *corev1.Pod) { leaving(pod); pod.Finalizers = []string{api.FinalizerCollect} }
	for name, tc := range map[string]struct {
		run      *api.WorkflowRun
		children []any
		tasks    []string
		attempts []string
	}{
		"what is open stays": {
			state.run, []any{named[api.HumanTask](task), named[corev1.Pod](pod), named[corev1.ConfigMap](pod), named[corev1.ConfigMap](pod + "-in")}, nil, nil,
		},
		"past attempts go": {
			state.run, []any{named[corev1.Pod](old), named[corev1.Pod](pod)}, nil, []string{old},
		},
		"a mark that a token may be there": {state.run, []any{named[corev1.ConfigMap](old + "-in")}, nil, []string{old}},
		"a late result":                    {state.run, []any{named[corev1.ConfigMap](old)}, nil, []string{old}},
		"a pod on its way out":             {state.run, []any{named(old, leaving)}, nil, nil},
		"a pod that is held":               {state.run, []any{named(old, held)}, nil, []string{old}},
		"an open task of a closed branch":  {state.run, []any{named[api.HumanTask]("x"), named("y", answered)}, []string{"x"}, nil},
		"everything of a finished run": {
			endedState(t, "cancel").run, []any{named[api.HumanTask](task), named[corev1.Pod](pod)}, []string{task}, []string{pod},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left := leftovers(tc.run, new(runState).withChildren(tc.children...).children)
			var tasks []string
			for _, task := range left.tasks {
				tasks = append(tasks, task.Name)
			}
			if !slices.Equal(tasks, tc.tasks) || !slices.Equal(left.attempts, tc.attempts) {
				t.Errorf("got tasks %v, attempts %v; want %v, %v", tasks, left.attempts, tc.tasks, tc.attempts)
			}
		})
	}
}

func TestCloseMessages(t *testing.T) {
	t.Parallel()
	for want, run := range map[string]*api.WorkflowRun{
		"branch closed":         startedState(t, runTestFlow).run,
		"run cancelled":         endedState(t, "cancel").run,
		"run failed: EXIT_CODE": endedState(t, "fail").run,
	} {
		if got := closeMessage(run); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

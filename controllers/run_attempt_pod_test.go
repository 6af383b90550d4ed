package controllers

import (
	"math"
	"strings"
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

func terminated(reason string, code int32) corev1.ContainerStateTerminated {
	return corev1.ContainerStateTerminated{Reason: reason, ExitCode: code}
}

// ended is a pod whose container ended some time ago.
func ended(phase corev1.PodPhase, ago time.Duration, how corev1.ContainerStateTerminated) func(*corev1.Pod) {
	how.FinishedAt = metav1.NewTime(runTestNow.Add(-ago))
	return func(pod *corev1.Pod) {
		pod.Status.Phase = phase
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "script", State: corev1.ContainerState{Terminated: &how}}}
	}
}

func deleted(due time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.NewTime(runTestNow.Add(due))) }
}

func waits(reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "script", Image: "i", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		}}
	}
}

func aged(age time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.CreationTimestamp = metav1.NewTime(runTestNow.Add(-age)) }
}

func condition(kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, Reason: reason, Message: message})
	}
}

// scheduled is a pod that got its node some time ago.
func scheduled(ago time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(runTestNow.Add(-ago)),
		})
	}
}

// says is what the kubelet says of a pod that it ended itself.
func says(reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Reason, pod.Status.Message = reason, message }
}

// wants is a pod with a variable from a Secret, and one from its own.
func wants(secret string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers = []corev1.Container{{Env: []corev1.EnvVar{
			{Name: "PLAIN"}, {Name: "TOKEN", ValueFrom: secretKey(pod.Name, "token")}, {Name: "KEY", ValueFrom: secretKey(secret, "k")},
		}}}
	}
}

func TestJudgeAttemptPod(t *testing.T) {
	t.Parallel()
	const failed, succeeded = corev1.PodFailed, corev1.PodSucceeded
	const pull = `Back-off pulling image "i"`
	for name, tc := range map[string]struct {
		pod *corev1.Pod
		// in is when the verdict holds, from now.
		in time.Duration
		// code of the failure, empty: there is no verdict.
		code, message string
	}{
		"runs":                            {pod: testPod()},
		"runs with a status":              {pod: testPod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, aged(time.Hour))},
		"creates its containers":          {pod: testPod(waits("ContainerCreating", ""), aged(time.Hour))},
		"waits for its init container":    {pod: testPod(waits("PodInitializing", ""), aged(time.Hour))},
		"waits for a gate":                {pod: testPod(condition(corev1.PodScheduled, corev1.ConditionFalse, "SchedulingGated", "m"), aged(time.Hour))},
		"ended well but said nothing":     {testPod(ended(succeeded, 10*time.Second, terminated("Completed", 0))), 20 * time.Second, "RESULT_MISSING", "the pod ended without a result"},
		"could not deliver its result":    {testPod(ended(failed, 31*time.Second, terminated("Error", 1))), -time.Second, "RESULT_MISSING", "the pod ended without a result: container script ended with exit code 1"},
		"was killed for want of memory":   {testPod(ended(failed, 30*time.Second, terminated("OOMKilled", 137))), 0, "RESULT_MISSING", "the pod ended without a result: OOMKilled: container script ended with exit code 137 (SIGKILL)"},
		"lost a child for want of memory": {testPod(ended(succeeded, 30*time.Second, terminated("OOMKilled", 0))), 0, "RESULT_MISSING", "the pod ended without a result: OOMKilled: container script ended with exit code 0"},
		"was killed by somebody":          {testPod(ended(failed, 30*time.Second, terminated("Error", 137))), 0, "RESULT_MISSING", "the pod ended without a result: container script ended with exit code 137 (SIGKILL)"},
		"has no such program": {
			testPod(ended(failed, 30*time.Second, corev1.ContainerStateTerminated{Reason: "StartError", ExitCode: 128, Message: "exec: no such file"})),
			0, "RESULT_MISSING", "the pod ended without a result: StartError: container script ended with exit code 128: exec: no such file",
		},
		"says in its last words what is nobody's business": {
			testPod(ended(failed, 30*time.Second, corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 3, Message: "hunter2"})),
			0, "RESULT_MISSING", "the pod ended without a result: container script ended with exit code 3",
		},
		"could not install its tools": {
			testPod(ended(failed, 30*time.Second, terminated("Error", 2)), func(p *corev1.Pod) {
				p.Status.InitContainerStatuses, p.Status.ContainerStatuses = p.Status.ContainerStatuses, nil
				p.Status.InitContainerStatuses[0].Name = "install"
			}), 0, "RESULT_MISSING", "the pod ended without a result: container install ended with exit code 2",
		},
		"was evicted": {
			testPod(says("Evicted", "The node was low on resource: memory.\nThreshold quantity: 100Mi"), func(p *corev1.Pod) { p.Status.Phase = failed }),
			immediately, "POD_LOST", "the pod was lost: Evicted: The node was low on resource: memory. Threshold quantity: 100Mi",
		},
		"was evicted, as its condition tells too": {
			testPod(ended(failed, 0, terminated("Error", 137)), says("Evicted", "m"), condition(corev1.DisruptionTarget, corev1.ConditionTrue, "TerminationByKubelet", "x")),
			immediately, "POD_LOST", "the pod was lost: Evicted: m",
		},
		"was preempted": {
			testPod(ended(failed, 0, terminated("Error", 143)), deleted(10*time.Second), condition(corev1.DisruptionTarget, corev1.ConditionTrue, "PreemptionByScheduler", "a higher priority")),
			immediately, "POD_LOST", "the pod was lost: PreemptionByScheduler: a higher priority",
		},
		"was on a node that shut down": {
			testPod(ended(failed, 0, terminated("Error", 143)), says("Terminated", "Pod was terminated in response to imminent node shutdown.")),
			immediately, "POD_LOST", "the pod was lost: Terminated: Pod was terminated in response to imminent node shutdown.",
		},
		"was refused by its node": {
			testPod(says("OutOfcpu", "Node didn't have enough resource"), func(p *corev1.Pod) { p.Status.Phase = failed }),
			immediately, "POD_LOST", "the pod was lost: OutOfcpu: Node didn't have enough resource",
		},
		"was collected as garbage": {
			testPod(func(p *corev1.Pod) { p.Status.Phase = failed }, deleted(0), condition(corev1.DisruptionTarget, corev1.ConditionTrue, "DeletionByPodGC", "PodGC: node no longer exists")),
			immediately, "POD_LOST", "the pod was lost: DeletionByPodGC: PodGC: node no longer exists",
		},
		"is on a node that was lost": {
			testPod(deleted(0), condition(corev1.DisruptionTarget, corev1.ConditionTrue, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")),
			30 * time.Second, "POD_LOST", "the pod was lost: DeletionByTaintManager: Taint manager: deleting due to NoExecute taint",
		},
		"was forgotten by its node": {
			testPod(ended(failed, 0, terminated("ContainerStatusUnknown", 137))),
			immediately, "POD_LOST", "the pod was lost: ContainerStatusUnknown: its node lost track of container script",
		},
		"was deleted and ended":            {testPod(deleted(10*time.Second), ended(failed, 5*time.Second, terminated("Error", 143))), immediately, "POD_LOST", "the pod was lost: it was deleted"},
		"is being deleted and still works": {testPod(deleted(10 * time.Second)), 40 * time.Second, "POD_LOST", "the pod was lost: it was deleted"},
		"should have gone long ago":        {testPod(deleted(-30 * time.Second)), 0, "POD_LOST", "the pod was lost: it was deleted"},
		"would be disrupted, but is not": {
			testPod(ended(failed, 30*time.Second, terminated("Error", 1)), condition(corev1.DisruptionTarget, corev1.ConditionFalse, "x", "")),
			0, "RESULT_MISSING", "the pod ended without a result: container script ended with exit code 1",
		},
		"pulls in vain":       {testPod(waits("ImagePullBackOff", pull)), 4 * time.Minute, "POD_LOST", "the pod could not start within 5m0s: ImagePullBackOff (image i): " + pull},
		"has just pulled":     {testPod(waits("ErrImagePull", "not found")), 4 * time.Minute, "POD_LOST", "the pod could not start within 5m0s: ImagePullBackOff (image i): not found"},
		"waited for its node": {testPod(waits("ErrImagePull", ""), aged(time.Hour), scheduled(time.Minute)), 4 * time.Minute, "POD_LOST", "the pod could not start within 5m0s: ImagePullBackOff (image i)"},
		"must not pull":       {testPod(waits("ErrImageNeverPull", "absent")), 4 * time.Minute, "POD_LOST", "the pod could not start within 5m0s: ErrImageNeverPull (image i): absent"},
		"names no image":      {testPod(waits("InvalidImageName", "bad reference")), immediately, "POD_LOST", "the pod cannot start: InvalidImageName (image i): bad reference"},
		"finds no node": {
			testPod(condition(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable", "0/3 nodes are available")),
			4 * time.Minute, "POD_LOST", "the pod could not start within 5m0s: Unschedulable: 0/3 nodes are available",
		},
		"wants a Secret that is gone": {
			testPod(wants("db"), waits("CreateContainerConfigError", `secret "db" not found`)),
			4 * time.Minute, "SECRET_UNUSABLE", `the pod could not start within 5m0s: CreateContainerConfigError: secret "db" not found`,
		},
		"wants a key that is gone": {
			testPod(wants("db"), waits("CreateContainerConfigError", "couldn't find key k in Secret team/db")),
			4 * time.Minute, "SECRET_UNUSABLE", "the pod could not start within 5m0s: CreateContainerConfigError: couldn't find key k in Secret team/db",
		},
		"lost its own Secret": {
			testPod(wants("db"), waits("CreateContainerConfigError", `secret "p" not found`)),
			4 * time.Minute, "POD_LOST", `the pod could not start within 5m0s: CreateContainerConfigError: secret "p" not found`,
		},
		"says more than fits": {
			testPod(says("Evicted", strings.Repeat("m", 5000)), func(p *corev1.Pod) { p.Status.Phase = failed }),
			immediately, "POD_LOST", truncate("the pod was lost: Evicted: "+strings.Repeat("m", 5000), maxPodWords),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, isOver := judgeAttemptPod(tc.pod, 5*time.Minute)
			want := podVerdict{}
			if tc.code != "" {
				want.failure = engine.Failure{Phase: engine.PhaseExecution, Code: tc.code, Message: tc.message}
			}
			if tc.code != "" && tc.in != immediately {
				want.at = runTestNow.Add(tc.in)
			}
			if tc.code == codeSecretUnusable {
				want.failure.Phase = engine.PhaseExecutorLookup
			}
			if isOver != (tc.code != "") {
				t.Errorf("got a verdict: %t", isOver)
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(podVerdict{})); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
			checkMoment(t, tc.pod, want)
		})
	}
}

// immediately is a verdict that no clock is asked about.
const immediately = time.Duration(math.MinInt64)

// checkMoment wants the delivery when the verdict holds and not before, and to
// be woken then.
func checkMoment(t *testing.T, pod *corev1.Pod, want podVerdict) {
	t.Helper()
	if moment := attemptMoment(pod, 5*time.Minute); !moment.Equal(want.at) {
		t.Errorf("it looks again at %v, want %v", moment, want.at)
	}
	if want.at.IsZero() && want.failure.Code != "" {
		d := attemptPodDelivery(pod, 5*time.Minute, runTestNow)
		if d == nil || d.failure != want.failure || !d.at.Equal(runTestNow) {
			t.Errorf("got delivery %+v", d)
		}
		return
	}
	if want.at.IsZero() {
		if d := attemptPodDelivery(pod, 5*time.Minute, runTestNow.Add(24*time.Hour)); d != nil {
			t.Errorf("a day later: %+v", d)
		}
		return
	}
	if d := attemptPodDelivery(pod, 5*time.Minute, want.at.Add(-1)); d != nil {
		t.Errorf("too early: %+v", d)
	}
	d := attemptPodDelivery(pod, 5*time.Minute, want.at)
	if d == nil || d.outcome != outcomeFail || d.failure != want.failure || !d.at.Equal(want.at) {
		t.Errorf("got delivery %+v", d)
	}
}

func TestAttemptTroubleIsSteady(t *testing.T) {
	t.Parallel()
	first, second := attemptTrouble(testPod(waits("ErrImagePull", "one"))), attemptTrouble(testPod(waits("ImagePullBackOff", "two")))
	if first.reason != second.reason {
		t.Errorf("a failing pull is told in two ways: %v, %v", first, second)
	}
}

func TestAPodHasTimeToStartByDefault(t *testing.T) {
	t.Parallel()
	verdict, _ := judgeAttemptPod(testPod(waits("ErrImagePull", "")), 0)
	if want := runTestNow.Add(9 * time.Minute); !verdict.at.Equal(want) {
		t.Errorf("it gives up at %v, want %v", verdict.at, want)
	}
}

func TestExitWords(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]string{0: "exit code 0", 1: "exit code 1", 128: "exit code 128", 137: "exit code 137 (SIGKILL)", 255: "exit code 255", -1: "exit code -1"} {
		if got := exitWords(code); got != want {
			t.Errorf("%d: got %q, want %q", code, got, want)
		}
	}
}

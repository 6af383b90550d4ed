package kubelet

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Change is what a node, the scheduler or a controller of the cluster writes
// into a pod's status. The moment is when it came to pass.
type Change func(pod *corev1.Pod, now time.Time)

// Write makes changes of a pod's status, for suites that tell of nodes without
// having one.
func Write(ctx context.Context, c client.Client, pod *corev1.Pod, now time.Time, changes ...Change) error {
	if err := c.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
		return fmt.Errorf("read pod: %w", err)
	}
	for _, change := range changes {
		change(pod, now)
	}
	if err := c.Status().Update(ctx, pod); err != nil {
		return fmt.Errorf("write status of pod %s: %w", pod.Name, err)
	}
	return nil
}

// Ends is the end of the pod's container by itself.
func Ends(code int32) Change {
	return func(pod *corev1.Pod, now time.Time) {
		phase, reason := corev1.PodSucceeded, "Completed"
		if code != 0 {
			phase, reason = corev1.PodFailed, "Error"
		}
		end(pod, now, phase, corev1.ContainerStateTerminated{ExitCode: code, Reason: reason})
	}
}

// OutOfMemory is the end of the pod's container by the kernel.
func OutOfMemory(pod *corev1.Pod, now time.Time) {
	end(pod, now, corev1.PodFailed, corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"})
}

// Forgotten is a pod whose node came back and does not know its container.
func Forgotten(pod *corev1.Pod, now time.Time) {
	end(pod, now, corev1.PodFailed, corev1.ContainerStateTerminated{
		ExitCode: 137, Reason: "ContainerStatusUnknown", Message: "The container could not be located when the pod was terminated",
	})
}

// Evicted is a pod that its node gave up for want of something.
func Evicted(message string) Change {
	return func(pod *corev1.Pod, now time.Time) {
		end(pod, now, corev1.PodFailed, corev1.ContainerStateTerminated{ExitCode: 137, Reason: "Error"})
		pod.Status.Reason, pod.Status.Message = "Evicted", message
		disrupt(pod, now, "TerminationByKubelet", message)
	}
}

// Preempted is a pod that the scheduler wants out of the way; its deletion
// follows.
func Preempted(pod *corev1.Pod, now time.Time) {
	disrupt(pod, now, "PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod")
}

// NodeLost is a pod whose node does not answer any more; its deletion follows, and
// nobody is there to end it.
func NodeLost(pod *corev1.Pod, now time.Time) {
	disrupt(pod, now, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")
}

// Collected is a pod whose node does not exist any more; its deletion follows.
func Collected(pod *corev1.Pod, now time.Time) {
	pod.Status.Phase = corev1.PodFailed
	disrupt(pod, now, "DeletionByPodGC", "PodGC: node no longer exists")
}

// Waits is a pod whose container cannot be started yet.
func Waits(reason, message string) Change {
	return func(pod *corev1.Pod, _ time.Time) {
		container := pod.Spec.Containers[0]
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: container.Name, Image: container.Image,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		}}
	}
}

// Unschedulable is a pod for which there is no node.
func Unschedulable(message string) Change {
	return func(pod *corev1.Pod, now time.Time) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message,
			LastTransitionTime: metav1.NewTime(now),
		})
	}
}

func end(pod *corev1.Pod, now time.Time, phase corev1.PodPhase, how corev1.ContainerStateTerminated) {
	container := pod.Spec.Containers[0]
	how.FinishedAt = metav1.NewTime(now)
	pod.Status.Phase = phase
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: container.Name, Image: container.Image, State: corev1.ContainerState{Terminated: &how},
	}}
}

func disrupt(pod *corev1.Pod, now time.Time, reason, message string) {
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now),
	})
}

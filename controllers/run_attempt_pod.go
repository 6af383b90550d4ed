package controllers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/apitomy/axiom-operator/internal/engine"
)

const (
	// resultGrace is how long the result of an ended pod may be on its way.
	resultGrace = 30 * time.Second
	// defaultAttemptStart is how long a pod may be unable to start its
	// containers, unless the operator was told otherwise; what keeps it from
	// starting may be mended in that time.
	defaultAttemptStart = 10 * time.Minute
	// lostGrace is how long a pod may stay behind the moment it should have gone.
	lostGrace = 30 * time.Second
	// maxPodWords bounds what a failure repeats of what the cluster says, in bytes.
	maxPodWords = 1024
)

// Reasons that the kubelet and the scheduler give.
const (
	waitingCreating     = "ContainerCreating"
	waitingInitializing = "PodInitializing"
	waitingPullFailed   = "ErrImagePull"
	waitingPullBackOff  = "ImagePullBackOff"
	waitingBadImage     = "InvalidImageName"
	waitingBadConfig    = "CreateContainerConfigError"

	// endedUnknown is the reason of a container that its node lost track of.
	endedUnknown = "ContainerStatusUnknown"
)

// endedByRuntime are the reasons of containers that never ran: what their
// status says then is the container runtime's word, not the script's.
var endedByRuntime = []string{"StartError", "ContainerCannotRun"}

// podVerdict is what a pod without a result means for its attempt, from a
// moment on.
type podVerdict struct {
	failure engine.Failure
	// at is that moment; zero: whatever the time is, which nodes may tell differently.
	at time.Time
}

// judgeAttemptPod tells what becomes of the attempt of a pod that has no result;
// false: nothing, as far as the pod can tell. It may start for as long as grace
// says. Told apart are
//
//	the end of its containers by themselves    RESULT_MISSING, once a result had time to arrive
//	their end by somebody or something else    POD_LOST
//	a Secret that is missing                   SECRET_UNUSABLE, once there was time to mend it
//	any other obstacle to its start            POD_LOST, as above
func judgeAttemptPod(pod *corev1.Pod, grace time.Duration) (podVerdict, bool) {
	end, hasEnded := attemptEnd(pod)
	taken, by := attemptTaken(pod)
	switch {
	case hasEnded && taken:
		return executionVerdict(time.Time{}, codePodLost, "the pod was lost: "+by), true
	case hasEnded:
		return executionVerdict(end.Add(resultGrace), codeResultMissing, "the pod ended without a result"+because(attemptEndReason(pod))), true
	case pod.DeletionTimestamp != nil:
		// Its containers may still work until they have ended, or their node has.
		return executionVerdict(pod.DeletionTimestamp.Add(lostGrace), codePodLost, "the pod was lost: "+by), true
	}
	trouble := attemptTrouble(pod)
	if !trouble.isObstacle() {
		return podVerdict{}, false
	}
	return trouble.verdict(pod, grace), true
}

func executionVerdict(at time.Time, code, message string) podVerdict {
	return podVerdict{at: at, failure: engine.Failure{
		Phase: engine.PhaseExecution, Code: code, Message: truncate(message, maxPodWords),
	}}
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// attemptTaken tells whether something other than the script ends the pod, or
// ended it, and what.
func attemptTaken(pod *corev1.Pod) (taken bool, by string) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return true, words(cmp.Or(pod.Status.Reason, c.Reason), cmp.Or(pod.Status.Message, c.Message))
		}
	}
	switch {
	case pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "":
		// The kubelet gives a pod a reason only when it ended it itself.
		return true, words(pod.Status.Reason, pod.Status.Message)
	case pod.DeletionTimestamp != nil:
		return true, "it was deleted"
	}
	for _, status := range attemptContainers(pod) {
		if t := status.State.Terminated; t != nil && t.Reason == endedUnknown {
			return true, words(t.Reason, "its node lost track of container "+status.Name)
		}
	}
	return false, ""
}

// words are a reason and what is said about it, in one line.
func words(reason, message string) string {
	message = strings.Join(strings.Fields(message), " ")
	if reason == "" || message == "" {
		return cmp.Or(reason, message)
	}
	return reason + ": " + message
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

// attemptEndReason says how the first container that did not end well ended.
func attemptEndReason(pod *corev1.Pod) string {
	for _, status := range attemptContainers(pod) {
		t := status.State.Terminated
		if t == nil || t.ExitCode == 0 && t.Reason != reasonOOMKilled {
			continue
		}
		message := fmt.Sprintf("container %s ended with %s", status.Name, exitWords(int(t.ExitCode)))
		if slices.Contains(endedByRuntime, t.Reason) {
			message += ": " + t.Message
		}
		reason := t.Reason
		if reason == "Error" {
			reason = "" // it says no more than the exit code
		}
		return words(reason, message)
	}
	return ""
}

func attemptContainers(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

// reasonOOMKilled is the reason of a container of which the kernel killed
// something for want of memory.
const reasonOOMKilled = "OOMKilled"

// isOutOfMemory tells whether the kernel killed something of the pod for want of
// memory; it need not have been all of it.
func isOutOfMemory(pod *corev1.Pod) bool {
	return pod != nil && slices.ContainsFunc(attemptContainers(pod), func(status corev1.ContainerStatus) bool {
		t := status.State.Terminated
		return t != nil && t.Reason == reasonOOMKilled
	})
}

// signalNames of the signals that end programs.
var signalNames = map[int]string{
	1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV",
	13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM", 24: "SIGXCPU", 25: "SIGXFSZ",
}

// exitWords names an exit code and, as shells count them, the signal behind it.
func exitWords(code int) string {
	if name, known := signalNames[code-128]; known {
		return fmt.Sprintf("exit code %d (%s)", code, name)
	}
	return fmt.Sprintf("exit code %d", code)
}

// attemptTroubles keeps a pod from starting. The zero value keeps it from nothing.
type attemptTroubles struct {
	// reason in a word or two, which changes only when the trouble does; it may
	// stand in a condition.
	reason string
	// detail in the cluster's own words, which change from try to try.
	detail string
	// secret is the credential that is missing, if that is what it is.
	secret string
	// isFinal: no time mends it.
	isFinal bool
	// isPatient: somebody else will let the pod start, and until then it waits.
	isPatient bool
}

func (t attemptTroubles) isObstacle() bool {
	return t.reason != "" && !t.isPatient
}

// verdict is what the trouble comes to if it lasts.
func (t attemptTroubles) verdict(pod *corev1.Pod, grace time.Duration) podVerdict {
	if grace <= 0 {
		grace = defaultAttemptStart
	}
	if t.isFinal {
		return executionVerdict(time.Time{}, codePodLost, "the pod cannot start: "+words(t.reason, t.detail))
	}
	verdict := executionVerdict(attemptBegin(pod).Add(grace), codePodLost, fmt.Sprintf("the pod could not start within %s: %s", grace, words(t.reason, t.detail)))
	if t.secret != "" {
		verdict.failure.Phase, verdict.failure.Code = engine.PhaseExecutorLookup, codeSecretUnusable
	}
	return verdict
}

// attemptBegin is when the pod could begin to start: when it got its node, until
// then when it was made.
func attemptBegin(pod *corev1.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && c.LastTransitionTime.After(pod.CreationTimestamp.Time) {
			return c.LastTransitionTime.Time
		}
	}
	return pod.CreationTimestamp.Time
}

// attemptTrouble looks for what keeps a pod from starting.
func attemptTrouble(pod *corev1.Pod) attemptTroubles {
	for _, status := range attemptContainers(pod) {
		w := status.State.Waiting
		if w == nil || w.Reason == "" || w.Reason == waitingCreating || w.Reason == waitingInitializing {
			continue
		}
		trouble := attemptTroubles{
			reason: fmt.Sprintf("%s (image %s)", steadyReason(w.Reason), status.Image), detail: w.Message, isFinal: w.Reason == waitingBadImage,
		}
		if w.Reason == waitingBadConfig {
			trouble.reason, trouble.secret = w.Reason, missingSecret(pod, w.Message)
		}
		return trouble
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason != "" {
			return attemptTroubles{reason: c.Reason, detail: c.Message, isPatient: c.Reason == corev1.PodReasonSchedulingGated}
		}
	}
	return attemptTroubles{}
}

// steadyReason gives the two reasons between which a failing image pull swings
// one name, so that nothing is written at each swing.
func steadyReason(reason string) string {
	if reason == waitingPullFailed {
		return waitingPullBackOff
	}
	return reason
}

// missingSecret is the credential that a message of the kubelet is about; empty
// if it is about none. The attempt's own Secret is none.
func missingSecret(pod *corev1.Pod, message string) string {
	said := strings.FieldsFunc(message, func(r rune) bool { return strings.ContainsRune(` "'/`, r) })
	for _, container := range pod.Spec.Containers {
		for _, v := range container.Env {
			if v.ValueFrom == nil || v.ValueFrom.SecretKeyRef == nil || v.ValueFrom.SecretKeyRef.Name == pod.Name {
				continue
			}
			if name := v.ValueFrom.SecretKeyRef.Name; slices.Contains(said, name) {
				return name
			}
		}
	}
	return ""
}

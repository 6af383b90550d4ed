package controllers

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

const (
	// runNamePart is how much of a run's name stands in its children's names.
	runNamePart = 42
	// runNameBytes of the digest follow, in hexadecimal.
	runNameBytes = 8
)

// Kinds of children that serve an activation.
const (
	childHumanTask = "HumanTask"
	childPod       = "Pod"
)

// runChildName is the name of the child that serves an activation. It depends
// on nothing that a restart could change.
func runChildName(run *api.WorkflowRun, activation string) string {
	return runNamePrefix(run.Name) + runNameDigest(run.UID, activation)
}

// runAttemptName is the name of an attempt's pod, Secret and result.
func runAttemptName(run *api.WorkflowRun, activation string, attempt int) string {
	return fmt.Sprintf("%s-a%d", runChildName(run, activation), attempt)
}

// runInputName is the name of the ConfigMap that an attempt's pod mounts.
func runInputName(attemptName string) string {
	return attemptName + "-in"
}

// runPolicyName is the name of the run's network policy. No activation is
// empty, so it meets no child's name.
func runPolicyName(run *api.WorkflowRun) string {
	return runChildName(run, "")
}

// runNamePrefix ends where a part of a name may end: a dot before the dash
// would make no name.
func runNamePrefix(name string) string {
	return strings.TrimRight(name[:min(len(name), runNamePart)], ".") + "-"
}

func runNameDigest(uid types.UID, activation string) string {
	sum := sha256.Sum256([]byte(string(uid) + "/" + activation))
	return hex.EncodeToString(sum[:runNameBytes])
}

package actions

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// attemptName is the name that the contract gives to an attempt.
func attemptName(run *api.WorkflowRun, activation string, attempt int) string {
	sum := sha256.Sum256([]byte(string(run.UID) + "/" + activation))
	return fmt.Sprintf("%s-%s-a%d", run.Name[:min(len(run.Name), 42)], hex.EncodeToString(sum[:])[:16], attempt)
}

// restrictedSpec is a pod that a restricted namespace takes.
func restrictedSpec() corev1.PodSpec {
	return corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: "main", Image: "somebody-elses",
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
	}
}

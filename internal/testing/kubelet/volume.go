package kubelet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// claimOf names the claim behind a volume of a pod, empty if there is none.
func claimOf(pod *corev1.Pod, volume string) string {
	for _, v := range pod.Spec.Volumes {
		if v.Name == volume && v.PersistentVolumeClaim != nil {
			return v.PersistentVolumeClaim.ClaimName
		}
	}
	return ""
}

// volume is the directory of a claim, as if a volume had been bound to it: one that is
// made again has another.
func (k *Kubelet) volume(ctx context.Context, pod *corev1.Pod, name string) (string, error) {
	if k.Volumes == "" {
		return "", errors.New("the node has no volumes")
	}
	claim := &corev1.PersistentVolumeClaim{}
	if err := k.Client.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: name}, claim); err != nil {
		return "", fmt.Errorf("read claim: %w", err)
	}
	dir := filepath.Join(k.Volumes, string(claim.UID))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make volume: %w", err)
	}
	return dir, nil
}

// running is the status of a pod whose container runs an image whose digest is made
// of its name.
func running(container corev1.Container) corev1.PodStatus {
	digest := sha256.Sum256([]byte(container.Image))
	return corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
		Name: container.Name, Image: container.Image, ImageID: container.Image + "@sha256:" + hex.EncodeToString(digest[:]),
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
	}}}
}

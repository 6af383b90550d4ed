package controllers

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// Agents of role Prompt keep their conversation in their home, so that the next pod
// of the session can take it up. The home is a volume of the session: it goes with
// the session and nobody else gets it. Where no volume can be had, the pod waits and
// the session's PodReady condition says why.

const (
	homePath   = "/home/agent"
	volumeHome = "home"

	defaultHomeSize = "1Gi"
)

// homeName is that of the claim of a session's home.
func homeName(session *api.AgentSession) string { return session.Name + "-home" }

// homeClaim asks for the home of a session. The cluster's default class gives it.
func homeClaim(state sessionState) *corev1.PersistentVolumeClaim {
	size := resource.MustParse(defaultHomeSize)
	if set := state.template.HomeSize; set != nil {
		size = *set
	}
	meta := agentMeta(state.session)
	meta.Name = homeName(state.session)
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: meta,
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: size}},
		},
	}
}

// ensureHome makes the claim of a session's home. One that is there is used as it
// is: a volume does not shrink, and the conversation in it is worth more than a
// template's new size.
func (r *AgentSessionReconciler) ensureHome(ctx context.Context, state sessionState) error {
	if !takesPrompts(state.session) {
		return nil
	}
	claim := homeClaim(state)
	err := r.Direct.Create(ctx, claim)
	if !apierrors.IsAlreadyExists(err) {
		return unlessRefused("create home", err)
	}
	existing := &corev1.PersistentVolumeClaim{}
	if err := r.Direct.Get(ctx, client.ObjectKeyFromObject(claim), existing); err != nil {
		return fmt.Errorf("read home: %w", err)
	}
	switch {
	case !isOwnedBy(existing, state.session.UID):
		return foreign("PersistentVolumeClaim", existing.Name)
	case !existing.DeletionTimestamp.IsZero():
		return fmt.Errorf("wait for home: %s is being deleted", existing.Name)
	}
	return nil
}

// moveIntoEmptyRoom gives a pod the session's home, and a working directory in which
// nothing is and nothing can be put.
func moveIntoEmptyRoom(session *api.AgentSession, spec *corev1.PodSpec) {
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: volumeHome, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: homeName(session)},
	}})
	agent := &spec.Containers[0]
	for i := range agent.VolumeMounts {
		if agent.VolumeMounts[i].Name == volumeWork {
			agent.VolumeMounts[i].ReadOnly = true
		}
	}
	agent.VolumeMounts = append(agent.VolumeMounts, corev1.VolumeMount{Name: volumeHome, MountPath: homePath})
	// A template's own variable of that name would lead the agent away from it.
	agent.Env = slices.DeleteFunc(agent.Env, func(variable corev1.EnvVar) bool { return variable.Name == envHome })
	agent.Env = append(agent.Env, corev1.EnvVar{Name: envHome, Value: homePath})
}

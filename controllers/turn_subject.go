package controllers

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/prompt"
)

// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=actiontypes;agentsessions;compositions;humantasks;sessiontemplates;streamevents;tools;turns;workflowruns,verbs=get

// freePrompt is what the agent of a free-standing session is told.
func (r *TurnReconciler) freePrompt(ctx context.Context, turn *api.Turn, session *api.AgentSession) (string, error) {
	subject := session.Spec.Subject
	if subject == nil || !beginsConversation(turn, session) {
		return turn.Spec.Message, nil
	}
	manifest, err := r.manifest(ctx, turn.Namespace, *subject)
	if err != nil {
		return "", err
	}
	return prompt.OfSubject(manifest, turn.Spec.Message), nil
}

// beginsConversation tells whether the agent knows nothing yet of what the
// session is about: nobody said anything to it, or it shall forget all.
func beginsConversation(turn *api.Turn, session *api.AgentSession) bool {
	return session.Status.Prompt == nil || session.Status.ReadyAttempt == 0 || turn.Spec.NewConversation
}

// manifest is an object as a person reads it.
func (r *TurnReconciler) manifest(ctx context.Context, namespace string, subject api.Subject) (string, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(api.GroupVersion.WithKind(string(subject.Kind)))
	if err := r.Direct.Get(ctx, types.NamespacedName{Namespace: namespace, Name: subject.Name}, object); err != nil {
		return "", fmt.Errorf("read subject of session: %w", err)
	}
	object.SetManagedFields(nil)
	unstructured.RemoveNestedField(object.Object, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
	text, err := yaml.Marshal(object.Object)
	if err != nil {
		return "", fmt.Errorf("encode subject of session: %w", err)
	}
	return string(text), nil
}

package controllers

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// errForeign says that an object of the wanted name is somebody else's.
var errForeign = errors.New("belongs to somebody else")

// ensureSession returns the composition's session, with the composition's
// present settings.
func (r *TurnReconciler) ensureSession(ctx context.Context, comp *api.Composition) (*api.AgentSession, error) {
	wanted := sessionFor(comp)
	session := &api.AgentSession{}
	err := r.Direct.Get(ctx, types.NamespacedName{Namespace: wanted.Namespace, Name: wanted.Name}, session)
	if apierrors.IsNotFound(err) {
		if err := r.Direct.Create(ctx, wanted); err != nil {
			return nil, fmt.Errorf("create session: %w", err)
		}
		return wanted, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read session: %w", err)
	}
	if !metav1.IsControlledBy(session, comp) || !session.DeletionTimestamp.IsZero() {
		return nil, fmt.Errorf("agent session %s %w", session.Name, errForeign)
	}
	// Whether it is stopped is a person's business.
	wanted.Spec.Stopped = session.Spec.Stopped
	if equalStatus(session.Spec, wanted.Spec) {
		return session, nil
	}
	session.Spec = wanted.Spec
	if err := r.Direct.Update(ctx, session); err != nil {
		return nil, fmt.Errorf("update session: %w", err)
	}
	return session, nil
}

// sessionFor is the session that a composition asks for.
func sessionFor(comp *api.Composition) *api.AgentSession {
	agent := comp.Spec.Agent
	templateName := agent.Template
	if templateName == "" {
		templateName = api.TemplateWorkbench
	}
	return &api.AgentSession{
		ObjectMeta: metav1.ObjectMeta{
			Name:            sessionName(comp.Name),
			Namespace:       comp.Namespace,
			Labels:          map[string]string{api.LabelComposition: comp.Name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(comp, api.GroupVersion.WithKind(compositionKind))},
		},
		Spec: api.AgentSessionSpec{
			TemplateRef:    api.LocalRef{Name: templateName},
			CompositionRef: &api.LocalRef{Name: comp.Name},
			Runtime:        agent.Runtime,
			ModelSecretRef: agent.ModelSecretRef,
			Egress:         agent.Egress,
			TurnTimeout:    agent.TurnTimeout,
			IdleTimeout:    agent.IdleTimeout,
		},
	}
}

func sessionName(composition string) string {
	return composition + "-agent"
}

func (r *TurnReconciler) updateSession(ctx context.Context, session *api.AgentSession) error {
	if session.Status.Capabilities == nil {
		session.Status.Capabilities = []string{} // the API takes no null for a list
	}
	if err := r.Direct.Status().Update(ctx, session); err != nil {
		return fmt.Errorf("update session of turn: %w", err)
	}
	return nil
}

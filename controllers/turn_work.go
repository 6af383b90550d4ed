package controllers

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

const (
	defaultTurnTimeout = 30 * time.Minute
	// timeoutGrace is what the runner has to end a turn that timed out by itself
	// before the operator does.
	timeoutGrace = time.Minute

	detailPodLost  = "The agent pod was lost"
	detailTimedOut = "The turn took longer than its time limit"
	detailReleased = "The composition was released from this turn"
)

// work brings the prompt to the agent and waits for its result.
func (r *TurnReconciler) work(ctx context.Context, turn *api.Turn) (step, error) {
	comp, err := r.readComposition(ctx, turn)
	if err != nil {
		return step{}, err
	}
	if comp == nil || comp.Status.Claim == nil || comp.Status.Claim.UID != string(turn.UID) {
		fail(turn, detailReleased, r.now())
		return step{comp: comp}, nil
	}
	session, err := r.ensureSession(ctx, comp)
	if err != nil {
		return step{comp: comp}, err
	}
	prompt := session.Status.Prompt
	if prompt == nil || prompt.ID != turn.Name {
		return step{comp: comp}, r.queue(ctx, turn, session)
	}
	if prompt.State == api.PromptDone {
		return step{comp: comp}, r.finish(ctx, turn, comp, prompt.Result)
	}
	return r.tend(ctx, turn, session, step{comp: comp})
}

// tend decides about a prompt that is on its way or with the agent.
func (r *TurnReconciler) tend(ctx context.Context, turn *api.Turn, session *api.AgentSession, done step) (step, error) {
	prompt := session.Status.Prompt
	deadline := turn.Status.StartedAt.Add(turnTimeout(session.Spec.TurnTimeout) + timeoutGrace)
	left := deadline.Sub(r.Clock.Now())
	switch {
	case prompt.State == api.PromptLost && (len(turn.Status.ChangeSets) > 0 || prompt.Restarts > 0):
		concludePrompt(prompt, api.PromptResult{Outcome: api.OutcomeFailed, Detail: detailPodLost})
	case prompt.State == api.PromptLost:
		prompt.State, prompt.Attempt, prompt.Restarts = api.PromptQueued, 0, prompt.Restarts+1
	case left <= 0:
		concludePrompt(prompt, api.PromptResult{Outcome: api.OutcomeFailed, Detail: detailTimedOut})
	case turn.Spec.Interrupt && prompt.State == api.PromptQueued:
		concludePrompt(prompt, api.PromptResult{Outcome: api.OutcomeInterrupted})
	case turn.Spec.Interrupt && !prompt.Cancel:
		prompt.Cancel = true
	default:
		turn.Status.Restarts = prompt.Restarts
		done.again = left
		return done, nil
	}
	return done, r.updateSession(ctx, session)
}

// queue puts the turn's prompt into the session, after the prompt before it
// has ended.
func (r *TurnReconciler) queue(ctx context.Context, turn *api.Turn, session *api.AgentSession) error {
	sequence := int64(1)
	if before := session.Status.Prompt; before != nil {
		if before.State == api.PromptDelivered {
			return r.cancelBefore(ctx, session)
		}
		sequence = before.Sequence + 1
	}
	session.Status.FailedStarts = 0
	session.Status.CurrentTurn = turn.Name
	session.Status.Prompt = &api.SessionPrompt{
		Sequence: sequence, ID: turn.Name, Ref: *turn.Status.Prompt, State: api.PromptQueued, NewConversation: turn.Spec.NewConversation,
	}
	return r.updateSession(ctx, session)
}

// cancelBefore stops the agent on a prompt whose turn is gone; its result makes
// room for the next.
func (r *TurnReconciler) cancelBefore(ctx context.Context, session *api.AgentSession) error {
	if session.Status.Prompt.Cancel {
		return nil
	}
	session.Status.Prompt.Cancel = true
	return r.updateSession(ctx, session)
}

func (r *TurnReconciler) updateSession(ctx context.Context, session *api.AgentSession) error {
	if session.Status.Capabilities == nil {
		session.Status.Capabilities = []string{}
	}
	if err := r.Direct.Status().Update(ctx, session); err != nil {
		return fmt.Errorf("update session of turn: %w", err)
	}
	return nil
}

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
	if !metav1.IsControlledBy(session, comp) {
		return nil, fmt.Errorf("session %s belongs to somebody else", session.Name)
	}
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
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(comp, api.GroupVersion.WithKind("Composition"))},
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

func turnTimeout(set *metav1.Duration) time.Duration {
	if set == nil || set.Duration <= 0 {
		return defaultTurnTimeout
	}
	return set.Duration
}

func concludePrompt(prompt *api.SessionPrompt, result api.PromptResult) {
	prompt.State, prompt.Result = api.PromptDone, &result
}

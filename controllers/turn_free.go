package controllers

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// A turn that a person addresses to a free-standing session has no composition
// that would keep turns apart: it claims the session itself, by the name in
// status.currentTurn, and keeps it until it is over.

const detailSessionReleased = "The session was released from this turn"

// startFree claims the session for the turn, then makes the turn Working. A
// fresh operator may repeat any part of it: the claim names the turn.
func (r *TurnReconciler) startFree(ctx context.Context, turn *api.Turn) (step, error) {
	session, err := r.freeSession(ctx, turn)
	if err != nil {
		return step{}, err
	}
	done := step{session: session}
	switch {
	case session == nil:
		refuse(turn, fmt.Sprintf("free-standing agent session %q does not exist", turn.Spec.SessionRef.Name))
		return done, nil
	case session.Spec.Stopped:
		refuse(turn, fmt.Sprintf("agent session %s is stopped", session.Name))
		return done, nil
	}
	if err := r.own(ctx, turn, session, sessionKind); err != nil {
		return done, err
	}
	if turn.Spec.Interrupt {
		fail(turn, detailInterruptedBefore, r.now())
		return done, nil
	}
	held, err := r.claimSession(ctx, turn, session)
	if err != nil || !held {
		return done, err
	}
	return done, r.beginFree(ctx, turn, session)
}

// claimSession tells whether the turn holds the session, after trying to get it.
// One whose turn is over is free, whether or not that was noted in it.
func (r *TurnReconciler) claimSession(ctx context.Context, turn *api.Turn, session *api.AgentSession) (bool, error) {
	claimant := session.Status.CurrentTurn
	if claimant == turn.Name {
		return true, nil
	}
	if claimant != "" {
		holder, err := readTurn(ctx, r.Direct, turn.Namespace, claimant)
		if err != nil {
			return false, err
		}
		if holds(holder, session) {
			refuse(turn, "An AI turn is already running: "+claimant)
			return false, nil
		}
	}
	if fresh, err := isFresh(ctx, r.Direct, turn); err != nil || !fresh {
		return false, err
	}
	session.Status.CurrentTurn = turn.Name
	return true, r.updateSession(ctx, session)
}

// beginFree stores the prompt: the message, and ahead of a conversation's first
// one what the session is about.
func (r *TurnReconciler) beginFree(ctx context.Context, turn *api.Turn, session *api.AgentSession) error {
	text, err := r.freePrompt(ctx, turn, session)
	if apierrors.IsNotFound(err) {
		refuse(turn, fmt.Sprintf("the session's subject %s %q does not exist", session.Spec.Subject.Kind, session.Spec.Subject.Name))
		return nil
	}
	if err != nil {
		return err
	}
	ref, err := r.content().Put(ctx, turn, []byte(text))
	if err != nil {
		return err
	}
	turn.Status.State, turn.Status.Prompt, turn.Status.StartedAt = api.TurnWorking, &ref, r.now()
	return nil
}

// workFree brings the prompt to the session's agent and waits for its result.
func (r *TurnReconciler) workFree(ctx context.Context, turn *api.Turn) (step, error) {
	session, err := r.freeSession(ctx, turn)
	if err != nil {
		return step{}, err
	}
	done := step{session: session}
	switch {
	case session == nil:
		failAgent(turn, detailSessionGone, r.now())
		return done, nil
	case session.Status.CurrentTurn != turn.Name && !isPromptOf(session.Status.Prompt, turn):
		failAgent(turn, detailSessionReleased, r.now())
		return done, nil
	}
	return r.serve(ctx, turn, session, done)
}

// freeSession reads the free-standing session that the turn is for live, nil if
// there is none or it is not the one that the turn began with.
func (r *TurnReconciler) freeSession(ctx context.Context, turn *api.Turn) (*api.AgentSession, error) {
	session, err := r.readSession(ctx, turn)
	if err != nil || session == nil || !isFree(session) || isOfFormer(turn, session, sessionKind) {
		return nil, err
	}
	return session, nil
}

// readSession reads the session that the turn names live, nil when it is gone.
func (r *TurnReconciler) readSession(ctx context.Context, turn *api.Turn) (*api.AgentSession, error) {
	session := &api.AgentSession{}
	err := r.Direct.Get(ctx, types.NamespacedName{Namespace: turn.Namespace, Name: turn.Spec.SessionRef.Name}, session)
	if apierrors.IsNotFound(err) || err == nil && !session.DeletionTimestamp.IsZero() {
		return nil, nil //nolint:nilnil // a session that is gone is an ordinary answer
	}
	if err != nil {
		return nil, fmt.Errorf("read session: %w", err)
	}
	return session, nil
}

// turnsOfFreeSession maps a session to the turn that works in it.
func (r *TurnReconciler) turnsOfFreeSession(ctx context.Context, session *api.AgentSession) []reconcile.Request {
	list := &api.TurnList{}
	if err := r.Client.List(ctx, list, client.InNamespace(session.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Turns of a session could not be listed", "session", session.Name)
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if turn := &list.Items[i]; holds(turn, session) {
			requests = append(requests, requestFor(turn.Namespace, turn.Name))
		}
	}
	return requests
}

package controllers

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/apitomy/axiom-operator/internal/journal"
	"github.com/apitomy/axiom-operator/internal/journal/store"
)

// keyWelcome is under which a session's welcome is in its journal.
const keyWelcome = "welcome"

// openJournal prepares the journal for the session's next pod. It tells whether
// there is a past that the pod's agent must be told of; before the first pod it
// greets the person instead.
func (r *AgentSessionReconciler) openJournal(ctx context.Context, state sessionState) (hasPast bool, err error) {
	session := state.session
	switch {
	case session.Spec.RunRef != nil:
		return false, nil // its agent loads its conversation itself, and nobody is there to be greeted
	case session.Status.Attempt > 0:
		extent, err := journalsOf(r.Direct).Extent(ctx, session)
		return extent.Last > 0, unlessHopeless(ctx, "read journal", err)
	case state.template.WelcomeMessage == "":
		return false, nil
	}
	err = journalsOf(r.Direct).Record(ctx, session, keyWelcome, assistantText(state.template.WelcomeMessage, false))
	return false, unlessHopeless(ctx, "record welcome", err)
}

func journalsOf(direct client.Client) store.Store {
	return store.Store{Client: direct, Reader: direct}
}

// assistantText is an event of the operator's own; a notice is for the person
// alone.
func assistantText(text string, isNotice bool) journal.Event {
	data := map[string]any{"text": text}
	if isNotice {
		data[journal.MemberNotice] = true
	}
	return journal.Event{Type: journal.TypeAssistantText, Data: data}
}

// unlessHopeless logs what a repetition does not mend and lets the rest be
// repeated: a journal that cannot be kept holds no session up.
func unlessHopeless(ctx context.Context, what string, err error) error {
	isHopeless := apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) ||
		errors.Is(err, store.ErrDamaged)
	if isHopeless {
		ctrl.LoggerFrom(ctx).Error(err, "A journal was left as it is", "wanted", what)
		return nil
	}
	return wrap(what, err)
}

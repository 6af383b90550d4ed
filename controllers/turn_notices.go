package controllers

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// wantsPosting tells whether the turn has notices that are not in the journal
// of its session yet.
func wantsPosting(turn *api.Turn) bool {
	return int(turn.Status.PostedNotices) < len(turn.Status.Notices)
}

// postNotices puts the turn's notices into the journal of its session. They are
// in status by then, so that what is posted is what stays; and a pass whose
// receipt is lost finds them in the journal.
func (r *TurnReconciler) postNotices(ctx context.Context, turn *api.Turn) error {
	session, err := r.hearingSession(ctx, turn)
	if err != nil {
		return err
	}
	status := &turn.Status
	for wantsPosting(turn) {
		notice := status.Notices[status.PostedNotices]
		if session != nil {
			err := journalsOf(r.Direct).Record(ctx, session, noticeKey(turn, status.PostedNotices+1), assistantText(notice, true))
			if err := unlessHopeless(ctx, "record notice", err); err != nil {
				return err
			}
		}
		status.PostedNotices++
	}
	return nil
}

// hearingSession is the session in which the turn's person listens, nil when it
// is gone or was never made.
func (r *TurnReconciler) hearingSession(ctx context.Context, turn *api.Turn) (*api.AgentSession, error) {
	name := types.NamespacedName{Namespace: turn.Namespace}
	var comp *api.Composition
	if ref := turn.Spec.CompositionRef; ref != nil {
		var err error
		if comp, err = r.readComposition(ctx, turn); err != nil || comp == nil {
			return nil, err
		}
		name.Name = sessionName(ref.Name)
	} else {
		name.Name = turn.Spec.SessionRef.Name
	}
	session := &api.AgentSession{}
	err := r.Direct.Get(ctx, name, session)
	if apierrors.IsNotFound(err) || err == nil && comp != nil && !metav1.IsControlledBy(session, comp) {
		return nil, nil //nolint:nilnil // nobody listens, which is an ordinary answer
	}
	if err != nil {
		return nil, fmt.Errorf("read session: %w", err)
	}
	return session, nil
}

// noticeKey is under which a turn's notice is in the journal, counted from 1.
func noticeKey(turn *api.Turn, number int32) string {
	return fmt.Sprintf("notice/%s/%d", turn.UID, number)
}

package gateway

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// maxConflicts is how often in a row somebody else may be faster before the
// caller is asked to come again.
const maxConflicts = 5

// settle computes and writes something until nobody else changed it meanwhile.
// Each try must read anew what it decides on.
func settle(try func() error) error {
	var err error
	for range maxConflicts {
		err = try()
		if !isLostRace(err) {
			return err
		}
	}
	return errors.Join(unavailable("Others keep changing the same object; try again in a moment"), err)
}

// settleFor is settle for a caller whose token must still be good at each try:
// it may have been revoked since the guard let the request in.
func (s *Server) settleFor(ctx context.Context, who caller, try func() error) error {
	fresh := true
	return settle(func() error {
		if !fresh {
			if err := s.refresh(ctx, who, who.session.DeepCopy()); err != nil {
				return err
			}
		}
		fresh = false
		return try()
	})
}

// isLostRace tells whether somebody else was faster: with a change, or with an
// object of the same name.
func isLostRace(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// updateSession changes the status of the session that the caller is, or asked
// about. The change is told
// whether it changed anything, and is made again on a fresh session when
// somebody else was faster, unless the caller's token was revoked by then.
func (s *Server) updateSession(ctx context.Context, who caller, change func(*api.AgentSessionStatus) (bool, error)) error {
	session := who.session.DeepCopy()
	fresh := true
	return settle(func() error {
		if !fresh {
			if err := s.refresh(ctx, who, session); err != nil {
				return err
			}
		}
		fresh = false
		changed, err := change(&session.Status)
		if err != nil || !changed {
			return err
		}
		if session.Status.Capabilities == nil {
			session.Status.Capabilities = []string{} // the API takes no null for a list
		}
		if err := s.live.Status().Update(ctx, session); err != nil {
			return fmt.Errorf("update session: %w", err)
		}
		return nil
	})
}

// gone is the problem of a caller whose session is no more.
func gone(who caller) error {
	if who.person == nil {
		return unauthorized()
	}
	return notFound("Session %s/%s not found", who.session.Namespace, who.session.Name)
}

// refresh reads the session that the caller is, or asked about, again.
func (s *Server) refresh(ctx context.Context, who caller, session *api.AgentSession) error {
	now := &api.AgentSession{} // decoding into an old object would keep what is gone
	err := s.live.Get(ctx, client.ObjectKeyFromObject(session), now)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read session: %w", err)
	}
	switch {
	case err != nil || now.UID != who.session.UID:
		return gone(who)
	case who.person == nil && now.Status.TokenHash != who.session.Status.TokenHash:
		return unauthorized()
	}
	*session = *now
	return nil
}

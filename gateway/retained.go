package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/content"
)

const (
	// maxRetained bounds what an agent is told of a conversation that is over, in
	// bytes; the newest is told.
	maxRetained = 64 << 10

	retainedHeading = "The conversation so far cannot be taken up again. This is what was said in it, oldest first:\n\n"
	retainedEnd     = "\n\nEnd of what was said. Now:\n\n"
	notKept         = "(no longer kept)"
)

// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=turns,verbs=list

// retained tells what was said in a session of role Prompt, from its turns.
func (s *Server) retained(ctx context.Context, session *api.AgentSession) (string, error) {
	said, err := s.completedTurns(ctx, session)
	if err != nil {
		return "", err
	}
	var texts []string
	size := 0
	for _, turn := range slices.Backward(said) {
		text, err := s.exchange(ctx, turn)
		if err != nil {
			return "", err
		}
		texts = append(texts, text)
		if size += len(text); size >= maxRetained {
			break
		}
	}
	slices.Reverse(texts)
	return retainedHeading + newest(strings.Join(texts, "\n\n"), maxRetained) + retainedEnd, nil
}

// completedTurns are those of the session that have a reply, in their order.
func (s *Server) completedTurns(ctx context.Context, session *api.AgentSession) ([]*api.Turn, error) {
	run := metav1.GetControllerOf(session)
	if run == nil {
		return nil, nil
	}
	list := &api.TurnList{}
	err := s.live.List(ctx, list, client.InNamespace(session.Namespace), client.MatchingLabels{api.LabelRun: string(run.UID)})
	if err != nil {
		return nil, fmt.Errorf("list turns: %w", err)
	}
	var said []*api.Turn
	for i := range list.Items {
		turn := &list.Items[i]
		isOwn := turn.Spec.Prompt != nil && turn.Spec.SessionRef != nil && turn.Spec.SessionRef.Name == session.Name
		if isOwn && turn.Status.State == api.TurnCompleted {
			said = append(said, turn)
		}
	}
	slices.SortFunc(said, func(a, b *api.Turn) int {
		return cmp.Or(
			timeOf(a.Status.FinishedAt).Compare(timeOf(b.Status.FinishedAt)),
			timeOf(a.Status.StartedAt).Compare(timeOf(b.Status.StartedAt)),
			cmp.Compare(a.Spec.Prompt.Repair, b.Spec.Prompt.Repair), cmp.Compare(a.Name, b.Name))
	})
	return said, nil
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// exchange is what was asked in a turn and replied.
func (s *Server) exchange(ctx context.Context, turn *api.Turn) (string, error) {
	asked, err := s.keptText(ctx, turn.Namespace, &turn.Spec.Prompt.Message)
	if err != nil {
		return "", err
	}
	replied := turn.Status.Reply
	if turn.Status.ReplyRef != nil {
		if replied, err = s.keptText(ctx, turn.Namespace, turn.Status.ReplyRef); err != nil {
			return "", err
		}
	}
	return "You were told:\n\n" + asked + "\n\nYou answered:\n\n" + replied, nil
}

// keptText reads a text; one that is lost is not worth losing the rest for.
func (s *Server) keptText(ctx context.Context, namespace string, ref *api.ContentRef) (string, error) {
	data, err := s.contents.Get(ctx, namespace, ref.Digest)
	if errors.Is(err, content.ErrGone) || errors.Is(err, content.ErrDamaged) {
		return notKept, nil
	}
	if err != nil {
		return "", fmt.Errorf("read what was said: %w", err)
	}
	return string(data), nil
}

// newest is the end of a text, in whole characters.
func newest(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	start := len(text) - limit
	for start < len(text) && !utf8.RuneStart(text[start]) {
		start++
	}
	return text[start:]
}

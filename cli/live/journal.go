package live

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/journal"
	"github.com/apitomy/axiom-operator/internal/journal/store"
)

// readJournal gives the events of a session behind a number to see, in order, and
// returns the number of the last one.
func (c *cluster) readJournal(ctx context.Context, session *api.AgentSession, after int64, see func(journal.Line) error) (int64, error) {
	last, err := store.Store{Client: c, Reader: c}.Walk(ctx, session, after, see)
	if err != nil {
		return last, explain(err)
	}
	return last, nil
}

// followJournal goes on with those that come, until the session is gone.
func (c *cluster) followJournal(ctx context.Context, session *api.AgentSession, after int64, see func(journal.Line) error) error {
	chunks := &metav1.PartialObjectMetadataList{}
	chunks.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMapList"})
	read := func() error {
		var err error
		after, err = c.readJournal(ctx, session, after, see)
		return err
	}
	return c.observe(ctx, chunks, observer{
		listed: read,
		changed: func(kind watch.EventType, _ runtime.Object) error {
			if kind == watch.Deleted {
				return c.endWith(ctx, session)
			}
			return read()
		},
	}, store.ChunksOf(session)...)
}

// endWith ends a watch when the session is gone. A chunk also goes when it is old.
func (c *cluster) endWith(ctx context.Context, session *api.AgentSession) error {
	now := &api.AgentSession{}
	err := c.Get(ctx, client.ObjectKeyFromObject(session), now)
	switch {
	case apierrors.IsNotFound(err), err == nil && now.UID != session.UID:
		return errEnough
	case err != nil:
		return fmt.Errorf("read session: %w", explain(err))
	}
	return nil
}

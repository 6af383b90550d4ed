package gateway

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// bells wake those who wait for news of a session. A bell says only that it is
// worth to look again: what happened is read from the API server. The zero
// value is ready to use.
type bells struct {
	mu     sync.Mutex
	rung   map[types.NamespacedName]map[chan struct{}]struct{}
	isOver bool
	synced func() bool
}

// listen returns a channel that receives when there may be news of the session,
// and is closed when the server shuts down. Who listens before it reads misses
// nothing. The caller must call leave.
func (b *bells) listen(session types.NamespacedName) (news <-chan struct{}, leave func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	bell := make(chan struct{}, 1) // one ring is kept for somebody who is busy reading
	if b.isOver {
		close(bell)
		return bell, func() {}
	}
	if b.rung == nil {
		b.rung = map[types.NamespacedName]map[chan struct{}]struct{}{}
	}
	if b.rung[session] == nil {
		b.rung[session] = map[chan struct{}]struct{}{}
	}
	b.rung[session][bell] = struct{}{}
	return bell, func() { b.remove(session, bell) }
}

func (b *bells) remove(session types.NamespacedName, bell chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.rung[session], bell)
	if len(b.rung[session]) == 0 {
		delete(b.rung, session)
	}
}

func (b *bells) ring(session types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isOver {
		return
	}
	for bell := range b.rung[session] {
		select {
		case bell <- struct{}{}:
		default: // it rang already
		}
	}
}

// close wakes everybody for the last time.
func (b *bells) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isOver {
		return
	}
	b.isOver = true
	for _, waiting := range b.rung {
		for bell := range waiting {
			close(bell)
		}
	}
}

func (b *bells) connected() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.synced != nil && b.synced()
}

// connectBells makes the bells ring when sessions change.
func (s *Server) connectBells(ctx context.Context) error {
	informer, err := s.informers.GetInformer(ctx, &api.AgentSession{})
	if err != nil {
		return fmt.Errorf("watch agent sessions: %w", err)
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { s.ring(object) },
		UpdateFunc: func(before, after any) {
			if hasNews(before, after) {
				s.ring(after)
			}
		},
		DeleteFunc: func(object any) { s.ring(object) },
	})
	if err != nil {
		return fmt.Errorf("watch agent sessions: %w", err)
	}
	s.bells.mu.Lock()
	defer s.bells.mu.Unlock()
	s.bells.synced = registration.HasSynced
	return nil
}

func (s *Server) ring(object any) {
	if last, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	if session, ok := object.(client.Object); ok {
		s.bells.ring(client.ObjectKeyFromObject(session))
	}
}

// hasNews tells whether a change of a session can end a wait for a prompt.
func hasNews(before, after any) bool {
	old, isOld := before.(*api.AgentSession)
	session, isNew := after.(*api.AgentSession)
	if !isOld || !isNew {
		return true
	}
	return old.Status.TokenHash != session.Status.TokenHash || !equality.Semantic.DeepEqual(old.Status.Prompt, session.Status.Prompt)
}

package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// topic is what news are about.
type topic struct {
	kind string
	key  types.NamespacedName
}

func sessionTopic(key types.NamespacedName) topic { return topic{"session", key} }

func compositionTopic(key types.NamespacedName) topic { return topic{"composition", key} }

// bells wake those who wait for news of a topic. A bell says only that it is
// worth to look again: what happened is read from the API server. The zero
// value is ready to use.
type bells struct {
	mu     sync.Mutex
	rung   map[topic]map[chan struct{}]struct{}
	isOver bool
	synced []func() bool
}

// listen returns a channel that receives when there may be news of the topic,
// and is closed when the server shuts down. Who listens before it reads misses
// nothing. The caller must call leave.
func (b *bells) listen(about topic) (news <-chan struct{}, leave func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	bell := make(chan struct{}, 1) // one ring is kept for somebody who is busy reading
	if b.isOver {
		close(bell)
		return bell, func() {}
	}
	if b.rung == nil {
		b.rung = map[topic]map[chan struct{}]struct{}{}
	}
	if b.rung[about] == nil {
		b.rung[about] = map[chan struct{}]struct{}{}
	}
	b.rung[about][bell] = struct{}{}
	return bell, func() { b.remove(about, bell) }
}

func (b *bells) remove(about topic, bell chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.rung[about], bell)
	if len(b.rung[about]) == 0 {
		delete(b.rung, about)
	}
}

func (b *bells) ring(about topic) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isOver {
		return
	}
	for bell := range b.rung[about] {
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
	return len(b.synced) > 0 && !slices.ContainsFunc(b.synced, func(synced func() bool) bool { return !synced() })
}

// connectBells makes the bells ring when sessions or compositions change.
func (s *Server) connectBells(ctx context.Context) error {
	return errors.Join(
		s.connect(ctx, &api.AgentSession{}, sessionTopic, hasNews),
		s.connect(ctx, &api.Composition{}, compositionTopic, func(any, any) bool { return true }),
	)
}

// connect makes the bells ring when objects of a kind change in a way that
// somebody may wait for.
func (s *Server) connect(ctx context.Context, kind client.Object, about func(types.NamespacedName) topic, isNews func(before, after any) bool) error {
	informer, err := s.informers.GetInformer(ctx, kind)
	if err != nil {
		return fmt.Errorf("watch %T: %w", kind, err)
	}
	ring := func(object any) {
		if last, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = last.Obj
		}
		if object, ok := object.(client.Object); ok {
			s.bells.ring(about(client.ObjectKeyFromObject(object)))
		}
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: ring,
		UpdateFunc: func(before, after any) {
			if isNews(before, after) {
				ring(after)
			}
		},
		DeleteFunc: ring,
	})
	if err != nil {
		return fmt.Errorf("watch %T: %w", kind, err)
	}
	s.bells.mu.Lock()
	defer s.bells.mu.Unlock()
	s.bells.synced = append(s.bells.synced, registration.HasSynced)
	return nil
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

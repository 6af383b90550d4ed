package live

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// server is an API server with one turn, which answers lists and watches by a
// script, in order. All else is not there.
type server struct {
	client.WithWatch
	lists   []func(*api.TurnList) error
	watches []func(*watch.FakeWatcher) error
}

func (s *server) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	next := s.lists[0]
	s.lists = s.lists[1:]
	list.SetResourceVersion("7")
	return next(list.(*api.TurnList))
}

func (s *server) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	next := s.watches[0]
	s.watches = s.watches[1:]
	watcher := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 8})
	return watcher, next(watcher)
}

func inState(state api.TurnPhase) *api.Turn {
	turn := newTurn(func(s *api.TurnStatus) { s.State = state })
	turn.ResourceVersion = "8"
	return turn
}

// has lists the turn in a state, or nothing if there is none.
func has(state api.TurnPhase) func(*api.TurnList) error {
	return func(list *api.TurnList) error {
		list.Items = nil
		if state != "" {
			list.Items = []api.Turn{*inState(state)}
		}
		return nil
	}
}

func TestFollow(t *testing.T) {
	forbidden := apierrors.NewForbidden(turnsResource, "t", errors.New("no"))
	expired := apierrors.NewResourceExpired("too old").ErrStatus
	for name, tc := range map[string]struct {
		server  server
		want    []string
		wantErr error
	}{
		"sees what is and what comes": {server{
			lists: []func(*api.TurnList) error{has(api.TurnPending)},
			watches: []func(*watch.FakeWatcher) error{func(w *watch.FakeWatcher) error {
				w.Modify(inState(api.TurnWorking))
				w.Modify(inState(api.TurnApplied))
				return nil
			}},
		}, []string{"Pending", "Working", "Applied"}, nil},
		"waits for what is not yet": {server{
			lists:   []func(*api.TurnList) error{has("")},
			watches: []func(*watch.FakeWatcher) error{func(w *watch.FakeWatcher) error { w.Add(inState(api.TurnApplied)); return nil }},
		}, []string{"Applied"}, nil},
		"needs no watch for what is over": {server{lists: []func(*api.TurnList) error{has(api.TurnApplied)}}, []string{"Applied"}, nil},
		"tells of the end": {server{
			lists:   []func(*api.TurnList) error{has(api.TurnWorking)},
			watches: []func(*watch.FakeWatcher) error{func(w *watch.FakeWatcher) error { w.Delete(inState(api.TurnWorking)); return nil }},
		}, []string{"Working", "Working, gone"}, nil},
		"looks again when too much was missed": {server{
			lists: []func(*api.TurnList) error{has(api.TurnPending), has(api.TurnApplied)},
			watches: []func(*watch.FakeWatcher) error{func(w *watch.FakeWatcher) error {
				w.Error(&expired)
				return nil
			}},
		}, []string{"Pending", "Applied"}, nil},
		"ends when the right to list lacks": {server{lists: []func(*api.TurnList) error{func(*api.TurnList) error { return forbidden }}}, nil, forbidden},
		"ends when the right to watch lacks": {server{
			lists:   []func(*api.TurnList) error{has(api.TurnPending)},
			watches: []func(*watch.FakeWatcher) error{func(*watch.FakeWatcher) error { return forbidden }},
		}, []string{"Pending"}, forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			c := &cluster{WithWatch: &tc.server, namespace: "n"}
			err := follow(t.Context(), c, &api.TurnList{}, "t", func(turn *api.Turn, isGone bool) error {
				state := string(turn.Status.State)
				if isGone {
					state += ", gone"
				}
				got = append(got, state)
				if isGone || turn.Status.State == api.TurnApplied {
					return errEnough
				}
				return nil
			})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("seen (-want +got):\n%s", diff)
			}
			if (err == nil) != (tc.wantErr == nil) || tc.wantErr != nil && !apierrors.IsForbidden(err) {
				t.Errorf("error %v, want %v", err, tc.wantErr)
			}
		})
	}
}

func TestFollowEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := &cluster{namespace: "n", WithWatch: &server{
		lists: []func(*api.TurnList) error{has("")},
		watches: []func(*watch.FakeWatcher) error{func(*watch.FakeWatcher) error {
			cancel()
			return nil
		}},
	}}
	err := follow(ctx, c, &api.TurnList{}, "t", func(*api.Turn, bool) error { return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestWhatIsNoTurnIsNotFollowed(t *testing.T) {
	c := &cluster{namespace: "n", WithWatch: &server{
		lists: []func(*api.TurnList) error{has("")},
		watches: []func(*watch.FakeWatcher) error{func(w *watch.FakeWatcher) error {
			w.Add(&api.Composition{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "8"}})
			return nil
		}},
	}}
	if err := follow(t.Context(), c, &api.TurnList{}, "t", func(*api.Turn, bool) error { return nil }); err == nil {
		t.Error("a composition was taken for a turn")
	}
}

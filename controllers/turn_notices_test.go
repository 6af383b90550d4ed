package controllers

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

const noticeOfNo = failedNoticePrefix + "no" + failedNoticeDirect

// failing has the turn t-1 fail with the detail "no", and all come to rest.
func failing(t *testing.T) (*bench, *api.AgentSession, *api.Turn) {
	t.Helper()
	turn, session := message("t-1", "triage"), agentOf("triage")
	b := newBench(t, draft("triage"), turn)
	b.settleDown()
	b.delivers(session)
	b.reports(session, api.PromptResult{Outcome: api.OutcomeFailed, Detail: "no"})
	return b, session, turn
}

func TestANoticeIsPostedOnce(t *testing.T) {
	b, session, turn := failing(t)
	b.settleDown()
	if get(b, turn); turn.Status.PostedNotices != 1 {
		t.Errorf("%d notices are posted, want 1", turn.Status.PostedNotices)
	}
	if diff := cmp.Diff([]string{welcomeText(t), "! " + noticeOfNo}, b.told(session)); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
}

func TestANoticeWhoseReceiptIsLostIsNotRepeated(t *testing.T) {
	b, session, turn := failing(t)
	reconcileOne(b, b.turns(), turn) // the notice is in status, and not posted yet
	for range 3 {
		dying := *b.turns()
		dying.Client = interceptor.NewClient(b.client.(client.WithWatch), interceptor.Funcs{
			SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
				return errors.New("lost")
			},
		})
		if _, err := dying.Reconcile(b.ctx, get(b, turn)); err == nil {
			t.Fatal("nothing was lost")
		}
	}
	b.settleDown()
	if diff := cmp.Diff([]string{welcomeText(t), "! " + noticeOfNo}, b.told(session)); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
}

func TestANoticeThatNobodyCanHearIsLeft(t *testing.T) {
	for name, spoil := range map[string]func(b *bench, session *api.AgentSession){
		"since the session is gone": func(b *bench, session *api.AgentSession) {
			if err := b.client.Delete(b.ctx, session); err != nil {
				b.t.Fatal(err)
			}
		},
		"since it is somebody else's": func(b *bench, session *api.AgentSession) {
			change(b, session, func(session *api.AgentSession) { session.OwnerReferences = nil })
		},
		"since its journal has no room": func(b *bench, _ *api.AgentSession) { fullOfUpdates(b) },
	} {
		t.Run(name, func(t *testing.T) {
			b, session, turn := failing(t)
			reconcileOne(b, b.turns(), turn)
			spoil(b, session)
			reconcileOne(b, b.turns(), turn)
			if get(b, turn); turn.Status.PostedNotices != 1 || turn.Status.State != api.TurnFailed {
				t.Errorf("status is %+v", turn.Status)
			}
		})
	}
}

// fullOfUpdates is an API server on which a journal cannot grow.
func fullOfUpdates(b *bench) {
	b.client = interceptor.NewClient(b.client.(client.WithWatch), interceptor.Funcs{
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return noRoom() },
	})
}

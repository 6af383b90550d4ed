package controllers

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/journal"
	"github.com/apitomy/axiom-operator/internal/template"
)

// told is what a session's journal has, a line each; notices are marked.
func (b *bench) told(session *api.AgentSession) []string {
	b.t.Helper()
	events, err := journalsOf(b.client).Load(b.ctx, get(b, session))
	if err != nil {
		b.t.Fatal(err)
	}
	var lines []string
	for _, event := range events {
		mark := ""
		if event.Data["notice"] == true {
			mark = "! "
		}
		lines = append(lines, mark+event.Data["text"].(string))
	}
	return lines
}

func welcomeText(t *testing.T) string {
	t.Helper()
	spec, isBuiltIn := template.BuiltIn(api.TemplateWorkbench)
	if !isBuiltIn || spec.WelcomeMessage == "" {
		t.Fatal("the built-in template greets nobody")
	}
	return spec.WelcomeMessage
}

func TestAJournalBeginsWithAWelcome(t *testing.T) {
	session, turn := sessionWithWork("c")
	b := newBench(t, session, turn)
	b.steps(session, 4)
	if diff := cmp.Diff([]string{welcomeText(t)}, b.told(session)); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
	if session.Status.RecapPending {
		t.Error("a first pod has nothing to be told")
	}
}

func TestAWelcomeWhoseReceiptIsLostIsNotRepeated(t *testing.T) {
	session, turn := sessionWithWork("c")
	b := newBench(t, session, turn)
	dying := *b.sessions()
	dying.Client = interceptor.NewClient(b.client.(client.WithWatch), interceptor.Funcs{
		SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
			return errors.New("lost")
		},
	})
	if _, err := dying.Reconcile(b.ctx, get(b, session)); err == nil {
		t.Fatal("nothing was lost")
	}
	b.steps(session, 4)
	if diff := cmp.Diff([]string{welcomeText(t)}, b.told(session)); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
}

func TestALaterPodIsToldOfThePast(t *testing.T) {
	for name, tc := range map[string]struct {
		past      []journal.Event
		isOfRun   bool
		wantRecap bool
	}{
		"that was journalled": {past: []journal.Event{assistantText("Hello.", false)}, wantRecap: true},
		"that was not":        {},
		"of a run, whose agent loads its conversation": {past: []journal.Event{assistantText("Hello.", false)}, isOfRun: true},
	} {
		t.Run(name, func(t *testing.T) {
			session, turn := sessionWithWork("c", func(session *api.AgentSession) {
				session.Status.Attempt = 1
				if tc.isOfRun {
					session.Spec.RunRef = &api.LocalRef{Name: "run"}
				}
			})
			b := newBench(t, session, turn)
			for _, event := range tc.past {
				if err := journalsOf(b.client).Record(b.ctx, session, "past", event); err != nil {
					t.Fatal(err)
				}
			}
			b.steps(session, 1)
			get(b, session)
			if session.Status.Attempt != 2 || session.Status.RecapPending != tc.wantRecap {
				t.Errorf("attempt %d, recap %t, want recap %t", session.Status.Attempt, session.Status.RecapPending, tc.wantRecap)
			}
		})
	}
}

// full is an API server without room for a journal.
func full(b *bench, reason error) {
	b.client = interceptor.NewClient(b.client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
			if strings.Contains(object.GetName(), "-journal-") {
				return reason
			}
			return c.Create(ctx, object, opts...)
		},
	})
}

func noRoom() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "c-agent-journal-1", errors.New("exceeded quota"))
}

func TestAJournalThatCannotBeKeptHoldsNoPodUp(t *testing.T) {
	for name, spoil := range map[string]func(b *bench, session *api.AgentSession){
		"without room": func(b *bench, _ *api.AgentSession) { full(b, noRoom()) },
		"damaged": func(b *bench, session *api.AgentSession) {
			if err := journalsOf(b.client).Record(b.ctx, session, "past", assistantText("Hello.", false)); err != nil {
				b.t.Fatal(err)
			}
			chunk := &corev1.ConfigMap{}
			chunk.Namespace, chunk.Name = session.Namespace, session.Name+"-journal-1"
			change(b, chunk, func(chunk *corev1.ConfigMap) { chunk.Annotations = nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			session, turn := sessionWithWork("c")
			b := newBench(t, session, turn)
			spoil(b, session)
			b.steps(session, 4)
			if !exists(b, podOf(get(b, session))) {
				t.Errorf("no pod was made; status is %+v", session.Status)
			}
		})
	}
}

func TestAJournalThatCannotBeReachedIsTriedAgain(t *testing.T) {
	session, turn := sessionWithWork("c")
	b := newBench(t, session, turn)
	whole := b.client
	full(b, errors.New("connection refused"))
	if _, err := b.sessions().Reconcile(b.ctx, get(b, session)); err == nil {
		t.Fatal("the welcome was given up")
	}
	b.client = whole
	b.steps(session, 4)
	if diff := cmp.Diff([]string{welcomeText(t)}, b.told(session)); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
}

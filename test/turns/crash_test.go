package turns

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/journal/store"
	"github.com/apitomy/axiom-operator/internal/testing/crash"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// scenario plays a story while the operator dies at each of its writes.
func scenario(play func(w *world, comp *api.Composition)) crash.Scenario {
	worlds := map[string]*world{}
	return crash.Scenario{
		Config: env.Operator,
		World: func(ctx context.Context) (string, error) {
			w, err := makeWorld(ctx)
			if err != nil {
				return "", err
			}
			worlds[w.namespace] = w
			return w.namespace, nil
		},
		Start: func(ctx context.Context, cfg *rest.Config, namespace string) error {
			return process{clock: worlds[namespace].clock}.start(ctx, cfg, namespace)
		},
		Play: func(ctx context.Context, namespace string) ([]client.Object, error) {
			w := worlds[namespace]
			w.ctx = ctx
			return nil, InterceptGomegaFailure(func() {
				comp := &api.Composition{ObjectMeta: w.meta("triage")}
				comp.Spec.Workflow = rawOf(workflow.Blank("triage"))
				Expect(alice.Create(ctx, comp)).To(Succeed())
				play(w, comp)
			})
		},
		Ending:    ending,
		Normalize: forgetAttempts,
		Log: func(format string, args ...any) {
			_, _ = fmt.Fprintf(GinkgoWriter, format+"\n", args...)
		},
	}
}

// ending is what the world comes to.
func ending(ctx context.Context, namespace string) ([]client.Object, error) {
	var objects []client.Object
	for _, list := range []client.ObjectList{
		&api.CompositionList{}, &api.TurnList{}, &api.AgentSessionList{}, &appsv1.ControllerRevisionList{},
	} {
		if err := admin.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
		err := apimeta.EachListItem(list, func(item runtime.Object) error {
			objects = append(objects, item.(client.Object))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	said, err := journals(ctx, namespace)
	return append(objects, said...), err
}

// journals are what the operator itself said in the sessions.
func journals(ctx context.Context, namespace string) ([]client.Object, error) {
	chunks := &corev1.ConfigMapList{}
	if err := admin.List(ctx, chunks, client.InNamespace(namespace), client.HasLabels{store.LabelJournal}); err != nil {
		return nil, err
	}
	var said []client.Object
	for i := range chunks.Items {
		chunk := &corev1.ConfigMap{Data: chunks.Items[i].Data}
		chunk.Name = chunks.Items[i].Name
		said = append(said, chunk)
	}
	return said, nil
}

// forgetAttempts removes what may differ: a retry may take another number of
// status writes, which nobody but the API server counts.
func forgetAttempts(object map[string]any) {
	if meta, ok := object["metadata"].(map[string]any); ok {
		delete(meta, "generation")
	}
}

var _ = Describe("An operator that dies at any write", func() {
	explore := func(ctx context.Context, every int, play func(w *world, comp *api.Composition)) {
		GinkgoHelper()
		story := scenario(play)
		story.Kinds, story.Every = crash.Faults(), crash.Sampled(every)
		outcome, err := crash.Explore(ctx, story)
		Expect(err).NotTo(HaveOccurred())
		Expect(outcome.Report()).To(BeEmpty())
		Expect(outcome.Struck).To(BeNumerically(">=", outcome.Plays*3/4), "faults that struck")
		AddReportEntry("plays", outcome.Plays)
	}

	It("workbench 25: comes to the same end with a turn that is accepted", func(ctx SpecContext) {
		explore(ctx, 8, func(w *world, comp *api.Composition) {
			session := w.session(comp)
			turn := w.asks("t-1", comp)
			w.works(turn, session, "First", "Result")
			w.reaches(turn, api.TurnAwaitingResolution)
			w.rests(comp, "t-1")
			Expect(w.decides(turn, api.ResolutionAccepted)).To(Succeed())
			w.reaches(turn, api.TurnApplied)
			w.rests(fresh(w, comp), "")
		})
	}, SpecTimeout(time.Hour))

	It("workbench 25: comes to the same end with a pod that is lost and a turn that fails", func(ctx SpecContext) {
		explore(ctx, 8, func(w *world, comp *api.Composition) {
			session := w.session(comp)
			turn := w.asks("t-1", comp)
			w.reaches(turn, api.TurnWorking)
			w.takes(session)
			w.loses(w.pod(session, 1))
			w.pod(session, 2)
			w.takes(session)
			w.proposes(turn, renameTo("end-1", "Lost"))
			w.loses(w.pod(session, 2))
			w.reaches(turn, api.TurnFailed)
			w.rests(comp, "")
		})
	}, SpecTimeout(time.Hour))

	It("workbench 25: comes to the same end with items that are written, left half done and undone", func(ctx SpecContext) {
		explore(ctx, 8, func(w *world, comp *api.Composition) {
			session := w.session(comp)
			turn := w.asks("t-1", comp)
			w.reaches(turn, api.TurnWorking)
			w.takes(session)
			w.upserts(turn, toolItem("a"), toolOf("a", "1"))
			w.writes(turn, toolItem("b"), toolOf("b", "1"), func(step int) bool { return step == 1 })
			w.proposes(turn, renameTo("end-1", "Result"))
			w.ends(session, api.PromptResult{Outcome: api.OutcomeCompleted})
			w.reaches(turn, api.TurnAwaitingResolution)
			w.rests(comp, "t-1")
			Expect(w.decides(turn, api.ResolutionAccepted)).To(Succeed())
			w.reaches(turn, api.TurnApplied)
			w.rests(fresh(w, comp), "")
			Expect(w.undoes(bob, turn)).To(Succeed())
			w.reaches(turn, api.TurnUndone)
			w.rests(fresh(w, comp), "")
		})
	}, SpecTimeout(time.Hour))

	It("workbench 25: comes to the same end with staged items, and a stale turn that is repeated", func(ctx SpecContext) {
		explore(ctx, 8, func(w *world, comp *api.Composition) {
			w.changes(alice, comp, onStaged)
			session := w.session(comp)
			turn := w.asks("t-1", comp)
			w.reaches(turn, api.TurnWorking)
			w.takes(session)
			w.upserts(turn, toolItem("a"), toolOf("a", "1"))
			w.proposes(turn, renameTo("end-1", "Result"))
			w.ends(session, api.PromptResult{Outcome: api.OutcomeCompleted})
			w.rests(comp, "t-1")
			w.edits(alice, comp, "start-1", "Begin")
			Expect(w.decides(turn, api.ResolutionAccepted)).To(Succeed())
			retry := w.turn("t-1-retry", comp)
			sees(w, turn, func(g Gomega, turn *api.Turn) { g.Expect(turn.Status.Retry).To(Equal(retry.Name)) })
			w.reaches(retry, api.TurnWorking)
			w.hasPrompt(session, retry)
			if fresh(w, session).Status.Prompt.State == api.PromptQueued {
				w.takes(session)
			}
			w.upserts(retry, toolItem("a"), toolOf("a", "2"))
			w.proposes(retry, renameTo("end-1", "Retried"))
			w.ends(session, api.PromptResult{Outcome: api.OutcomeCompleted})
			w.rests(fresh(w, comp), retry.Name)
			Expect(w.decides(retry, api.ResolutionAccepted)).To(Succeed())
			w.reaches(retry, api.TurnApplied)
			w.rests(fresh(w, comp), "")
		})
	}, SpecTimeout(time.Hour))

	It("comes to the same end with turns of a free-standing session, one after a lost pod, and its stop", func(ctx SpecContext) {
		explore(ctx, 8, func(w *world, _ *api.Composition) {
			session := w.helper("helper")
			first := w.asksHelper("t-1", session)
			w.works(first, session)
			w.reaches(first, api.TurnCompleted)
			w.isFree(session)
			w.loses(w.pod(session, 1))
			second := w.asksHelper("t-2", session)
			w.works(second, session)
			w.reaches(second, api.TurnCompleted)
			w.isFree(session)
			Expect(alice.Patch(w.ctx, session, stopSession)).To(Succeed())
			sees(w, session, func(g Gomega, session *api.AgentSession) {
				g.Expect(session.Status.Phase).To(Equal(api.SessionStopped))
				g.Expect(session.Status.TokenHash).To(BeEmpty())
			})
		})
	}, SpecTimeout(time.Hour))

	It("workbench 25: comes to the same end with turns that are deleted, superseded and detected", func(ctx SpecContext) {
		explore(ctx, 9, func(w *world, comp *api.Composition) {
			session := w.session(comp)
			deleted := w.asks("t-1", comp)
			w.reaches(deleted, api.TurnWorking)
			w.takes(session)
			Expect(bob.Delete(w.ctx, deleted)).To(Succeed())
			sees(w, session, func(g Gomega, session *api.AgentSession) { g.Expect(session.Status.Prompt.Cancel).To(BeTrue()) })
			w.ends(session, api.PromptResult{Outcome: api.OutcomeInterrupted})
			w.rests(comp, "")

			older, newer := w.asks("t-2", comp), w.turn("t-3", comp)
			w.works(older, session, "Older")
			w.rests(comp, "t-2")
			Expect(bob.Create(w.ctx, newer)).To(Succeed())
			w.works(newer, session, "Newer")
			w.reaches(older, api.TurnStale)
			w.rests(comp, "t-3")
			w.edits(alice, comp, "end-1", "Newer")
			w.reaches(newer, api.TurnApplied)
			w.rests(fresh(w, comp), "")
		})
	}, SpecTimeout(time.Hour))
})

package turns

import (
	"context"
	"errors"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
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
		Play: func(ctx context.Context, namespace string) (objects []client.Object, err error) {
			w := worlds[namespace]
			w.ctx = ctx
			err = InterceptGomegaFailure(func() {
				comp := &api.Composition{ObjectMeta: w.meta("triage")}
				comp.Spec.Workflow = rawOf(workflow.Blank("triage"))
				Expect(alice.Create(ctx, comp)).To(Succeed())
				play(w, comp)
				objects = w.ending()
			})
			return objects, err
		},
		Normalize: forgetAttempts,
		Log: func(format string, args ...any) {
			_, _ = fmt.Fprintf(GinkgoWriter, format+"\n", args...)
		},
	}
}

// ending is what the world comes to.
func (w *world) ending() []client.Object {
	GinkgoHelper()
	comps, found, sessions, history := &api.CompositionList{}, &api.TurnList{}, &api.AgentSessionList{}, &appsv1.ControllerRevisionList{}
	for _, list := range []client.ObjectList{comps, found, sessions, history} {
		Expect(admin.List(w.ctx, list, client.InNamespace(w.namespace))).To(Succeed())
	}
	var objects []client.Object
	for i := range comps.Items {
		objects = append(objects, &comps.Items[i])
	}
	for i := range found.Items {
		objects = append(objects, &found.Items[i])
	}
	for i := range sessions.Items {
		objects = append(objects, &sessions.Items[i])
	}
	for i := range history.Items {
		objects = append(objects, &history.Items[i])
	}
	return objects
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
		story.Every = every
		outcome, err := crash.Explore(ctx, story)
		Expect(err).NotTo(HaveOccurred())
		Expect(outcome.Report()).To(BeEmpty())
		Expect(outcome.Struck).To(BeNumerically(">=", outcome.Plays*3/4), "faults that struck")
		AddReportEntry("plays", outcome.Plays)
	}

	It("comes to the same end with a turn that is accepted", func(ctx SpecContext) {
		explore(ctx, 1, func(w *world, comp *api.Composition) {
			session := w.session(comp)
			turn := w.asks("t-1", comp)
			w.works(turn, session, "First", "Result")
			w.reaches(turn, api.TurnAwaitingResolution)
			w.rests(comp, "t-1")
			Expect(w.decides(turn, api.ResolutionAccepted)).To(Succeed())
			w.reaches(turn, api.TurnApplied)
			w.rests(fresh(w, comp), "")
			w.settles(comp, session)
		})
	}, SpecTimeout(20*time.Minute))

	It("comes to the same end with a pod that is lost and a turn that fails", func(ctx SpecContext) {
		explore(ctx, 1, func(w *world, comp *api.Composition) {
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
			w.settles(comp, session)
		})
	}, SpecTimeout(20*time.Minute))

	It("comes to the same end with turns that are deleted, superseded and detected", func(ctx SpecContext) {
		explore(ctx, 3, func(w *world, comp *api.Composition) {
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
			w.settles(comp, session)
		})
	}, SpecTimeout(20*time.Minute))
})

// settles waits until what the composition says of its session is the last word.
func (w *world) settles(comp *api.Composition, session *api.AgentSession) {
	GinkgoHelper()
	Eventually(func() error {
		fresh(w, session)
		fresh(w, comp)
		said := reasonOf(comp.Status.Conditions, api.ConditionAgentReady)
		if session.Status.CurrentTurn != "" || said != string(session.Status.Phase) || session.Status.Prompt.State != api.PromptDone {
			return errors.New("the session is not at rest")
		}
		return nil
	}).WithTimeout(patience).Should(Succeed())
}

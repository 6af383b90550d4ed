package actions

import (
	"context"
	"errors"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/testing/crash"
)

var _ = Describe("Whatever happens to the operator, an agent's work", Label("crash"), func() {
	It("is asked for once, corrected once, and cleaned up after", func(ctx SpecContext) {
		out, err := crash.Explore(ctx, scenario(isCorrected))
		Expect(err).NotTo(HaveOccurred())
		Expect(out.Report()).To(BeEmpty())
		Expect(out.Struck).To(BeNumerically(">", out.Plays*3/4))
		AddReportEntry("explored", out.Plays)
	}, NodeTimeout(time.Hour))
})

// isCorrected is an agent whose first reply is not in the form it should have. The
// test plays node, gateway and agent.
func isCorrected(w *world) {
	w.teaches(playbook(says("", "")))
	w.compose("assessment", assessment, assess)
	run, session := w.run("assessment-1", "assessment", inputs(`{"ref":"r-17"}`)), &api.AgentSession{}
	w.opens(run, "assess#1", 1, session)
	w.replies(session, 1, "seven")
	w.replies(session, 2, fine)
	w.reaches(run, api.RunCompleted)
	Expect(outputOf(run, "assess#1")).To(MatchJSON(fine))
	w.dismisses(run)
}

// replies plays the gateway and the agent behind it: the n-th prompt of the
// session has a reply.
func (w *world) replies(session *api.AgentSession, sequence int64, text string) {
	GinkgoHelper()
	sees(w, session, func(g Gomega, session *api.AgentSession) {
		g.Expect(session.Status.Prompt).NotTo(BeNil())
		g.Expect(session.Status.Prompt.Sequence).To(Equal(sequence), "%s", show(session.Status))
		g.Expect(session.Status.PodUID).NotTo(BeEmpty())
	})
	Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := admin.Get(w.ctx, client.ObjectKeyFromObject(session), session); err != nil {
			return err
		}
		status := &session.Status
		status.ReadyAttempt, status.Prompt.Attempt = status.Attempt, status.Attempt
		status.Prompt.State = api.PromptDone
		status.Prompt.Result = &api.PromptResult{Outcome: api.OutcomeCompleted, StopReason: "end_turn", Reply: text}
		return operatorClient.Status().Update(w.ctx, session)
	})).To(Succeed())
}

// scenario tells a story of a namespace while faults strike its operator.
func scenario(tell func(w *world)) crash.Scenario {
	var worlds sync.Map // namespace to *world
	worldOf := func(namespace string) *world {
		found, _ := worlds.Load(namespace)
		return found.(*world)
	}
	return crash.Scenario{
		Config: env.Operator,
		World: func(ctx context.Context) (string, error) {
			var w *world
			if err := InterceptGomegaFailure(func() { w = newWorld(ctx) }); err != nil {
				return "", err
			}
			worlds.Store(w.namespace, w)
			return w.namespace, nil
		},
		Start: func(ctx context.Context, cfg *rest.Config, namespace string) error {
			// Without an address nobody serves the gateway: two may run at a time.
			return process{namespace: namespace, clock: worldOf(namespace).clock}.run(ctx, cfg)
		},
		Play: func(ctx context.Context, namespace string) ([]client.Object, error) {
			w := worldOf(namespace)
			w.ctx = ctx
			return nil, InterceptGomegaFailure(func() { tell(w) })
		},
		Ending: remains,
		Kinds:  crash.Faults(),
		Every:  crash.Sampled(4),
		Log:    func(format string, args ...any) { GinkgoWriter.Printf(format+"\n", args...) },
	}
}

// remains are all objects that the people or the operator made.
func remains(ctx context.Context, namespace string) ([]client.Object, error) {
	var objects []client.Object
	var errs []error
	for _, list := range []client.ObjectList{
		&api.WorkflowRunList{}, &api.AgentSessionList{}, &api.TurnList{}, &corev1.PodList{}, &corev1.SecretList{},
	} {
		errs = append(errs, admin.List(ctx, list, client.InNamespace(namespace)))
		_ = apimeta.EachListItem(list, func(object runtime.Object) error {
			objects = append(objects, object.(client.Object))
			return nil
		})
	}
	return objects, errors.Join(errs...)
}

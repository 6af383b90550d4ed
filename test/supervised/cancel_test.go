package supervised

import (
	"context"
	"net/http"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// reconciles of supervised runs by what came of them, in this process.
func reconciles() map[string]int {
	GinkgoHelper()
	families, err := metrics.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	counts := map[string]int{}
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if labels["controller"] == "supervisedrun" {
				counts[labels["result"]] += int(metric.GetCounter().GetValue())
			}
		}
	}
	return counts
}

// becomesQuiet waits until a pass over the run ended with nothing to do later: no
// retry is on its way, at whatever interval. It takes what brings a pass about.
func becomesQuiet(cause func()) {
	GinkgoHelper()
	before := reconciles()
	cause()
	Eventually(func(g Gomega) {
		after := reconciles()
		g.Expect(after["success"]).To(BeNumerically(">", before["success"]))
	}).Should(Succeed())
	after := reconciles()
	Expect(after["requeue_after"]).To(Equal(before["requeue_after"]), "something is looked at again later")
	Expect(after["error"]).To(Equal(before["error"]))
}

// touch changes a run's labels, which brings a pass about.
func (w *world) touch(run *api.WorkflowRun, value string) {
	GinkgoHelper()
	patch := []byte(`{"metadata":{"labels":{"touched":"` + value + `"}}}`)
	Expect(bob.Patch(w.ctx, run, client.RawPatch("application/merge-patch+json", patch))).To(Succeed())
}

// holds a push until the returned function is called; pushing tells that it came.
func (w *world) holds() (pushing <-chan struct{}, release func()) {
	came, held := make(chan struct{}), make(chan struct{})
	w.git.BeforePush(func() {
		close(came)
		<-held
	})
	release = sync.OnceFunc(func() { close(held) })
	DeferCleanup(release)
	return came, release
}

// cancelsInPush cancels a run whose push is held until it is released.
func (w *world) cancelsInPush() (run *api.WorkflowRun, release func()) {
	GinkgoHelper()
	run = w.publishes("notes", "All is well.\n")
	w.answers(w.checkpoint(run), `{"proceed":true}`)
	pushing, release := w.holds()
	w.resumes(run)
	Eventually(pushing).Should(BeClosed())
	w.cancels(run)
	return run, release
}

var _ = Describe("A supervised run that is cancelled", func() {
	// over holds that nothing is left of a run but what is recorded.
	over := func(w *world, run *api.WorkflowRun) {
		GinkgoHelper()
		w.reaches(run, api.RunCancelled)
		Expect(run.Status.Intents).To(BeEmpty())
		Expect(run.Status.FinishedAt).NotTo(BeNil())
		Eventually(func(g Gomega) {
			var pods corev1.PodList
			g.Expect(admin.List(w.ctx, &pods, client.InNamespace(w.namespace))).To(Succeed())
			g.Expect(pods.Items).To(BeEmpty())
			var tasks api.HumanTaskList
			g.Expect(admin.List(w.ctx, &tasks, client.InNamespace(w.namespace))).To(Succeed())
			for _, task := range tasks.Items {
				g.Expect(task.Status.Phase).NotTo(Equal(api.TaskAwaitingInput))
			}
		}).Should(Succeed())
	}

	It("supervised 16: ends while its definition cannot be had", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.git.AnswerStatus(http.StatusServiceUnavailable)
		w.operate()
		run := w.starts("notes", strings.Repeat("a", 40), map[string]any{})
		sees(w, run, func(g Gomega, run *api.WorkflowRun) {
			g.Expect(condition(run, api.ConditionAccepted)).To(Equal("Unknown " + api.ReasonDefinitionUnavailable))
		})
		w.cancels(run)
		over(w, run)
	})

	It("supervised 16: ends in a turn, and its agent with it", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.settles()
		w.operate()
		w.teaches("planner", "- steps: [{sleep: 10m}]\n")
		run := w.starts("assessment", w.defines(map[string]string{"flows/start.md": assess}), map[string]any{"agent": "planner"})
		sees(w, run, func(g Gomega, run *api.WorkflowRun) {
			var turns api.TurnList
			g.Expect(admin.List(ctx, &turns, client.InNamespace(w.namespace))).To(Succeed())
			g.Expect(turns.Items).To(HaveLen(1))
			g.Expect(turns.Items[0].Status.State).To(Equal(api.TurnWorking))
		})
		w.cancels(run)
		over(w, run)
		Expect(activations(run)).To(Equal([]string{"start#1 Completed", "verdict#1 Cancelled"}))
	})

	It("supervised 16: ends in an effect, and tells that it was brought about", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate()
		run, release := w.cancelsInPush()
		release()
		over(w, run)
		Expect(w.project.Git("rev-list", "--count", "main..agent/notes")).To(Equal("1"))
		last := w.history(run)[run.Status.History.Total-1]
		Expect(last.Activation + " " + last.Outcome).To(Equal("push#1 Cancelled"))
		Expect(string(last.Receipt.Raw)).To(ContainSubstring(`"performed"`))
	})

	It("supervised 16: ends in an effect, whose outcome it does not claim to know", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate()
		run, release := w.cancelsInPush()
		over(w, run)
		release()
		last := w.history(run)[run.Status.History.Total-1]
		Expect(last.Activation + " " + last.Outcome).To(Equal("push#1 Cancelled"))
		Expect(string(last.Receipt.Raw)).To(ContainSubstring(`"uncertain"`))
	})

	It("supervised 16: ends although a resume was asked for, which claims nothing", func(ctx SpecContext) {
		w := newWorld(ctx)
		stop := w.operate()
		run := w.publishes("notes", "All is well.\n")
		w.answers(w.checkpoint(run), `{"proceed":true}`)
		stop()
		requests := w.git.Requests()
		w.resumes(run)
		w.cancels(run)
		w.operate()
		over(w, run)
		Expect(run.Status.Executions).To(HaveLen(1))
		Expect(activations(run)).To(ContainElements("gate[1]/ask#1 Cancelled", "gate#1 Cancelled"))
		Expect(w.git.Requests()).To(Equal(requests))
	})

	It("supervised 16: ends although what it retained of its definition is gone", func(ctx SpecContext) {
		w := newWorld(ctx)
		stop := w.operate()
		run := w.publishes("notes", "All is well.\n")
		w.checkpoint(run)
		stop()
		loseSource(w, run)
		w.resumes(run)
		w.operate()
		sees(w, run, func(g Gomega, run *api.WorkflowRun) {
			g.Expect(condition(run, api.ConditionAccepted)).To(Equal("False " + api.ReasonDefinitionChanged))
		})
		w.cancels(run)
		over(w, run)
		Expect(condition(run, api.ConditionAccepted)).To(Equal("False " + api.ReasonDefinitionChanged))
		Expect(activations(run)).To(ContainElements("gate[1]/ask#1 Cancelled", "gate#1 Cancelled"))
	})

	It("supervised 16: waits for the pod of its agent", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.settles()
		w.operate()
		w.teaches("planner", "- steps: [{sleep: 10m}]\n")
		run := w.starts("assessment", w.defines(map[string]string{"flows/start.md": assess}), map[string]any{"agent": "planner"})
		held := w.pod()
		release := w.changes(held, func() { held.Finalizers = append(held.Finalizers, "example.com/hold") })
		w.cancels(run)
		Eventually(func(g Gomega) {
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(held), held)).To(Succeed())
			g.Expect(held.DeletionTimestamp).NotTo(BeNil())
		}).Should(Succeed())
		sees(w, run, func(g Gomega, run *api.WorkflowRun) {
			g.Expect(condition(run, api.ConditionCancelling)).To(HavePrefix("True "))
		})
		Expect(run.Status.Phase).To(Equal(api.RunRunning))
		release()
		over(w, run)
	})

	It("supervised 16: keeps what it did on a remote", func(ctx SpecContext) {
		h := newHub(ctx)
		c := agreeing()
		c.asks = []string{toReview}
		run := h.casts(c)
		h.checkpoint(run)
		head := h.project.Head(workBranch)
		h.cancels(run)
		over(h.world, run)
		Expect(h.project.Head(workBranch)).To(Equal(head))
		Expect(h.forge.Mutations()).To(Equal([]string{"POST /repos/team/app/pulls"}))
	})

	DescribeTable("supervised 19: rests for good, and contacts no remote", func(ctx SpecContext, end func(*world, *api.WorkflowRun, *api.HumanTask), phase api.RunPhase) {
		w := newWorld(ctx)
		stop := w.operate()
		run := w.publishes("notes", "All is well.\n")
		end(w, run, w.checkpoint(run))
		w.reaches(run, phase)
		Eventually(func(g Gomega) {
			var tasks api.HumanTaskList
			g.Expect(admin.List(ctx, &tasks, client.InNamespace(w.namespace))).To(Succeed())
			g.Expect(tasks.Items).To(HaveEach(HaveField("Status.Phase", Not(Equal(api.TaskAwaitingInput)))))
		}).Should(Succeed())
		requests, status := w.git.Requests(), run.Status.DeepCopy()

		By("restarting the operator")
		stop()
		becomesQuiet(func() { w.operate() })
		By("resuming, cancelling and applying again")
		becomesQuiet(func() { w.resumes(run) })
		becomesQuiet(func() { w.touch(run, "again") })
		becomesQuiet(func() { w.touch(run, "twice"); w.cancels(run) })
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(run), run)).To(Succeed())
		Expect(show(run.Status)).To(Equal(show(status)))
		Expect(w.git.Requests()).To(Equal(requests))
	},
		Entry("completed", func(w *world, run *api.WorkflowRun, task *api.HumanTask) {
			w.answers(task, `{"proceed":true}`)
			w.resumes(run)
		}, api.RunCompleted),
		Entry("failed", func(w *world, run *api.WorkflowRun, task *api.HumanTask) {
			w.unable(task, "I cannot tell.")
			w.resumes(run)
		}, api.RunFailed),
		Entry("cancelled", func(w *world, run *api.WorkflowRun, _ *api.HumanTask) { w.cancels(run) }, api.RunCancelled),
	)

	It("supervised 20: does nothing by an answer alone, at whatever interval, until a resume claims it", func(ctx SpecContext) {
		w := newWorld(ctx)
		stop := w.operate()
		run := w.publishes("notes", "All is well.\n")
		task := w.checkpoint(run)
		requests, done := w.git.Requests(), activations(run)

		becomesQuiet(func() { w.answers(task, `{"proceed":true}`) })
		stop()
		becomesQuiet(func() { w.operate() })
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(run), run)).To(Succeed())
		Expect(run.Status.Executions).To(HaveLen(1))
		Expect(activations(run)).To(Equal(done))
		Expect(w.git.Requests()).To(Equal(requests))

		w.resumes(run)
		w.reaches(run, api.RunCompleted)
		Expect(w.project.Git("rev-list", "--count", "main..agent/notes")).To(Equal("1"))
	})

	It("supervised 26: claims an answer after a restart, if it was killed before it could", func(ctx SpecContext) {
		w := newWorld(ctx)
		stop := w.operate()
		run := w.publishes("notes", "All is well.\n")
		w.answers(w.checkpoint(run), `{"proceed":true}`)
		stop()
		w.resumes(run)
		before := run.Status.DeepCopy()

		By("killing the operator when it is about to write the claim")
		w.dies(isStep)
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(run), run)).To(Succeed())
		Expect(show(run.Status)).To(Equal(show(before)))

		w.operate()
		w.reaches(run, api.RunCompleted)
		Expect(run.Status.Executions).To(HaveLen(2))
		Expect(run.Status.Executions[1].Reason).To(Equal(api.ExecutionResumed))
		Expect(w.claimed(run)).To(Equal([]string{"gate[1]/ask#1"}))
		Expect(w.git.Count("git-receive-pack")).To(Equal(1))
	})

	It("supervised 26: claims an answer once, even if it is killed as soon as it has", func(ctx SpecContext) {
		w := newWorld(ctx)
		stop := w.operate()
		run := w.publishes("notes", "All is well.\n")
		task := w.checkpoint(run)
		w.answers(task, `{"proceed":true}`)
		w.resumes(run)
		stop()

		By("killing the operator once the claim is written and before anything else")
		dying, kill := context.WithCancel(ctx)
		killed := make(chan error, 1)
		p := process{w: w, wrap: func(next http.RoundTripper) http.RoundTripper { return &claimKiller{next: next, kill: kill} }}
		config := rest.CopyConfig(env.Operator)
		go func() { killed <- p.run(dying, config) }()
		Eventually(dying.Done()).Should(BeClosed())
		Expect(<-killed).To(Succeed())
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(run), run)).To(Succeed())
		Expect(run.Status.Executions).To(HaveLen(2))
		Expect(run.Status.ObservedResumeRequests).To(Equal(run.Spec.ResumeRequests))
		Expect(w.project.Head("agent/notes")).To(BeEmpty())

		w.operate()
		w.reaches(run, api.RunCompleted)
		Expect(run.Status.Executions).To(HaveLen(3))
		Expect(run.Status.Executions[2].Reason).To(Equal(api.ExecutionRecovered))
		Expect(w.claimed(run)).To(Equal([]string{"gate[1]/ask#1"}))
		Expect(w.project.Git("rev-list", "--count", "main..agent/notes")).To(Equal("1"))
	})
})

// claimed are the checkpoints of a run whose answers were taken, as often as they were.
func (w *world) claimed(run *api.WorkflowRun) []string {
	GinkgoHelper()
	var all []string
	for _, entry := range w.history(run) {
		if entry.Receipt != nil && strings.Contains(string(entry.Receipt.Raw), `"taskUID"`) {
			all = append(all, entry.Activation)
		}
	}
	return all
}

// claimKiller ends a process by the answer to the update that claims.
type claimKiller struct {
	next http.RoundTripper
	kill func()
	once sync.Once
}

func (k *claimKiller) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := k.next.RoundTrip(request)
	isClaim := request.Method == http.MethodPut && strings.HasSuffix(request.URL.Path, "/workflowruns/notes/status")
	if err == nil && isClaim {
		k.once.Do(k.kill)
		_ = response.Body.Close()
		return nil, context.Canceled
	}
	return response, err
}

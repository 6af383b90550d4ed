package supervised

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/testing/crash"
)

// dies has an operator carry the world until it is about to send a request that is
// the one, and returns when it is gone. Nothing of it reaches the API server from
// that request on.
func (w *world) dies(isDue func(*http.Request) bool) {
	GinkgoHelper()
	ctx, kill := context.WithCancel(w.ctx)
	defer kill()
	var isDead atomic.Bool
	p := process{w: w, wrap: func(base http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if isDead.Load() || isDue(req) {
				isDead.Store(true)
				kill()
				return nil, crash.ErrStopped
			}
			return base.RoundTrip(req)
		})
	}}
	ended := make(chan error, 1)
	go func() { ended <- p.run(ctx, env.Operator) }()
	Eventually(ended).Should(Receive()) // what it says of its end does not matter
	Expect(isDead.Load()).To(BeTrue(), "it ended by itself")
}

// isStep tells whether a request commits a step of a run.
func isStep(req *http.Request) bool {
	return req.Method == http.MethodPut && strings.Contains(req.URL.Path, "/workflowruns/") && strings.HasSuffix(req.URL.Path, "/status")
}

// nth is the one request among those of a kind, counted from 1.
func nth(n int, isOne func(*http.Request) bool) func(*http.Request) bool {
	var seen atomic.Int32
	return func(req *http.Request) bool { return isOne(req) && int(seen.Add(1)) == n }
}

// annals are what a history told, by number. What was told once must stay so.
type annals struct {
	mu      sync.Mutex
	told    map[int64]string
	changed []string
}

func (a *annals) read(entries []api.HistoryEntry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.told == nil {
		a.told = map[int64]string{}
	}
	for _, entry := range entries {
		text := show(entry)
		if before, isTold := a.told[entry.Seq]; isTold && before != text {
			a.changed = append(a.changed, before+" became "+text)
		}
		a.told[entry.Seq] = text
	}
}

// follow reads what the histories of the world tell until the context ends.
func (a *annals) follow(w *world) {
	GinkgoHelper()
	watcher, err := admin.Watch(w.ctx, &api.WorkflowRunList{}, client.InNamespace(w.namespace))
	Expect(err).NotTo(HaveOccurred())
	context.AfterFunc(w.ctx, watcher.Stop)
	go func() {
		for event := range watcher.ResultChan() {
			if run, isRun := event.Object.(*api.WorkflowRun); isRun {
				a.read(run.Status.History.Entries)
			}
		}
	}()
}

// unchanged are annals that never told a thing in two ways.
func (a *annals) unchanged() {
	GinkgoHelper()
	a.mu.Lock()
	defer a.mu.Unlock()
	Expect(a.told).NotTo(BeEmpty())
	Expect(a.changed).To(BeEmpty())
}

// isAccepted is the whole workflow with a finding that a person lets be deferred.
func isAccepted(h *hub) {
	var told annals
	told.follow(h.world)
	c := agreeing()
	c.asks = []string{toReview}
	c.changes = []map[string]any{found(passed("It is fine."), deferred("readiness"))}
	run := h.casts(c)
	h.decides(run, true)
	h.ends(run, "accepted")

	told.read(h.history(run))
	told.unchanged()
	Expect(h.turns(run)).To(Equal(turnsOfAcceptance))
	Expect(h.forge.Mutations()).To(Equal([]string{"POST /repos/team/app/pulls", "POST /repos/team/app/issues"}))
	Expect(h.app.Pulls()).To(HaveLen(1))
	Expect(h.app.Issues()).To(HaveLen(1))
	Expect(h.git.Count("git-receive-pack")).To(Equal(1))
	Expect(h.project.Git("rev-list", "--count", "main.."+workBranch)).To(Equal("1"))
}

// byCourse compares only the ways that runs take, since what their agents took
// differs from play to play.
func byCourse(s crash.Scenario) crash.Scenario {
	s.Ending, s.Normalize = runs, keepCourse
	return s
}

// runs of a namespace.
func runs(ctx context.Context, namespace string) ([]client.Object, error) {
	var all api.WorkflowRunList
	if err := admin.List(ctx, &all, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	objects := make([]client.Object, len(all.Items))
	for i := range all.Items {
		objects[i] = &all.Items[i]
	}
	return objects, nil
}

// keepCourse leaves of a run how it ended and which way it took there.
func keepCourse(object map[string]any) {
	status, _ := object["status"].(map[string]any)
	history, _ := status["history"].(map[string]any)
	entries, _ := history["entries"].([]any)
	course := make([]any, len(entries))
	for i, entry := range entries {
		told, _ := entry.(map[string]any)
		course[i] = map[string]any{"activation": told["activation"], "outcome": told["outcome"], "edge": told["edge"], "call": told["call"]}
	}
	phase, outcome := status["phase"], status["outcome"]
	clear(object)
	object["phase"], object["outcome"], object["entries"], object["course"] = phase, outcome, history["total"], course
}

var _ = Describe("The adversarial implementation among interruptions", func() {
	It("supervised 13: is accepted across a killed manager, a suspension, an answer and a resume", func(ctx SpecContext) {
		h := idleHub(ctx)
		h.settles()
		c := agreeing()
		c.asks = []string{toAuthorize}
		run := h.casts(c)
		h.dies(nth(9, isStep)) // in the middle of the planning
		sees(h.world, run, func(g Gomega, run *api.WorkflowRun) { g.Expect(run.Status.Executions).To(HaveLen(1)) })
		Expect(run.Status.Executions[0].EndedAt).To(BeNil())
		var before annals
		before.read(h.history(run))

		h.operate()
		task := h.checkpoint(run)
		before.read(h.history(run))
		Expect(run.Status.Executions).To(HaveLen(2))
		Expect(run.Status.Executions[0].Ended).To(Equal(api.ExecutionInterrupted))
		Expect(run.Status.Executions[1].Reason).To(Equal(api.ExecutionRecovered))
		h.answers(task, `{"proceed":true,"response":"As you say","rationale":"I have read it"}`)
		h.resumes(run)
		h.ends(run, "accepted")

		before.read(h.history(run))
		before.unchanged()
		Expect(run.Status.Executions).To(HaveLen(3))
		Expect(run.Status.Executions[2].Reason).To(Equal(api.ExecutionResumed))
		Expect(run.Status.Executions[2].RequestedBy).To(Equal("bob"))
		Expect(h.turns(run)).To(Equal(turnsOfAcceptance))
		Expect(h.forge.Mutations()).To(Equal([]string{"POST /repos/team/app/pulls"}))
		Expect(h.git.Count("git-receive-pack")).To(Equal(1))
	})

	It("supervised 15: comes to the same with the same turns and remote objects, wherever its manager is killed", Label("crash"), func(ctx SpecContext) {
		explores(ctx, byCourse(scenario(idleHub, false, isAccepted)), crash.Sampled(40), crash.Stops()...)
	}, NodeTimeout(3*time.Hour))
})

package supervised

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

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

// annals are what a history once told, by number. What it tells must stay so.
type annals struct {
	mu   sync.Mutex
	told map[int64]string
}

func (a *annals) read(entries []api.HistoryEntry) {
	GinkgoHelper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.told == nil {
		a.told = map[int64]string{}
	}
	for _, entry := range entries {
		text, err := json.Marshal(entry)
		Expect(err).NotTo(HaveOccurred())
		if before, isTold := a.told[entry.Seq]; isTold {
			Expect(string(text)).To(Equal(before), "history was changed")
		}
		a.told[entry.Seq] = string(text)
	}
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
		Expect(before.told).NotTo(BeEmpty())

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
		Expect(run.Status.Executions).To(HaveLen(3))
		Expect(run.Status.Executions[2].Reason).To(Equal(api.ExecutionResumed))
		Expect(run.Status.Executions[2].RequestedBy).To(Equal("bob"))
		Expect(h.turns(run)).To(Equal(turnsOfAcceptance))
		Expect(h.forge.Mutations()).To(Equal([]string{"POST /repos/team/app/pulls"}))
		Expect(h.git.Count("git-receive-pack")).To(Equal(1))
	})
})

package supervised

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/testing/forgedouble"
	"github.com/apitomy/axiom-operator/internal/testing/gitserver"
)

// Marks that stand in what is said in a run, and that nothing that is there to be read
// in passing may have.
const (
	markOfRequest  = "marigold-request"
	markOfFile     = "marigold-instruction"
	markOfHandoff  = "marigold-handoff"
	markOfPlan     = "marigold-plan"
	markOfReview   = "marigold-review"
	markOfChange   = "marigold-change"
	markOfFinding  = "marigold-finding"
	markOfQuestion = "marigold-question"
	markOfAnswer   = "marigold-answer"
	markOfComment  = "marigold-comment"
)

// marked are agents whose every word has a mark, and that need a person at some gates.
func marked(asks ...string) cast {
	c := agreeing()
	c.asks = asks
	c.plans = []map[string]any{passed(markOfReview)}
	finding := deferred("readiness")
	finding["description"] = markOfFinding
	c.changes = []map[string]any{found(passed(markOfReview), finding)}
	c.proposes = []any{proposes(markOfChange)}
	c.assesses = map[string]any{}
	for _, gate := range gates {
		said := c.assessment(gate).(map[string]any)
		said["question"], said["assessment"] = markOfQuestion, markOfQuestion
		c.assesses[gate] = said
	}
	return c
}

// castsMarked has marks where the shared books have none.
func (h *hub) castsMarked(c cast) *api.WorkflowRun {
	GinkgoHelper()
	h.project.Commit("main", map[string]gitserver.FileSpec{"README.md": {Content: "# App\n"}, "AGENTS.md": {Content: markOfFile + "\n"}})
	h.teaches("planner", strings.Replace(c.planner(), "The handoff:", markOfHandoff, 1))
	h.teaches("implementor", strings.ReplaceAll(c.implementor(), "Plan 1:", markOfPlan))
	return h.starts("health", h.commit, map[string]any{
		"request": markOfRequest, "repository": h.project.URL, "tracker": h.git.URL + "/team/app",
	})
}

// heard keeps what is written, while others write.
type heard struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(p)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// listensToLogs gives what the operator and the pods log from now on.
func listensToLogs() *heard {
	logs := &heard{}
	GinkgoWriter.TeeTo(logs)
	DeferCleanup(GinkgoWriter.ClearTeeWriters)
	return logs
}

// gathered is all that metrics say.
func gathered(from ...prometheus.Gatherer) string {
	GinkgoHelper()
	var text bytes.Buffer
	families, err := prometheus.Gatherers(from).Gather()
	Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		_, err := expfmt.MetricFamilyToText(&text, family)
		Expect(err).NotTo(HaveOccurred())
	}
	return text.String()
}

// reads what kubectl prints.
func (w *world) reads(arguments ...string) string {
	GinkgoHelper()
	out, err := bob.kubectl.Run(w.ctx, "", append([]string{"-n", w.namespace}, arguments...)...)
	Expect(err).NotTo(HaveOccurred(), out)
	return out
}

// keepsTo requires that a text has nothing of what is private.
func keepsTo(what, text string, private []string) {
	GinkgoHelper()
	for _, word := range private {
		at := strings.Index(text, word)
		if at < 0 {
			continue
		}
		Expect(at).To(BeNumerically("<", 0), "%s has %q: %s", what, word, text[max(0, at-300):min(len(text), at+200)])
	}
}

// withoutValues is a run without what its author gave, and without the values that it works
// with, which those may read who may read the run.
func withoutValues(run *api.WorkflowRun) *api.WorkflowRun {
	rest := run.DeepCopy()
	rest.Spec = api.WorkflowRunSpec{}
	rest.Status.Outputs, rest.Status.Instance, rest.Status.Frames = nil, nil, nil
	for i := range rest.Status.History.Entries {
		entry := &rest.Status.History.Entries[i]
		entry.Input, entry.Output = nil, nil
	}
	return rest
}

var _ = Describe("What is private in a supervised run", func() {
	It("supervised 53: is in nothing that is read in passing", func(ctx SpecContext) {
		logs, registry := listensToLogs(), prometheus.NewPedanticRegistry()
		h := idleHub(ctx)
		h.settles()
		h.operate(func(p *process) { p.metrics = registry })
		run := h.castsMarked(marked(gates...))
		for range gates {
			task := h.checkpoint(run)
			h.answers(task, fmt.Sprintf(`{"proceed":true,"response":%q,"rationale":%q}`, markOfAnswer, markOfAnswer))
			h.resumes(run)
		}
		h.ends(run, "accepted")
		GinkgoWriter.ClearTeeWriters()

		credentials := []string{gitserver.Password, forgedouble.Token}
		locators := []string{h.project.URL, h.definitions.URL, h.git.URL + "/team/app", h.forge.API}
		words := []string{"marigold"}
		private := slices.Concat(credentials, locators, words)
		keepsTo("the log", logs.String(), private)
		keepsTo("metrics", gathered(registry, metrics.Registry), private)
		keepsTo("columns", h.reads("get", "workflowruns,humantasks,turns,agentsessions,events,configmaps,persistentvolumeclaims", "-o", "wide"), private)
		keepsTo("Events", h.reads("get", "events", "-o", "yaml"), private)
		described := h.reads("describe", "workflowrun", run.Name)
		keepsTo("describe", described, credentials)
		Expect(described).To(ContainSubstring(markOfPlan), "the marks are those of the run")
		keepsTo("status", show(withoutValues(run).Status), private)
	}, NodeTimeout(patience*3))
})

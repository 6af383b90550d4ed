package supervised

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/testing/forgedouble"
	"github.com/apitomy/axiom-operator/internal/testing/gitserver"
)

// listensToLogs has all logs of the process from now on.
func listensToLogs() *gbytes.Buffer {
	logs := gbytes.NewBuffer()
	GinkgoWriter.TeeTo(logs)
	DeferCleanup(GinkgoWriter.ClearTeeWriters)
	return logs
}

// measured are all metrics of the process.
func measured() string {
	GinkgoHelper()
	families, err := metrics.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	var text strings.Builder
	for _, family := range families {
		text.WriteString(family.String() + "\n")
	}
	return text.String()
}

// kubectl is what bob reads with it.
func (w *world) kubectl(args ...string) string {
	GinkgoHelper()
	out, err := bob.kubectl.Run(w.ctx, "", append([]string{"-n", w.namespace}, args...)...)
	Expect(err).NotTo(HaveOccurred(), out)
	return out
}

// conditions of everything that a run is made of.
func (w *world) conditions() string {
	GinkgoHelper()
	var all strings.Builder
	var runs api.WorkflowRunList
	Expect(admin.List(w.ctx, &runs, client.InNamespace(w.namespace))).To(Succeed())
	for _, run := range runs.Items {
		all.WriteString(show(run.Status.Conditions))
	}
	var tasks api.HumanTaskList
	Expect(admin.List(w.ctx, &tasks, client.InNamespace(w.namespace))).To(Succeed())
	for _, task := range tasks.Items {
		all.WriteString(show(task.Status.Conditions))
	}
	var turns api.TurnList
	Expect(admin.List(w.ctx, &turns, client.InNamespace(w.namespace))).To(Succeed())
	for _, turn := range turns.Items {
		all.WriteString(show(turn.Status.Conditions))
	}
	var sessions api.AgentSessionList
	Expect(admin.List(w.ctx, &sessions, client.InNamespace(w.namespace))).To(Succeed())
	for _, session := range sessions.Items {
		all.WriteString(show(session.Status.Conditions))
	}
	return all.String()
}

var _ = Describe("What is told of a supervised run", func() {
	It("supervised 53: names what happened, and quotes nobody", func(ctx SpecContext) {
		logs := listensToLogs()
		h := newHub(ctx)
		c := agreeing()
		c.asks = gates
		c.changes = []map[string]any{found(failed("It says too little.", "Say more."), deferred("readiness")), found(passed("It is fine."))}
		h.forge.Fail("POST", "/issues", 1, forgedouble.LostAnswer)
		run := h.casts(c)
		for _, gate := range []string{toHandoff, toPlan, toAuthorize, toReview, toReview, toAccept} {
			task := h.checkpoint(run)
			Expect(task.Spec.HumanContext.Title).To(Equal(gate))
			if len(h.app.Pulls()) > 0 {
				h.app.Comment(1, "A remark of others.")
			}
			h.decides(run, true)
		}
		h.ends(run, "accepted")
		Expect(h.prompted("Implementation[2]/verdict#1")).To(ContainSubstring("A remark of others."))

		var events corev1.EventList
		Expect(admin.List(ctx, &events, client.InNamespace(h.namespace))).To(Succeed())
		Expect(events.Items).NotTo(BeEmpty())
		told := map[string]string{
			"columns":    h.kubectl("get", "workflowruns,humantasks,turns,agentsessions,sessiontemplates", "-o", "wide"),
			"conditions": h.conditions(),
			"Events":     show(events.Items),
			"logs":       string(logs.Contents()),
			"metrics":    measured(),
		}
		Expect(told["columns"]).To(ContainSubstring("accepted"))
		Expect(told["logs"]).To(ContainSubstring("Run finished"))
		credentials := []string{gitserver.Password, forgedouble.Token}
		quotes := append([]string{
			"As you say", "I have read it", "Write a handoff for somebody", "Review the pull request below", "The handoff: say", "Plan 1: add",
			"It says too little", "Say more", "Say that all is well", "A remark of others", "All is well, says round", h.project.URL, h.definitions.URL,
		}, credentials...)
		for where, text := range told {
			for _, quote := range quotes {
				Expect(strings.Contains(text, quote)).To(BeFalse(), fmt.Sprintf("%s have %q", where, quote))
			}
		}
		for _, kind := range []string{"workflowrun", "humantasks", "turns", "agentsessions"} {
			for _, credential := range credentials {
				Expect(h.kubectl("describe", kind)).NotTo(ContainSubstring(credential), kind)
			}
		}
	})
})

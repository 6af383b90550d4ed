package supervised

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/content"
)

// value is one that was kept by its digest.
func (w *world) value(digest string) string {
	GinkgoHelper()
	data, err := content.Store{Client: admin}.Get(w.ctx, w.namespace, digest)
	Expect(err).NotTo(HaveOccurred())
	return string(data)
}

// outputOf is what an activation gave, wherever it is kept.
func (w *world) outputOf(run *api.WorkflowRun, activation string) string {
	GinkgoHelper()
	entries := w.history(run)
	at := slices.IndexFunc(entries, func(e api.HistoryEntry) bool { return e.Activation == activation })
	Expect(at).To(BeNumerically(">=", 0), "nothing in the history at %s", activation)
	switch entry := entries[at]; {
	case entry.OutputRef != nil:
		return w.value(entry.OutputRef.Digest)
	case entry.Output != nil:
		return string(entry.Output.Raw)
	}
	return ""
}

// clears a namespace of all that agents work with.
func (w *world) clears() {
	GinkgoHelper()
	for _, kind := range []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}} {
		Expect(admin.DeleteAllOf(w.ctx, kind, client.InNamespace(w.namespace), client.GracePeriodSeconds(0))).To(Succeed())
	}
	var volumes corev1.PersistentVolumeClaimList
	Expect(admin.List(w.ctx, &volumes, client.InNamespace(w.namespace))).To(Succeed())
	for i := range volumes.Items {
		volumes.Items[i].Finalizers = nil
		Expect(client.IgnoreNotFound(admin.Update(w.ctx, &volumes.Items[i]))).To(Succeed())
	}
	Eventually(func(g Gomega) {
		g.Expect(admin.List(w.ctx, &volumes, client.InNamespace(w.namespace))).To(Succeed())
		g.Expect(volumes.Items).To(BeEmpty())
	}).Should(Succeed())
}

var _ = Describe("What a supervised run has made", func() {
	It("supervised 54, supervised 55: is in its objects, all of it, when pods and volumes are gone", func(ctx SpecContext) {
		h := newHub(ctx)
		run := h.castsMarked(marked(toAccept))
		task := h.checkpoint(run)
		h.clears()

		By("reading every artifact")
		for activation, want := range map[string][]string{
			"InstructionFiles[1]/read#1":            {"AGENTS.md", markOfFile},
			"Discovery[1]/discover#1":               {markOfHandoff + " say that all is well."},
			"handoff[1]/assess#1":                   {markOfQuestion},
			"Planning[1]/plan#1":                    {markOfPlan + " add health.md."},
			"Planning[1]/verdict#1":                 {markOfReview},
			"Implementation[1]/observe[1]/prompt#1": {`"glob"`},
			"Implementation[1]/observe[2]/prompt#1": {markOfChange},
			"Implementation[1]/commit#1":            {h.project.Head(workBranch)},
			"Implementation[1]/publish#1":           {h.git.URL + "/team/app/pull/1"},
			"Implementation[1]/verdict#1":           {markOfFinding},
			"Implementation[1]/deferred[1]/file#1":  {h.git.URL + "/team/app/issues/2"},
		} {
			for _, part := range want {
				Expect(h.outputOf(run, activation)).To(ContainSubstring(part), activation)
			}
		}

		By("reading every receipt, over all pages")
		entries := h.history(run)
		Expect(len(entries)).To(BeNumerically(">", 64))
		Expect(run.Status.History.Page).NotTo(BeEmpty())
		for i, entry := range entries {
			Expect(entry.Seq).To(Equal(int64(i+1)), "no entry is missing, and none there twice")
		}
		Expect(h.receipts(run)).To(ContainElements(
			"open#1 repository.open", "worktree#1 worktree.open", "find#1 files.glob", "Implementation[1]/apply#1 fragment.evaluate", "Implementation[1]/stage#1 git.add",
			"Implementation[1]/commit#1 git.commit", "Implementation[1]/push#1 git.push", "Implementation[1]/publish#1 pullRequest.upsert",
			"Implementation[1]/reviews#1 pullRequest.reviews", "Implementation[1]/deferred[1]/file#1 issue.upsert",
		))

		By("going on from them")
		Expect(task.Spec.HumanContext.Description).To(And(ContainSubstring(markOfPlan), ContainSubstring(markOfFinding)))
		Expect(h.prompted("Planning[1]/plan#1")).To(And(ContainSubstring(markOfFile), ContainSubstring(markOfHandoff+" say that all is well.")))
		Expect(h.prompted("Implementation[1]/verdict#1")).To(And(ContainSubstring(markOfPlan), ContainSubstring(markOfChange)))
		h.answers(task, `{"proceed":true,"response":"As you say","rationale":"I have read it"}`)
		h.resumes(run)
		h.ends(run, "accepted")
	})

	It("supervised 54: reaches a prompt that comes after pods and volumes are gone, to the letter", func(ctx SpecContext) {
		h := newHub(ctx)
		run := h.castsMarked(marked(toPlan))
		task := h.checkpoint(run)
		h.clears()
		h.answers(task, `{"proceed":true,"response":"`+markOfAnswer+`","rationale":"I have read it"}`)
		h.resumes(run)
		// The conversations were in the volumes, and none is begun anew in silence; the prompt itself was
		// made of the run's objects.
		Expect(h.fails(run)).To(Equal("authorize[1]/assess#1 SESSION_REFUSED"))
		prompt := h.prompted("authorize[1]/assess#1")
		for _, part := range []string{markOfPlan + " add health.md.", markOfReview, `"response":"` + markOfAnswer + `"`} {
			Expect(strings.Count(prompt, part)).To(BeNumerically(">", 0), part)
		}
	})
})

var _ = Describe("A reply that never fits", func() {
	It("supervised 31: is asked for again twice in the same conversation, and then nothing outside has changed", func(ctx SpecContext) {
		h := newHub(ctx)
		c := agreeing()
		c.changes = []map[string]any{found(failed("It says too little.", "Say more."), deferred("readiness"))}
		c.proposes = append([]any{c.proposal(0)}, slices.Repeat([]any{map[string]any{"kind": "proposal", "proposal": "health.md"}}, 3)...)
		run := h.casts(c)
		const at = "Implementation[2]/observe[1]/prompt#1"
		Expect(h.fails(run)).To(Equal(at + " REPLY_INVALID"))

		var turns api.TurnList
		Expect(admin.List(ctx, &turns, client.InNamespace(h.namespace))).To(Succeed())
		var repairs []int
		for _, turn := range turns.Items {
			if turn.Spec.Prompt.Activation == at {
				repairs = append(repairs, int(turn.Spec.Prompt.Repair))
				Expect(turn.Spec.SessionRef).To(Equal(h.turnAt(at).Spec.SessionRef))
			}
		}
		Expect(repairs).To(ConsistOf(0, 1, 2))
		Expect(h.mutations()).To(Equal([]string{"push", "POST /repos/team/app/pulls", "POST /repos/team/app/issues"}), "what the first round did")
		Expect(h.project.Git("rev-list", "--count", "main.."+workBranch)).To(Equal("1"))
		Expect(h.app.Pulls()).To(Equal([]string{"Adds health.md."}))
		Expect(h.app.Issues()).To(HaveLen(1))
	})
})

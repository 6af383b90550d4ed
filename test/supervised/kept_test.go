package supervised

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/content"
)

// instructions as the shipped workflow hands them on.
const instructions = "### AGENTS.md\n\nBe brief.\n\n\n### docs/AGENTS.md\n\nWrite in English.\n"

// recaps has an agent begin anew, with what was said, where its conversation is lost.
func (w *world) recaps(agent string) {
	GinkgoHelper()
	template := &api.SessionTemplate{ObjectMeta: w.meta(agent)}
	Expect(bob.Patch(w.ctx, template, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"continuity":"Recap"}}`)))).To(Succeed())
}

// relearns gives an agent another book.
func (w *world) relearns(agent, book string) {
	GinkgoHelper()
	held := &corev1.ConfigMap{ObjectMeta: w.meta(agent + "-playbook")}
	Expect(admin.Get(w.ctx, client.ObjectKeyFromObject(held), held)).To(Succeed())
	held.Data["playbook.yaml"] = "memory: home\nturns:\n" + book
	Expect(admin.Update(w.ctx, held)).To(Succeed())
}

// losesHomes takes the homes of all agents away, and gives how many there were.
func (w *world) losesHomes() int {
	GinkgoHelper()
	var pods corev1.PodList
	Expect(admin.List(w.ctx, &pods, client.InNamespace(w.namespace))).To(Succeed())
	Expect(pods.Items).To(BeEmpty())
	var homes corev1.PersistentVolumeClaimList
	Expect(admin.List(w.ctx, &homes, client.InNamespace(w.namespace))).To(Succeed())
	for i := range homes.Items {
		home := &homes.Items[i]
		Expect(admin.Delete(w.ctx, home)).To(Succeed())
		unprotected := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		Expect(client.IgnoreNotFound(admin.Patch(w.ctx, home, unprotected))).To(Succeed())
	}
	return len(homes.Items)
}

// outputs of all activations of a run, by activation, from the run's objects alone.
func (w *world) outputs(run *api.WorkflowRun) map[string]string {
	GinkgoHelper()
	all := map[string]string{}
	for _, entry := range w.history(run) {
		switch {
		case entry.OutputRef != nil:
			data, err := content.Store{Client: admin}.Named(w.ctx, w.namespace, entry.OutputRef.ConfigMap)
			Expect(err).NotTo(HaveOccurred())
			all[entry.Activation] = string(data)
		case entry.Output != nil:
			all[entry.Activation] = string(entry.Output.Raw)
		}
	}
	return all
}

var _ = Describe("What a supervised run has made", func() {
	It("supervised 54: is kept by the run and shown again, when pods and homes are gone", func(ctx SpecContext) {
		h := newHub(ctx)
		c := agreeing()
		c.asks = []string{toReview}
		c.changes = []map[string]any{found(failed("It says too little.", "Say more."), deferred("readiness"))}
		run := h.casts(c, func() { h.recaps("planner"); h.recaps("implementor") })
		h.checkpoint(run)
		Expect(h.losesHomes()).To(Equal(3))
		h.relearns("planner", replies("Review the pull request below", found(passed("It is fine.")))+
			strings.Repeat(replies("must be involved to ", c.assessment(toAccept)), 2))
		h.relearns("implementor", says("has not passed its review", "I shall do better.")+
			replies("Implement the plan below", proposes("# Health\n\nAll is well, and more.\n")))

		By("reading what there is")
		outputs, commit := h.outputs(run), h.project.Head(workBranch)
		for activation, artifact := range map[string]string{
			"InstructionFiles[1]/read#1":              `"content":"Write in English.\n"`,
			"Discovery[1]/discover#1":                 "The handoff: say that all is well.",
			"Planning[1]/plan#1":                      "Plan 1: add health.md.",
			"Planning[1]/verdict#1":                   "The plan holds.",
			"Implementation[1]/observe[1]/evaluate#1": `"content":"# App\n"`,
			"Implementation[1]/observe[2]/prompt#1":   `"report":"Adds health.md."`,
			"Implementation[1]/commit#1":              commit,
			"Implementation[1]/push#1":                commit,
			"Implementation[1]/publish#1":             h.git.URL + "/team/app/pull/1",
			"Implementation[1]/verdict#1":             `"revisionPrompt":"Say more."`,
		} {
			Expect(outputs[activation]).To(ContainSubstring(artifact), activation)
		}
		before := h.receipts(run)

		By("going on from it")
		h.decides(run, true)
		h.ends(run, "accepted")
		Expect(h.receipts(run)[:len(before)]).To(Equal(before))
		for activation, artifacts := range map[string][]string{
			"Implementation[1]/revise#1":            {"It says too little.", "Say more.", `"response":"As you say"`},
			"Implementation[2]/observe[1]/prompt#1": {instructions, "Plan 1: add health.md."},
			"Implementation[2]/verdict#1":           {instructions, "Plan 1: add health.md.", h.git.URL + "/team/app/issues/2"},
			"accept[1]/assess#1":                    {"Plan 1: add health.md.", h.git.URL + "/team/app/issues/2", implementationOf(run).Report},
		} {
			for _, artifact := range artifacts {
				Expect(h.prompted(activation)).To(ContainSubstring(artifact), activation)
			}
		}
		for _, conversation := range run.Status.Sessions {
			session := &api.AgentSession{ObjectMeta: h.meta(conversation.Session)}
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(session), session)).To(Succeed())
			recapped := apimeta.FindStatusCondition(session.Status.Conditions, api.ConditionSessionRecapped)
			Expect(recapped).NotTo(BeNil(), conversation.Name)
			Expect(recapped.Reason).To(Equal(api.ReasonVolumeLost))
		}
	})
})

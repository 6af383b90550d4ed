package supervised

import (
	"encoding/json"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/content"
)

// turnAt is what asked an agent at an activation, repairs left out.
func (w *world) turnAt(activation string) *api.Turn {
	GinkgoHelper()
	var turns api.TurnList
	Expect(admin.List(w.ctx, &turns, client.InNamespace(w.namespace))).To(Succeed())
	at := slices.IndexFunc(turns.Items, func(t api.Turn) bool { return t.Spec.Prompt.Activation == activation && t.Spec.Prompt.Repair == 0 })
	Expect(at).To(BeNumerically(">=", 0), "no turn at %s", activation)
	return &turns.Items[at]
}

// prompted is what an agent was sent at an activation.
func (w *world) prompted(activation string) string {
	GinkgoHelper()
	data, err := content.Store{Client: admin}.Get(w.ctx, w.namespace, w.turnAt(activation).Spec.Prompt.Message.Digest)
	Expect(err).NotTo(HaveOccurred())
	return string(data)
}

// sessionOf is the name by which the definition knows the conversation of a turn.
func (w *world) sessionOf(run *api.WorkflowRun, activation string) string {
	GinkgoHelper()
	object := w.turnAt(activation).Spec.SessionRef.Name
	at := slices.IndexFunc(run.Status.Sessions, func(s api.RunSession) bool { return s.Session == object })
	Expect(at).To(BeNumerically(">=", 0))
	return run.Status.Sessions[at].Name
}

// returned is what the implementation stage of a run returned.
type returned struct {
	Report, Review, RevisionPrompt, Commit string
	Filed                                  []struct{ Key, URL string }
	PullRequest                            struct {
		Number  int
		HeadSha string
	}
}

func implementationOf(run *api.WorkflowRun) returned {
	GinkgoHelper()
	var outputs struct{ Implementation returned }
	Expect(json.Unmarshal(run.Status.Outputs.Raw, &outputs)).To(Succeed())
	return outputs.Implementation
}

var _ = Describe("At a gate of the adversarial implementation", func() {
	DescribeTable("supervised 27: a decline ends the run, and no issue, revision, push or turn comes after it",
		func(ctx SpecContext, gate, outcome string, turns int, mutations []string) {
			h := newHub(ctx)
			c := agreeing()
			c.asks = []string{gate}
			if gate == toPlan {
				c.plans = []map[string]any{failed("It leaves too much open.", "Say where.")}
			}
			c.changes = []map[string]any{found(failed("It says too little.", "Say more."), deferred("readiness"))}
			if gate == toAccept {
				c.changes = []map[string]any{found(passed("It is fine."))}
			}
			run := h.casts(c)
			task := h.decides(run, false)
			h.ends(run, outcome)

			Expect(task.Spec.HumanContext.Title).To(Equal(gate))
			Expect(h.turns(run)).To(Equal(turnsOfAcceptance[:turns]))
			Expect(h.forge.Mutations()).To(Equal(mutations))
			Expect(h.app.Issues()).To(BeEmpty())
			Expect(h.git.Count("git-receive-pack")).To(Equal(len(mutations)))
		},
		Entry("the handoff", toHandoff, "stopped-handoff", 2, []string(nil)),
		Entry("the review of the plan", toPlan, "stopped-planning", 5, []string(nil)),
		Entry("the authorization", toAuthorize, "stopped-authorization", 6, []string(nil)),
		Entry("the review of the pull request", toReview, "stopped-implementation", 10, []string{"POST /repos/team/app/pulls"}),
		Entry("the acceptance", toAccept, "rejected", 11, []string{"POST /repos/team/app/pulls"}),
	)

	It("supervised 59: what is returned is what was shown, and what approval triggers stands in it", func(ctx SpecContext) {
		h := newHub(ctx)
		c := agreeing()
		c.asks = gates
		c.changes = []map[string]any{found(failed("It says too little.", "Say more."), deferred("readiness")), found(passed("It is fine."), deferred("liveness"))}
		run := h.casts(c)

		var shown []string
		for _, gate := range []struct{ purpose, triggers string }{
			{toHandoff, "Approval sends this handoff, as it is, to the agent that plans the implementation."},
			{toPlan, "If the review has passed, approval leads to the authorization of the implementation."},
			{toAuthorize, "Approval triggers up to five rounds of implementation on the branch `" + workBranch + "`"},
			{toReview, "Approval files an issue for each finding below whose disposition is `defer`."},
			{toReview, "Approval files an issue for each finding below whose disposition is `defer`."},
			{toAccept, "Accepting ends the run and changes nothing on the forge"},
		} {
			task := h.decides(run, gate.purpose != toAccept)
			Expect(task.Spec.HumanContext.Title).To(Equal(gate.purpose))
			_, material, _ := strings.Cut(task.Spec.HumanContext.Description, "The whole material:\n\n")
			Expect(material).To(HavePrefix(gate.triggers))
			shown = append(shown, material)
		}
		h.ends(run, "rejected")

		Expect(shown[2]).To(And(
			ContainSubstring("one commit and one push"), ContainSubstring("one draft pull request"), ContainSubstring("`main`"),
			ContainSubstring(h.git.URL+"/team/app"), ContainSubstring("Plan 1: add health.md."),
		))
		returned := implementationOf(run)
		Expect(shown[4]).To(Equal(returned.Report))
		Expect(shown[3]).NotTo(Equal(returned.Report), "the first round's is another one")
		Expect(returned.Report).To(And(
			ContainSubstring(returned.Commit), ContainSubstring("It is fine."), ContainSubstring(`"evidence":["health.md has one paragraph"]`),
		))
		Expect(shown[5]).To(HaveSuffix("The last report:\n\n" + returned.Report))
		Expect(shown[5]).To(And(ContainSubstring(h.git.URL+"/team/app/issues/2"), ContainSubstring(h.git.URL+"/team/app/issues/3")))
	})

	It("supervised 34: what failed its review goes back to its author with the review, the revision prompt and the decision", func(ctx SpecContext) {
		h := newHub(ctx)
		c := agreeing()
		c.asks = []string{toPlan, toReview}
		c.plans = []map[string]any{failed("No ${{ context.evidence }} is given.\n\n- at all", "Give \"evidence\".\n"), passed("The plan holds.")}
		c.changes = []map[string]any{found(failed("It says\ttoo little.", "Say ${{ more }}.")), found(passed("It is fine."))}
		run := h.casts(c)
		for range 4 {
			h.responds(run, true, `Yes, "as it is": ${{ context.plan }}`)
		}
		h.ends(run, "accepted")

		decision := `{"assessment":"Nothing to choose.","options":["yes","no"],"proceed":true,"question":"Shall this go on?","rationale":"I have read it",` +
			`"recommendation":"yes","requiresUser":true,"response":"Yes, \"as it is\": ${{ context.plan }}"}`
		for activation, parts := range map[string][]string{
			"Planning[1]/revise#1":       {"No ${{ context.evidence }} is given.\n\n- at all", "Give \"evidence\".\n", decision},
			"Implementation[1]/revise#1": {"It says\ttoo little.", "Say ${{ more }}.", decision},
		} {
			for _, part := range parts {
				Expect(h.prompted(activation)).To(ContainSubstring(part), activation)
			}
		}
		Expect(h.sessionOf(run, "Planning[1]/revise#1")).To(Equal("implementor"))
		Expect(h.sessionOf(run, "Implementation[1]/revise#1")).To(Equal("implementor"))
	})
})

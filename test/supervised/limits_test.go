package supervised

import (
	"encoding/json"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/testing/gitserver"
)

// five rounds that never pass.
func five(review func(round int) map[string]any) []map[string]any {
	var all []map[string]any
	for round := range 5 {
		all = append(all, review(round+1))
	}
	return all
}

// fails waits until a run has failed, and gives the first failure of its history:
// the calls around it fail by it.
func (w *world) fails(run *api.WorkflowRun) string {
	GinkgoHelper()
	w.reaches(run, api.RunFailed)
	for _, entry := range w.history(run) {
		if entry.Error != nil {
			return entry.Activation + " " + entry.Error.Code
		}
	}
	Fail("nothing in the history has failed")
	return ""
}

// asked is how often agents were asked.
func (w *world) asked() int {
	GinkgoHelper()
	var turns api.TurnList
	Expect(admin.List(w.ctx, &turns, client.InNamespace(w.namespace))).To(Succeed())
	return len(turns.Items)
}

// receipts of a run's effects, as activation and action, in order.
func (w *world) receipts(run *api.WorkflowRun) []string {
	GinkgoHelper()
	var all []string
	for _, entry := range w.history(run) {
		if entry.Receipt == nil {
			continue
		}
		var receipt struct{ Action string }
		Expect(json.Unmarshal(entry.Receipt.Raw, &receipt)).To(Succeed())
		all = append(all, entry.Activation+" "+receipt.Action)
	}
	return all
}

var _ = Describe("The adversarial implementation gives up", func() {
	It("supervised 57: after five plans that never passed, with what the fifth round returned", func(ctx SpecContext) {
		h := newHub(ctx)
		c := agreeing()
		c.plans = five(func(round int) map[string]any {
			return failed(fmt.Sprintf("Review %d finds too little.", round), fmt.Sprintf("Revision %d.", round))
		})
		run := h.casts(c)
		h.ends(run, "awaiting-direction-planning")

		var want []string
		for round := 1; round <= 5; round++ {
			for _, turn := range []string{"plan", "verdict", "checkpoint[1]/assess", "revise"} {
				want = append(want, fmt.Sprintf("Planning[%d]/%s#1", round, turn))
			}
		}
		Expect(h.turns(run)).To(Equal(append(slices.Clone(turnsOfAcceptance[:2]), want...)))
		Expect(string(run.Status.Outputs.Raw)).To(And(
			ContainSubstring(`"plan":"Plan 5: add health.md."`), ContainSubstring("Review 5 finds too little."), ContainSubstring(`"revisionPrompt":"Revision 5."`),
			ContainSubstring(`"implementation":null`),
		))
		Expect(h.prompted("Planning[5]/revise#1")).To(ContainSubstring("Revision 5."))
		Expect(h.forge.Mutations()).To(BeEmpty())
		Expect(h.git.Count("git-receive-pack")).To(BeZero())
	})

	It("supervised 55, supervised 57: after five rounds on one pull request, each a push on top of the one before", func(ctx SpecContext) {
		h := newHub(ctx)
		h.project.Git("config", "receive.denyNonFastForwards", "true")
		c := agreeing()
		c.changes = five(func(round int) map[string]any {
			return found(failed(fmt.Sprintf("Round %d says too little.", round), "Say more."))
		})
		run := h.casts(c)
		h.ends(run, "awaiting-direction-implementation")

		want := slices.Clone(turnsOfAcceptance[:7])
		for round, turns := range [][]string{{"observe[2]/prompt"}, {"observe[1]/prompt"}, {"observe[1]/prompt"}, {"observe[1]/prompt"}, {"observe[1]/prompt"}} {
			for _, turn := range append(turns, "verdict", "checkpoint[1]/assess", "revise") {
				want = append(want, fmt.Sprintf("Implementation[%d]/%s#1", round+1, turn))
			}
		}
		Expect(h.turns(run)).To(Equal(want))
		Expect(h.app.Pulls()).To(HaveLen(1))
		Expect(h.git.Count("git-receive-pack")).To(Equal(5))
		Expect(h.project.Git("rev-list", "--count", "main.."+workBranch)).To(Equal("5"))
		Expect(h.project.Git("show", workBranch+":health.md")).To(ContainSubstring("round 5"))
		Expect(implementationOf(run).Commit).To(Equal(h.project.Head(workBranch)))

		history := h.history(run)
		Expect(history).NotTo(ContainElement(HaveField("Activation", HavePrefix("accept"))))
		Expect(len(history)).To(BeNumerically(">", 64))
		Expect(len(run.Status.History.Entries)).To(BeNumerically("<=", 64), "the rest is on pages")
		for at, entry := range history {
			Expect(entry.Seq).To(BeEquivalentTo(at + 1))
		}
	})

	DescribeTable("supervised 58: when the implementor gets nowhere",
		func(ctx SpecContext, change func(*cast), failure string, turns int) {
			h := newHub(ctx)
			c := agreeing()
			change(&c)
			run := h.casts(c)
			Expect(h.fails(run)).To(Equal(failure))
			Expect(h.asked()).To(Equal(turns), "repairs are turns, too")
			Expect(h.forge.Mutations()).To(BeEmpty())
			Expect(h.git.Count("git-receive-pack")).To(BeZero())
		},
		Entry("four observations", func(c *cast) {
			c.proposes = []any{observation(), observation(), observation(), observation()}
		}, "Implementation#1 NO_MATCHING_EDGE", 10),
		Entry("a change that is not only where it may be", func(c *cast) {
			outside := proposes("# Health\n")
			changes := outside["proposal"].(map[string]any)["changes"].(map[string]any)
			flow := map[string]any{"write": map[string]any{"path": ".github/workflows/health.yaml", "content": "on: push\n"}}
			changes["operations"] = append(changes["operations"].([]any), flow)
			c.proposes = []any{outside}
		}, "Implementation[1]/apply#1 FRAGMENT_PATH", 8),
		Entry("a change that changes nothing", func(c *cast) {
			unchanged := proposes("")
			write := map[string]any{"write": map[string]any{"path": "README.md", "content": "# App\n"}}
			unchanged["proposal"].(map[string]any)["changes"] = map[string]any{"operations": []any{write}}
			c.proposes = []any{unchanged}
		}, "Implementation[1]/commit#1 EMPTY_INDEX", 8),
	)

	It("supervised 31, supervised 58: when a proposal is none, and none after two repairs in the same conversation", func(ctx SpecContext) {
		h := newHub(ctx)
		c := agreeing()
		c.proposes = slices.Repeat([]any{map[string]any{"kind": "proposal", "proposal": "health.md"}}, 3)
		run := h.casts(c)
		const proposal = "Implementation[1]/observe[2]/prompt#1"
		Expect(h.fails(run)).To(Equal(proposal + " REPLY_INVALID"))

		var turns api.TurnList
		Expect(admin.List(ctx, &turns, client.InNamespace(h.namespace))).To(Succeed())
		Expect(turns.Items).To(HaveLen(10))
		var repairs []int32
		for _, turn := range turns.Items {
			if turn.Spec.Prompt.Activation == proposal {
				repairs = append(repairs, turn.Spec.Prompt.Repair)
				Expect(turn.Spec.SessionRef).To(Equal(h.turnAt("Planning[1]/plan#1").Spec.SessionRef))
			}
		}
		Expect(repairs).To(ConsistOf(int32(0), int32(1), int32(2)))
		Expect(h.project.Head(workBranch)).To(BeEmpty())
		Expect(h.forge.Mutations()).To(BeEmpty())
	})

	It("supervised 58: before anybody is asked, when an instruction cannot be read", func(ctx SpecContext) {
		h := newHub(ctx)
		h.project.Commit("main", map[string]gitserver.FileSpec{"AGENTS.md": {Content: "Be \xff brief.\n"}})
		run := h.casts(agreeing())
		Expect(h.fails(run)).To(Equal("InstructionFiles[1]/read#1 FILE_NOT_TEXT"))
		Expect(h.asked()).To(BeZero())
	})
})

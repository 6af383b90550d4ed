package supervised

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/apitomy/axiom-operator/internal/testing/forgedouble"
)

// twoRounds defer a finding of the same key each.
func twoRounds() cast {
	c := agreeing()
	again := deferred("readiness")
	again["title"] = "Tell of readiness as well"
	c.changes = []map[string]any{found(failed("It says too little.", "Say more."), deferred("readiness")), found(passed("It is fine."), again)}
	return c
}

var _ = Describe("Effects of the adversarial implementation", func() {
	It("supervised 46: file one issue for a key that returns, and update it", func(ctx SpecContext) {
		h := newHub(ctx)
		run := h.casts(twoRounds())
		h.ends(run, "accepted")

		Expect(h.forge.Mutations()).To(Equal([]string{
			"POST /repos/team/app/pulls", "POST /repos/team/app/issues", "PATCH /repos/team/app/issues/2",
		}))
		Expect(h.app.Issues()).To(HaveLen(1))
		returned := implementationOf(run)
		Expect(h.app.Issues()[0]).To(ContainSubstring(returned.PullRequest.HeadSha), "it tells of the last head")
		Expect(returned.Filed).To(HaveLen(1))
		Expect(h.prompted("Implementation[2]/verdict#1")).To(ContainSubstring(fmt.Sprintf(`Issues that were filed: [{"key":"readiness","url":"%s/team/app/issues/2"}]`, h.git.URL)))
	})

	It("supervised 46, supervised 47: fail where the issue was closed, and keep what was done before", func(ctx SpecContext) {
		h := newHub(ctx)
		c := twoRounds()
		c.asks = []string{toReview}
		run := h.casts(c)
		h.decides(run, true)
		h.checkpoint(run)
		h.app.Close(2, false)
		issues := h.app.Issues()
		h.decides(run, true)

		Expect(h.fails(run)).To(Equal("Implementation[2]/deferred[1]/file#1 CONFLICT"))
		Expect(h.app.Issues()).To(Equal(issues))
		Expect(h.receipts(run)).To(ContainElements(
			"Implementation[1]/commit#1 git.commit", "Implementation[1]/push#1 git.push", "Implementation[1]/publish#1 pullRequest.upsert",
			"Implementation[1]/deferred[1]/file#1 issue.upsert",
			"Implementation[2]/commit#1 git.commit", "Implementation[2]/push#1 git.push", "Implementation[2]/publish#1 pullRequest.upsert",
		))
		Expect(h.project.Head(workBranch)).NotTo(BeEmpty())
		Expect(h.app.Pulls()).To(HaveLen(1))
	})

	It("supervised 46: do not choose between two issues with their mark", func(ctx SpecContext) {
		h := newHub(ctx)
		c := twoRounds()
		c.asks = []string{toReview}
		run := h.casts(c)
		h.checkpoint(run)
		h.forge.HideCreated()
		h.forge.Fail("POST", "/issues", 1, forgedouble.LostAnswer)
		h.decides(run, true)
		Eventually(h.app.Issues).Should(HaveLen(1))
		h.app.OpenIssue("Another one", h.app.Issues()[0])
		h.forge.ShowCreated()

		Expect(h.fails(run)).To(Equal("Implementation[1]/deferred[1]/file#1 AMBIGUOUS"))
		Expect(h.app.Issues()).To(HaveLen(2))
	})
})

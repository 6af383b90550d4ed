package supervised

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// pushes are what the Git server was sent.
func (h *hub) pushes() int { return h.git.Count("git-receive-pack") }

// mutations of the forge that begin so.
func (h *hub) mutations(prefix string) int {
	count := 0
	for _, mutation := range h.forge.Mutations() {
		if strings.HasPrefix(mutation, prefix) {
			count++
		}
	}
	return count
}

// decisions are what receipts say of effects, by activation.
func (w *world) decisions(run *api.WorkflowRun) map[string]string {
	GinkgoHelper()
	found := map[string]string{}
	for _, entry := range w.history(run) {
		if entry.Receipt == nil {
			continue
		}
		var receipt struct{ Decision string }
		Expect(json.Unmarshal(entry.Receipt.Raw, &receipt)).To(Succeed())
		if receipt.Decision != "" {
			found[entry.Activation] = receipt.Decision
		}
	}
	return found
}

// differing rounds have another report and another title of the finding each, so
// that the second one updates what the first one made.
func differing() cast {
	c := agreeing()
	finding := deferred("readiness")
	finding["title"] = "Tell of readiness as well"
	c.changes = []map[string]any{
		found(failed("It says too little.", "Say more."), deferred("readiness")), found(passed("It is fine."), finding),
	}
	proposal := proposes("# Health\n\nAll is well, says round 2.\n")
	proposal["proposal"].(map[string]any)["report"] = "Adds health.md, which says more."
	c.proposes = []any{c.proposal(0), proposal}
	return c
}

var _ = Describe("An operator that is killed between an effect and its receipt", func() {
	It("supervised 43: finds pushes, pull requests and issues done, and does not do them again", func(ctx SpecContext) {
		h := idleHub(ctx)
		h.settles()
		h.forge.SetTime(time.Now().Add(-10 * time.Minute)) // its clock is behind
		run := h.casts(differing())
		for _, isDone := range []func() bool{
			func() bool { return h.pushes() == 1 },
			func() bool { return h.mutations("POST /repos/team/app/pulls") == 1 },
			func() bool { return h.mutations("POST /repos/team/app/issues") == 1 },
			func() bool { return h.pushes() == 2 },
			func() bool { return h.mutations("PATCH /repos/team/app/pulls/") == 1 },
			func() bool { return h.mutations("PATCH /repos/team/app/issues/") == 1 },
		} {
			h.dies(func(req *http.Request) bool { return isStep(req) && isDone() })
		}
		h.operate()
		h.ends(run, "accepted")

		decided := h.decisions(run)
		for _, activation := range []string{
			"Implementation[1]/push#1", "Implementation[1]/publish#1", "Implementation[1]/deferred[1]/file#1",
			"Implementation[2]/push#1", "Implementation[2]/publish#1", "Implementation[2]/deferred[1]/file#1",
		} {
			Expect(decided).To(HaveKeyWithValue(activation, "adopted"))
		}
		Expect(h.forge.Mutations()).To(Equal([]string{
			"POST /repos/team/app/pulls", "POST /repos/team/app/issues", "PATCH /repos/team/app/pulls/1", "PATCH /repos/team/app/issues/2",
		}))
		Expect(h.app.Pulls()).To(HaveLen(1))
		Expect(h.app.Issues()).To(HaveLen(1))
		Expect(h.pushes()).To(Equal(2))
		Expect(h.project.Git("rev-list", "--count", "main.."+workBranch)).To(Equal("2"))
	})
})

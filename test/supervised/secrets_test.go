package supervised

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// leaked is a token that must get nowhere, and its line.
const (
	leaked     = "q7Zt4Wm9Xc2Vb6Nk8Lp3Rs5Td1Yf0Gh"
	leakedLine = "Authorization: Bearer " + leaked
)

// hasNowhere requires that no object of the world and no log has the token, but the
// books by which agents play.
func (w *world) hasNowhere(logs *heard) {
	GinkgoHelper()
	Expect(logs.String()).NotTo(ContainSubstring(leaked))
	Expect(w.reads("get", "workflowruns,humantasks,turns,agentsessions,events,pods,secrets", "-o", "yaml")).NotTo(ContainSubstring(leaked))
	var kept corev1.ConfigMapList
	Expect(admin.List(w.ctx, &kept, client.InNamespace(w.namespace))).To(Succeed())
	for _, object := range kept.Items {
		if strings.HasSuffix(object.Name, "-playbook") {
			continue
		}
		for key, data := range object.BinaryData {
			Expect(string(data)).NotTo(ContainSubstring(leaked), "%s, %s", object.Name, key)
		}
		Expect(show(object.Data)).NotTo(ContainSubstring(leaked), object.Name)
	}
}

var _ = Describe("A token in a supervised run", func() {
	It("supervised 51: refuses a source, and is nowhere", func(ctx SpecContext) {
		logs := listensToLogs()
		w := newWorld(ctx)
		w.operate()
		commit := w.defines(map[string]string{"flows/start.md": publish, "flows/Gate.md": gate + "\n" + leakedLine + "\n"})
		run := w.starts("notes", commit, map[string]any{"repository": w.project.URL, "text": ""})
		w.reaches(run, api.RunFailed)
		accepted := apimeta.FindStatusCondition(run.Status.Conditions, api.ConditionAccepted)
		Expect(accepted.Reason).To(Equal(api.ReasonInvalidDefinition))
		Expect(accepted.Message).To(HavePrefix("SECRET_DETECTED: Gate: "))
		w.hasNowhere(logs)
	})

	DescribeTable("supervised 51: fails the step that meets it, and is nowhere",
		func(ctx SpecContext, change func(*cast), meanwhile func(*hub), failure string) {
			logs := listensToLogs()
			h := newHub(ctx)
			c := agreeing()
			c.asks = []string{toReview}
			c.changes = []map[string]any{found(failed("It says too little.", "Say more.")), found(passed("It is fine."))}
			change(&c)
			run := h.casts(c)
			if meanwhile != nil {
				h.checkpoint(run)
				meanwhile(h)
				h.decides(run, true)
			}
			Expect(h.fails(run)).To(Equal(failure))
			h.hasNowhere(logs)
		},
		Entry("in a reply", func(c *cast) { c.plans = []map[string]any{passed(leakedLine)} }, nil, "Planning[1]/verdict#1 SECRET_DETECTED"),
		Entry("in a fragment", func(c *cast) { c.proposes = []any{proposes(leakedLine)} }, nil, "Implementation[1]/observe[2]/prompt#1 SECRET_DETECTED"),
		Entry("in a review", func(*cast) {}, func(h *hub) {
			h.app.Review(1, "COMMENTED", leakedLine, nil)
		}, "Implementation[2]/reviews#1 SECRET_DETECTED"),
	)
})

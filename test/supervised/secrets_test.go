package supervised

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/testing/gitserver"
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

// fetches reads a page.
const fetches = `---
name: Fetch
inputs:
  - {name: page, type: string, required: true}
---
` + "```yaml workflow" + `
nodes:
  - {id: start, type: start, name: Start, config: {}}
  - id: fetch
    type: action
    name: Fetch
    config:
      actionType: http.fetch
      method: GET
      inputs: {url: context.page}
      outputs: [{name: response, type: object, required: true}]
  - {id: end, type: end, name: Done, config: {outcome: done}}
edges:
  - {id: e1, source: start, target: fetch}
  - {id: e2, source: fetch, target: end}
` + "```" + `
`

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

	It("supervised 51: fails the fetch whose body has it, and is nowhere", func(ctx SpecContext) {
		logs := listensToLogs()
		w := newWorld(ctx)
		page := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
			_, _ = answer.Write([]byte("status: fine\n" + leakedLine + "\n"))
		}))
		DeferCleanup(page.Close)
		w.lists("http", fmt.Sprintf("- {method: GET, url: %q, private: true, plaintext: true}\n", page.URL+"/*"))
		w.operate()
		run := w.starts("status", w.defines(map[string]string{"flows/start.md": fetches}), map[string]any{"page": page.URL + "/status"})
		Expect(w.fails(run)).To(Equal("fetch#1 SECRET_DETECTED"))
		w.hasNowhere(logs)
	})

	It("supervised 51: fails the fragment in which it comes together, and is nowhere", func(ctx SpecContext) {
		logs := listensToLogs()
		w := newWorld(ctx)
		w.operate()
		half := len(leaked) / 2
		joins := strings.Replace(publish, "'content': context.text", fmt.Sprintf("'content': 'Au' + 'thorization: Bea' + 'rer ' + context.text + '%s'", leaked[half:]), 1)
		w.project.Commit("main", map[string]gitserver.FileSpec{"README.md": {Content: "# App\n"}})
		run := w.starts("notes", w.defines(map[string]string{"flows/start.md": joins, "flows/Gate.md": openGate}),
			map[string]any{"repository": w.project.URL, "text": leaked[:half]})
		Expect(w.fails(run)).To(Equal("write#1 SECRET_DETECTED"))
		Expect(w.project.Head("agent/notes")).To(BeEmpty())
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

package supervised

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// listens waits for a merge.
const listens = `---
name: Listen
inputs:
  - {name: ref, type: string, required: true}
outputs:
  - {name: by, type: string, expression: context.event.actor.login}
---
` + "```yaml workflow" + `
nodes:
  - {id: start, type: start, name: Start, config: {}}
  - id: merged
    type: receive-event
    name: Merged
    config:
      eventType: merged
      correlationKey: {subscriptionKey: context.ref, eventKey: event.ref}
  - {id: end, type: end, name: Done, config: {}}
edges:
  - {id: e1, source: start, target: merged}
  - {id: e2, source: merged, target: end}
` + "```" + `
`

var _ = Describe("An event for a supervised run", func() {
	It("is taken at a resume, and not before", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate()
		run := w.starts("listening", w.defines(map[string]string{"flows/start.md": listens}), map[string]any{"ref": "pr-7"})
		w.reaches(run, api.RunSuspended)
		Expect(run.Status.WaitsFor).To(Equal("Event"))

		for name, ref := range map[string]string{"other": "pr-8", "meant": "pr-7"} {
			e := &api.StreamEvent{}
			Expect(yaml.UnmarshalStrict([]byte(`spec: {id: `+name+`, type: merged, source: github, eventSourceId: gh, ref: `+ref+`, actor: {login: ada}, payload: {}}`), e)).To(Succeed())
			e.ObjectMeta = w.meta(name)
			Expect(bob.Create(ctx, e)).To(Succeed())
		}
		w.resumes(run)
		w.reaches(run, api.RunCompleted)
		Expect(string(run.Status.Outputs.Raw)).To(MatchJSON(`{"by":"ada"}`))
		Expect(run.Status.Executions).To(HaveLen(2))
	})
})

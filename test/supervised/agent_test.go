package supervised

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// assess asks an agent for a verdict, has a person decide, and then asks the same
// agent again, with what it said before.
const assess = `---
name: Assess
inputs:
  - {name: agent, type: string, required: true}
outputs:
  - {name: verdict, type: object, expression: context.verdict}
  - {name: words, type: string, expression: context.words}
---
` + "```yaml workflow" + `
nodes:
  - {id: start, type: start, name: Start, config: {}}
  - id: verdict
    type: action
    name: Verdict
    config:
      actionType: agent.prompt
      prompt: "#verdict"
      inputs: {agent: context.agent, session: "'planner'"}
      outputs: [{name: reply, type: object, required: true, contextKey: verdict}]
      reply:
        schema: {type: object, additionalProperties: false, required: [passed], properties: {passed: {type: boolean}}}
  - id: ask
    type: human-task
    name: Decide
    config:
      title: "'Go on?'"
      responseSchema: {type: object, additionalProperties: false, required: [proceed], properties: {proceed: {type: boolean}}}
  - id: again
    type: action
    name: Again
    config:
      actionType: agent.prompt
      prompt: "#again"
      inputs: {agent: context.agent, session: "'planner'"}
      outputs: [{name: reply, type: string, contextKey: words}]
  - {id: end, type: end, name: Done, config: {outcome: done}}
edges:
  - {id: e1, source: start, target: verdict}
  - {id: e2, source: verdict, target: ask}
  - {id: e3, source: ask, target: again}
  - {id: e4, source: again, target: end}
` + "```" + `

## Verdict

Has it passed?

## Again

You said ${{ context.verdict }}, and the person ${{ context.proceed }}.
`

func says(when, text string) string {
	return fmt.Sprintf("- when: %q\n  steps: [{say: %q}]\n", when, text)
}

var _ = Describe("An agent of a supervised run", func() {
	It("supervised 32: is asked in one conversation, over repairs and a suspension, and has no pod in between", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.settles()
		w.operate()
		w.teaches("planner", says("You said", "All is well.")+says("(?i)json", `{"passed":true}`)+says("", "It has."))
		run := w.starts("assessment", w.defines(map[string]string{"flows/start.md": assess}), map[string]any{"agent": "planner"})

		task := w.checkpoint(run)
		Expect(run.Status.Sessions).To(HaveLen(1))
		var pods corev1.PodList
		Expect(admin.List(ctx, &pods, client.InNamespace(w.namespace))).To(Succeed())
		Expect(pods.Items).To(BeEmpty())

		w.answers(task, `{"proceed":true}`)
		w.resumes(run)
		w.reaches(run, api.RunCompleted)
		Expect(string(run.Status.Outputs.Raw)).To(MatchJSON(`{"verdict":{"passed":true},"words":"All is well."}`))
		Expect(run.Status.Sessions).To(HaveLen(1))
		var said []string
		for _, entry := range run.Status.History.Entries {
			if entry.Receipt != nil && strings.Contains(string(entry.Receipt.Raw), "agent.prompt") {
				said = append(said, entry.Activation)
			}
		}
		Expect(said).To(Equal([]string{"verdict#1", "again#1"}))
	})
})

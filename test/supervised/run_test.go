package supervised

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/testing/gitserver"
)

// publish asks a person, then writes a file on a branch, commits and pushes it.
const publish = `---
name: Publish
inputs:
  - {name: repository, type: string, required: true}
  - {name: text, type: string, required: true}
  - {name: branch, type: string, defaultValue: agent/notes}
outputs:
  - {name: commit, type: string, expression: context.commit}
  - {name: pushed, type: object, expression: context.push}
workflow:
  components:
    Gate: Gate.md
---
# Publish

` + "```yaml workflow" + `
nodes:
  - {id: start, type: start, name: Start, config: {}}
  - id: open
    type: action
    name: Open the repository
    config:
      actionType: repository.open
      credentials: project
      inputs: {name: "'project'", url: context.repository}
  - id: tree
    type: action
    name: Open a worktree
    config:
      actionType: worktree.open
      credentials: project
      inputs: {repository: context.repository.name, name: "'notes'", branch: context.branch}
  - id: gate
    type: component
    name: Ask
    config:
      component: Gate
      inputs: {material: context.text}
      outputs: {proceed: result.proceed}
  - id: write
    type: action
    name: Write
    config:
      actionType: fragment.evaluate
      allow: [write]
      inputs:
        worktree: context.worktree
        fragment: "{'operations': [{'write': {'path': 'notes/today.md', 'content': context.text}}]}"
  - id: add
    type: action
    name: Stage
    config: {actionType: git.add, inputs: {worktree: context.worktree, paths: "['.']"}}
  - id: commit
    type: action
    name: Commit
    config: {actionType: git.commit, inputs: {worktree: context.worktree, message: "'Add notes'"}}
  - id: push
    type: action
    name: Push
    config: {actionType: git.push, credentials: project, inputs: {worktree: context.worktree}}
  - {id: done, type: end, name: Published, config: {outcome: published}}
  - {id: stopped, type: end, name: Stopped, config: {outcome: stopped}}
edges:
  - {id: e1, source: start, target: open}
  - {id: e2, source: open, target: tree}
  - {id: e3, source: tree, target: gate}
  - {id: yes, source: gate, target: write, condition: context.proceed}
  - {id: no, source: gate, target: stopped, priority: 1, isDefault: true}
  - {id: e4, source: write, target: add}
  - {id: e5, source: add, target: commit}
  - {id: e6, source: commit, target: push}
  - {id: e7, source: push, target: done}
` + "```" + `
`

const gate = `---
name: Gate
inputs:
  - {name: material, type: string, required: true}
outputs:
  - {name: proceed, type: boolean, expression: context.proceed}
---
` + "```yaml workflow" + `
nodes:
  - {id: start, type: start, name: Start, config: {}}
  - id: ask
    type: human-task
    name: Decide
    config:
      title: "'Publish this?'"
      description: "#ask"
      responseSchema: {type: object, additionalProperties: false, required: [proceed], properties: {proceed: {type: boolean}}}
  - {id: end, type: end, name: Decided, config: {}}
edges:
  - {id: e1, source: start, target: ask}
  - {id: e2, source: ask, target: end}
` + "```" + `

## Ask

Shall this be published?

${{ context.material }}
`

var publishing = map[string]string{"flows/start.md": publish, "flows/Gate.md": gate}

func (w *world) publishes(name, text string, change ...func(*api.WorkflowRun)) *api.WorkflowRun {
	GinkgoHelper()
	w.project.Commit("main", map[string]gitserver.FileSpec{"README.md": {Content: "# App\n"}})
	return w.starts(name, w.defines(publishing), map[string]any{"repository": w.project.URL, "text": text}, change...)
}

var _ = Describe("A supervised run", func() {
	It("supervised 01: is admitted with its bundle, suspends at its checkpoint, and publishes once it is resumed", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate()
		run := w.publishes("notes", "All is ${{ context.secret }} well.\n")

		task := w.checkpoint(run)
		Expect(run.Status.Definition.Descriptor.Components).To(HaveLen(1))
		Expect(run.Status.Definition.Descriptor.Components[0].Path).To(Equal("flows/Gate.md"))
		Expect(task.Spec.HumanContext.Title).To(Equal("Publish this?"))
		Expect(task.Spec.HumanContext.Description).To(Equal("Shall this be published?\n\nAll is ${{ context.secret }} well.\n"))
		Expect(task.Spec.Fingerprint).To(Equal(run.Status.Intents[0].Fingerprint))

		By("answering, which starts nothing")
		version := run.ResourceVersion
		w.answers(task, `{"proceed":true}`)
		sees(w, run, func(g Gomega, run *api.WorkflowRun) {
			g.Expect(run.Status.WaitsFor).To(ContainSubstring("(answered)"))
		})
		Expect(run.Status.Executions).To(HaveLen(1))
		Expect(version).NotTo(BeEmpty())
		Expect(w.project.Head("agent/notes")).To(BeEmpty())

		By("resuming")
		w.resumes(run)
		w.reaches(run, api.RunCompleted)
		Expect(run.Status.Outcome).To(Equal("published"))
		Expect(run.Status.Executions).To(HaveLen(2))
		Expect(run.Status.Executions[1].RequestedBy).To(Equal("bob"))
		Expect(w.project.Head("agent/notes")).NotTo(BeEmpty())
		Expect(w.project.Git("show", "agent/notes:notes/today.md")).To(Equal("All is ${{ context.secret }} well."))
		Expect(string(run.Status.Outputs.Raw)).To(ContainSubstring(w.project.Head("agent/notes")))
		Expect(activations(run)).To(Equal([]string{
			"start#1 Completed", "open#1 Completed", "tree#1 Completed", "gate[1]/start#1 Completed", "gate[1]/ask#1 Completed", "gate[1]/end#1 Completed", "gate#1 Completed",
			"write#1 Completed", "add#1 Completed", "commit#1 Completed", "push#1 Completed", "done#1 Completed",
		}))

		By("resting, whatever is asked of it")
		requests := w.git.Requests()
		w.resumes(run)
		Consistently(func(g Gomega) {
			again := &api.WorkflowRun{}
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(run), again)).To(Succeed())
			g.Expect(again.Status.Executions).To(HaveLen(2))
		}).WithTimeout(0).Should(Succeed())
		Expect(w.git.Requests()).To(Equal(requests))
	})
})

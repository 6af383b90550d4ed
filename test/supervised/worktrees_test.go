package supervised

import (
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/testing/gitserver"
)

// twoTrees changes files in worktrees of two repositories, asks, publishes the first
// and reads the second.
const twoTrees = `---
name: TwoTrees
inputs:
  - {name: first, type: string, required: true}
  - {name: second, type: string, required: true}
outputs:
  - {name: read, type: object, expression: "context.files.map(f, f.content)"}
---
` + "```yaml workflow" + `
nodes:
  - {id: start, type: start, name: Start, config: {}}
  - id: openFirst
    type: action
    name: Open the first repository
    config: {actionType: repository.open, credentials: project, inputs: {name: "'first'", url: context.first}}
  - id: openSecond
    type: action
    name: Open the second repository
    config: {actionType: repository.open, credentials: project, inputs: {name: "'second'", url: context.second}}
  - id: treeFirst
    type: action
    name: Open a worktree of the first
    config: {actionType: worktree.open, credentials: project, inputs: {repository: "'first'", name: "'first'", branch: "'agent/notes'"}}
  - id: treeSecond
    type: action
    name: Open a worktree of the second
    config: {actionType: worktree.open, credentials: project, inputs: {repository: "'second'", name: "'second'", branch: "'agent/notes'"}}
  - id: stagedSecond
    type: action
    name: Change the second
    config:
      actionType: fragment.evaluate
      allow: [write]
      inputs: {worktree: "'second'", fragment: "{'operations': [{'write': {'path': 'README.md', 'content': 'staged'}}]}"}
  - {id: addSecond, type: action, name: Stage the second, config: {actionType: git.add, inputs: {worktree: "'second'", paths: "['.']"}}}
  - id: writeSecond
    type: action
    name: Change the second again
    config:
      actionType: fragment.evaluate
      allow: [write]
      inputs: {worktree: "'second'", fragment: "{'operations': [{'write': {'path': 'README.md', 'content': 'not staged'}}, {'write': {'path': 'new.md', 'content': 'same'}}]}"}
  - id: writeFirst
    type: action
    name: Change the first
    config:
      actionType: fragment.evaluate
      allow: [write]
      inputs: {worktree: "'first'", fragment: "{'operations': [{'write': {'path': 'new.md', 'content': 'same'}}]}"}
  - id: ask
    type: human-task
    name: Decide
    config:
      title: "'Publish the first?'"
      responseSchema: {type: object, additionalProperties: false, required: [proceed], properties: {proceed: {type: boolean}}}
  - {id: addFirst, type: action, name: Stage the first, config: {actionType: git.add, inputs: {worktree: "'first'", paths: "['.']"}}}
  - {id: commit, type: action, name: Commit, config: {actionType: git.commit, inputs: {worktree: "'first'", message: "'Add notes'"}}}
  - {id: push, type: action, name: Push, config: {actionType: git.push, credentials: project, inputs: {worktree: "'first'"}}}
  - {id: read, type: action, name: Read the second, config: {actionType: files.read, inputs: {worktree: "'second'", paths: "['README.md', 'new.md']"}}}
  - {id: end, type: end, name: Done, config: {}}
edges:
  - {id: e1, source: start, target: openFirst}
  - {id: e2, source: openFirst, target: openSecond}
  - {id: e3, source: openSecond, target: treeFirst}
  - {id: e4, source: treeFirst, target: treeSecond}
  - {id: e5, source: treeSecond, target: stagedSecond}
  - {id: e6, source: stagedSecond, target: addSecond}
  - {id: e7, source: addSecond, target: writeSecond}
  - {id: e8, source: writeSecond, target: writeFirst}
  - {id: e9, source: writeFirst, target: ask}
  - {id: e10, source: ask, target: addFirst}
  - {id: e11, source: addFirst, target: commit}
  - {id: e12, source: commit, target: push}
  - {id: e13, source: push, target: read}
  - {id: e14, source: read, target: end}
` + "```" + `
`

// treeOf is a worktree of the run, as its status tells.
func treeOf(run *api.WorkflowRun, name string) api.WorkspaceTree {
	GinkgoHelper()
	trees := run.Status.Workspace.Worktrees
	at := slices.IndexFunc(trees, func(tree api.WorkspaceTree) bool { return tree.Name == name })
	Expect(at).To(BeNumerically(">=", 0), "%s", show(run.Status.Workspace))
	return trees[at]
}

var _ = Describe("Worktrees of a supervised run", func() {
	It("supervised 48: last over a suspension, and one is published while the other stays as it is", func(ctx SpecContext) {
		w := newWorld(ctx)
		stop := w.operate()
		other := w.git.Create(GinkgoTB(), "team/other")
		for _, repository := range []*gitserver.Repository{w.project, other} {
			repository.Commit("main", map[string]gitserver.FileSpec{"README.md": {Content: "# " + repository.URL + "\n"}})
		}
		run := w.starts("notes", w.defines(map[string]string{"flows/start.md": twoTrees}), map[string]any{"first": w.project.URL, "second": other.URL})
		task := w.checkpoint(run)
		first, second := treeOf(run, "first"), treeOf(run, "second")
		Expect(first.WorkTree).NotTo(Equal(first.IndexTree), "the first is dirty")
		Expect(second.WorkTree).NotTo(Equal(second.IndexTree), "the second is dirty beyond what is staged")
		Expect(second.IndexTree).NotTo(Equal(other.Git("rev-parse", "main^{tree}")), "and something is staged")
		stop()

		By("going on with an operator that has nothing of either")
		w.cache = GinkgoT().TempDir()
		w.operate()
		Expect(treeOf(w.reaches(run, api.RunSuspended), "first")).To(Equal(first))
		w.answers(task, `{"proceed":true}`)
		w.resumes(run)
		w.reaches(run, api.RunCompleted)

		Expect(w.project.Git("ls-tree", "-r", "--name-only", "agent/notes")).To(Equal("README.md\nnew.md"))
		Expect(w.project.Git("rev-list", "--count", "main..agent/notes")).To(Equal("1"))
		Expect(treeOf(run, "first").Head).To(Equal(w.project.Head("agent/notes")))
		Expect(treeOf(run, "second")).To(Equal(second))
		Expect(string(run.Status.Outputs.Raw)).To(MatchJSON(`{"read":["not staged","same"]}`))
		Expect(other.Git("for-each-ref", "--format=%(refname)")).To(Equal("refs/heads/main"))
	})
})

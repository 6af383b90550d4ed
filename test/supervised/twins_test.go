package supervised

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/apitomy/axiom-operator/internal/testing/crash"
)

// file publishes a file, asks for it to be pulled and files an issue; nobody is
// asked.
const file = `---
name: File
inputs:
  - {name: repository, type: string, required: true}
  - {name: tracker, type: string, required: true}
outputs:
  - {name: number, type: number, expression: context.pullRequest.number}
  - {name: issue, type: string, expression: context.issue.url}
---
` + "```yaml workflow" + `
nodes:
  - {id: start, type: start, name: Start, config: {}}
  - id: open
    type: action
    name: Open the repository
    config: {actionType: repository.open, credentials: project, inputs: {name: "'project'", url: context.repository}}
  - id: tree
    type: action
    name: Open a worktree
    config:
      actionType: worktree.open
      credentials: project
      inputs: {repository: context.repository.name, name: "'notes'", branch: "'agent/notes'"}
  - id: write
    type: action
    name: Write
    config:
      actionType: fragment.evaluate
      allow: [write]
      inputs: {worktree: context.worktree, fragment: "{'operations': [{'write': {'path': 'today.md', 'content': 'All is well.'}}]}"}
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
  - id: publish
    type: action
    name: Ask for it to be pulled
    config:
      actionType: pullRequest.upsert
      credentials: project
      body: "#body"
      inputs: {worktree: context.worktree, title: "'Add notes'"}
  - id: file
    type: action
    name: File an issue
    config:
      actionType: issue.upsert
      credentials: project
      body: "#body"
      inputs: {tracker: context.tracker, key: "'notes'", title: "'Read the notes'"}
  - {id: done, type: end, name: Filed, config: {outcome: filed}}
edges:
  - {id: e1, source: start, target: open}
  - {id: e2, source: open, target: tree}
  - {id: e3, source: tree, target: write}
  - {id: e4, source: write, target: add}
  - {id: e5, source: add, target: commit}
  - {id: e6, source: commit, target: push}
  - {id: e7, source: push, target: publish}
  - {id: e8, source: publish, target: file}
  - {id: e9, source: file, target: done}
` + "```" + `

## Body

There are notes.
`

// isFiled is a run whose effects are at the forge.
func isFiled(h *hub) {
	var told annals
	told.follow(h.world)
	run := h.starts("notes", h.defines(map[string]string{"flows/start.md": file}), map[string]any{
		"repository": h.project.URL, "tracker": h.git.URL + "/team/app",
	})
	h.ends(run, "filed")
	told.read(h.history(run))
	told.unchanged()
	Expect(h.forge.Mutations()).To(Equal([]string{"POST /repos/team/app/pulls", "POST /repos/team/app/issues"}))
	Expect(h.git.Count("git-receive-pack")).To(Equal(1))
	Expect(h.project.Git("rev-list", "--count", "main..agent/notes")).To(Equal("1"))
}

var _ = Describe("Two managers that carry one run", Label("crash"), func() {
	It("supervised 14: push once, ask for one pull and file one issue", func(ctx SpecContext) {
		explores(ctx, byCourse(scenario(idleHub, true, isFiled)), 1, crash.Twins)
	}, NodeTimeout(10*time.Minute))
})

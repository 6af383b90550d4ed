package cli

// renames is the playbook of an agent that renames the end, and has nothing to say
// when it is asked again.
const renames = `
turns:
- when: Rename
  steps:
  - think: That is easy.
  - call: {tool: get_composition, save: comp}
  - call:
      tool: propose_workflow_changes
      args:
        changeSet:
          id: cs-1
          baseRevision: ${comp.workflowRevision}
          summary: Rename
          ops: [{op: updateNode, id: end-1, patch: {name: Finished}}]
      expect: "^APPLIED"
  - say: It is called Finished now.
- when: could not be applied
  steps: [{say: I leave it at that.}]
`

// keepsTools is the playbook of an agent that writes a tool.
const keepsTools = `
turns:
- steps:
  - call:
      tool: upsert_item
      args: {type: tool, item: {name: find-logs, description: Finds logs, scriptTemplate: echo hi}}
      expect: "^VALID"
  - say: There is a tool for it now.
`

// naps is the playbook of an agent that takes its time until it is told to stop.
const naps = `
turns:
- steps:
  - call: {tool: get_composition}
  - sleep: 10m
- steps: [{say: I am back.}]
`

// fails is the playbook of an agent that breaks.
const fails = `
turns:
- steps: [{error: {message: out of ideas}}]
`

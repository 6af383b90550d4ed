package fuzz

// kind is one of the project's kinds, with an object of it that is accepted.
type kind struct {
	name, plural string
	// valid is the spec of an accepted object, in YAML.
	valid string
	// before must exist for that; empty: nothing.
	before []string
	// hasStatus: there is a status subresource.
	hasStatus bool
}

const flow = `{id: w, name: W, nodes: [{id: start-1, type: start, name: Start}, {id: ask, type: human-task, name: Ask, config: {title: "'T'", outputs: [{name: ok, type: boolean}]}},
  {id: end-1, type: end, name: End}], edges: [{id: e1, source: start-1, target: ask}, {id: e2, source: ask, target: end-1, condition: "context.ok == true"}, {id: e3, source: ask, target: end-1, isDefault: true}]}`

var kinds = []kind{
	{
		name: "Composition", plural: "compositions", hasStatus: true,
		valid: `{workflow: ` + flow + `, actionTypes: [{name: assess, description: D, mode: script, script: {scriptTemplate: "true"}, inputs: [{name: a}], outputs: [{name: b, type: number}]}],
  tools: [{name: look, description: D, interpreter: bash, scriptTemplate: "echo $AXIOM_PARAM_a", parameters: [{name: a, type: string}]}]}`,
	},
	{name: "Turn", plural: "turns", hasStatus: true, valid: `{compositionRef: {name: composition-valid}, message: Please.}`, before: []string{"Composition"}},
	{
		name: "HumanTask", plural: "humantasks", hasStatus: true,
		valid: `{humanContext: {title: T, details: [{label: L, value: V}]}, form: {fields: [{name: ok, type: boolean, widget: checkbox, label: ok, required: true}]}, assignees: {users: [alice]}, expiresAfter: P2D}`,
	},
	{
		name: "WorkflowRun", plural: "workflowruns", hasStatus: true,
		valid: `{compositionRef: {name: composition-valid}, inputs: {a: 1}, activeDeadline: P1D}`, before: []string{"Composition"},
	},
	{name: "AgentSession", plural: "agentsessions", hasStatus: true, valid: `{templateRef: {name: axiom-workbench}}`},
	{name: "SessionTemplate", plural: "sessiontemplates", valid: `{systemPrompt: Be brief.}`},
	{
		name: "ActionType", plural: "actiontypes", hasStatus: true,
		valid: `{description: D, mode: script, script: {interpreter: bash, scriptTemplate: "true"}, env: [{name: A, value: b}], inputs: [{name: a, type: string, required: true}]}`,
	},
	{
		name: "Tool", plural: "tools", hasStatus: true,
		valid: `{description: D, interpreter: bash, scriptTemplate: "echo $AXIOM_PARAM_a", parameters: [{name: a, type: string, required: true}], labels: [l]}`,
	},
	{
		name: "StreamEvent", plural: "streamevents", hasStatus: true,
		valid: `{id: e-1, type: pr.merged, source: github, eventSourceId: repo, ref: r-1, timestamp: "2026-03-02T09:14:07Z", actor: {login: alice}, payload: {base: main}}`,
	},
}

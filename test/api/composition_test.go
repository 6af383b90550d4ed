package api

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
)

var _ = DescribeTable("a composition", func(ctx SpecContext, spec string, parts ...string) {
	tryCreate(ctx, manifest("Composition", "c", spec), parts...)
},
	Entry("may be empty", "{}"),
	Entry("has a workflow that is an object", "{workflow: [1]}", "spec.workflow", "must be of type object"),
	Entry("has a goal of bounded length", "{goal: "+strings.Repeat("g", 4097)+"}", "spec.goal", "4096"),
	Entry("accepts in a known way", "{agent: {changeSetPolicy: Sometimes}}", "spec.agent.changeSetPolicy: Unsupported value", "Manual", "Automatic"),
	Entry("writes items in a known way", "{agent: {itemPolicy: Never}}", "spec.agent.itemPolicy: Unsupported value", "Direct", "Staged"),
	Entry("names its template shortly", "{agent: {template: "+strings.Repeat("t", 254)+"}}", "spec.agent.template", "253"),
	Entry("keeps a snapshot", "{revisionHistoryLimit: 0}", "spec.revisionHistoryLimit", "greater than or equal to 1"),
	Entry("keeps no more than 200", "{revisionHistoryLimit: 201}", "spec.revisionHistoryLimit", "less than or equal to 200"),
	Entry("names its action types and tools", "{actionTypes: [{name: a.b_c-1}], tools: [{name: a.b_c-1}]}"),
	Entry("has each action type once", "{actionTypes: [{name: a}, {name: a}]}", "spec.actionTypes[1]: Duplicate value"),
	Entry("has each tool once", "{tools: [{name: a}, {name: a}]}", "spec.tools[1]: Duplicate value"),
	Entry("names action types in lower case", "{actionTypes: [{name: Assess}]}", "spec.actionTypes[0].name", "should match"),
	Entry("names tools in one word", "{tools: [{name: a b}]}", "spec.tools[0].name", "should match"),
	Entry("names action types shortly", "{actionTypes: [{name: "+strings.Repeat("a", 64)+"}]}", "spec.actionTypes[0].name", "63"),
	Entry("names tools shortly", "{tools: [{name: "+strings.Repeat("a", 64)+"}]}", "spec.tools[0].name", "63"),
	// Drafts may be invalid: whoever edits one finds the problem in its status.
	Entry("may have an action type of no known mode", "{actionTypes: [{name: a, mode: dance}]}"),
)

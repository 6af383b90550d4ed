package api

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
)

var _ = Describe("an agent", func() {
	// What compositions and sessions say of an agent is the same, and so is its schema.
	DescribeTable("has", func(ctx SpecContext, members string, parts ...string) {
		path := func(of string) []string {
			moved := make([]string, len(parts))
			for i, part := range parts {
				moved[i] = strings.ReplaceAll(part, "PATH", of)
			}
			return moved
		}
		tryCreate(ctx, manifest("Composition", "c", "{agent: {"+members+"}}"), path("spec.agent")...)
		tryCreate(ctx, manifest("AgentSession", "s", "{templateRef: {name: t}, "+members+"}"), path("spec")...)
	},
		Entry("a time for turns", "turnTimeout: 1h30m0.5s"),
		Entry("a time for turns that can be read", "turnTimeout: soon", "PATH.turnTimeout", "must be a duration such as '30m'"),
		Entry("a time for turns with a unit", "turnTimeout: '30'", "PATH.turnTimeout", "must be a duration such as '30m'"),
		Entry("a time for turns that is a text", "turnTimeout: 30", "PATH.turnTimeout", "must be of type string"),
		Entry("a time for turns that is positive", "turnTimeout: 0s", "PATH.turnTimeout", "must be positive"),
		Entry("a time for turns that is not negative", "turnTimeout: -1s", "PATH.turnTimeout", "must be positive"),
		Entry("a time for turns that a clock holds", "turnTimeout: 9999999999h", "PATH.turnTimeout", "conversion"),
		Entry("a time for turns in a few words", "turnTimeout: "+strings.Repeat("1s", 33), "PATH.turnTimeout", "64"),
		Entry("a time to idle", "idleTimeout: 10m"),
		Entry("a time to idle without end", "idleTimeout: 0s"),
		Entry("a time to idle that can be read", "idleTimeout: never", "PATH.idleTimeout", "must be a duration such as '30m'"),
		Entry("a time to idle that is not negative", "idleTimeout: -1s", "PATH.idleTimeout", "must not be negative"),
		Entry("a time to idle that a clock holds", "idleTimeout: 9999999999h", "PATH.idleTimeout", "conversion"),

		Entry("a way out to addresses", "egress: [{cidr: 203.0.113.0/24, port: 443}, {cidr: '2001:db8::/32', port: 443}]"),
		Entry("a way out to pods", "egress: [{namespaceSelector: {}, podSelector: {matchLabels: {a: b}}, port: 80}, {podSelector: {}, port: 1}]"),
		Entry("no way out to both", "egress: [{cidr: 203.0.113.0/24, podSelector: {}, port: 443}]",
			"PATH.egress[0]", "exactly one of `cidr` and the selectors must be set"),
		Entry("no way out to addresses of a namespace", "egress: [{cidr: 203.0.113.0/24, namespaceSelector: {}, port: 443}]",
			"PATH.egress[0]", "exactly one of `cidr` and the selectors must be set"),
		Entry("no way out to nowhere", "egress: [{port: 443}]", "PATH.egress[0]", "exactly one of `cidr` and the selectors must be set"),
		Entry("no way out to one address", "egress: [{cidr: 203.0.113.7, port: 443}]", "PATH.egress[0].cidr", "must be a CIDR block"),
		Entry("no way out by name", "egress: [{cidr: example.com, port: 443}]", "PATH.egress[0].cidr", "must be a CIDR block"),
		Entry("no way out on every port", "egress: [{cidr: 203.0.113.0/24}]", "PATH.egress[0].port: Required value"),
		Entry("no way out below ports", "egress: [{cidr: 203.0.113.0/24, port: 0}]", "PATH.egress[0].port"),
		Entry("no way out above ports", "egress: [{cidr: 203.0.113.0/24, port: 65536}]", "PATH.egress[0].port", "65535"),

		Entry("variables", "runtime: {env: [{name: _a1, value: x}, {name: B, secretKeyRef: {name: s, key: k}}, {name: LDAP}]}"),
		Entry("no variable of the operator", "runtime: {env: [{name: AXIOM_API_URL, value: x}]}",
			"PATH.runtime.env[0].name", "must not begin with 'AXIOM_' or 'LD_'"),
		Entry("no variable of the linker", "runtime: {env: [{name: LD_PRELOAD, value: x}]}",
			"PATH.runtime.env[0].name", "must not begin with 'AXIOM_' or 'LD_'"),
		Entry("no variable that is no identifier", "runtime: {env: [{name: a-b}]}", "PATH.runtime.env[0].name", "should match"),
		Entry("no variable that begins with a digit", "runtime: {env: [{name: 1a}]}", "PATH.runtime.env[0].name", "should match"),
		Entry("no variable without name", "runtime: {env: [{name: ''}]}", "PATH.runtime.env[0].name", "should match"),
		Entry("no variable with a long name", "runtime: {env: [{name: "+strings.Repeat("a", 257)+"}]}", "PATH.runtime.env[0].name", "256"),
		Entry("no variable of two sources", "runtime: {env: [{name: a, value: x, secretKeyRef: {name: s, key: k}}]}",
			"PATH.runtime.env[0]", "at most one of `value` and `secretKeyRef` may be set"),
		Entry("no variable twice", "runtime: {env: [{name: a}, {name: a}]}", "PATH.runtime.env[1]: Duplicate value"),
		Entry("no model in a Secret without name", "modelSecretRef: {name: ''}", "PATH.modelSecretRef.name"),
		Entry("no playbook without key", "runtime: {playbookRef: {name: p, key: ''}}", "PATH.runtime.playbookRef.key"),
	)
})

var _ = Describe("a session", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		apply(ctx, manifest("AgentSession", "bound", "{templateRef: {name: t}, compositionRef: {name: c}, stopped: true}"))
		apply(ctx, manifest("AgentSession", "free", "{templateRef: {name: t}}"))
		apply(ctx, manifest("AgentSession", "asked", "{templateRef: {name: t}, runRef: {name: r}, role: Prompt}"))
		apply(ctx, manifest("AgentSession", "attempt", "{templateRef: {name: t}, runRef: {name: r}}"))
	})

	It("is for a composition or a run, not both", func(ctx SpecContext) {
		tryCreate(ctx, manifest("AgentSession", "s", "{templateRef: {name: t}, runRef: {name: r}}"))
		tryCreate(ctx, manifest("AgentSession", "s", "{templateRef: {name: t}, compositionRef: {name: c}, runRef: {name: r}}"),
			"at most one of `compositionRef` and `runRef` may be set")
		tryCreate(ctx, manifest("AgentSession", "s", "{}"), "spec.templateRef: Required value")
	})

	It("has a role in runs only", func(ctx SpecContext) {
		tryCreate(ctx, manifest("AgentSession", "s", "{templateRef: {name: t}, runRef: {name: r}, role: Prompt}"))
		tryCreate(ctx, manifest("AgentSession", "s", "{templateRef: {name: t}, role: Prompt}"), "spec.role", "may be set with `runRef` only")
		tryCreate(ctx, manifest("AgentSession", "s", "{templateRef: {name: t}, runRef: {name: r}, role: Chat}"), "spec.role", "Prompt")
	})

	DescribeTable("when it is changed", func(ctx SpecContext, name, spec string, parts ...string) {
		tryPatch(ctx, "as", name, spec, parts...)
	},
		Entry("keeps its composition", "bound", `{"compositionRef":{"name":"d"}}`, "spec.compositionRef", "must not change"),
		Entry("keeps being bound", "bound", `{"compositionRef":null}`, "`compositionRef` and `runRef` must not change"),
		Entry("is not bound to a composition", "free", `{"compositionRef":{"name":"c"}}`, "`compositionRef` and `runRef` must not change"),
		Entry("is not bound to a run", "free", `{"runRef":{"name":"r"}}`, "`compositionRef` and `runRef` must not change"),
		Entry("keeps its role", "asked", `{"role":null}`, "`role` must not change"),
		Entry("gets no role", "attempt", `{"role":"Prompt"}`, "`role` must not change"),
		Entry("may be suspended", "asked", `{"suspended":true}`),
		Entry("stays stopped", "bound", `{"stopped":false}`, "spec.stopped", "must stay true once it is"),
		Entry("stays stopped without a word", "bound", `{"stopped":null}`, "spec.stopped", "must stay true once it is"),
		Entry("may be stopped", "free", `{"stopped":true}`),
	)
})

var _ = Describe("a session template", func() {
	DescribeTable("does not take the name of a built-in", func(ctx SpecContext, name string) {
		tryCreate(ctx, manifest("SessionTemplate", name, "{systemPrompt: Help.}"), "must not be that of a built-in template")
	},
		Entry(nil, "axiom-workbench"), Entry(nil, "axiom-config-assistant"), Entry(nil, "general-assistant"), Entry(nil, "subject-assistant"),
	)

	It("says what the agent is told", func(ctx SpecContext) {
		tryCreate(ctx, manifest("SessionTemplate", "helper", "{systemPrompt: Help.}"))
		tryCreate(ctx, manifest("SessionTemplate", "helper", "{}"), "spec.systemPrompt: Required value")
		tryCreate(ctx, manifest("SessionTemplate", "helper", "{systemPrompt: ''}"), "spec.systemPrompt")
	})

	DescribeTable("of role Prompt", func(ctx SpecContext, members string, parts ...string) {
		tryCreate(ctx, manifest("SessionTemplate", "planner", "{systemPrompt: Plan., role: Prompt, "+members+"}"), parts...)
	},
		Entry("needs nothing more", "mcpServers: [], allowedTools: []"),
		Entry("may recap", "continuity: Recap"),
		Entry("may be strict", "continuity: Strict"),
		Entry("may have a larger home", "homeSize: 4Gi"),
		Entry("has no other continuity", "continuity: Never", "spec.continuity", "Strict"),
		Entry("has no home of no size", "homeSize: 0", "spec.homeSize", "must be positive"),
		Entry("has no servers", "mcpServers: [{name: docs, url: 'https://example.com/mcp'}]", "spec.mcpServers", "must be empty for role Prompt"),
		Entry("has no tools", "allowedTools: [Read]", "spec.allowedTools", "must be empty for role Prompt"),
		Entry("has no names of tools", "toolNamePatterns: ['(?P<tool>.*)']", "spec.toolNamePatterns", "must be empty for role Prompt"),
		Entry("has no capabilities", "capabilities: [propose]", "spec.capabilities"),
	)

	It("says nothing of prompts without that role", func(ctx SpecContext) {
		tryCreate(ctx, manifest("SessionTemplate", "helper", "{systemPrompt: Help., continuity: Recap}"), "spec.continuity", "for role Prompt only")
		tryCreate(ctx, manifest("SessionTemplate", "helper", "{systemPrompt: Help., homeSize: 1Gi}"), "spec.homeSize", "for role Prompt only")
	})

	It("gives no capability, which only built-in templates do", func(ctx SpecContext) {
		tryCreate(ctx, manifest("SessionTemplate", "helper", "{systemPrompt: Help., capabilities: [propose]}"), "spec.capabilities")
	})
})

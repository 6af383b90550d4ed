package api

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
)

var _ = Describe("a run", func() {
	revision := "sha256:" + strings.Repeat("0", 64)

	DescribeTable("when it is made", func(ctx SpecContext, spec string, parts ...string) {
		tryCreate(ctx, manifest("WorkflowRun", "r", spec), parts...)
	},
		Entry("is of a composition", "{compositionRef: {name: c}}"),
		Entry("is of a revision", "{compositionRef: {name: c, revision: '"+revision+"'}}"),
		Entry("is of nothing else", "{}", "spec.compositionRef: Required value"),
		Entry("is of a definition in Git", "{git: {url: 'https://example.com/a.git', commit: '0', path: a.md}}"),
		Entry("is not of both", "{compositionRef: {name: c}, git: {url: 'https://example.com/a.git', commit: '0', path: a.md}}", "exactly one of `compositionRef` and `git`"),
		Entry("names its composition", "{compositionRef: {name: ''}}", "spec.compositionRef.name"),
		Entry("names a revision in full", "{compositionRef: {name: c, revision: 'sha256:0'}}", "spec.compositionRef.revision", "should match"),
		Entry("has inputs by name", "{compositionRef: {name: c}, inputs: [1]}", "spec.inputs", "must be of type object"),
		Entry("has a policy that is known", "{compositionRef: {name: c}, resumePolicy: Sometimes}", "spec.resumePolicy: Unsupported value", "Explicit"),
		Entry("counts resumes from 0", "{compositionRef: {name: c}, resumeRequests: -1}", "spec.resumeRequests", "greater than or equal to 0"),
		Entry("is kept for no negative time", "{compositionRef: {name: c}, ttlSecondsAfterFinished: -1}",
			"spec.ttlSecondsAfterFinished", "greater than or equal to 0"),
	)

	Context("when it is changed", Ordered, func() {
		BeforeAll(func(ctx SpecContext) {
			apply(ctx, manifest("WorkflowRun", "full", "{compositionRef: {name: c, revision: '"+revision+"'}, inputs: {a: 1},"+
				" resumePolicy: Explicit, activeDeadline: PT1H, resumeRequests: 2, cancel: true}"))
			apply(ctx, manifest("WorkflowRun", "plain", "{compositionRef: {name: c}}"))
		})

		DescribeTable("it", func(ctx SpecContext, name, spec string, parts ...string) {
			tryPatch(ctx, "wfr", name, spec, parts...)
		},
			Entry("keeps its composition", "full", `{"compositionRef":{"name":"d"}}`, "spec.compositionRef", "must not change"),
			Entry("keeps having a composition", "full", `{"compositionRef":null}`, "spec.compositionRef: Required value"),
			Entry("gets no definition in Git", "full", `{"git":{"url":"https://example.com/a.git","commit":"0","path":"a.md"}}`, "exactly one of `compositionRef` and `git`"),
			Entry("keeps its revision", "full", `{"compositionRef":{"revision":null}}`, "spec.compositionRef", "must not change"),
			Entry("gets no revision", "plain", `{"compositionRef":{"revision":"`+revision+`"}}`, "spec.compositionRef", "must not change"),
			Entry("keeps having inputs", "full", `{"inputs":null}`, "spec.inputs", "`inputs` must not change"),
			Entry("gets no inputs", "plain", `{"inputs":{}}`, "spec.inputs", "`inputs` must not change"),
			Entry("keeps its policy", "full", `{"resumePolicy":"Automatic"}`, "spec.resumePolicy", "must not change"),
			Entry("keeps the policy it has by default", "plain", `{"resumePolicy":"Explicit"}`, "spec.resumePolicy", "must not change"),
			Entry("may say the policy it has by default", "plain", `{"resumePolicy":"Automatic"}`),
			Entry("keeps its deadline", "full", `{"activeDeadline":"PT2H"}`, "spec.activeDeadline", "must not change"),
			Entry("keeps having a deadline", "full", `{"activeDeadline":null}`, "spec.activeDeadline", "must not change"),
			Entry("gets no deadline", "plain", `{"activeDeadline":"PT2H"}`, "spec.activeDeadline", "must not change"),
			Entry("forgets no resume", "full", `{"resumeRequests":1}`, "spec.resumeRequests", "must not shrink"),
			Entry("forgets no resume without a word", "full", `{"resumeRequests":null}`, "spec.resumeRequests", "must not shrink"),
			Entry("stays cancelled", "full", `{"cancel":false}`, "spec.cancel", "must stay true once it is"),
			Entry("stays cancelled without a word", "full", `{"cancel":null}`, "spec.cancel", "must stay true once it is"),
			Entry("may be resumed again", "full", `{"resumeRequests":3}`),
			Entry("may be resumed", "plain", `{"resumeRequests":1}`),
			Entry("may be cancelled", "plain", `{"cancel":true}`),
			Entry("may be kept for a while", "full", `{"ttlSecondsAfterFinished":60}`),
		)
	})
})

var _ = Describe("what a run meets", Ordered, func() {
	const context = "humanContext: {title: Ship}"

	BeforeAll(func(ctx SpecContext) {
		apply(ctx, manifest("HumanTask", "go", "{"+context+", form: {fields: [{name: a}]}}"))
		apply(ctx, manifest("StreamEvent", "e", "{id: '1', type: pr.merged, eventSourceId: github}"))
	})

	It("is a question that does not change", func(ctx SpecContext) {
		tryPatch(ctx, "ht", "go", `{"humanContext":{"title":"Stop?"}}`, "tasks are immutable")
		tryPatch(ctx, "ht", "go", `{"assignees":{}}`, "tasks are immutable")
	})

	It("is a question with one sort of answer", func(ctx SpecContext) {
		tryCreate(ctx, manifest("HumanTask", "ask", "{"+context+", form: {}, responseSchema: {type: object}}"),
			"at most one of `form` and `responseSchema` may be set")
		tryCreate(ctx, manifest("HumanTask", "ask", "{"+context+", responseSchema: {type: object}}"))
		tryCreate(ctx, manifest("HumanTask", "ask", "{"+context+"}"))
		tryCreate(ctx, manifest("HumanTask", "ask", "{humanContext: {title: ''}}"), "spec.humanContext.title")
	})

	It("is an event that does not change", func(ctx SpecContext) {
		tryPatch(ctx, "streamevent", "e", `{"type":"pr.closed"}`, "events are immutable")
		tryPatch(ctx, "streamevent", "e", `{"ref":"r"}`, "events are immutable")
		tryCreate(ctx, manifest("StreamEvent", "f", "{id: '', type: t, eventSourceId: s}"), "spec.id")
		tryCreate(ctx, manifest("StreamEvent", "f", "{id: '1', eventSourceId: s}"), "spec.type: Required value")
	})
})

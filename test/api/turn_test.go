package api

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
)

var _ = Describe("a turn", func() {
	DescribeTable("when it is made", func(ctx SpecContext, name, spec string, parts ...string) {
		tryCreate(ctx, manifest("Turn", name, spec), parts...)
	},
		Entry("is for a composition", "t", "{compositionRef: {name: c}, message: hi}"),
		Entry("is for a session", "t", "{sessionRef: {name: s}, message: hi}"),
		Entry("is not for both", "t", "{compositionRef: {name: c}, sessionRef: {name: s}, message: hi}",
			"exactly one of `compositionRef` and `sessionRef` must be set"),
		Entry("is not for nobody", "t", "{message: hi}", "exactly one of `compositionRef` and `sessionRef` must be set"),
		Entry("names its composition", "t", "{compositionRef: {name: ''}, message: hi}", "spec.compositionRef.name"),
		Entry("names its composition shortly", "t", "{compositionRef: {name: "+strings.Repeat("c", 254)+"}, message: hi}",
			"spec.compositionRef.name", "253"),
		Entry("has a message", "t", "{compositionRef: {name: c}}", "exactly one of `message` and `prompt` must be set"),
		Entry("has a message that says something", "t", "{compositionRef: {name: c}, message: ''}", "spec.message"),
		Entry("has a message that is not blank", "t", `{compositionRef: {name: c}, message: " \n\t"}`, "spec.message", "must not be blank"),
		Entry("has a message of many lines", "t", `{compositionRef: {name: c}, message: "\n\n a\n"}`),
		Entry("has a message of bounded length", "t", "{compositionRef: {name: c}, message: "+strings.Repeat("m", 65537)+"}",
			"spec.message", "65536"),
		Entry("has a selection of bounded length", "t", "{compositionRef: {name: c}, message: hi, selection: {nodes: ["+strings.Repeat("n,", 201)+"]}}",
			"spec.selection.nodes", "200"),
		Entry("has a decision that is known", "t", "{compositionRef: {name: c}, message: hi, resolution: Maybe}",
			"spec.resolution: Unsupported value", "Accepted"),
		Entry("may have a long name", strings.Repeat("t", 57), "{compositionRef: {name: c}, message: hi}"),
		Entry("has no longer name", strings.Repeat("t", 58), "{compositionRef: {name: c}, message: hi}",
			"`metadata.name` must be at most 57 characters"),
	)

	Context("when it is changed", Ordered, func() {
		BeforeAll(func(ctx SpecContext) {
			apply(ctx, manifest("Turn", "full", "{compositionRef: {name: c}, message: hi, selection: {nodes: [a]}, newConversation: true,"+
				" resolution: Accepted, interrupt: true, undo: true, retryOf: t-0}"))
			apply(ctx, manifest("Turn", "plain", "{sessionRef: {name: s}, message: hi}"))
		})

		DescribeTable("it", func(ctx SpecContext, name, spec string, parts ...string) {
			tryPatch(ctx, "turn", name, spec, parts...)
		},
			Entry("keeps its message", "full", `{"message":"ho"}`, "spec.message", "`message` must not change"),
			Entry("keeps its selection", "full", `{"selection":{"nodes":["b"]}}`, "spec.selection", "`selection` must not change"),
			Entry("keeps having a selection", "full", `{"selection":null}`, "spec.selection", "`selection` must not change"),
			Entry("gets no selection", "plain", `{"selection":{"nodes":["b"]}}`, "spec.selection", "`selection` must not change"),
			Entry("keeps its composition", "full", `{"compositionRef":{"name":"d"}}`, "spec.compositionRef", "`compositionRef` must not change"),
			Entry("keeps its session", "plain", `{"sessionRef":{"name":"d"}}`, "spec.sessionRef", "`sessionRef` must not change"),
			Entry("keeps its sort of target", "full", `{"compositionRef":null,"sessionRef":{"name":"s"}}`,
				"`compositionRef` and `sessionRef` must not change"),
			Entry("goes on in its conversation", "plain", `{"newConversation":true}`, "spec.newConversation", "must not change"),
			Entry("keeps to its new conversation", "full", `{"newConversation":false}`, "spec.newConversation", "must not change"),
			Entry("is decided on once", "full", `{"resolution":"Rejected"}`, "spec.resolution", "must not change once it is set"),
			Entry("stays decided on", "full", `{"resolution":null}`, "spec.resolution", "must not be cleared once it is set"),
			Entry("stays interrupted", "full", `{"interrupt":false}`, "spec.interrupt", "must stay true once it is"),
			Entry("stays interrupted without a word", "full", `{"interrupt":null}`, "spec.interrupt", "must stay true once it is"),
			Entry("stays undone", "full", `{"undo":false}`, "spec.undo", "must stay true once it is"),
			Entry("stays undone without a word", "full", `{"undo":null}`, "spec.undo", "must stay true once it is"),
			Entry("repeats what it repeats", "full", `{"retryOf":"t-9"}`, "spec.retryOf", "`retryOf` must not change"),
			Entry("keeps repeating", "full", `{"retryOf":null}`, "spec.retryOf", "`retryOf` must not change"),
			Entry("repeats nothing later", "plain", `{"retryOf":"t-9"}`, "spec.retryOf", "`retryOf` must not change"),
			Entry("is decided on in known words", "plain", `{"resolution":"Maybe"}`, "spec.resolution: Unsupported value"),
			Entry("may be decided on", "plain", `{"resolution":"Accepted"}`),
			Entry("may be interrupted", "plain", `{"interrupt":true}`),
			Entry("may be undone", "plain", `{"undo":true}`),
		)
	})
})

package api

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("kubectl", func() {
	DescribeTable("explains", func(ctx SpecContext, path, comment string) {
		out, err := admin.Run(ctx, "", "explain", path)
		Expect(err).NotTo(HaveOccurred(), out)
		Expect(strings.Join(strings.Fields(out), " ")).To(ContainSubstring(comment))
	},
		Entry(nil, "actiontype.spec", "env of the script."),
		Entry(nil, "actiontype.status", "contentRevision names the content."),
		Entry(nil, "agentsession.spec", "stopped ends the session for good: pod and token go, the journal stays."),
		Entry(nil, "agentsession.status", "currentTurn works in this session."),
		Entry(nil, "composition.spec", "goal in a sentence or two; agents read it."),
		Entry(nil, "composition.status", "pendingTurn waits for a person's decision."),
		Entry(nil, "humantask.spec", "expiresAfter is an ISO 8601 duration from creation, such as P2D."),
		Entry(nil, "humantask.status", "answer to the question, kept as it was sent."),
		Entry(nil, "sessiontemplate.spec", "welcomeMessage is shown to people first; the agent never sees it."),
		Entry(nil, "streamevent.spec", "id of the event; with eventSourceId it is its identity."),
		Entry(nil, "streamevent.status", "deliveries are the last 50."),
		Entry(nil, "tool.spec", "parameters arrive as AXIOM_PARAM_<NAME> and in the file AXIOM_PARAMS."),
		Entry(nil, "tool.status", "problems of the item, errors first."),
		Entry(nil, "turn.spec", "message to the agent, passed on byte for byte."),
		Entry(nil, "turn.status", "workingRevision is the base with all accepted change sets."),
		Entry(nil, "workflowrun.spec", "resumeRequests grows by one for each resume a person asks for."),
		Entry(nil, "workflowrun.status", "definition that is executed, pinned."),
	)

	DescribeTable("knows the short name", func(ctx SpecContext, name, kind string) {
		out, err := admin.Run(ctx, "", "explain", name)
		Expect(err).NotTo(HaveOccurred(), out)
		Expect(out).To(MatchRegexp(`(?m)^KIND:\s+%s$`, kind))
	},
		Entry(nil, "comp", "Composition"),
		Entry(nil, "turn", "Turn"),
		Entry(nil, "ht", "HumanTask"),
		Entry(nil, "wfr", "WorkflowRun"),
		Entry(nil, "as", "AgentSession"),
	)

	It("lists every kind under the category", func(ctx SpecContext) {
		out, err := admin.Run(ctx, "", "api-resources", "--categories=axiom", "--output=name")
		Expect(err).NotTo(HaveOccurred(), out)
		Expect(strings.Fields(out)).To(ConsistOf(
			"actiontypes.axiom.apitomy.io", "agentsessions.axiom.apitomy.io", "compositions.axiom.apitomy.io",
			"humantasks.axiom.apitomy.io", "sessiontemplates.axiom.apitomy.io", "streamevents.axiom.apitomy.io",
			"tools.axiom.apitomy.io", "turns.axiom.apitomy.io", "workflowruns.axiom.apitomy.io",
		))
	})
})

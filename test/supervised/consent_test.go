package supervised

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

var _ = Describe("A checkpoint takes nothing for consent", func() {
	It("supervised 28: but goes on, with a record of why, where no person is needed", func(ctx SpecContext) {
		h := newHub(ctx)
		run := h.casts(agreeing())
		h.ends(run, "accepted")

		const record = `{"assessment":"Nothing to choose.","options":["yes","no"],"proceed":true,"question":"Shall this go on?",` +
			`"rationale":"No material choice was found in the material shown.","recommendation":"yes","requiresUser":false,"response":"continue"}`
		Expect(string(run.Status.Outputs.Raw)).To(ContainSubstring(`"acceptance":` + record))
		Expect(h.prompted("Planning[1]/plan#1")).To(ContainSubstring(record))
		Expect(h.prompted("Implementation[1]/verdict#1")).To(ContainSubstring(record))
		var tasks api.HumanTaskList
		Expect(admin.List(ctx, &tasks, client.InNamespace(h.namespace))).To(Succeed())
		Expect(tasks.Items).To(BeEmpty())
	})

	DescribeTable("supervised 28: and an assessment that leaves open whether a person is needed is none",
		func(ctx SpecContext, change func(map[string]any)) {
			h := newHub(ctx)
			c := agreeing()
			said := c.assessment(toAuthorize).(map[string]any)
			change(said)
			c.assesses = map[string]any{toAuthorize: said}
			run := h.casts(c)
			Expect(h.fails(run)).To(Equal("authorize[1]/assess#1 REPLY_INVALID"))
			Expect(h.git.Count("git-receive-pack")).To(BeZero())
		},
		Entry("absent", func(said map[string]any) { delete(said, "requiresUser") }),
		Entry("null", func(said map[string]any) { said["requiresUser"] = nil }),
		Entry("a word", func(said map[string]any) { said["requiresUser"] = "no" }),
		Entry("with an approval beside it", func(said map[string]any) { said["proceed"] = true }),
	)

	DescribeTable("supervised 28: and an agent that cannot assess says nothing, either",
		func(ctx SpecContext, steps, code string) {
			h := newHub(ctx)
			hurried := shipped()
			const kind = "      actionType: agent.prompt\n"
			Expect(hurried["flows/UserCheckpoint.md"]).To(ContainSubstring(kind))
			hurried["flows/UserCheckpoint.md"] = strings.Replace(hurried["flows/UserCheckpoint.md"], kind, kind+"      timeout: PT15S\n", 1)
			h.commit = h.defines(hurried)
			c := agreeing()
			c.does = map[string]string{toHandoff: steps}
			run := h.casts(c)

			Expect(h.fails(run)).To(Equal("handoff[1]/assess#1 " + code))
			Expect(h.asked()).To(Equal(2))
			Expect(run.Status.Outputs).To(BeNil())
		},
		Entry("it breaks down", `[{exit: 3}]`, "AGENT_ERROR"),
		Entry("it wants a tool first", `[{permission: {tool: Write, expect: deny}}, {say: "yes"}]`, "AGENT_TOOL_DENIED"),
		Entry("its time is over", `[{hang: true}]`, "AGENT_TIMEOUT"),
	)

	It("supervised 28: and a person's failure to answer fails the run", func(ctx SpecContext) {
		h := newHub(ctx)
		c := agreeing()
		c.asks = []string{toAuthorize}
		run := h.casts(c)
		task := h.checkpoint(run)
		h.unable(task, "nobody may decide this")
		h.resumes(run)
		Expect(h.fails(run)).To(Equal("authorize[1]/ask#1 TASK_FAILED"))
		Expect(h.git.Count("git-receive-pack")).To(BeZero())
	})

	It("supervised 28: and resuming without an answer approves nothing", func(ctx SpecContext) {
		h := newHub(ctx)
		c := agreeing()
		c.asks = []string{toAuthorize}
		run := h.casts(c)
		task := h.checkpoint(run)
		for range 3 {
			h.resumes(run)
			Expect(h.checkpoint(run).UID).To(Equal(task.UID))
		}
		Expect(run.Status.Executions).To(HaveLen(1))
		Expect(h.git.Count("git-receive-pack")).To(BeZero())
	})
})

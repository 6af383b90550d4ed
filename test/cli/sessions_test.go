package cli

import (
	"context"
	"encoding/json"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
)

var _ = Describe("the journal of a session", func() {
	It("is read, from a number on, and followed", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.compose("closing", renames)
		w.as(alice, "turn", "send", "closing", "Rename the end.", "--name", "rename").gives(command.ExitOK)

		By("reading it")
		logs := w.as(alice, "session", "logs", "closing-agent").gives(command.ExitOK).stdout.String()
		for _, line := range []string{
			"  user: Rename the end.\n", "  thinking: That is easy.\n", "  tool: get_composition\n", "  tool: propose_workflow_changes {", "  result: APPLIED. New revision: ",
			"  assistant: It is called Finished now.\n",
		} {
			Expect(logs).To(ContainSubstring(line))
		}
		events := w.eventsOf("closing-agent")
		types := make([]string, 0, len(events))
		for i, event := range events {
			Expect(event.Sequence).To(BeEquivalentTo(i + 1))
			types = append(types, event.Type)
		}
		Expect(types).To(ContainElements("session_init", "user_message", "tool_use", "tool_result", "assistant_text", "turn_complete"))

		By("reading the end of it")
		last := events[len(events)-1]
		Expect(w.eventsOf("closing-agent", "--after", itoa(last.Sequence-1))).To(Equal(events[len(events)-1:]))
		Expect(w.eventsOf("closing-agent", "--after", itoa(last.Sequence))).To(BeEmpty())

		By("following it")
		following, leave := context.WithCancel(ctx)
		followed := &call{}
		done := make(chan struct{})
		go func() {
			defer GinkgoRecover()
			defer close(done)
			w.calls(following, followed, alice, "session", "logs", "closing-agent", "--follow", "--after", itoa(last.Sequence), "-o", "json")
		}()
		w.as(alice, "turn", "reject", "rename").gives(command.ExitOK)
		w.as(alice, "turn", "send", "closing", "My words could not be applied.", "--name", "again").gives(command.ExitOK)
		Expect(admin.Delete(ctx, &api.AgentSession{ObjectMeta: w.meta("closing-agent")})).To(Succeed())
		for _, chunk := range []string{"closing-agent-journal-1"} {
			out, err := root.Run(ctx, "", "delete", "configmap", chunk, "-n", w.namespace) // nobody collects garbage here
			Expect(err).NotTo(HaveOccurred(), out)
		}
		Eventually(done).Should(BeClosed())
		leave()
		followed.gives(command.ExitOK)
		news := eventsIn(followed)
		Expect(news[0].Sequence).To(Equal(last.Sequence + 1))
		Expect(followed.stdout.String()).To(ContainSubstring("I leave it at that."))
	})

	It("belongs to a session that stands by itself as well", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.keeps("talks", "turns: [{steps: [{say: A list of parts.}]}]")
		session := &api.AgentSession{ObjectMeta: w.meta("helper"), Spec: api.AgentSessionSpec{
			TemplateRef: api.LocalRef{Name: "general-assistant"},
			Runtime:     api.RuntimeSpec{PlaybookRef: &api.KeyRef{Name: "talks", Key: "playbook.yaml"}},
		}}
		Expect(admin.Create(ctx, session)).To(Succeed())
		answer := w.as(alice, "turn", "send", "--session", "helper", "What is an SBOM?", "--name", "sbom", "-o", "json").gives(command.ExitOK).value()
		Expect(answer).To(And(
			HaveKeyWithValue("session", "helper"), HaveKeyWithValue("state", "Completed"), HaveKeyWithValue("reply", "A list of parts."), HaveKeyWithValue("diff", BeNil()),
			Not(HaveKey("composition")),
		))
		Expect(w.as(alice, "session", "logs", "helper").gives(command.ExitOK).stdout.String()).To(ContainSubstring("  assistant: A list of parts.\n"))
		Expect(w.as(alice, "turn", "export", "sbom").gives(command.ExitUsage).stderr.String()).To(Equal("axiom: turn sbom is about a session, and no composition\n"))
	})
})

type event struct {
	Sequence int64
	Type     string
	Data     map[string]any
}

func (w *world) eventsOf(session string, args ...string) []event {
	GinkgoHelper()
	return eventsIn(w.as(alice, append([]string{"session", "logs", session, "-o", "json"}, args...)...).gives(command.ExitOK))
}

func eventsIn(c *call) []event {
	GinkgoHelper()
	var events []event
	for line := range strings.Lines(c.stdout.String()) {
		var e event
		Expect(json.Unmarshal([]byte(line), &e)).To(Succeed())
		Expect(e.Data).NotTo(BeNil())
		events = append(events, e)
	}
	return events
}

var _ = Describe("templates", func() {
	It("are listed, shown and cloned", func(ctx SpecContext) {
		w := newWorld(ctx)
		clone := w.as(alice, "template", "clone", "general-assistant", "--name", "editor").gives(command.ExitOK)
		out, err := alice.Run(ctx, clone.stdout.String(), "apply", "-n", w.namespace, "-f", "-")
		Expect(err).NotTo(HaveOccurred(), out)

		list := w.as(alice, "template", "list").gives(command.ExitOK).stdout.String()
		Expect(list).To(MatchRegexp(`(?m)^axiom-workbench +built-in +composition +Axiom workbench$`))
		Expect(list).To(MatchRegexp(`(?m)^editor +namespace +- +General assistant$`))
		var listed []map[string]any
		Expect(json.Unmarshal(w.as(alice, "template", "list", "-o", "json").gives(command.ExitOK).stdout.Bytes(), &listed)).To(Succeed())
		Expect(listed).To(ContainElements(
			Equal(map[string]any{"name": "axiom-workbench", "builtIn": true, "displayName": "Axiom workbench", "capabilities": []any{"composition"}}),
			Equal(map[string]any{"name": "editor", "builtIn": false, "displayName": "General assistant", "capabilities": []any{}}),
		))

		shown := w.as(alice, "template", "show", "editor", "-o", "json").gives(command.ExitOK).value()
		Expect(shown["spec"]).To(Equal(w.as(alice, "template", "show", "general-assistant", "-o", "json").gives(command.ExitOK).value()["spec"]))
		again := w.as(alice, "template", "clone", "editor").gives(command.ExitOK).manifest()
		Expect(again["metadata"]).To(Equal(map[string]any{"name": "editor-copy"}))
		Expect(again["spec"]).To(Equal(shown["spec"]))

		refused := w.as(alice, "template", "clone", "axiom-workbench").gives(command.ExitVerdict)
		Expect(refused.stdout.String()).To(BeEmpty())
		Expect(refused.stderr.String()).To(Equal("axiom: axiom-workbench cannot be cloned: it has capabilities, which no other template may have: composition\n"))
		Expect(w.as(alice, "template", "clone", "axiom-workbench", "-o", "json").gives(command.ExitVerdict).value()).To(And(
			HaveKeyWithValue("cloned", false), HaveKeyWithValue("capabilities", []any{"composition"}),
		))
	})
})

package cli

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
)

const question = "Ask the security team before a patch is rolled out."

// restores waits until the draft has a revision again.
func (w *world) restores(name, revision string) {
	GinkgoHelper()
	Eventually(func() string { return w.settles(name).Status.WorkflowRevision }).Should(Equal(revision))
}

var _ = Describe("a turn from the command line", func() {
	It("leads from a message over its acceptance to its undo", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.sample()
		before := w.settles("cve-triage").Status.WorkflowRevision

		By("sending a message and seeing what the agent does")
		sent := w.as(alice, "turn", "send", "cve-triage", question, "--select-node", "patch", "--name", "ask-security")
		w.told("send", sent.gives(command.ExitOK))
		Expect(w.turn("ask-security").Spec.Selection.Nodes).To(Equal([]string{"patch"}))

		By("looking at it again")
		w.told("watch", w.as(alice, "turn", "watch", "ask-security").gives(command.ExitOK))
		w.told("diff", w.as(alice, "turn", "diff", "ask-security").gives(command.ExitOK))
		w.told("diff-json", w.as(alice, "turn", "diff", "ask-security", "-o", "json").gives(command.ExitOK))
		w.told("diff-graph", w.as(alice, "turn", "diff", "ask-security", "--graph").gives(command.ExitOK))
		Expect(w.as(alice, "turn", "diff", "ask-security", "-o", "svg").gives(command.ExitOK).stdout.String()).To(HavePrefix("<svg"))

		By("accepting it")
		w.told("accept", w.as(alice, "turn", "accept", "ask-security").gives(command.ExitOK))
		Expect(w.turn("ask-security").Annotations).To(HaveKeyWithValue(api.AnnotationResolvedBy, "alice"))
		w.restores("cve-triage", w.turn("ask-security").Status.ResultRevision)
		Expect(w.as(alice, "turn", "accept", "ask-security").gives(command.ExitOK).stdout.String()).To(ContainSubstring("Applied"), "it is, already")
		w.told("reject-refused", w.as(alice, "turn", "reject", "ask-security").gives(command.ExitVerdict))

		By("taking it back")
		w.told("undo", w.as(alice, "turn", "undo", "ask-security").gives(command.ExitOK))
		w.restores("cve-triage", before)
		w.told("export-undo-refused", w.as(alice, "turn", "export", "ask-security", "--undo").gives(command.ExitVerdict))
	})

	It("goes through Git there and back", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.compose("closing", renames)
		before := w.settles("closing").Status.WorkflowRevision
		w.as(alice, "turn", "send", "closing", "Rename the end.", "--name", "rename").gives(command.ExitOK)

		exported := w.as(alice, "turn", "export", "rename").gives(command.ExitOK)
		w.told("export", exported)
		w.applies(exported)
		Eventually(func() api.TurnPhase { return w.turn("rename").Status.State }).Should(Equal(api.TurnApplied))
		Expect(w.settles("closing").Status.Items[0].LastAuthor).To(Equal(api.AuthorAI))
		Expect(w.as(alice, "turn", "watch", "rename").gives(command.ExitOK).stdout.String()).To(ContainSubstring("turn rename: Applied"))

		w.told("undo-for-client", w.as(alice, "turn", "undo", "rename").gives(command.ExitOK))
		back := w.as(alice, "turn", "export", "rename", "--undo").gives(command.ExitOK)
		Expect(back.stdout.String()).NotTo(ContainSubstring("axiom.apitomy.io/turn"))
		w.applies(back)
		w.restores("closing", before)
	})

	It("is stale when somebody edits the draft meanwhile, and says that the agent is asked again", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.compose("closing", renames)
		w.as(alice, "turn", "send", "closing", "Rename the end.", "--name", "rename").gives(command.ExitOK)
		w.edits("closing", "Start", "Begin")

		w.told("export-mismatch", w.as(alice, "turn", "export", "rename").gives(command.ExitVerdict))
		stale := w.as(alice, "turn", "accept", "rename", "-o", "json").gives(command.ExitVerdict).value()
		Expect(stale).To(And(HaveKeyWithValue("state", "Stale"), HaveKeyWithValue("reason", "BaseChanged")))
		Eventually(func() string { return w.turn("rename").Status.Retry }).Should(Equal("rename-retry"))
		again := w.as(alice, "turn", "watch", "rename").gives(command.ExitVerdict)
		Expect(again.stdout.String()).To(ContainSubstring("axiom turn watch rename-retry -n " + w.namespace))
		Expect(w.as(alice, "turn", "watch", "rename-retry").gives(command.ExitOK).stdout.String()).To(HavePrefix("I leave it at that.\n"))
	})

	It("is refused while another one works, which can be interrupted", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.compose("closing", naps)

		By("leaving the command with Ctrl-C")
		leaving, leave := context.WithCancel(ctx)
		left := &call{}
		done := make(chan struct{})
		go func() {
			defer GinkgoRecover()
			defer close(done)
			w.calls(leaving, left, alice, "turn", "send", "closing", "Anything?", "--name", "first")
		}()
		Eventually(func(g Gomega) {
			turn := &api.Turn{}
			g.Expect(admin.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "first"}, turn)).To(Succeed())
			g.Expect(turn.Status.State).To(Equal(api.TurnWorking))
			session := &api.AgentSession{}
			g.Expect(admin.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "closing-agent"}, session)).To(Succeed())
			g.Expect(session.Status.Prompt).NotTo(BeNil())
			g.Expect(session.Status.Prompt.State).To(Equal(api.PromptDelivered))
		}).Should(Succeed())
		leave()
		<-done
		left.gives(command.ExitUsage)
		Expect(left.stdout.String()).To(BeEmpty())
		Expect(left.stderr.String()).To(HaveSuffix("axiom: turn first goes on without you: axiom turn watch first -n " + w.namespace + "\n"))

		By("asking a second time")
		w.told("send-refused", w.as(alice, "turn", "send", "closing", "And now?", "--name", "second").gives(command.ExitVerdict))
		refused := w.as(alice, "turn", "send", "closing", "And now?", "-o", "json").gives(command.ExitVerdict).value()
		Expect(refused).To(HaveKeyWithValue("refused", And(
			HaveKeyWithValue("code", BeEquivalentTo(409)), HaveKeyWithValue("reason", "Conflict"),
			HaveKeyWithValue("message", "An AI turn is already running: first"),
		)))
		Expect(w.as(alice, "turn", "undo", "first").gives(command.ExitVerdict).stdout.String()).
			To(Equal("refused: Wait for the AI turn to finish before undoing\n"))
		impatient := w.as(alice, "turn", "watch", "first", "--timeout", "100ms").gives(command.ExitUsage)
		Expect(impatient.stderr.String()).To(HaveSuffix("axiom: gave up waiting after 100ms; turn first goes on: axiom turn watch first -n " + w.namespace + "\n"))

		By("stopping the agent")
		stopped := w.as(alice, "turn", "interrupt", "first").gives(command.ExitOK)
		Expect(stopped.stdout.String()).To(Equal("turn first: Completed\n"))
		Expect(w.turn("first").Annotations).To(HaveKeyWithValue(api.AnnotationInterruptedBy, "alice"))
	})

	It("tells that the agent broke", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.compose("closing", fails)
		w.told("send-failed", w.as(alice, "turn", "send", "closing", "Anything?", "--name", "anything").gives(command.ExitVerdict))
	})

	It("shows, applies and takes back items as well", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.compose("closing", keepsTools, func(comp *api.Composition) { comp.Spec.Agent.ItemPolicy = api.ItemStaged })
		w.told("send-staged", w.as(alice, "turn", "send", "closing", "I need logs.", "--name", "logs").gives(command.ExitOK))
		diff := w.as(alice, "turn", "diff", "logs", "-o", "json").gives(command.ExitOK).value()
		Expect(diff["items"]).To(Equal([]any{map[string]any{"type": "tool", "name": "find-logs", "action": "Created", "staged": true}}))
		Expect(diff["summary"]).To(BeEmpty())

		exported := w.as(alice, "turn", "export", "logs").gives(command.ExitOK).manifest()
		Expect(exported["spec"].(map[string]any)["tools"]).To(HaveLen(1))
		w.as(alice, "turn", "accept", "logs").gives(command.ExitOK)
		Expect(w.settles("closing").Spec.Tools).To(HaveLen(1))
		w.told("undo-items", w.as(alice, "turn", "undo", "logs").gives(command.ExitOK))
		Expect(w.settles("closing").Spec.Tools).To(BeEmpty())
	})

	It("goes through Git with items, too", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.compose("closing", keepsTools, func(comp *api.Composition) { comp.Spec.Agent.ItemPolicy = api.ItemStaged })
		w.as(alice, "turn", "send", "closing", "I need logs.", "--name", "logs").gives(command.ExitOK)
		w.applies(w.as(alice, "turn", "export", "logs", "-o", "json").gives(command.ExitOK))
		Eventually(func() api.TurnPhase { return w.turn("logs").Status.State }).Should(Equal(api.TurnApplied))
		w.settles("closing")

		Expect(w.as(alice, "turn", "export", "logs", "--undo").gives(command.ExitVerdict).stderr.String()).
			To(Equal("axiom: not exported: nobody asked for the turn to be undone\n"))
		undone := w.as(alice, "turn", "undo", "logs", "-o", "json").gives(command.ExitOK).value()
		Expect(undone["undo"]).To(And(HaveKeyWithValue("forClient", []any{"tool/find-logs"}), HaveKeyWithValue("removed", BeEmpty())))
		Expect(w.settles("closing").Spec.Tools).To(HaveLen(1))
		back := w.as(alice, "turn", "export", "logs", "--undo").gives(command.ExitOK)
		Expect(back.manifest()["spec"]).NotTo(HaveKey("tools"))
		Expect(w.settles("closing").Spec.Tools).To(HaveLen(1), "it is only printed")
	})

	It("says when there is nothing left to undo", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.compose("closing", renames)
		w.as(alice, "turn", "send", "closing", "Rename the end.", "--name", "rename").gives(command.ExitOK)
		w.as(alice, "turn", "accept", "rename").gives(command.ExitOK)
		w.settles("closing")
		w.edits("closing", "Finished", "Over")
		w.settles("closing")
		w.told("undo-vain", w.as(alice, "turn", "undo", "rename").gives(command.ExitVerdict))
	})

	It("needs no patience where none is wanted", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.compose("closing", renames)
		sent := w.says(alice, "Rename the end.\n", "turn", "send", "closing", "-", "--no-wait", "-o", "json").gives(command.ExitOK).value()
		Expect(sent).To(HaveKeyWithValue("state", "Pending"))
		name := sent["turn"].(string)
		Expect(name).To(MatchRegexp(`^closing-[a-z0-9]{5}$`))
		Expect(w.turn(name).Spec.Message).To(Equal("Rename the end."))
		w.as(alice, "turn", "watch", name).gives(command.ExitOK)
		Expect(w.as(alice, "turn", "reject", name, "--no-wait").gives(command.ExitOK).stdout.String()).NotTo(BeEmpty())
		Expect(w.as(alice, "turn", "reject", name).gives(command.ExitOK).stdout.String()).To(Equal("turn " + name + ": Rejected\n"))
		w.as(alice, "turn", "watch", name).gives(command.ExitVerdict)
		Expect(w.as(alice, "turn", "export", name).gives(command.ExitVerdict).stderr.String()).
			To(Equal("axiom: not exported: the turn is Rejected, so it has no result\n"))
	})

	It("gives a long name of a composition a turn", func(ctx SpecContext) {
		w := newWorld(ctx)
		name := strings.Repeat("c", 52)
		w.compose(name, renames)
		sent := w.as(alice, "turn", "send", name, "Rename the end.", "--no-wait", "-o", "json").gives(command.ExitOK).value()
		Expect(sent["turn"]).To(HaveLen(57))
	})
})

// edits renames a node as somebody at an editor would.
func (w *world) edits(name, from, to string) {
	GinkgoHelper()
	comp := w.settles(name)
	text := strings.Replace(string(comp.Spec.Workflow.Raw), `"`+from+`"`, `"`+to+`"`, 1)
	Expect(text).NotTo(Equal(string(comp.Spec.Workflow.Raw)))
	Expect(admin.Patch(w.ctx, comp, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"workflow":`+text+`}}`)))).To(Succeed())
}

// applies has alice apply what a call printed.
func (w *world) applies(c *call) {
	GinkgoHelper()
	out, err := alice.Run(w.ctx, c.stdout.String(), "apply", "--server-side", "--force-conflicts", "-f", "-")
	Expect(err).NotTo(HaveOccurred(), out)
}

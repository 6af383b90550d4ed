package path

import (
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// renames is a step of a playbook that proposes another name for the end node.
func renames(name string) string {
	return `{call: {tool: get_composition, save: comp}}, ` +
		`{call: {tool: propose_workflow_changes, args: {changeSet: {id: cs, baseRevision: "${comp.workflowRevision}", summary: Rename, ` +
		`ops: [{op: updateNode, id: end-1, patch: {name: ` + name + `}}]}}, expect: "^APPLIED"}}`
}

// writesTool is a step that writes a tool.
func writesTool(name string) string {
	return `{call: {tool: upsert_item, args: {type: tool, item: {name: ` + name + `, description: A tool, parameters: [], scriptTemplate: echo hi}}, expect: "^VALID"}}`
}

// hasProposed waits until the agent's proposal is in the turn.
func (d *desk) hasProposed(turn *api.Turn) {
	GinkgoHelper()
	sees(d, turn, func(g Gomega, turn *api.Turn) { g.Expect(turn.Status.ChangeSets).To(HaveLen(1)) })
}

func (d *desk) interrupts(turn *api.Turn) {
	GinkgoHelper()
	Expect(alice.Patch(d.ctx, turn, merge(`{"spec":{"interrupt":true}}`))).To(Succeed())
}

// tools are the names of the draft's tools.
func tools(comp *api.Composition) []string {
	var names []string
	for _, tool := range comp.Spec.Tools {
		names = append(names, tool.Name)
	}
	return names
}

func within(timeout time.Duration) func(*api.Composition) {
	return func(comp *api.Composition) { comp.Spec.Agent.TurnTimeout = &metav1.Duration{Duration: timeout} }
}

var _ = Describe("an agent", func() {
	It("workbench 15: that fails ends its turn: nothing pending, the exact notice, items kept, idle", func() {
		d := newDesk().hasNode()
		comp := d.composes("triage", plays("Go", "["+writesTool("kept")+", "+renames("Lost")+", {error: out of credit}]"))
		turn := d.reaches(d.asks(comp, "t-1", "Go"), api.TurnFailed)
		Expect(turn.Status.Notices).To(Equal([]string{failedPrefix + "out of credit" + failedDiscarded}))
		Expect(turn.Status.ChangeSet).To(BeNil())
		sees(d, comp, func(g Gomega, comp *api.Composition) {
			g.Expect(comp.Status.TurnState).To(Equal(api.TurnStateIdle))
			g.Expect(comp.Status.CurrentTurn).To(BeEmpty())
			g.Expect(comp.Status.PendingTurn).To(BeEmpty())
			g.Expect(comp.Status.Items).To(ContainElement(And(
				HaveField("Name", "kept"), HaveField("LastAuthor", api.AuthorAI), HaveField("LastTurn", "t-1"),
			)))
		})
		Expect(tools(comp)).To(Equal([]string{"kept"}))
		Expect(string(comp.Spec.Workflow.Raw)).NotTo(ContainSubstring("Lost"))
	})

	It("workbench 26: that is interrupted keeps what was accepted; one that ignores it is killed, and its turn fails", func() {
		d := newDesk().hasNode()
		deaf := d.composes("deaf", plays("Go", "["+renames("Lost")+", {hang: true}]"))
		ignored := d.asks(deaf, "ignored", "Go")
		d.hasProposed(ignored)
		d.interrupts(ignored)

		comp := d.composes("triage", plays("Go", "["+renames("Kept")+", {sleep: 1h}]")+plays("On", "[{say: Still here}]"))
		turn := d.asks(comp, "t-1", "Go")
		d.hasProposed(turn)
		d.interrupts(turn)
		d.reaches(turn, api.TurnAwaitingResolution)
		Expect(turn.Status.Ops).To(Equal(int32(1)))
		Expect(turn.Status.Diff).To(Equal("changed nodes: end-1"))
		next := d.reaches(d.asks(comp, "t-2", "On"), api.TurnCompleted)
		Expect(next.Status.Reply).To(Equal("Still here"))
		Expect(d.session("triage").Status.Attempt).To(Equal(int32(1)), "the agent that obeyed goes on")

		By("waiting for the agent that does not stop")
		d.reaches(ignored, api.TurnFailed)
		Expect(ignored.Status.Notices).To(Equal([]string{failedPrefix + ignored.Status.Detail + failedDiscarded}))
		Expect(ignored.Status.Detail).To(ContainSubstring("did not stop"))
		Eventually(func() string { return d.session("deaf").Status.TokenHash }).Should(BeEmpty())
	})

	Describe("whose pod is lost", func() {
		const slow = "{sleep: 1h}"

		It("workbench 27: is given the prompt anew when it had not taken it", func() {
			d := newDesk() // whose node is not there yet
			greeting := "- assistant: " + strings.TrimPrefix(welcome(), "assistant_text ")
			comp := d.composes("triage", plays(exactly(recapOf(greeting), "Go"), "[{say: Done}]"))
			turn := d.asks(comp, "t-1", "Go")
			first := &corev1.Pod{ObjectMeta: d.meta("triage-agent-1")}
			Eventually(func() error { return admin.Get(d.ctx, client.ObjectKeyFromObject(first), first) }).Should(Succeed())
			Expect(admin.Delete(d.ctx, first, client.GracePeriodSeconds(0))).To(Succeed())
			d.hasNode()
			d.reaches(turn, api.TurnCompleted)
			Expect(turn.Status.Restarts).To(BeZero())
			Expect(d.session("triage").Status.Attempt).To(Equal(int32(2)))
		})

		It("workbench 27: gets a recap and the same prompt when it had done nothing, once", func() {
			d := newDesk().hasNode()
			greeting := "- assistant: " + strings.TrimPrefix(welcome(), "assistant_text ")
			recap := recapOf(greeting, "- user: Go")
			comp := d.composes("triage", plays(exactly("", "Go"), "["+slow+"]")+plays(exactly(recap, "Go"), "[{say: Recalled}, "+slow+"]"))
			turn := d.asks(comp, "t-1", "Go")
			d.isTaken(turn)
			d.loses(d.session("triage"))
			sees(d, turn, func(g Gomega, turn *api.Turn) { g.Expect(turn.Status.Restarts).To(Equal(int32(1))) })
			d.isTaken(turn)
			Expect(fresh(d, turn).Status.State).To(Equal(api.TurnWorking))
			d.loses(d.session("triage"))
			d.reaches(turn, api.TurnFailed)
			Expect(turn.Status.Detail).To(Equal("The agent pod was lost"))
			Expect(d.session("triage").Status.Attempt).To(Equal(int32(2)))
		})

		DescribeTable("workbench 27: fails when it had an effect, and the session recovers with a recap", func(effect string, keeps []string) {
			d := newDesk().hasNode()
			comp := d.composes("triage", plays(exactly("", "Go"), "["+effect+", {say: Look}, {think: hm}, "+slow+"]")+
				plays(`\A`+resumed[:10]+`(?s:.*)- user: Go\n(?s:.*)On\z`, "[{say: Recovered}]"))
			turn := d.asks(comp, "t-1", "Go")
			Eventually(func() []string { return d.journal("triage") }).Should(ContainElement("assistant_text Look"))
			d.loses(d.session("triage"))
			d.reaches(turn, api.TurnFailed)
			Expect(turn.Status.Detail).To(Equal("The agent pod was lost"))
			Expect(turn.Status.Restarts).To(BeZero())
			Expect(tools(fresh(d, comp))).To(Equal(keeps))
			next := d.reaches(d.asks(comp, "t-2", "On"), api.TurnCompleted)
			Expect(next.Status.Reply).To(Equal("Recovered"))
		},
			Entry("a change set", renames("Lost"), nil),
			Entry("an item", writesTool("kept"), []string{"kept"}),
		)
	})

	It("workbench 27: whose process ends in a living pod fails its turn, and the session recovers", func() {
		d := newDesk().hasNode()
		comp := d.composes("triage", plays(`Go\z`, "[{say: Bye}, {exit: 3}]")+plays(`On\z`, "[{say: Recovered}]"))
		turn := d.reaches(d.asks(comp, "t-1", "Go"), api.TurnFailed)
		Expect(turn.Status.Detail).To(Equal("The agent session ended"))
		Expect(turn.Status.Restarts).To(BeZero())
		Expect(d.reaches(d.asks(comp, "t-2", "On"), api.TurnCompleted).Status.Reply).To(Equal("Recovered"))
		Expect(d.session("triage").Status.Attempt).To(Equal(int32(2)))
	})

	It("workbench 57: that ends, refuses, crashes, hangs, asks for what it must not have or speaks garbage fails no other's turn", func() {
		d := newDesk().hasNode()
		garbage := `[{raw: "` + strings.Repeat(`no message\n`, 100) + `"}, {hang: true}]`
		hanging := d.composes("hanging", plays("Hang", "[{say: Well}, {hang: true}]"), within(2*time.Second))
		hung := d.asks(hanging, "hung", "Hang")
		d.isTaken(hung)

		comp := d.composes("triage", strings.Join([]string{
			plays(`End\z`, "[{exit: 0}]"), plays(`Crash\z`, "[{exit: 3}]"), plays(`Garbage\z`, garbage), plays(`Fail\z`, "[{error: no}]"),
			plays(`Write\z`, "[{permission: {tool: Write, expect: deny}}, {permission: {tool: mcp__workbench__get_item, expect: allow}}, {say: Denied}]"),
		}, ""))
		wantKinds := map[string]string{}
		for message, tc := range map[string]struct {
			state  api.TurnPhase
			detail string
			event  string
		}{
			"End":     {api.TurnFailed, "The agent session ended", "session_ended"},
			"Crash":   {api.TurnFailed, "The agent session ended", "session_ended"},
			"Garbage": {api.TurnFailed, "The agent does not speak the Agent Client Protocol", "session_error ProtocolError"},
			"Fail":    {api.TurnFailed, "no", "session_error AgentError"},
			"Refuse":  {api.TurnFailed, "The agent stopped: refusal", "turn_complete"},
			"Write":   {api.TurnCompleted, "", "permission_resolved"},
		} {
			By(message)
			turn := d.reaches(d.asks(comp, "t-"+strings.ToLower(message), message), tc.state)
			Expect(turn.Status.Detail).To(Equal(tc.detail), message)
			wantKinds["user_message "+message] = tc.event
		}
		lines := d.journal("triage")
		for message, event := range wantKinds {
			begin := slices.Index(lines, message)
			Expect(begin).To(BeNumerically(">=", 0), message)
			rest := lines[begin+1:]
			if end := slices.IndexFunc(rest, func(line string) bool { return strings.HasPrefix(line, "user_message ") }); end >= 0 {
				rest = rest[:end]
			}
			Expect(rest).To(ContainElement(event), fmt.Sprint(message, " is followed by ", rest))
		}

		By("waiting for the agent that hangs")
		d.reaches(hung, api.TurnFailed)
		Expect(hung.Status.Detail).To(Equal("The turn took longer than 2s"))
	})
})

// fresh reads an object again.
func fresh[T client.Object](d *desk, object T) T {
	GinkgoHelper()
	Expect(admin.Get(d.ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
	return object
}

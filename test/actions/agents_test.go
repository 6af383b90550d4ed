package actions

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// assessment has an agent look at a change.
const assessment = `
id: assessment
name: Assessment
nodes:
- {id: start, type: start, name: Start, config: {inputs: [{name: ref}, {name: lines}]}}
- id: assess
  type: action
  name: Assess
  config:
    actionType: assess
    inputs: {ref: context.ref, lines: context.lines}
    outputs: [{name: risk, type: number}]
- {id: done, type: end, name: Done, config: {outcome: done}}
- {id: broken, type: end, name: Broken, config: {outcome: broken}}
edges:
- {id: e1, source: start, target: assess}
- {id: e2, source: assess, target: done}
- {id: e3, source: assess, target: broken, isError: true}
`

const assess = `
- name: assess
  description: Assesses the risk of a change.
  mode: agent
  agent:
    promptTemplate: "Assess ${{ inputs.ref }} (${{ inputs.lines == null ? 'unknown' : string(inputs.lines) }} lines)."
    sessionTemplate: assessor
  inputs: [{name: ref, required: true}, {name: lines, type: number}]
  outputs: [{name: risk, type: number, required: true}, {name: why}]
`

// teaches has the namespace's assessor play a playbook; it may be taught anew.
func (w *world) teaches(playbook string) {
	GinkgoHelper()
	config := &corev1.ConfigMap{ObjectMeta: w.meta("playbook"), Data: map[string]string{"playbook.yaml": playbook}}
	if err := admin.Create(w.ctx, config); err == nil {
		apply(w, &api.SessionTemplate{}, `
metadata: {name: assessor}
spec:
  systemPrompt: You assess changes.
  runtime: {playbookRef: {name: playbook, key: playbook.yaml}}
`)
		return
	}
	Expect(admin.Update(w.ctx, config)).To(Succeed())
}

// says is a turn of a playbook.
func says(when, text string) string {
	return fmt.Sprintf("- when: %q\n  steps: [{say: %q}]\n", when, text)
}

func playbook(turns ...string) string { return "turns:\n" + strings.Join(turns, "") }

// asks starts a run whose agent plays the playbook.
func (w *world) asks(book string, change ...func(*api.WorkflowRun)) *api.WorkflowRun {
	GinkgoHelper()
	w.teaches(book)
	w.compose("assessment", assessment, assess)
	return w.run("assessment-1", "assessment", append([]func(*api.WorkflowRun){inputs(`{"ref":"r-17","lines":3}`)}, change...)...)
}

// turnsOf are the turns of a run, in the order in which they were asked.
func (w *world) turnsOf(run *api.WorkflowRun) []api.Turn {
	GinkgoHelper()
	list := &api.TurnList{}
	Expect(admin.List(w.ctx, list, client.InNamespace(w.namespace), client.MatchingLabels{api.LabelRun: string(run.UID)})).To(Succeed())
	return list.Items
}

// dismisses waits until no agent of the run has a pod or a token, and its sessions
// say so.
func (w *world) dismisses(run *api.WorkflowRun) {
	GinkgoHelper()
	w.leavesNothing(run)
	Eventually(func(g Gomega) {
		sessions, pods, secrets := &api.AgentSessionList{}, &corev1.PodList{}, &corev1.SecretList{}
		g.Expect(admin.List(w.ctx, sessions, client.InNamespace(w.namespace))).To(Succeed())
		g.Expect(admin.List(w.ctx, pods, client.InNamespace(w.namespace))).To(Succeed())
		g.Expect(admin.List(w.ctx, secrets, client.InNamespace(w.namespace))).To(Succeed())
		g.Expect(pods.Items).To(BeEmpty())
		g.Expect(secrets.Items).To(BeEmpty())
		for i := range sessions.Items {
			g.Expect(sessions.Items[i].Status.Phase).To(Equal(api.SessionStopped))
			g.Expect(sessions.Items[i].Status.TokenHash).To(BeEmpty())
			g.Expect(metav1.IsControlledBy(&sessions.Items[i], run)).To(BeTrue())
		}
	}).Should(Succeed())
}

const fine = `{"risk": 7, "why": "It touches the parser."}`

var _ = Describe("An action for an agent", func() {
	It("asks with its inputs in place, and takes the reply as outputs", func(ctx SpecContext) {
		w := newLivelyWorld(ctx)
		w.settles()
		w.operate()
		run := w.asks(playbook(says(`Assess r-17 \(3 lines\)\.`, fine)))
		w.reaches(run, api.RunCompleted)
		Expect(run.Status.Outcome).To(Equal("done"), "%s", show(run.Status.History))
		Expect(outputOf(run, "assess#1")).To(MatchJSON(fine))
		w.dismisses(run)

		By("having promised the session in its status, and kept what was said")
		session := &api.AgentSession{}
		Expect(admin.Get(ctx, w.key(attemptName(run, "assess#1", 1)), session)).To(Succeed())
		Expect(session.Spec.RunRef.Name).To(Equal(run.Name))
		asked := w.turnsOf(run)
		Expect(asked).To(HaveLen(1))
		Expect(asked[0].Status.State).To(Equal(api.TurnCompleted))
		Expect(asked[0].Status.Reply).To(Equal(fine))
		Expect(asked[0].Status.Deliveries).To(Equal(int32(1)))
		Expect(asked[0].Spec.Prompt.Activation).To(Equal("assess#1"))
	})

	It("gives the reply itself where it declares no outputs", func(ctx SpecContext) {
		w := newLivelyWorld(ctx)
		w.settles()
		w.operate()
		w.teaches(playbook(says("", "It is fine.\n\nGo ahead.")))
		apply(w, &api.ActionType{}, `
metadata: {name: assess}
spec: {description: Assesses., mode: agent, agent: {promptTemplate: "Well?", sessionTemplate: assessor}}
`)
		w.compose("assessment", assessment, "")
		run := w.run("assessment-1", "assessment")
		w.reaches(run, api.RunCompleted)
		Expect(outputOf(run, "assess#1")).To(MatchJSON(`{"rawOutput":"It is fine.\n\nGo ahead."}`))
		w.dismisses(run)
	})

	It("has a reply in the wrong form corrected, in the same session", func(ctx SpecContext) {
		w := newLivelyWorld(ctx)
		w.settles()
		w.operate()
		run := w.asks(playbook(
			says(`^Assess`, `I think the risk is 7.`),
			says(`Correct its form only[\s\S]*I think the risk is 7\.`, `{"risk": "high"}`),
			says(`risk: type[\s\S]*"risk": "high"`, "```json\n{\"risk\": 8}\n```"),
		))
		w.reaches(run, api.RunCompleted)
		Expect(outputOf(run, "assess#1")).To(MatchJSON(`{"risk":8}`))
		asked := w.turnsOf(run)
		Expect(asked).To(HaveLen(3))
		for i := range asked {
			Expect(asked[i].Spec.SessionRef.Name).To(Equal(attemptName(run, "assess#1", 1)))
			Expect(asked[i].Status.State).To(Equal(api.TurnCompleted))
		}
		w.dismisses(run)
	})

	// Whatever an agent does instead of replying has a name of its own.
	DescribeTable("fails when",
		func(ctx SpecContext, book, code, message string) {
			w := newLivelyWorld(ctx)
			w.settles()
			w.operate()
			run := w.asks(book)
			w.reaches(run, api.RunCompleted)
			Expect(run.Status.Outcome).To(Equal("broken"))
			Expect(failureOf(run, "assess#1").Code).To(Equal(code))
			Expect(failureOf(run, "assess#1").Message).To(ContainSubstring(message))
			w.dismisses(run)
		},
		Entry("no reply is in the right form", playbook(says("", "one"), says("", "two"), says("", "three"), says("", fine)),
			"REPLY_INVALID", "the reply must be one JSON value and nothing else"),
		Entry("the reply is too large", playbook(says("", strings.Repeat("long ", 30_000))), "REPLY_TOO_LARGE", "the reply has more than 131072 bytes"),
		Entry("workbench 57: it asks for a tool", playbook("- steps: [{permission: {tool: Write, expect: deny}}, {say: '{}'}]\n"), "AGENT_TOOL_DENIED", "Write"),
		Entry("it refuses", playbook(says("something else", fine)), "AGENT_ERROR", "refusal"),
		Entry("it breaks down", playbook("- steps: [{exit: 3}]\n"), "AGENT_ERROR", ""),
	)

	It("is asked again when its pod is lost before it replied", func(ctx SpecContext) {
		w := newLivelyWorld(ctx)
		node := w.settles()
		w.operate()
		run := w.asks(playbook("- steps: [{hang: true}]\n"))
		session := &api.AgentSession{}
		w.opens(run, "assess#1", 1, session)
		w.works(session, 1)
		w.teaches(playbook(says("^Assess", fine)))
		Expect(node.Kill(session.Name + "-1")).To(BeTrue())
		w.reaches(run, api.RunCompleted)
		Expect(outputOf(run, "assess#1")).To(MatchJSON(fine))
		Expect(w.turnsOf(run)[0].Status.Deliveries).To(Equal(int32(2)))
		w.dismisses(run)
	})

	It("is lost when its pod is lost three times", func(ctx SpecContext) {
		w := newLivelyWorld(ctx)
		node := w.settles()
		w.operate()
		run := w.asks(playbook("- steps: [{hang: true}]\n"))
		session := &api.AgentSession{}
		w.opens(run, "assess#1", 1, session)
		for attempt := range int32(3) {
			w.works(session, attempt+1)
			Expect(node.Kill(fmt.Sprintf("%s-%d", session.Name, attempt+1))).To(BeTrue())
		}
		w.reaches(run, api.RunCompleted)
		Expect(failureOf(run, "assess#1").Code).To(Equal("AGENT_LOST"))
		Expect(w.turnsOf(run)[0].Status.Deliveries).To(Equal(int32(3)))
		w.dismisses(run)
	})

	It("is over when its time is, and when the run is cancelled", func(ctx SpecContext) {
		w := newLivelyWorld(ctx)
		w.settles()
		w.operate()
		w.teaches(playbook("- steps: [{hang: true}]\n"))
		w.compose("assessment", strings.Replace(assessment, "    outputs:", "    timeout: PT4S\n    outputs:", 1), assess)
		w.compose("patient", assessment, assess)
		late := w.run("late", "assessment", inputs(`{"ref":"r"}`))
		cancelled, session := w.run("cancelled", "patient", inputs(`{"ref":"r"}`)), &api.AgentSession{}
		w.opens(cancelled, "assess#1", 1, session)
		w.works(session, 1)
		Expect(bob.Patch(ctx, cancelled, merge(`{"spec":{"cancel":true}}`))).To(Succeed())
		w.reaches(cancelled, api.RunCancelled)
		w.reaches(late, api.RunCompleted)
		Expect(failureOf(late, "assess#1").Code).To(Equal("ATTEMPT_TIMEOUT"))
		Eventually(func(g Gomega) {
			pods := &corev1.PodList{}
			g.Expect(admin.List(ctx, pods, client.InNamespace(w.namespace))).To(Succeed())
			g.Expect(pods.Items).To(BeEmpty())
			for _, run := range []*api.WorkflowRun{late, cancelled} {
				g.Expect(w.turnsOf(run)[0].Status.State).To(Equal(api.TurnCancelled))
			}
		}).Should(Succeed())
	})

	It("has no tools whatever its template lends, and no place among the namespace's sessions", func(ctx SpecContext) {
		w := newLivelyWorld(ctx)
		w.settles()
		w.operate()
		w.teaches(playbook(says("", fine), says("", fine)))
		template := &api.SessionTemplate{}
		Expect(admin.Get(ctx, w.key("assessor"), template)).To(Succeed())
		template.Spec.MCPServers = []api.MCPServer{{Name: "files", URL: "https://files.example.invalid/mcp"}}
		template.Spec.AllowedTools = []string{"mcp__files__read"}
		Expect(bob.Update(ctx, template)).To(Succeed())
		By("running more of them at a time than a namespace may have sessions")
		w.compose("assessment", assessment, assess)
		var runs []*api.WorkflowRun
		for i := range 3 {
			runs = append(runs, w.run(fmt.Sprintf("assessment-%d", i), "assessment", inputs(`{"ref":"r"}`)))
		}
		for _, run := range runs {
			w.reaches(run, api.RunCompleted)
			Expect(run.Status.Outcome).To(Equal("done"))
		}
	})

	It("fails where somebody else has its session's name, and leaves theirs alone", func(ctx SpecContext) {
		w := newWorld(ctx)
		run := w.asks(playbook(says("", fine)))
		foreign := &api.AgentSession{ObjectMeta: w.meta(attemptName(run, "assess#1", 1))}
		foreign.Spec.TemplateRef.Name = "assessor"
		Expect(bob.Create(ctx, foreign)).To(Succeed())
		w.operate()
		w.reaches(run, api.RunCompleted)
		Expect(failureOf(run, "assess#1").Code).To(Equal("NAME_TAKEN"))
		Expect(w.turnsOf(run)).To(BeEmpty())
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(foreign), foreign)).To(Succeed())
		Expect(foreign.Spec.Stopped).To(BeFalse())
	})

	It("is asked by the operator alone", func(ctx SpecContext) {
		w := newWorld(ctx)
		turn := &api.Turn{ObjectMeta: w.meta("forged")}
		turn.Spec.SessionRef = &api.LocalRef{Name: "s"}
		turn.Spec.Prompt = &api.RunPrompt{
			RunRef: api.PromptRun{Name: "r", UID: "u"}, Activation: "a#1", Message: api.ContentRef{Digest: "sha256:" + strings.Repeat("0", 64)},
		}
		Expect(bob.Create(ctx, turn)).To(MatchError(ContainSubstring("spec.prompt: only the operator may set it")))
		turn.Spec.Message = "Both."
		Expect(operatorClient.Create(ctx, turn)).To(MatchError(ContainSubstring("exactly one of `message` and `prompt` must be set")))
		turn.Spec.Message, turn.Spec.SessionRef, turn.Spec.CompositionRef = "", nil, &api.LocalRef{Name: "c"}
		Expect(operatorClient.Create(ctx, turn)).To(MatchError(ContainSubstring("`prompt` may be set for sessions only")))
	})

	DescribeTable("is not asked at all",
		func(ctx SpecContext, given, actionTypes, code, message string) {
			w := newWorld(ctx)
			w.operate()
			w.teaches(playbook())
			w.compose("assessment", assessment, actionTypes)
			run := w.run("assessment-1", "assessment", inputs(given))
			w.reaches(run, api.RunCompleted)
			Expect(failureOf(run, "assess#1").Code).To(Equal(code))
			Expect(failureOf(run, "assess#1").Message).To(ContainSubstring(message))
			sessions := &api.AgentSessionList{}
			Expect(admin.List(ctx, sessions, client.InNamespace(w.namespace))).To(Succeed())
			Expect(sessions.Items).To(BeEmpty())
		},
		Entry("without its inputs", `{}`, assess, "INPUT_CONTRACT", "ref: required"),
		Entry("with a prompt that cannot be rendered", `{"ref":"r"}`, strings.Replace(assess, "inputs.ref }}", "inputs.ref.name }}", 1), "RENDER_FAILED", "line 1: "),
		Entry("with a prompt that does not compile", `{"ref":"r"}`, strings.Replace(assess, "inputs.ref }}", "context.ref }}", 1), "INVALID_ACTION_TYPE", "INVALID_PLACEHOLDER"),
		Entry("with a template that nobody knows", `{"ref":"r"}`, strings.Replace(assess, "sessionTemplate: assessor", "sessionTemplate: nobody", 1), "UNKNOWN_SESSION_TEMPLATE", `"nobody"`),
	)
})

// works waits until an agent has its prompt in the session's n-th pod.
func (w *world) works(session *api.AgentSession, attempt int32) {
	GinkgoHelper()
	sees(w, session, func(g Gomega, session *api.AgentSession) {
		g.Expect(session.Status.Attempt).To(Equal(attempt), "%s", show(session.Status))
		g.Expect(session.Status.Prompt).NotTo(BeNil())
		g.Expect(session.Status.Prompt.State).To(Equal(api.PromptDelivered), "%s", show(session.Status))
	})
}

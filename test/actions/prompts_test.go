package actions

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/testing/kubelet"
)

// conversation is a session of role Prompt and the run that it belongs to, whose
// controller the stories play.
type conversation struct {
	w       *world
	run     *api.WorkflowRun
	session *api.AgentSession
	asked   int
}

// plans has the namespace's planner, an agent of role Prompt, play a playbook; it may
// be taught anew.
func (w *world) plans(book, members string) {
	GinkgoHelper()
	config := &corev1.ConfigMap{ObjectMeta: w.meta("playbook"), Data: map[string]string{"playbook.yaml": book}}
	if err := admin.Create(w.ctx, config); err != nil {
		Expect(admin.Update(w.ctx, config)).To(Succeed())
		return
	}
	apply(w, &api.SessionTemplate{}, `
metadata: {name: planner}
spec:
  role: Prompt
  systemPrompt: You plan changes.
  runtime: {playbookRef: {name: playbook, key: playbook.yaml}}
`+members)
}

// converses opens a session as a run's controller would.
func (w *world) converses() *conversation {
	GinkgoHelper()
	run := &api.WorkflowRun{ObjectMeta: w.meta("run")}
	run.UID = "9a1c2f6e-0000-4000-8000-000000000001"
	session := &api.AgentSession{ObjectMeta: w.meta("run-planner")}
	session.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(run, api.GroupVersion.WithKind("WorkflowRun"))}
	session.Labels = map[string]string{api.LabelRun: string(run.UID)}
	session.Spec = api.AgentSessionSpec{TemplateRef: api.LocalRef{Name: "planner"}, RunRef: &api.LocalRef{Name: run.Name}, Role: api.RolePrompt}
	Expect(operatorClient.Create(w.ctx, session)).To(Succeed())
	return &conversation{w: w, run: run, session: session}
}

// asks creates a turn as a run's controller would.
func (c *conversation) asks(text string, change ...func(*api.RunPrompt)) *api.Turn {
	GinkgoHelper()
	message, err := content.Store{Client: operatorClient}.Put(c.w.ctx, c.run, []byte(text))
	Expect(err).NotTo(HaveOccurred())
	c.asked++
	turn := &api.Turn{ObjectMeta: c.w.meta(fmt.Sprintf("run-ask-%d", c.asked))}
	turn.OwnerReferences, turn.Labels = c.session.OwnerReferences, c.session.Labels
	turn.Spec.SessionRef = &api.LocalRef{Name: c.session.Name}
	turn.Spec.Prompt = &api.RunPrompt{
		RunRef: api.PromptRun{Name: c.run.Name, UID: string(c.run.UID)}, Activation: fmt.Sprintf("ask#%d", c.asked), Message: message,
	}
	for _, f := range change {
		f(turn.Spec.Prompt)
	}
	Expect(operatorClient.Create(c.w.ctx, turn)).To(Succeed())
	return turn
}

// hears waits for the reply to a turn.
func (c *conversation) hears(turn *api.Turn, reply string) {
	GinkgoHelper()
	sees(c.w, turn, func(g Gomega, turn *api.Turn) {
		g.Expect(turn.Status.State).To(Equal(api.TurnCompleted), "%s", show(turn.Status))
		g.Expect(turn.Status.Reply).To(Equal(reply))
	})
}

// fails waits until a turn has failed.
func (c *conversation) fails(turn *api.Turn, code string) {
	GinkgoHelper()
	sees(c.w, turn, func(g Gomega, turn *api.Turn) {
		g.Expect(turn.Status.State).To(Equal(api.TurnFailed), "%s", show(turn.Status))
	})
	Expect(turn.Status.Code).To(Equal(code), "%s", show(turn.Status))
	Expect(turn.Status.Reply).To(BeEmpty())
	Expect(turn.Status.ReplyRef).To(BeNil())
}

// rests suspends the session and waits until nothing of it runs.
func (c *conversation) rests() {
	GinkgoHelper()
	Expect(operatorClient.Patch(c.w.ctx, c.session, merge(`{"spec":{"suspended":true}}`))).To(Succeed())
	sees(c.w, c.session, func(g Gomega, session *api.AgentSession) {
		g.Expect(session.Status.Phase).To(Equal(api.SessionSuspended), "%s", show(session.Status))
	})
	pods, secrets := &corev1.PodList{}, &corev1.SecretList{}
	Expect(admin.List(c.w.ctx, pods, client.InNamespace(c.w.namespace))).To(Succeed())
	Expect(admin.List(c.w.ctx, secrets, client.InNamespace(c.w.namespace))).To(Succeed())
	Expect(pods.Items).To(BeEmpty())
	Expect(secrets.Items).To(BeEmpty())
}

// condition of the session as it is now.
func (c *conversation) condition(kind string) *metav1.Condition {
	GinkgoHelper()
	Expect(admin.Get(c.w.ctx, client.ObjectKeyFromObject(c.session), c.session)).To(Succeed())
	return apimeta.FindStatusCondition(c.session.Status.Conditions, kind)
}

// home is the directory of the session's volume on the node.
func (c *conversation) home(node *kubelet.Kubelet) string {
	GinkgoHelper()
	claim := &corev1.PersistentVolumeClaim{}
	Expect(admin.Get(c.w.ctx, c.w.key(c.session.Name+"-home"), claim)).To(Succeed())
	return filepath.Join(node.Volumes, string(claim.UID))
}

// remembers is a playbook of an agent that can take conversations up again.
func remembers(turns ...string) string { return "memory: home\n" + playbook(turns...) }

var _ = Describe("A prompt of a supervised run", func() {
	It("supervised 29: is for an agent in an empty room", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate()
		w.plans(remembers(says("", "Yes.")), "")
		c := w.converses()
		c.asks("Well?")
		pod := &corev1.Pod{}
		Eventually(func() error { return admin.Get(ctx, w.key(c.session.Name+"-1"), pod) }).Should(Succeed())
		Expect(*pod.Spec.AutomountServiceAccountToken).To(BeFalse())
		agent := pod.Spec.Containers[0]
		env := map[string]string{}
		for _, variable := range agent.Env {
			env[variable.Name] = variable.Value
		}
		Expect(env).To(HaveKeyWithValue("HOME", "/home/agent"))
		Expect(env).NotTo(HaveKey("AXIOM_COMPOSITION_ID"))
		mounts := map[string]corev1.VolumeMount{}
		for _, mount := range agent.VolumeMounts {
			mounts[mount.MountPath] = mount
		}
		Expect(mounts[agent.WorkingDir].ReadOnly).To(BeTrue())
		Expect(mounts["/home/agent"].ReadOnly).To(BeFalse())
		for _, volume := range pod.Spec.Volumes {
			Expect(volume.Projected).To(BeNil(), volume.Name)
		}

		By("having a home of the session's own, and no way out but the gateway")
		claim, policy := &corev1.PersistentVolumeClaim{}, &networkingv1.NetworkPolicy{}
		Expect(admin.Get(ctx, w.key(c.session.Name+"-home"), claim)).To(Succeed())
		Expect(metav1.IsControlledBy(claim, c.session)).To(BeTrue())
		Expect(claim.Spec.Resources.Requests.Storage().String()).To(Equal("1Gi"))
		Expect(claim.Spec.StorageClassName).To(BeNil())
		Expect(admin.Get(ctx, w.key(c.session.Name), policy)).To(Succeed())
		Expect(policy.Spec.Egress).To(HaveLen(2))

		By("saying why there is none where volumes cannot be had")
		Expect(kubelet.Write(ctx, admin, pod, w.clock.Now(), func(pod *corev1.Pod, _ time.Time) {
			pod.Status.Conditions = []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "pod has unbound immediate PersistentVolumeClaims",
			}}
		})).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(c.condition(api.ConditionPodReady).Message).To(ContainSubstring("unbound immediate PersistentVolumeClaims"))
		}).Should(Succeed())
	})

	It("supervised 32: is said in the conversation that was committed, also after a rest", func(ctx SpecContext) {
		w := newLivelyWorld(ctx)
		w.settles()
		w.operate()
		w.plans(remembers(says("^First", "One."), says("^Second", "Two."), says("^Third", "Three.")), "")
		c := w.converses()
		c.hears(c.asks("First?"), "One.")
		c.hears(c.asks("Second?"), "Two.")
		c.condition(api.ConditionReady)
		committed := c.session.Status.AgentSession
		Expect(committed.Attempt).To(Equal(int32(1)))
		c.rests()
		c.hears(c.asks("Third?"), "Three.")
		c.condition(api.ConditionReady)
		Expect(c.session.Status.AgentSession).To(Equal(committed))
		Expect(c.session.Status.Attempt).To(Equal(int32(2)))
		Expect(c.session.Spec.Suspended).To(BeFalse())
		Expect(c.condition(api.ConditionSessionRefused)).To(BeNil())
	})

	// What happens to a conversation while nobody looks.
	loses := func(files ...string) func(*conversation, *kubelet.Kubelet) {
		return func(c *conversation, node *kubelet.Kubelet) {
			for _, file := range files {
				Expect(os.RemoveAll(filepath.Join(c.home(node), file))).To(Succeed())
			}
		}
	}
	isTold := func(c *conversation, _ *kubelet.Kubelet) {
		template := &api.SessionTemplate{ObjectMeta: c.w.meta("planner")}
		Expect(bob.Patch(c.w.ctx, template, merge(`{"spec":{"systemPrompt":"You plan something else."}}`))).To(Succeed())
	}

	DescribeTable("supervised 32: is refused when",
		func(ctx SpecContext, happens func(*conversation, *kubelet.Kubelet), reason string) {
			w := newLivelyWorld(ctx)
			node := w.settles()
			w.operate()
			w.plans(remembers(says("^First", "One."), says("", "Never.")), "")
			c := w.converses()
			c.hears(c.asks("First?"), "One.")
			c.condition(api.ConditionReady)
			committed := c.session.Status.AgentSession
			c.rests()
			happens(c, node)
			c.fails(c.asks("Second?"), "SESSION_REFUSED")
			refused := c.condition(api.ConditionSessionRefused)
			Expect(refused.Status).To(Equal(metav1.ConditionTrue))
			Expect(refused.Reason).To(Equal(reason))
			Expect(c.session.Status.AgentSession).To(Equal(committed))
			Expect(c.session.Status.Prompt.Result.Reply).To(BeEmpty())
		},
		Entry("the agent does not know the conversation", loses(".axiom-scripted"), api.ReasonSessionLost),
		Entry("the volume is another", loses(".axiom-scripted", ".axiom-conversation"), api.ReasonVolumeLost),
		Entry("the agent is told something else", isTold, api.ReasonPolicyChanged),
	)

	It("supervised 32: is refused by an agent that cannot take conversations up", func(ctx SpecContext) {
		w := newLivelyWorld(ctx)
		w.settles()
		w.operate()
		w.plans(playbook(says("", "Never.")), "")
		c := w.converses()
		c.fails(c.asks("First?"), "SESSION_REFUSED")
		Expect(c.condition(api.ConditionSessionRefused).Reason).To(Equal(api.ReasonLoadUnsupported))
		Expect(c.session.Status.AgentSession).To(BeNil())
	})

	It("supervised 32: begins anew with what was said where the template says so", func(ctx SpecContext) {
		w := newLivelyWorld(ctx)
		node := w.settles()
		w.operate()
		w.plans(remembers(
			says(`^First\?$`, "One."),
			says(`You were told:\n\nFirst\?\n\nYou answered:\n\nOne\.[\s\S]*Second\?$`, "Two."),
			says(`^Third\?$`, "Three."),
		), "  continuity: Recap\n")
		c := w.converses()
		c.hears(c.asks("First?"), "One.")
		c.condition(api.ConditionReady)
		before := c.session.Status.AgentSession.ID
		c.rests()
		loses(".axiom-scripted", ".axiom-conversation")(c, node)
		c.hears(c.asks("Second?"), "Two.")
		c.hears(c.asks("Third?"), "Three.")
		recapped := c.condition(api.ConditionSessionRecapped)
		Expect(recapped.Reason).To(Equal(api.ReasonVolumeLost))
		Expect(c.session.Status.AgentSession.ID).NotTo(Equal(before))
		Expect(c.condition(api.ConditionSessionRefused)).To(BeNil())
	})

	It("supervised 30: ends when the agent asks for a tool", func(ctx SpecContext) {
		w := newLivelyWorld(ctx)
		w.settles()
		w.operate()
		w.plans(remembers("- steps: [{say: 'I write.'}, {permission: {tool: Write, expect: deny}}, {say: Done.}]\n"), "")
		c := w.converses()
		turn := c.asks("Write.")
		c.fails(turn, "AGENT_TOOL_DENIED")
		Expect(turn.Status.Detail).To(ContainSubstring("Write"))
	})

	It("supervised 31: waits for the one before in the same session", func(ctx SpecContext) {
		w := newLivelyWorld(ctx)
		w.settles()
		w.plans(remembers(says("^Plan", "Not JSON."), says("^Correct", "{}")), "")
		c := w.converses()
		first := c.asks("Plan.")
		second := c.asks("Correct the form.", func(prompt *api.RunPrompt) { prompt.Activation, prompt.Repair = "ask#1", 1 })
		w.operate()
		c.hears(first, "Not JSON.")
		c.hears(second, "{}")
		Expect(c.condition(api.ConditionReady)).NotTo(BeNil())
		Expect(c.session.Status.Attempt).To(Equal(int32(1)))
		Expect(first.Status.Deliveries).To(Equal(int32(1)))
		Expect(second.Status.Deliveries).To(Equal(int32(1)))
	})

	It("supervised 33: is given to another pod when one is lost, three in all", func(ctx SpecContext) {
		w := newLivelyWorld(ctx)
		node := w.settles()
		w.operate()
		w.plans(remembers(says("^First", "One."), "- when: '^Second'\n  steps: [{hang: true}]\n"), "")
		c := w.converses()
		c.hears(c.asks("First?"), "One.")
		c.condition(api.ConditionReady)
		committed := c.session.Status.AgentSession
		lost := c.asks("Second?")
		for attempt := range int32(3) {
			sees(w, c.session, func(g Gomega, session *api.AgentSession) {
				g.Expect(session.Status.Attempt).To(Equal(attempt+1), "%s", show(session.Status))
				g.Expect(session.Status.Prompt.ID).To(Equal(lost.Name))
				g.Expect(session.Status.Prompt.State).To(Equal(api.PromptDelivered))
			})
			Expect(node.Kill(fmt.Sprintf("%s-%d", c.session.Name, attempt+1))).To(BeTrue())
		}
		c.fails(lost, "AGENT_LOST")
		Expect(lost.Status.Deliveries).To(Equal(int32(3)))
		c.condition(api.ConditionReady)
		Expect(c.session.Status.AgentSession).To(Equal(committed))
	})

	It("is over at its deadline, whatever the session allows", func(ctx SpecContext) {
		w := newLivelyWorld(ctx)
		w.settles()
		w.operate()
		w.plans(remembers("- steps: [{sleep: 5m}]\n"), "")
		c := w.converses()
		deadline := metav1.NewTime(w.clock.Now().Add(5 * time.Second))
		c.fails(c.asks("Well?", func(prompt *api.RunPrompt) { prompt.Deadline = &deadline }), "AGENT_TIMEOUT")
	})

	// Not a token of anybody, but in the form of one.
	token := "ghp_" + strings.Repeat("aB3dE6gH9", 4)

	DescribeTable("supervised 51: has no answer that holds a secret",
		func(ctx SpecContext, step string) {
			w := newLivelyWorld(ctx)
			w.settles()
			w.operate()
			w.plans(remembers("- steps: ["+strings.ReplaceAll(step, "TOKEN", token)+"]\n"), "")
			c := w.converses()
			turn := c.asks("Well?")
			c.fails(turn, "SECRET_DETECTED")
			Expect(turn.Status.Detail).To(ContainSubstring(" at line 1, column "))
			sees(w, c.session, func(g Gomega, session *api.AgentSession) { g.Expect(session.Status.Journal).NotTo(BeNil()) })
			c.rests()
			By("having it in no object but the playbook")
			for _, list := range []client.ObjectList{&api.AgentSessionList{}, &api.TurnList{}, &corev1.ConfigMapList{}, &corev1.EventList{}} {
				Expect(admin.List(ctx, list, client.InNamespace(w.namespace))).To(Succeed())
				Expect(apimeta.EachListItem(list, func(object runtime.Object) error {
					if meta, err := apimeta.Accessor(object); err == nil && meta.GetName() == "playbook" {
						return nil
					}
					text, err := json.Marshal(object)
					Expect(string(text)).NotTo(ContainSubstring(token))
					return err
				})).To(Succeed())
			}
		},
		Entry("in a reply", "{say: 'Use TOKEN.'}"),
		Entry("in an error", "{think: TOKEN}, {error: 'TOKEN is wrong'}"),
	)

	It("is asked in sessions that the operator alone suspends", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.plans(remembers(says("", "Yes.")), "")
		c := w.converses()
		Expect(bob.Patch(ctx, c.session, merge(`{"spec":{"suspended":true}}`))).To(MatchError(ContainSubstring("spec.suspended: only the operator may change it")))
		Expect(bob.Patch(ctx, c.session, merge(`{"spec":{"stopped":true}}`))).To(Succeed())
	})
})

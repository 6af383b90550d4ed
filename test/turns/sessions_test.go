package turns

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/token"
)

var _ = Describe("A session", func() {
	var w *world

	BeforeEach(func() {
		w = newWorld()
		w.operate()
	})

	It("workbench 34: has a restricted pod without a service-account token, and a policy that opens three ways only", func() {
		comp := w.compose("triage", func(comp *api.Composition) {
			comp.Spec.Agent.Egress = []api.EgressRule{{CIDR: "203.0.113.0/24", Port: 443}}
		})
		w.asks("t-1", comp)
		session := w.session(comp)
		// The namespace enforces the standard, so that the pod is there says it all.
		pod := w.pod(session, 1)
		Expect(pod.Spec.AutomountServiceAccountToken).To(HaveValue(BeFalse()))
		for _, volume := range pod.Spec.Volumes {
			Expect(volume.Projected).To(BeNil(), "volume %s", volume.Name)
		}
		policy := fresh(w, &networkingv1.NetworkPolicy{ObjectMeta: w.meta(session.Name)})
		Expect(policy.Spec.Egress).To(HaveLen(3))
		Expect(policy.Spec.Ingress).To(BeEmpty())
		Expect(policy.CreationTimestamp.After(pod.CreationTimestamp.Time)).To(BeFalse())
	})

	It("has its token in one Secret, as long as its pod lives", func() {
		comp := w.compose("triage")
		turn := w.asks("t-1", comp)
		session := w.session(comp)
		pod := w.pod(session, 1)
		secret := fresh(w, &corev1.Secret{ObjectMeta: w.meta("triage-agent-1")})
		first := string(secret.Data["token"])
		Expect(len(first)).To(BeNumerically(">=", 43))
		Expect(session.Status.TokenHash).To(Equal(token.Hash(first)))
		for _, object := range []client.Object{fresh(w, session), pod, fresh(w, turn), fresh(w, comp)} {
			text, err := json.Marshal(object)
			Expect(err).NotTo(HaveOccurred())
			Expect(strings.Contains(string(text), first)).To(BeFalse(), "the token is in %T", object)
		}
		w.loses(pod)
		w.pod(session, 2)
		Expect(w.isGone(secret)).To(BeTrue())
		second := fresh(w, &corev1.Secret{ObjectMeta: w.meta("triage-agent-2")})
		Expect(string(second.Data["token"])).NotTo(Equal(first))
		Expect(session.Status.TokenHash).To(Equal(token.Hash(string(second.Data["token"]))))
	})

	It("is suspended when it is idle, and wakes with the next turn", func() {
		comp := w.compose("triage")
		session := w.session(comp)
		first := w.asks("t-1", comp)
		w.works(first, session)
		w.rests(comp, "")
		pod := w.pod(session, 1)
		w.advance(30*time.Minute, session)
		sees(w, session, func(g Gomega, session *api.AgentSession) {
			g.Expect(session.Status.Phase).To(Equal(api.SessionSuspended))
			g.Expect(session.Status.TokenHash).To(BeEmpty())
			g.Expect(isTrue(session.Status.Conditions, "Ready")).To(BeTrue())
		})
		Expect(w.isGone(pod)).To(BeTrue())
		sees(w, comp, func(g Gomega, comp *api.Composition) {
			g.Expect(reasonOf(comp.Status.Conditions, "AgentReady")).To(Equal("Suspended"))
		})
		second := w.asks("t-2", comp)
		w.works(second, session, "Awake")
		w.reaches(second, api.TurnAwaitingResolution)
		Expect(fresh(w, session).Status.Attempt).To(Equal(int32(2)))
	})

	It("gives up after three failed starts, and tries again with the next turn", func() {
		comp := w.compose("triage")
		session := w.session(comp)
		turn := w.asks("t-1", comp)
		for attempt := int32(1); attempt <= 3; attempt++ {
			w.fails(w.pod(session, attempt))
		}
		w.reaches(turn, api.TurnFailed)
		w.rests(comp, "")
		Expect(turn.Status.Detail).To(Equal("Could not start the workbench agent: container agent ended with exit code 7"))
		sees(w, session, func(g Gomega, session *api.AgentSession) { g.Expect(session.Status.Phase).To(Equal(api.SessionFailed)) })
		next := w.asks("t-2", comp)
		w.works(next, session)
		w.reaches(next, api.TurnCompleted)
	})

	It("fails its turn when no pod is possible", func() {
		comp := w.compose("triage", func(comp *api.Composition) { comp.Spec.Agent.ModelSecretRef = &api.LocalRef{Name: "private"} })
		Expect(admin.Create(w.ctx, &corev1.Secret{ObjectMeta: w.meta("private")})).To(Succeed())
		turn := w.asks("t-1", comp)
		w.reaches(turn, api.TurnFailed)
		w.rests(comp, "")
		Expect(turn.Status.Detail).To(Equal(
			`Could not start the workbench agent: secret "private" does not exist or lacks the label axiom.apitomy.io/credential=true`))
	})

	It("fails its turn when it is stopped for good", func() {
		comp := w.compose("triage")
		session := w.session(comp)
		turn := w.asks("t-1", comp)
		w.reaches(turn, api.TurnWorking)
		w.takes(session)
		Expect(alice.Patch(w.ctx, session, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"stopped":true}}`)))).To(Succeed())
		w.reaches(turn, api.TurnFailed)
		w.rests(comp, "")
		sees(w, session, func(g Gomega, session *api.AgentSession) {
			g.Expect(session.Status.Phase).To(Equal(api.SessionStopped))
			g.Expect(session.Status.TokenHash).To(BeEmpty())
			g.Expect(session.Status.Prompt.State).To(Equal(api.PromptDone))
		})
		Expect(bob.Create(w.ctx, w.turn("t-2", comp))).To(MatchError(ContainSubstring("is stopped")))
	})

	It("workbench 35: waits as the fourth, WithinLimit False, while three others have a pod", func() {
		var comps []*api.Composition
		for i := range 4 {
			comp := w.compose(fmt.Sprint("draft-", i))
			w.rests(comp, "")
			turn := w.asks(fmt.Sprint("t-", i), comp)
			w.reaches(turn, api.TurnWorking)
			w.hasPrompt(w.session(comp), turn)
			comps = append(comps, comp)
			if i < 3 {
				w.takes(w.session(comp))
			}
		}
		fourth := w.session(comps[3])
		sees(w, fourth, func(g Gomega, session *api.AgentSession) {
			g.Expect(reasonOf(session.Status.Conditions, "WithinLimit")).To(Equal("SessionLimit"))
			g.Expect(isTrue(session.Status.Conditions, "WithinLimit")).To(BeFalse())
			g.Expect(session.Status.TokenHash).To(BeEmpty())
		})
		sees(w, comps[3], func(g Gomega, comp *api.Composition) {
			g.Expect(reasonOf(comp.Status.Conditions, "AgentReady")).To(Equal("SessionLimit"))
		})
		Expect(alice.Patch(w.ctx, w.session(comps[0]), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"stopped":true}}`)))).To(Succeed())
		w.pod(fourth, 1)
		Expect(isTrue(fresh(w, fourth).Status.Conditions, "WithinLimit")).To(BeTrue())
	})

	It("is not taken from a stranger who has its name", func() {
		comp := w.compose("triage")
		stranger := w.session(comp)
		stranger.Spec.TemplateRef.Name = api.TemplateWorkbench
		Expect(alice.Create(w.ctx, stranger)).To(Succeed())
		turn := w.asks("t-1", comp)
		w.reaches(turn, api.TurnWorking)
		w.advance(5*time.Minute, turn)
		w.reaches(turn, api.TurnFailed)
		Expect(turn.Status.Detail).To(Equal("Could not start the workbench agent: agent session triage-agent belongs to somebody else"))
		w.rests(comp, "")
		Expect(comp.Status.Session).To(BeEmpty())
	})
})

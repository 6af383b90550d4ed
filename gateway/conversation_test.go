package gateway_test

import (
	"context"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi"
)

// aToken has the form of one, and is nobody's.
var aToken = "ghp_" + strings.Repeat("aB3dE6gH9", 4)

// planner is a session of role Prompt with a live pod, whose image the node knows or
// not, and a prompt that waits.
func (w *world) planner(image string) *api.AgentSession {
	GinkgoHelper()
	session := &api.AgentSession{ObjectMeta: meta(w, "triage-agent")}
	session.Spec = api.AgentSessionSpec{
		TemplateRef: api.LocalRef{Name: "axiom-workbench"}, RunRef: &api.LocalRef{Name: "run"}, Role: api.RolePrompt,
	}
	w.create(session)
	w.prompt(session, "Hello")
	pod := &corev1.Pod{ObjectMeta: meta(w, "triage-agent-1")}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(session, api.GroupVersion.WithKind("AgentSession"))}
	pod.Spec.Containers = []corev1.Container{{
		Name: "agent", Image: image, Command: []string{"agent"},
		Env: []corev1.EnvVar{{Name: "AXIOM_SESSION_ATTEMPT", Value: "1"}, {Name: "MODEL", Value: "m"}},
	}}
	Expect(k8s.Create(w.ctx, pod)).To(Succeed())
	return session
}

const pinned = "example.invalid/agent@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func (w *world) opens(canLoad bool, home string, failed openapi.LoadFailure) openapi.Conversation {
	GinkgoHelper()
	return into[openapi.Conversation](w.asRunner("POST", "/conversation", openapi.ConversationQuery{CanLoad: canLoad, Home: home, Failed: failed}))
}

func (w *world) commits(id string) reply {
	return w.asRunner("PUT", "/conversation", openapi.ConversationCommit{ID: id})
}

var _ = Describe("A conversation", func() {
	begin := openapi.Conversation{Action: openapi.ConversationActionBegin}

	It("is begun once and then loaded", func(ctx context.Context) {
		w := newWorld(ctx, interceptor.Funcs{})
		session := w.planner(pinned)
		Expect(into[openapi.Session](w.asRunner("GET", "", nil)).Role).To(Equal(openapi.SessionRolePrompt))
		Expect(w.opens(true, "", "")).To(Equal(begin))
		Expect(w.commits("c-1").status).To(Equal(http.StatusNoContent))
		committed := reload(w, session).Status.AgentSession
		Expect(committed.ID).To(Equal("c-1"))
		Expect(committed.Attempt).To(Equal(int32(1)))
		By("being committed again, as after a lost answer")
		Expect(w.commits("c-1").status).To(Equal(http.StatusNoContent))
		Expect(reload(w, session).Status.AgentSession).To(Equal(committed))
		Expect(w.commits("c-2").problem().Status).To(Equal(http.StatusConflict))
		Expect(w.opens(true, "c-1", "")).To(Equal(openapi.Conversation{Action: openapi.ConversationActionLoad, ID: "c-1"}))
		Expect(reload(w, session).Status.Prompt.State).To(Equal(api.PromptQueued))
	}, NodeTimeout(time.Minute))

	It("that is refused ends the prompt, and says so until it goes on", func(ctx context.Context) {
		w := newWorld(ctx, interceptor.Funcs{})
		session := w.planner(pinned)
		Expect(w.commits("c-1").status).To(Equal(http.StatusNoContent))
		refused := openapi.Conversation{Action: openapi.ConversationActionRefuse, Reason: api.ReasonSessionLost}
		for range 2 { // also when the answer is lost
			Expect(w.opens(true, "c-1", openapi.LoadFailureSessionLost)).To(Equal(refused))
		}
		status := reload(w, session).Status
		Expect(status.Prompt.State).To(Equal(api.PromptDone))
		Expect(status.Prompt.Result.Code).To(Equal("SESSION_REFUSED"))
		Expect(status.Prompt.Result.Detail).To(HavePrefix("SessionLost: "))
		Expect(apimeta.FindStatusCondition(status.Conditions, api.ConditionSessionRefused).Reason).To(Equal("SessionLost"))
		Expect(w.asRunner("POST", "/prompts/triage-1/result", `{"outcome":"Completed","reply":"Anyway."}`).problem().Status).To(Equal(http.StatusConflict))
		Expect(w.opens(true, "c-1", "").Action).To(Equal(openapi.ConversationActionLoad))
		Expect(apimeta.IsStatusConditionFalse(reload(w, session).Status.Conditions, api.ConditionSessionRefused)).To(BeTrue())
	}, NodeTimeout(time.Minute))

	It("is with an agent whose image is known", func(ctx context.Context) {
		w := newWorld(ctx, interceptor.Funcs{})
		session := w.planner("example.invalid/agent:latest")
		Expect(w.asRunner("POST", "/conversation", `{"canLoad":true,"home":""}`).problem().Status).To(Equal(http.StatusServiceUnavailable))
		pod := &corev1.Pod{ObjectMeta: meta(w, "triage-agent-1")}
		for i, image := range []string{"a", "b"} {
			pod = reload(w, pod)
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "agent", ImageID: "example.invalid/agent@sha256:" + strings.Repeat(image, 64)}}
			Expect(k8s.Status().Update(ctx, pod)).To(Succeed())
			if i == 0 {
				Expect(w.commits("c-1").status).To(Equal(http.StatusNoContent))
				Expect(w.opens(true, "c-1", "").Action).To(Equal(openapi.ConversationActionLoad))
			}
		}
		Expect(w.opens(true, "c-1", "").Reason).To(Equal(api.ReasonPolicyChanged))
		Expect(reload(w, session).Status.AgentSession.ID).To(Equal("c-1"))
	}, NodeTimeout(time.Minute))

	It("has a name that may be kept", func(ctx context.Context) {
		w := newWorld(ctx, interceptor.Funcs{})
		session := w.planner(pinned)
		for _, id := range []string{"", "a\nb", strings.Repeat("x", 257)} {
			Expect(w.commits(id).problem().Status).To(Equal(http.StatusBadRequest), "%q", id)
		}
		denied := w.commits(aToken)
		Expect(denied.problem().Status).To(Equal(http.StatusUnprocessableEntity))
		Expect(denied.body).NotTo(ContainSubstring(aToken))
		status := reload(w, session).Status
		Expect(status.AgentSession).To(BeNil())
		Expect(status.Prompt.Result.Code).To(Equal("SECRET_DETECTED"))
	}, NodeTimeout(time.Minute))

	It("is nothing for other sessions", func(ctx context.Context) {
		w := newWorld(ctx, interceptor.Funcs{})
		session := w.session("triage-agent", "triage")
		Expect(w.asRunner("POST", "/conversation", `{"canLoad":true,"home":""}`).problem().Status).To(Equal(http.StatusConflict))
		Expect(w.commits("c-1").problem().Status).To(Equal(http.StatusConflict))
		Expect(reload(w, session).Status.AgentSession).To(BeNil())
	}, NodeTimeout(time.Minute))
})

var _ = Describe("What an agent of role Prompt says", func() {
	DescribeTable("supervised 51: is not kept if it holds a secret", func(ctx context.Context, body string) {
		w := newWorld(ctx, interceptor.Funcs{})
		session := w.planner(pinned)
		body = strings.ReplaceAll(body, "TOKEN", aToken)
		for range 2 {
			Expect(w.asRunner("POST", "/prompts/triage-1/result", body).status).To(Equal(http.StatusNoContent))
		}
		result := reload(w, session).Status.Prompt.Result
		Expect(result.Outcome).To(Equal(api.OutcomeFailed))
		Expect(result.Code).To(Equal("SECRET_DETECTED"))
		Expect(result.Detail).To(ContainSubstring("line 1, column "))
		Expect(result.Detail + result.Reply + result.StopReason).NotTo(ContainSubstring(aToken))
		Expect(result.ReplyRef).To(BeNil())
		configs := &corev1.ConfigMapList{}
		Expect(k8s.List(ctx, configs)).To(Succeed())
		for i := range configs.Items {
			Expect(configs.Items[i].Data).NotTo(ContainElement(ContainSubstring(aToken)))
		}
	},
		Entry("in a reply", `{"outcome":"Completed","reply":"Use TOKEN."}`),
		Entry("in a long reply", `{"outcome":"Completed","reply":"Use TOKEN.`+strings.Repeat("x", 5000)+`"}`),
		Entry("in a reply that escapes it", `{"outcome":"Completed","reply":"{\"a\": \"\\u0067hp_`+strings.Repeat("aB3dE6gH9", 4)+`\"}"}`),
		Entry("in a detail", `{"outcome":"Failed","detail":"TOKEN is wrong"}`),
		Entry("in a stop reason", `{"outcome":"Failed","stopReason":"TOKEN"}`),
	)

	It("is in no journal", func(ctx context.Context) {
		w := newWorld(ctx, interceptor.Funcs{})
		w.planner(pinned)
		Expect(w.asRunner("POST", "/events", `{"events":[
			{"sequence":1,"type":"session_init","data":{"agent":"fake","attempt":1}},
			{"sequence":2,"type":"assistant_text","data":{"text":"Word."}},
			{"sequence":3,"type":"Word.","data":{"a":["Word."],"b":{"c":"Word."},"n":1.5,"t":true}}
		]}`).status).To(Equal(http.StatusOK))
		configs := &corev1.ConfigMapList{}
		Expect(k8s.List(ctx, configs)).To(Succeed())
		var parts []string
		for i := range configs.Items {
			if configs.Items[i].Namespace == w.namespace {
				for _, data := range configs.Items[i].Data {
					parts = append(parts, data)
				}
				for _, data := range configs.Items[i].BinaryData {
					parts = append(parts, string(data))
				}
			}
		}
		kept := strings.Join(parts, "\n")
		Expect(kept).NotTo(ContainSubstring("Word."))
		Expect(kept).To(And(ContainSubstring("assistant_text"), ContainSubstring("unhandled_event"), ContainSubstring("1.5")))
	}, NodeTimeout(time.Minute))
})

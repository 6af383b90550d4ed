package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi"
)

var _ = Describe("Drafts of library objects", func() {
	var w *world
	var session *api.AgentSession
	const base = "/sessions/{ns}/helper"

	BeforeEach(func(ctx context.Context) {
		w = newWorld(ctx, interceptor.Funcs{})
		session = w.session("helper", "")
		session.Status.Capabilities = []string{"config-items", "validation-feedback"}
		Expect(k8s.Status().Update(ctx, session)).To(Succeed())
	}, NodeTimeout(time.Minute))

	ask := func(method, path string, body any) reply {
		GinkgoHelper()
		w.clock.Step(time.Second)
		return w.call(method, w.path(base+path), tokenOf(w, "helper"), body)
	}
	put := func(content map[string]any) reply {
		GinkgoHelper()
		return ask("PUT", "/items", map[string]any{"type": "tool", "content": content})
	}

	It("workbench 37: are for sessions with the capability, and checks come in order", func(ctx context.Context) {
		w.ctx = ctx
		w.session("plain", "")
		valid := map[string]any{"type": "tool", "item": tool("ask", "one")}
		routes := []route{
			{"GET", "/items", ""},
			{"PUT", "/items", `{"type":"tool","content":{"name":"a"}}`},
			{"GET", "/items/tool/ask", ""},
			{"DELETE", "/items/tool/ask", ""},
			{"POST", "/validate", compactJSON(valid)},
		}
		for _, r := range routes {
			w.clock.Step(time.Second)
			got := w.call(r.method, w.path("/sessions/{ns}/plain"+r.path), tokenOf(w, "plain"), r.body)
			expectProblem(got, http.StatusBadRequest, openapi.ProblemCodeInvalid, "Items are only available for Configuration Assistant sessions")
			got = w.call(r.method, w.path("/sessions/{ns}/nothing"+r.path), tokenOf(w, "helper"), r.body)
			expectProblem(got, http.StatusNotFound, openapi.ProblemCodeNotFound, "not found")
			for _, bad := range []string{"", "wrong", tokenOf(w, "plain")} {
				got = w.call(r.method, w.path(base+r.path), bad, r.body)
				expectProblem(got, http.StatusUnauthorized, openapi.ProblemCodeUnauthorized, badToken)
			}
		}
		Expect(into[openapi.ValidationResult](ask("POST", "/validate", valid))).To(Equal(openapi.ValidationResult{Valid: true, Problems: []openapi.ItemProblem{}}))
		Expect(reload(w, session).Status.Items).To(BeEmpty())
	}, NodeTimeout(time.Minute))

	It("are kept, valid or not", func(ctx context.Context) {
		w.ctx = ctx
		Expect(into[openapi.Items](ask("GET", "/items", nil)).Items).To(BeEmpty())
		broken := tool("ask", "one")
		broken["interpreter"] = "cobol"
		got := into[openapi.Item](put(broken))
		Expect(got.Valid).To(BeFalse())
		Expect(got.Problems).To(ContainElement(HaveField("Code", "INVALID_INTERPRETER")))
		Expect(into[openapi.Items](ask("GET", "/items", nil)).Items).To(Equal([]openapi.Item{got}))
		Expect(ask("GET", "/items/tool/ask", nil).body).To(MatchJSON(compactJSON(broken)))
		Expect(into[openapi.ValidationResult](ask("POST", "/validate", map[string]any{"type": "tool", "item": broken})).Valid).To(BeFalse())

		By("another content, and a base that does not hold")
		stale := ask("PUT", "/items", map[string]any{"type": "tool", "content": tool("ask", "two"), "baseRevision": "sha256:00"})
		expectProblem(stale, http.StatusConflict, openapi.ProblemCodeConflict, "another revision")
		Expect(into[openapi.Item](put(tool("ask", "two"))).Valid).To(BeTrue())
		Expect(reload(w, session).Status.Items).To(HaveLen(1))

		By("one that goes")
		expectProblem(ask("DELETE", "/items/tool/nothing", nil), http.StatusNotFound, openapi.ProblemCodeNotFound, "no draft of tool/nothing")
		Expect(ask("DELETE", "/items/tool/ask", nil).status).To(Equal(http.StatusNoContent))
		expectProblem(ask("GET", "/items/tool/ask", nil), http.StatusNotFound, openapi.ProblemCodeNotFound, "no draft")
		for _, r := range []reply{
			ask("PUT", "/items", `{"type":"workflow","content":{"name":"w"}}`), ask("GET", "/items/workflow/w", nil), ask("DELETE", "/items/rule/w", nil),
			ask("POST", "/validate", `{"type":"workflow","item":{"name":"w"}}`),
		} {
			expectProblem(r, http.StatusBadRequest, openapi.ProblemCodeInvalid, "use action-type or tool")
		}
		expectProblem(put(map[string]any{"name": "a", "parameters": 7}), http.StatusUnprocessableEntity, openapi.ProblemCodeInvalid, "cannot be kept")
	}, NodeTimeout(time.Minute))

	It("are an effect of the prompt that they are made for", func(ctx context.Context) {
		w.ctx = ctx
		Expect(put(tool("ask", "one")).status).To(Equal(http.StatusOK))
		w.prompt(session, "Draft")
		Expect(ask("POST", "/validate", map[string]any{"type": "tool", "item": tool("ask", "one")}).status).To(Equal(http.StatusOK))
		Expect(reload(w, session).Status.Prompt.Effect).To(BeFalse())
		Expect(put(tool("ask", "one")).status).To(Equal(http.StatusOK))
		Expect(reload(w, session).Status.Prompt.Effect).To(BeTrue())
	}, NodeTimeout(time.Minute))

	It("are 50 at most", func(ctx context.Context) {
		w.ctx = ctx
		now := reload(w, session)
		for i := range 50 {
			now.Status.Items = append(now.Status.Items, api.SessionItem{
				Type: api.ItemTool, Name: fmt.Sprintf("t-%d", i), ContentRevision: "r", Digest: "sha256:" + strings.Repeat("0", 64), Valid: true,
			})
		}
		Expect(k8s.Status().Update(ctx, now)).To(Succeed())
		expectProblem(put(tool("one-more", "x")), http.StatusRequestEntityTooLarge, openapi.ProblemCodeTooLarge, "has 50 drafts")
		Expect(put(tool("t-0", "x")).status).To(Equal(http.StatusOK))
	}, NodeTimeout(time.Minute))

	It("workbench 38: are applied for a person with the right, and only on what they were drafted for", func(ctx context.Context) {
		w.ctx = ctx
		existing := &api.Tool{ObjectMeta: meta(w, "say"), Spec: api.ToolSpec{Description: "Says", ScriptTemplate: "echo old"}}
		existing.Labels = map[string]string{"kept": "true"}
		Expect(k8s.Create(ctx, existing)).To(Succeed())
		alice := w.person("alice", allow("agentsessions", "get"), allow("tools", "create", "update"))
		bob := w.person("bob", allow("agentsessions", "get"))
		Expect(put(tool("say", "new")).status).To(Equal(http.StatusOK))
		Expect(put(tool("ask", "one")).status).To(Equal(http.StatusOK))
		broken := tool("broken", "x")
		broken["interpreter"] = "cobol"
		Expect(put(broken).status).To(Equal(http.StatusOK))
		apply := func(who string, names ...string) reply {
			GinkgoHelper()
			items := []any{}
			for _, name := range names {
				items = append(items, map[string]any{"type": "tool", "name": name})
			}
			return w.as(who, "POST", base+"/apply", map[string]any{"items": items})
		}
		expectProblem(w.call("POST", w.path(base+"/apply"), tokenOf(w, "helper"), `{"items":[]}`), http.StatusUnauthorized, openapi.ProblemCodeUnauthorized, badBearer)
		expectProblem(apply(bob, "say"), http.StatusForbidden, openapi.ProblemCodeForbidden, "may not update tools say")
		expectProblem(apply(bob, "ask"), http.StatusForbidden, openapi.ProblemCodeForbidden, "may not create tools")
		expectProblem(apply(alice), http.StatusBadRequest, openapi.ProblemCodeInvalid, "1 to 50")
		expectProblem(apply(alice, "ask", "ask"), http.StatusBadRequest, openapi.ProblemCodeInvalid, "twice")
		expectProblem(apply(alice, "ask", "nothing"), http.StatusNotFound, openapi.ProblemCodeNotFound, "no draft")
		refused := apply(alice, "ask", "broken")
		expectProblem(refused, http.StatusUnprocessableEntity, openapi.ProblemCodeInvalid, "tool/broken has errors")
		Expect(refused.problem().Problems).NotTo(BeEmpty())
		By("nothing was written")
		Expect(k8s.Get(ctx, keyOf(w, "ask"), &api.Tool{})).NotTo(Succeed())

		got := into[openapi.ApplicationResult](apply(alice, "ask", "say"))
		Expect(got.Applied).To(HaveLen(2))
		for i, name := range []string{"ask", "say"} {
			stored := &api.Tool{}
			Expect(k8s.Get(ctx, keyOf(w, name), stored)).To(Succeed())
			Expect(stored.Annotations).To(HaveKeyWithValue(api.AnnotationAppliedBy, w.username("alice")))
			Expect(got.Applied[i].ResourceVersion).To(Equal(stored.ResourceVersion))
		}
		Expect(reload(w, existing).Spec.ScriptTemplate).To(Equal("echo new"))
		Expect(reload(w, existing).Labels).To(HaveKeyWithValue("kept", "true"))
		draft := reload(w, session).Status.Items[0]
		Expect(draft.Applied.By).To(Equal(w.username("alice")))
		Expect(draft.Applied.ResourceVersion).To(Equal(draft.Base))

		By("a library object that somebody changed")
		changed := reload(w, existing)
		changed.Spec.Description = "Changed"
		Expect(k8s.Update(ctx, changed)).To(Succeed())
		Expect(put(tool("say", "newer")).status).To(Equal(http.StatusOK))
		Expect(reload(w, session).Status.Items[0].Applied).To(BeNil())
		expectProblem(apply(alice, "say"), http.StatusConflict, openapi.ProblemCodeConflict, "changed in the library")

		By("people may look at drafts")
		Expect(into[openapi.Items](w.as(bob, "GET", base+"/items", nil)).Items).To(HaveLen(3))
		Expect(w.as(bob, "GET", base+"/items/tool/ask", nil).status).To(Equal(http.StatusOK))
		expectProblem(w.as(w.person("carol"), "GET", base+"/items", nil), http.StatusForbidden, openapi.ProblemCodeForbidden, "may not get agentsessions")
	}, NodeTimeout(time.Minute))

	It("that the API server would refuse leave the library as it is", func(ctx context.Context) {
		w.ctx = ctx
		alice := w.person("alice", allow("agentsessions", "get"), allow("tools", "create"))
		Expect(put(tool("ask", "one")).status).To(Equal(http.StatusOK))
		Expect(put(tool("under_score", "one")).status).To(Equal(http.StatusOK)) // no name of an object
		got := w.as(alice, "POST", base+"/apply", `{"items":[{"type":"tool","name":"ask"},{"type":"tool","name":"under_score"}]}`)
		expectProblem(got, http.StatusUnprocessableEntity, openapi.ProblemCodeInvalid, "under_score")
		Expect(k8s.Get(ctx, keyOf(w, "ask"), &api.Tool{})).NotTo(Succeed())
	}, NodeTimeout(time.Minute))
})

package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/internal/token"
)

// route is one route with a body that is good enough to get past the syntax.
type route struct{ method, path, body string }

var (
	compositionRoutes = []route{
		{"GET", "/compositions/{ns}/triage/agent/composition", ""},
		{"POST", "/compositions/{ns}/triage/agent/workflow/changesets", "{}"},
		{"PUT", "/compositions/{ns}/triage/agent/items", `{"type":"tool","content":{"name":"ask"}}`},
		{"GET", "/compositions/{ns}/triage/agent/items/workflow/triage", ""},
		{"DELETE", "/compositions/{ns}/triage/agent/items/workflow/triage", ""},
	}
	sessionRoutes = []route{
		{"GET", "/sessions/{ns}/triage-agent", ""},
		{"GET", "/sessions/{ns}/triage-agent/prompts", ""},
		{"POST", "/sessions/{ns}/triage-agent/prompts/triage-1/ack", ""},
		{"POST", "/sessions/{ns}/triage-agent/prompts/triage-1/result", `{"outcome":"Completed"}`},
		{"POST", "/sessions/{ns}/triage-agent/events", `{"events":[]}`},
	}
	expressionRoute = route{"POST", "/expressions/evaluate", `{"expression":"1","scope":"action-input"}`}
	// namespaceRoutes are for any session, and for people.
	namespaceRoutes = []route{
		expressionRoute,
		{"GET", "/stream/events", ""},
		{"GET", "/stream/events/e1", ""},
		{"GET", "/library/tools", ""},
		{"GET", "/library/tools/ask", ""},
	}
	attemptRoute = route{"POST", "/attempts/{ns}/ship-a1/result", `{"exitCode":0}`}
)

func allRoutes() []route {
	return slices.Concat([]route{attemptRoute}, namespaceRoutes, compositionRoutes, sessionRoutes)
}

func (w *world) try(r route, presented string) reply {
	GinkgoHelper()
	return w.call(r.method, w.path(r.path), presented, r.body)
}

const badToken = "Missing or invalid X-Axiom-Session-Token"

var _ = Describe("Callers", func() {
	var w *world

	BeforeEach(func(ctx context.Context) {
		w = newWorld(ctx, interceptor.Funcs{})
		w.workbench()
		w.operate()
		w.composition("other", blank())
		w.session("other-agent", "other")
		w.attemptPod("ship-a1", nil)
		w.attemptPod("ship-a2", func(pod *corev1.Pod) {
			pod.Annotations[api.AnnotationTokenHash] = token.Hash("another-attempt-token")
		})
	}, NodeTimeout(time.Minute))

	It("workbench 43: attack: are turned away without the right token, on every route", func(ctx context.Context) {
		w.ctx = ctx
		mine := tokenOf(w, "triage-agent")
		for _, r := range allRoutes() {
			presented := map[string]string{
				"none": "", "wrong": "wrong", "the hash": token.Hash(mine), "nearly": mine + " x", "the attempt's hash": token.Hash("attempt-token"),
			}
			if !slices.Contains(namespaceRoutes, r) {
				presented["another session's"] = tokenOf(w, "other-agent")
				presented["another attempt's"] = "another-attempt-token"
			}
			for name, presentedToken := range presented {
				By(fmt.Sprintf("%s %s with %s", r.method, r.path, name))
				expectProblem(w.try(r, presentedToken), http.StatusUnauthorized, openapi.ProblemCodeUnauthorized, badToken)
			}
		}
	}, NodeTimeout(time.Minute))

	It("workbench 43: are let in with it", func(ctx context.Context) {
		w.ctx = ctx
		for _, r := range allRoutes() {
			presented := tokenOf(w, "triage-agent")
			if r == attemptRoute {
				presented = "attempt-token"
			}
			By(r.method + " " + r.path)
			got := w.try(r, presented)
			Expect(got.status).NotTo(Equal(http.StatusUnauthorized))
			Expect(got.body).NotTo(ContainSubstring("ession"), "it is about the caller")
		}
	}, NodeTimeout(time.Minute))

	It("attack: are turned away with a token that was revoked", func(ctx context.Context) {
		w.ctx = ctx
		session := reload(w, &api.AgentSession{ObjectMeta: meta(w, "triage-agent")})
		session.Status.TokenHash = ""
		Expect(k8s.Status().Update(ctx, session)).To(Succeed())
		for _, r := range slices.Concat(namespaceRoutes, compositionRoutes, sessionRoutes) {
			expectProblem(w.try(r, tokenOf(w, "triage-agent")), http.StatusUnauthorized, openapi.ProblemCodeUnauthorized, badToken)
		}
		Expect(k8s.Delete(ctx, &corev1.Pod{ObjectMeta: meta(w, "ship-a1")}, client.GracePeriodSeconds(0))).To(Succeed())
		expectProblem(w.try(attemptRoute, "attempt-token"), http.StatusUnauthorized, openapi.ProblemCodeUnauthorized, badToken)
	}, NodeTimeout(time.Minute))

	It("cannot tell an unknown composition or attempt from one that is not theirs", func(ctx context.Context) {
		w.ctx = ctx
		for known, unknown := range map[route]string{
			compositionRoutes[0]: "/compositions/{ns}/nothing/agent/composition",
			compositionRoutes[1]: "/compositions/{ns}/no%20name%2F/agent/workflow/changesets",
			attemptRoute:         "/attempts/{ns}/nothing/result",
		} {
			want := w.try(known, "wrong")
			got := w.try(route{known.method, unknown, known.body}, "wrong")
			Expect(got.status).To(Equal(want.status))
			Expect(got.body).To(Equal(want.body))
		}
	}, NodeTimeout(time.Minute))

	It("are told of an unknown session before their token counts", func(ctx context.Context) {
		w.ctx = ctx
		for _, r := range sessionRoutes {
			r.path = strings.Replace(r.path, "triage-agent", "nothing", 1)
			expectProblem(w.try(r, ""), http.StatusNotFound, openapi.ProblemCodeNotFound, "not found")
		}
	}, NodeTimeout(time.Minute))

	It("attack: need a session that is bound to the composition, not only named after it", func(ctx context.Context) {
		w.ctx = ctx
		w.composition("decoy", blank())
		w.session("decoy-agent", "")
		got := w.call("GET", w.path("/compositions/{ns}/decoy/agent/composition"), tokenOf(w, "decoy-agent"), nil)
		expectProblem(got, http.StatusUnauthorized, openapi.ProblemCodeUnauthorized, badToken)
	}, NodeTimeout(time.Minute))

	It("need the session of this composition, not of one that had its name", func(ctx context.Context) {
		w.ctx = ctx
		session := reload(w, &api.AgentSession{ObjectMeta: meta(w, "triage-agent")})
		for uid, isServed := range map[types.UID]OmegaMatcher{
			"of-the-one-before": Equal(http.StatusUnauthorized),
			reload(w, &api.Composition{ObjectMeta: meta(w, "triage")}).UID: Not(Equal(http.StatusUnauthorized)),
		} {
			controller := true
			session.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: api.GroupVersion.String(), Kind: "Composition", Name: "triage", UID: uid, Controller: &controller,
			}}
			Expect(k8s.Update(ctx, session)).To(Succeed())
			for _, r := range compositionRoutes {
				Expect(w.try(r, tokenOf(w, "triage-agent")).status).To(isServed, r.path)
			}
		}
	}, NodeTimeout(time.Minute))

	It("need a pod of an action, not any pod", func(ctx context.Context) {
		w.ctx = ctx
		w.attemptPod("agent-1", func(pod *corev1.Pod) { pod.Labels[api.LabelComponent] = api.ComponentAgent })
		got := w.call("POST", w.path("/attempts/{ns}/agent-1/result"), "attempt-token", `{"exitCode":0}`)
		expectProblem(got, http.StatusUnauthorized, openapi.ProblemCodeUnauthorized, badToken)
	}, NodeTimeout(time.Minute))
})

var _ = Describe("The guard", func() {
	It("attack: refuses bodies over the limit of their route before it asks who calls", func(ctx context.Context) {
		w := newWorld(ctx, interceptor.Funcs{})
		for _, r := range allRoutes() {
			limit := 64 << 10
			switch {
			case strings.HasSuffix(r.path, "/changesets"):
				limit = 512 << 10
			case r == expressionRoute, r == attemptRoute:
				limit = 384 << 10
			case strings.HasSuffix(r.path, "/agent/items"):
				limit = 160 << 10
			case r.method == "POST" && strings.HasSuffix(r.path, "/events"), strings.HasSuffix(r.path, "/result"):
				limit = 1 << 20
			}
			By(r.method + " " + r.path)
			r.body = strings.Repeat(" ", limit+1)
			expectProblem(w.try(r, ""), http.StatusRequestEntityTooLarge, openapi.ProblemCodeTooLarge, strconv.Itoa(limit))
			r.body = r.body[1:]
			Expect(w.try(r, "").status).To(BeElementOf(http.StatusUnauthorized, http.StatusNotFound))
		}
	}, NodeTimeout(time.Minute))

	It("attack: refuses a body of unknown length without reading it to its end", func(ctx context.Context) {
		w := newWorld(ctx, interceptor.Funcs{})
		endless := &endlessBody{}
		request, err := http.NewRequestWithContext(ctx, "POST", w.url+w.path(expressionRoute.path), endless)
		Expect(err).NotTo(HaveOccurred())
		response, err := issuer.Client().Do(request)
		Expect(err).NotTo(HaveOccurred())
		Expect(response.Body.Close()).To(Succeed())
		Expect(response.StatusCode).To(Equal(http.StatusRequestEntityTooLarge))
	}, NodeTimeout(time.Minute))

	It("slows a caller down that is too fast, and no other", func(ctx context.Context) {
		w := newWorld(ctx, interceptor.Funcs{})
		w.session("fast", "")
		w.session("slow", "")
		ask := func(name string) reply {
			return w.call("POST", w.path("/sessions/{ns}/"+name+"/prompts/x/ack"), tokenOf(w, name), nil)
		}
		for range 40 {
			Expect(ask("fast").status).To(Equal(http.StatusConflict))
		}
		refused := ask("fast")
		expectProblem(refused, http.StatusTooManyRequests, openapi.ProblemCodeRateLimited, "Too many requests")
		Expect(refused.header.Get("Retry-After")).To(Equal("1"))
		Expect(ask("slow").status).To(Equal(http.StatusConflict))
		w.clock.Step(50 * time.Millisecond)
		Expect(ask("fast").status).To(Equal(http.StatusConflict))
		Expect(ask("fast").status).To(Equal(http.StatusTooManyRequests))
	}, NodeTimeout(time.Minute))

	It("refuses what is no JSON, or lacks what it needs", func(ctx context.Context) {
		w := newWorld(ctx, interceptor.Funcs{})
		w.workbench()
		w.attemptPod("ship-a1", nil)
		session := "/sessions/{ns}/triage-agent"
		for _, tc := range []struct{ path, body, detail string }{
			{"/expressions/evaluate", "", "not JSON"},
			{"/expressions/evaluate", "{} {}", "not JSON"},
			{"/expressions/evaluate", "[]", "not an object"},
			{"/expressions/evaluate", `{"scope":"action-input"}`, "expression is required"},
			{"/expressions/evaluate", `{"expression":"1","scope":null}`, "scope is required"},
			{"/expressions/evaluate", `{"expression":1,"scope":"action-input"}`, "JSON"},
			{"/compositions/{ns}/triage/agent/workflow/changesets", "{", "not JSON"},
			{"/compositions/{ns}/triage/agent/workflow/changesets", `{"baseRevision":1e400}`, "not JSON"},
			{session + "/events", "{}", "events is required"},
			{session + "/events", `{"events":{}}`, "JSON"},
			{session + "/events", `{"events":[{"type":"x"}]}`, "events[0].sequence"},
			{session + "/events", `{"events":[{"sequence":1,"type":"x"},{"sequence":2,"type":""}]}`, "events[1].type"},
			{session + "/prompts/triage-1/result", "{}", "outcome is required"},
			{session + "/prompts/triage-1/result", `{"outcome":"Done"}`, "outcome must be"},
			{session + "/prompts/triage-1/result", `{"outcome":"Completed","usage":{"inputTokens":-1}}`, "tokens"},
			{session + "/prompts/triage-1/result", `{"outcome":"Completed","usage":{"costUSD":"1e5"}}`, "costUSD"},
			{session + "/prompts/triage-1/result", `{"outcome":"Completed","usage":{"duration":"long"}}`, "duration"},
			{"/attempts/{ns}/ship-a1/result", `{"outputs":{}}`, "exitCode is required"},
			{"/attempts/{ns}/ship-a1/result", `{"exitCode":0,"outputs":[]}`, "outputs must be an object"},
			{"/attempts/{ns}/ship-a1/result", `{"exitCode":0,"error":{}}`, "error.code"},
		} {
			By(tc.path + " " + tc.body)
			presented := tokenOf(w, "triage-agent")
			if strings.HasPrefix(tc.path, "/attempts") {
				presented = "attempt-token"
			}
			expectProblem(w.call("POST", w.path(tc.path), presented, tc.body), http.StatusBadRequest, openapi.ProblemCodeInvalid, tc.detail)
			w.clock.Step(time.Second)
		}
		for _, query := range []string{"after=x", "wait=56", "wait=-1", "after=-1"} {
			By(query)
			got := w.call("GET", w.path(session+"/prompts?"+query), tokenOf(w, "triage-agent"), nil)
			expectProblem(got, http.StatusBadRequest, openapi.ProblemCodeInvalid, "")
		}
	}, NodeTimeout(time.Minute))

	It("says when the API server is away", func(ctx context.Context) {
		isAway := false
		w := newWorld(ctx, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if isAway {
				return errors.New("connection refused by 10.0.0.1")
			}
			return c.Get(ctx, key, o, opts...)
		}})
		w.workbench()
		isAway = true
		for _, r := range append(append([]route{attemptRoute}, compositionRoutes...), sessionRoutes...) {
			got := w.try(r, tokenOf(w, "triage-agent"))
			expectProblem(got, http.StatusServiceUnavailable, openapi.ProblemCodeUnavailable, "try again")
			Expect(got.header.Get("Retry-After")).To(Equal("1"))
			Expect(got.body).NotTo(ContainSubstring("10.0.0.1"))
		}
	}, NodeTimeout(time.Minute))

	It("answers for itself", func(ctx context.Context) {
		w := newWorld(ctx, interceptor.Funcs{})
		Expect(w.call("GET", "/healthz", "", nil).status).To(Equal(http.StatusOK))
		Eventually(func(g Gomega) { g.Expect(w.call("GET", "/readyz", "", nil).status).To(Equal(http.StatusOK)) }).Should(Succeed())
		for _, path := range []string{"/", "/api/v1", "/api/v1/sessions", "/api/v2/expressions/evaluate"} {
			expectProblem(w.call("GET", path, "", nil), http.StatusNotFound, openapi.ProblemCodeNotFound, "No such route")
		}
	}, NodeTimeout(time.Minute))
})

// endlessBody is a body without an end.
type endlessBody struct{}

func (*endlessBody) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

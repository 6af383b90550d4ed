package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// Each request has all the faults of the later steps, as far as they go
// together, so that it is the order that decides.
var _ = Describe("The order of checks", func() {
	const (
		items     = "/compositions/{ns}/triage/agent/items"
		lateBase  = `"baseRevision":"sha256:00"`
		refusable = `"description":"` // and more than the API takes
	)
	var (
		w      *world
		comp   *api.Composition
		turn   *api.Turn
		isAway bool
	)
	long := strings.Repeat("d", 5000)
	// refused is a tool that the API server would not take.
	refused := func(name string) string {
		return fmt.Sprintf(`{"type":"tool",%s,"content":{"name":%q,%s%s"}}`, lateBase, name, refusable, long)
	}
	put := func(token, body string) reply {
		GinkgoHelper()
		return w.call("PUT", w.path(items), token, body)
	}
	fill := func() {
		GinkgoHelper()
		turn = reload(w, turn)
		for i := range turns.MaxItems {
			turn.Status.ItemWrites = append(turn.Status.ItemWrites, api.ItemWrite{
				Type: api.ItemTool, Name: fmt.Sprintf("t-%d", i), Action: api.ItemRemoved, State: api.ItemWritten,
			})
		}
		Expect(k8s.Status().Update(w.ctx, turn)).To(Succeed())
	}

	BeforeEach(func(ctx context.Context) {
		isAway = false
		w = newWorld(ctx, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if isAway {
					return errors.New("connection refused by 10.0.0.1")
				}
				return c.Create(ctx, o, opts...)
			},
		})
		comp = w.composition("triage", blank())
		comp.Spec.Tools = []api.NamedTool{{Name: "say", ToolSpec: api.ToolSpec{Description: "Says hi", ScriptTemplate: "echo hi"}}}
		Expect(k8s.Update(ctx, comp)).To(Succeed())
		w.operate()
		w.session("triage-agent", "triage")
		comp = w.observed(comp)
	}, NodeTimeout(time.Minute))

	It("workbench 44: is size, caller, rate, syntax, turn, request, existence, precondition, budget, content, API server", func(ctx context.Context) {
		w.ctx = ctx
		mine := tokenOf(w, "triage-agent")
		expect := func(got reply, status int, code openapi.ProblemCode, detail string) {
			GinkgoHelper()
			By(fmt.Sprint(status, " ", code))
			expectProblem(got, status, code, detail)
			wait := ""
			if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
				wait = "1"
			}
			Expect(got.header.Get("Retry-After")).To(Equal(wait))
			w.clock.Step(time.Second)
		}
		expect(put("wrong", strings.Repeat("{", 160<<10+1)), http.StatusRequestEntityTooLarge, openapi.ProblemCodeTooLarge, "163840")
		expect(put("wrong", "{"), http.StatusUnauthorized, openapi.ProblemCodeUnauthorized, badToken)
		w.clock.Step(time.Minute)
		for range 40 {
			Expect(put(mine, "{").status).To(Equal(http.StatusBadRequest))
		}
		expect(put(mine, "{"), http.StatusTooManyRequests, openapi.ProblemCodeRateLimited, "Too many requests")
		expect(put(mine, "{"), http.StatusBadRequest, openapi.ProblemCodeInvalid, "not JSON")
		expect(put(mine, `{"type":"tool"}`), http.StatusBadRequest, openapi.ProblemCodeInvalid, "content is required")
		expect(put(mine, `{"type":"rule","content":{"name":"say"}}`), http.StatusBadRequest, openapi.ProblemCodeInvalid, "Unknown type")
		expect(put(mine, `{"type":"workflow",`+lateBase+`,"content":{"name":"triage"}}`), http.StatusConflict, openapi.ProblemCodeNoTurn, "No AI turn is running")

		turn = w.turn(comp, "triage-1")
		fill()
		w.edit(comp, func(comp *api.Composition) { comp.Spec.Tools[0].ScriptTemplate = "echo edited" })
		isAway = true
		expect(put(mine, `{"type":"workflow",`+lateBase+`,"content":{"name":"triage"}}`), http.StatusBadRequest, openapi.ProblemCodeInvalid, "already has a workflow")
		expect(w.remove("workflow", "nothing", "?baseRevision=sha256:00"), http.StatusBadRequest, openapi.ProblemCodeInvalid, "cannot be removed")
		expect(w.remove("tool", "nothing", "?baseRevision=sha256:00"), http.StatusNotFound, openapi.ProblemCodeNotFound, "no tool/nothing")
		expect(put(mine, refused("say")), http.StatusConflict, openapi.ProblemCodeConflict, "tool/say was changed by the user during this turn")
		full := strings.Replace(refused("ask"), lateBase, `"baseRevision":""`, 1)
		expect(put(mine, full), http.StatusRequestEntityTooLarge, openapi.ProblemCodeTooLarge, "This turn is full; finish it and continue in a new turn")

		turn = reload(w, turn)
		turn.Status.ItemWrites = nil
		Expect(k8s.Status().Update(ctx, turn)).To(Succeed())
		unkept := strings.Replace(full, `"name":"ask"`, `"name":"ask","parameters":"none"`, 1)
		expect(put(mine, unkept), http.StatusUnprocessableEntity, openapi.ProblemCodeInvalid, "cannot be kept")
		expect(w.upsert("tool", tool("ask", "one")), http.StatusServiceUnavailable, openapi.ProblemCodeUnavailable, "try again in a moment")
		isAway = false
		expect(put(mine, full), http.StatusUnprocessableEntity, openapi.ProblemCodeInvalid, "spec.tools")
		Expect(reload(w, turn).Status).To(Equal(turn.Status), "nothing was recorded of what was refused")
		Expect(w.upsert("tool", tool("ask", "one")).status).To(Equal(http.StatusOK))
	}, NodeTimeout(time.Minute))

	It("workbench 44: is session, token or bearer, right, capability on the routes of a session", func(ctx context.Context) {
		w.ctx = ctx
		plain := w.person("plain", allow("streamevents", "list"))
		reader := w.person("reader", allow("agentsessions", "get"))
		apply := func(session, bearer string) reply {
			GinkgoHelper()
			return w.as(bearer, "POST", "/sessions/{ns}/"+session+"/apply", "{")
		}
		expectProblem(apply("nothing", "nonsense"), http.StatusNotFound, openapi.ProblemCodeNotFound, "not found")
		expectProblem(apply("triage-agent", "nonsense"), http.StatusUnauthorized, openapi.ProblemCodeUnauthorized, badBearer)
		expectProblem(apply("triage-agent", plain), http.StatusForbidden, openapi.ProblemCodeForbidden, "")
		expectProblem(apply("triage-agent", reader), http.StatusBadRequest, openapi.ProblemCodeInvalid, "Items are only available for Configuration Assistant sessions")
		session := reload(w, &api.AgentSession{ObjectMeta: meta(w, "triage-agent")})
		session.Status.Capabilities = []string{"config-items"}
		Expect(k8s.Status().Update(ctx, session)).To(Succeed())
		expectProblem(apply("triage-agent", reader), http.StatusBadRequest, openapi.ProblemCodeInvalid, "not JSON")
	}, NodeTimeout(time.Minute))
})

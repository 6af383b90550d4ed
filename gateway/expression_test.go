package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi"
)

var _ = Describe("Expressions", Ordered, func() {
	var w *world

	BeforeAll(func(ctx context.Context) {
		w = newWorld(ctx, interceptor.Funcs{})
		w.session("triage-agent", "triage")
		event := &api.StreamEvent{ObjectMeta: meta(w, "e1")}
		event.Spec = api.StreamEventSpec{
			ID: "e1", Type: "issue.comment.created", Source: "github", EventSourceID: "gh", Ref: "https://forge/1",
			Payload: raw(map[string]any{"comment": map[string]any{"body": "please close"}}),
		}
		Expect(k8s.Create(ctx, event)).To(Succeed())
	}, NodeTimeout(time.Minute))

	evaluate := func(ctx context.Context, body any) reply {
		GinkgoHelper()
		w.ctx = ctx
		w.clock.Step(time.Second)
		return w.call("POST", w.path("/expressions/evaluate"), tokenOf(w, "triage-agent"), body)
	}

	DescribeTable("have a value", func(ctx context.Context, body, valueJSON string, valueType openapi.ValueType) {
		Expect(into[openapi.EvaluationResult](evaluate(ctx, body))).To(Equal(
			openapi.EvaluationResult{Ok: true, ValueJSON: valueJSON, ValueType: valueType}))
	},
		Entry("workbench 47: of the context", `{"expression":"context.n + 1","scope":"action-input","context":{"n":41}}`, "42", openapi.ValueTypeNumber, NodeTimeout(time.Minute)),
		Entry("workbench 47: in a title", `{"expression":"'No reply on ' + context.ref","scope":"human-task-title","context":{"ref":"#1"}}`, `"No reply on #1"`, openapi.ValueTypeString, NodeTimeout(time.Minute)),
		Entry("workbench 47: of an event", `{"expression":"event.ref","scope":"correlation-event-key","eventId":"e1"}`, `"https://forge/1"`, openapi.ValueTypeString, NodeTimeout(time.Minute)),
		Entry("workbench 47: of its payload", `{"expression":"event.payload.comment.body","scope":"receive-event-output","eventId":"e1"}`, `"please close"`, openapi.ValueTypeString, NodeTimeout(time.Minute)),
		Entry("workbench 47: of an event in the context", `{"expression":"context.event.type","scope":"action-input","eventId":"e1"}`, `"issue.comment.created"`, openapi.ValueTypeString, NodeTimeout(time.Minute)),
		Entry("of the context's own event", `{"expression":"context.event","scope":"action-input","eventId":"e1","context":{"event":7}}`, "7", openapi.ValueTypeNumber, NodeTimeout(time.Minute)),
		Entry("that is a list", `{"expression":"[1, 'a']","scope":"action-input","context":null,"eventId":null}`, `[1,"a"]`, openapi.ValueTypeArray, NodeTimeout(time.Minute)),
	)

	DescribeTable("have none", func(ctx context.Context, body, message string) {
		got := into[openapi.EvaluationResult](evaluate(ctx, body))
		Expect(got.Ok).To(BeFalse())
		Expect(got.ValueType).To(BeEmpty())
		Expect(got.Error).To(ContainSubstring(message))
	},
		Entry("workbench 48: that do not compile", `{"expression":"context.(","scope":"action-input"}`, "compile expression", NodeTimeout(time.Minute)),
		Entry("that fail", `{"expression":"context.missing","scope":"action-input"}`, "missing", NodeTimeout(time.Minute)),
		Entry("workbench 48: without the event they need", `{"expression":"event.ref","scope":"correlation-event-key"}`, "needs an event", NodeTimeout(time.Minute)),
		Entry("of an unknown event", `{"expression":"event.ref","scope":"correlation-event-key","eventId":"e2"}`, "event e2 not found", NodeTimeout(time.Minute)),
		Entry("workbench 48: of an event with an ill-formed id", `{"expression":"event.ref","scope":"correlation-event-key","eventId":"../E 1"}`, "not the id of an event", NodeTimeout(time.Minute)),
		Entry("of an event whose id is no text", `{"expression":"1","scope":"action-input","eventId":7}`, "not the id of an event", NodeTimeout(time.Minute)),
		Entry("of a context that is no object", `{"expression":"1","scope":"action-input","context":[1]}`, "must be an object", NodeTimeout(time.Minute)),
		Entry("of a context that cannot be read", `{"expression":"1","scope":"action-input","context":{"n":1e999}}`, "context cannot be read", NodeTimeout(time.Minute)),
	)

	It("workbench 48: must not be blank, and need a scope", func(ctx context.Context) {
		expectProblem(evaluate(ctx, `{"expression":" \n","scope":"action-input"}`), http.StatusBadRequest, openapi.ProblemCodeInvalid, "blank")
		got := evaluate(ctx, `{"expression":"1","scope":"bogus"}`)
		for _, scope := range []string{
			"edge-condition", "action-input", "human-task-title", "correlation-subscription-key", "correlation-event-key",
			"receive-event-match", "receive-event-output",
		} {
			expectProblem(got, http.StatusBadRequest, openapi.ProblemCodeInvalid, scope)
		}
	}, NodeTimeout(time.Minute))

	It("see only events of the session's namespace", func(ctx context.Context) {
		other := newWorld(ctx, interceptor.Funcs{})
		other.session("triage-agent", "triage")
		got := other.call("POST", "/api/v1/expressions/evaluate", tokenOf(other, "triage-agent"),
			`{"expression":"event.ref","scope":"correlation-event-key","eventId":"e1"}`)
		Expect(into[openapi.EvaluationResult](got).Error).To(Equal("event e1 not found"))
	}, NodeTimeout(time.Minute))
})

var _ = Describe("The result of an attempt", func() {
	var w *world
	post := func(body any) reply {
		GinkgoHelper()
		return w.call("POST", w.path("/attempts/{ns}/ship-a1/result"), "attempt-token", body)
	}

	BeforeEach(func(ctx context.Context) {
		w = newWorld(ctx, interceptor.Funcs{})
	}, NodeTimeout(time.Minute))

	It("is kept once and for good", func(ctx context.Context) {
		w.ctx = ctx
		pod := w.attemptPod("ship-a1", nil)
		Expect(post(`{"exitCode":0,"outputs":{"b":1.0,"a":"<é>"}}`).status).To(Equal(http.StatusNoContent))
		By("an equal result")
		Expect(post(`{"outputs":{"a":"<\u00e9>","b":1},"exitCode":0}`).status).To(Equal(http.StatusNoContent))
		By("another result")
		for _, other := range []string{`{"exitCode":1,"outputs":{"a":"<é>","b":1}}`, `{"exitCode":0}`, `{"exitCode":0,"outputs":{}}`} {
			expectProblem(post(other), http.StatusConflict, openapi.ProblemCodeConflict, "another result")
		}
		kept := w.result()
		Expect(kept.Data["result.json"]).To(MatchJSON(`{"exitCode":0,"outputs":{"a":"<é>","b":1}}`))
		Expect(*kept.Immutable).To(BeTrue())
		Expect(kept.Labels).To(Equal(map[string]string{api.LabelRun: "run-uid"}))
		Expect(kept.OwnerReferences).To(Equal(pod.OwnerReferences))
	}, NodeTimeout(time.Minute))

	It("may be a failure", func(ctx context.Context) {
		w.ctx = ctx
		w.attemptPod("ship-a1", nil)
		Expect(post(`{"exitCode":3,"error":{"code":"INVALID_RESULT","message":"no object"}}`).status).To(Equal(http.StatusNoContent))
		Expect(w.result().Data["result.json"]).To(MatchJSON(`{"exitCode":3,"error":{"code":"INVALID_RESULT","message":"no object"}}`))
	}, NodeTimeout(time.Minute))

	It("has no place without a run", func(ctx context.Context) {
		w.ctx = ctx
		w.attemptPod("ship-a1", withoutOwner)
		expectProblem(post(`{"exitCode":0}`), http.StatusConflict, openapi.ProblemCodeConflict, "belongs to no run")
	}, NodeTimeout(time.Minute))

	It("does not take what belongs to somebody else for its own", func(ctx context.Context) {
		w.ctx = ctx
		w.attemptPod("ship-a1", nil)
		Expect(k8s.Create(ctx, configMap(w, "ship-a1", map[string]string{"result.json": `{"exitCode":0}`}))).To(Succeed())
		expectProblem(post(`{"exitCode":0}`), http.StatusConflict, openapi.ProblemCodeConflict, "another result")
	}, NodeTimeout(time.Minute))

	It("may have as much as its limit", func(ctx context.Context) {
		w.ctx = ctx
		w.attemptPod("ship-a1", nil)
		body := fmt.Sprintf(`{"exitCode":0,"outputs":{"t":%q}}`, string(make256KiB()))
		Expect(post(body).status).To(Equal(http.StatusNoContent))
	}, NodeTimeout(time.Minute))
})

func make256KiB() []byte {
	text := make([]byte, 256<<10)
	for i := range text {
		text[i] = 'x'
	}
	return text
}

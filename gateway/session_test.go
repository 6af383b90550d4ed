package gateway_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/journal"
	"github.com/apitomy/axiom-operator/internal/journal/store"
)

// serve calls the handler with a context of the test's own, as the agent.
func (w *world) serve(ctx context.Context, method, path string, body any) {
	GinkgoHelper()
	request := httptest.NewRequestWithContext(ctx, method, w.path(path), bodyOf(body))
	request.Header.Set("X-Axiom-Session-Token", tokenOf(w, "triage-agent"))
	w.server.Handler().ServeHTTP(httptest.NewRecorder(), request)
}

func (w *world) asRunner(method, path string, body any) reply {
	GinkgoHelper()
	w.clock.Step(time.Second)
	return w.call(method, w.path("/sessions/{ns}/triage-agent"+path), tokenOf(w, "triage-agent"), body)
}

var _ = Describe("The session's configuration", func() {
	It("tells the runner how to set its agent up", func(ctx context.Context) {
		w := newWorld(ctx, interceptor.Funcs{})
		w.session("triage-agent", "triage")
		Expect(into[openapi.Session](w.asRunner("GET", "", nil))).To(Equal(openapi.Session{
			SystemPrompt:     "You build workflows.",
			AllowedTools:     []string{"mcp__workbench__get_composition", "Bash(jq *)"},
			ToolNamePatterns: []string{},
			MCPServers:       []openapi.MCPServer{{Name: "docs", URL: "https://docs.example"}, {Name: "@axiom-workbench"}},
			PermissionPolicy: openapi.PermissionPolicyAllowlist,
			TurnTimeout:      "30m0s",
			Capabilities:     []string{"composition"},
		}))
		Expect(w.asRunner("POST", "/events", batch(1, 2)).status).To(Equal(http.StatusOK))
		Expect(into[openapi.Session](w.asRunner("GET", "", nil)).RunnerSequence).To(Equal(int64(2)))
	}, NodeTimeout(time.Minute))

	It("allows nothing inside a run", func(ctx context.Context) {
		w := newWorld(ctx, interceptor.Funcs{})
		session := &api.AgentSession{ObjectMeta: meta(w, "triage-agent")}
		session.Spec = api.AgentSessionSpec{
			TemplateRef: api.LocalRef{Name: "axiom-workbench"}, RunRef: &api.LocalRef{Name: "run"},
			TurnTimeout: &metav1.Duration{Duration: time.Minute},
		}
		w.create(session)
		got := into[openapi.Session](w.asRunner("GET", "", nil))
		Expect(got.PermissionPolicy).To(Equal(openapi.PermissionPolicyRefuse))
		Expect(got.TurnTimeout).To(Equal("1m0s"))
	}, NodeTimeout(time.Minute))

	It("needs its template", func(ctx context.Context) {
		w := newWorld(ctx, interceptor.Funcs{})
		session := &api.AgentSession{ObjectMeta: meta(w, "triage-agent")}
		session.Spec.TemplateRef.Name = "gone"
		w.create(session)
		expectProblem(w.asRunner("GET", "", nil), http.StatusNotFound, openapi.ProblemCodeNotFound, "template gone not found")
	}, NodeTimeout(time.Minute))
})

var _ = Describe("Prompts", func() {
	var w *world
	var session *api.AgentSession

	BeforeEach(func(ctx context.Context) {
		w = newWorld(ctx, interceptor.Funcs{})
		session = w.session("triage-agent", "triage")
	}, NodeTimeout(time.Minute))

	poll := func(query string) <-chan reply {
		answered := make(chan reply, 1)
		go func() {
			defer GinkgoRecover()
			answered <- w.call("GET", w.path("/sessions/{ns}/triage-agent/prompts?"+query), tokenOf(w, "triage-agent"), nil)
		}()
		return answered
	}
	waiting := func() {
		GinkgoHelper()
		Eventually(func(g Gomega) {
			g.Expect(w.server.Listeners()).To(Equal(1))
			g.Expect(w.clock.HasWaiters()).To(BeTrue())
		}).Should(Succeed())
	}
	change := func(f func(*api.AgentSessionStatus)) {
		GinkgoHelper()
		fresh := reload(w, session)
		f(&fresh.Status)
		Expect(k8s.Status().Update(w.ctx, fresh)).To(Succeed())
	}

	It("come at once when there is one that the runner does not know", func(ctx context.Context) {
		w.ctx = ctx
		Expect(w.asRunner("GET", "/prompts", nil).status).To(Equal(http.StatusNoContent))
		w.prompt(session, "Héllo\n")
		want := openapi.Prompt{Sequence: 1, ID: "triage-1", Text: "Héllo\n"}
		for range 2 {
			Expect(into[openapi.Prompt](w.asRunner("GET", "/prompts?after=0", nil))).To(Equal(want))
		}
		Expect(w.asRunner("GET", "/prompts?after=1", nil).status).To(Equal(http.StatusNoContent))
		change(func(s *api.AgentSessionStatus) { s.Prompt.State, s.Prompt.Attempt = api.PromptDelivered, 1 })
		Expect(into[openapi.Prompt](w.asRunner("GET", "/prompts?after=0", nil))).To(Equal(want))
		change(func(s *api.AgentSessionStatus) { s.Prompt.State = api.PromptDone })
		Expect(w.asRunner("GET", "/prompts?after=0", nil).status).To(Equal(http.StatusNoContent))
	}, NodeTimeout(time.Minute))

	It("wake a runner that waits", func(ctx context.Context) {
		w.ctx = ctx
		answered := poll("after=0&wait=55")
		waiting()
		w.prompt(session, "Hello")
		Expect(into[openapi.Prompt](<-answered).ID).To(Equal("triage-1"))
		Expect(w.server.Listeners()).To(BeZero())
	}, NodeTimeout(time.Minute))

	It("wake it again when they shall be cancelled", func(ctx context.Context) {
		w.ctx = ctx
		w.prompt(session, "Hello")
		answered := poll("after=1&wait=55")
		waiting()
		change(func(s *api.AgentSessionStatus) { s.Prompt.Cancel = true })
		got := into[openapi.Prompt](<-answered)
		Expect(got.Sequence).To(Equal(int64(1)))
		Expect(got.Cancel).To(BeTrue())
		change(func(s *api.AgentSessionStatus) { s.Prompt.State = api.PromptDone })
		Expect(w.asRunner("GET", "/prompts?after=1", nil).status).To(Equal(http.StatusNoContent))
	}, NodeTimeout(time.Minute))

	It("are waited for no longer than asked", func(ctx context.Context) {
		w.ctx = ctx
		answered := poll("after=0&wait=10")
		waiting()
		w.clock.Step(10 * time.Second)
		Expect((<-answered).status).To(Equal(http.StatusNoContent))
	}, NodeTimeout(time.Minute))

	It("are not for a runner whose token is revoked while it waits", func(ctx context.Context) {
		w.ctx = ctx
		answered := poll("after=0&wait=55")
		waiting()
		change(func(s *api.AgentSessionStatus) { s.TokenHash = "" })
		expectProblem(<-answered, http.StatusUnauthorized, openapi.ProblemCodeUnauthorized, badToken)
	}, NodeTimeout(time.Minute))

	It("are not waited for by a caller that is gone", func(ctx context.Context) {
		w.ctx = ctx
		gone, cancel := context.WithCancel(ctx)
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			w.serve(gone, "GET", "/sessions/{ns}/triage-agent/prompts?wait=55", nil)
		}()
		waiting()
		cancel()
		Eventually(answered).Should(BeClosed())
		Expect(w.server.Listeners()).To(BeZero())
	}, NodeTimeout(time.Minute))

	It("are acknowledged, any number of times", func(ctx context.Context) {
		w.ctx = ctx
		w.prompt(session, "Hello")
		for range 2 {
			Expect(w.asRunner("POST", "/prompts/triage-1/ack", nil).status).To(Equal(http.StatusNoContent))
			got := reload(w, session).Status.Prompt
			Expect(got.State).To(Equal(api.PromptDelivered))
			Expect(got.Attempt).To(Equal(int32(1)))
		}
		before := reload(w, session)
		Expect(w.asRunner("POST", "/prompts/triage-1/ack", nil).status).To(Equal(http.StatusNoContent))
		Expect(reload(w, session).ResourceVersion).To(Equal(before.ResourceVersion))
		expectProblem(w.asRunner("POST", "/prompts/triage-2/ack", nil), http.StatusConflict, openapi.ProblemCodeConflict, "triage-2 is not the current one")
	}, NodeTimeout(time.Minute))

	It("are acknowledged anew by a new pod", func(ctx context.Context) {
		w.ctx = ctx
		w.prompt(session, "Hello")
		Expect(w.asRunner("POST", "/prompts/triage-1/ack", nil).status).To(Equal(http.StatusNoContent))
		change(func(s *api.AgentSessionStatus) { s.Attempt = 2 })
		Expect(w.asRunner("POST", "/prompts/triage-1/ack", nil).status).To(Equal(http.StatusNoContent))
		Expect(reload(w, session).Status.Prompt.Attempt).To(Equal(int32(2)))
	}, NodeTimeout(time.Minute))

	It("workbench 46: are finished once, and equal results may be repeated", func(ctx context.Context) {
		w.ctx = ctx
		w.prompt(session, "Hello")
		result := map[string]any{
			"outcome": "Completed", "stopReason": "end_turn", "reply": "Done.",
			"usage": map[string]any{"inputTokens": 5120, "costUSD": "0.0312", "duration": "64s"},
		}
		for range 2 {
			Expect(w.asRunner("POST", "/prompts/triage-1/result", result).status).To(Equal(http.StatusNoContent))
		}
		got := reload(w, session).Status.Prompt
		Expect(got.State).To(Equal(api.PromptDone))
		Expect(*got.Result).To(Equal(api.PromptResult{
			Outcome: api.OutcomeCompleted, StopReason: "end_turn", Reply: "Done.",
			Usage: &api.Usage{InputTokens: 5120, CostUSD: "0.0312", Duration: &metav1.Duration{Duration: 64 * time.Second}},
		}))
		Expect(reload(w, session).Status.Usage).To(Equal(&api.Usage{
			Turns: 1, InputTokens: 5120, CostUSD: "0.0312", Duration: &metav1.Duration{Duration: 64 * time.Second},
		}), "a repeated result counts once")
		result["reply"] = "Something else."
		expectProblem(w.asRunner("POST", "/prompts/triage-1/result", result), http.StatusConflict, openapi.ProblemCodeConflict, "another result")
		expectProblem(w.asRunner("POST", "/prompts/triage-2/result", result), http.StatusConflict, openapi.ProblemCodeConflict, "not the current one")
		Expect(w.asRunner("POST", "/prompts/triage-1/ack", nil).status).To(Equal(http.StatusNoContent))
		Expect(reload(w, session).Status.Prompt).To(Equal(got))
	}, NodeTimeout(time.Minute))

	It("keep long texts by reference, and cut what only explains", func(ctx context.Context) {
		w.ctx = ctx
		w.prompt(session, "Hello")
		result := map[string]any{
			"outcome": "Failed", "reply": strings.Repeat("é", 3000), "detail": strings.Repeat("ö", 5000), "stopReason": strings.Repeat("s", 100),
		}
		for range 2 {
			Expect(w.asRunner("POST", "/prompts/triage-1/result", result).status).To(Equal(http.StatusNoContent))
		}
		got := reload(w, session).Status.Prompt.Result
		Expect(got.Reply).To(BeEmpty())
		Expect(got.Detail).To(Equal(strings.Repeat("ö", 4096)))
		Expect(got.StopReason).To(HaveLen(64))
		text, err := content.Store{Client: k8s}.Get(ctx, w.namespace, got.ReplyRef.Digest)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).To(Equal(strings.Repeat("é", 3000)))
	}, NodeTimeout(time.Minute))

	It("are finished although others write the session's status", func(ctx context.Context) {
		rivals := 3
		w = newWorld(ctx, interceptor.Funcs{SubResourceUpdate: func(
			ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption,
		) error {
			if rivals > 0 {
				rivals--
				rival := reload(w, o.(*api.AgentSession))
				rival.Status.FailedStarts++
				Expect(k8s.Status().Update(ctx, rival)).To(Succeed())
			}
			return c.SubResource(sub).Update(ctx, o, opts...)
		}})
		session = w.session("triage-agent", "triage")
		w.prompt(session, "Hello")
		Expect(w.asRunner("POST", "/prompts/triage-1/result", `{"outcome":"Completed"}`).status).To(Equal(http.StatusNoContent))
		got := reload(w, session).Status
		Expect(got.Prompt.State).To(Equal(api.PromptDone))
		Expect(got.FailedStarts).To(Equal(int32(3)))
	}, NodeTimeout(time.Minute))
})

func (w *world) create(session *api.AgentSession) {
	GinkgoHelper()
	Expect(k8s.Create(w.ctx, session)).To(Succeed())
	session.Status = api.AgentSessionStatus{Capabilities: []string{}, Attempt: 1, TokenHash: hashOf(tokenOf(w, session.Name))}
	Expect(k8s.Status().Update(w.ctx, session)).To(Succeed())
}

// batch is a batch of plain events with the sequences.
func batch(sequences ...int64) map[string]any {
	events := []any{}
	for _, sequence := range sequences {
		events = append(events, map[string]any{"sequence": sequence, "type": "assistant_text", "data": map[string]any{"text": strconv.FormatInt(sequence, 10)}})
	}
	return map[string]any{"events": events}
}

var _ = Describe("Events", func() {
	var w *world
	var session *api.AgentSession

	BeforeEach(func(ctx context.Context) {
		w = newWorld(ctx, interceptor.Funcs{})
		session = w.session("triage-agent", "triage")
	}, NodeTimeout(time.Minute))

	send := func(body any) int64 {
		GinkgoHelper()
		return into[openapi.EventReceipt](w.asRunner("POST", "/events", body)).AcceptedThrough
	}
	texts := func() []string {
		GinkgoHelper()
		events, err := store.Store{Client: k8s, Reader: k8s}.Load(w.ctx, reload(w, session))
		Expect(err).NotTo(HaveOccurred())
		var all []string
		for _, event := range events {
			all = append(all, event.Data["text"].(string))
		}
		return all
	}
	chunks := func() []corev1.ConfigMap {
		GinkgoHelper()
		list := &corev1.ConfigMapList{}
		Expect(k8s.List(w.ctx, list, client.InNamespace(w.namespace), client.MatchingLabels{store.LabelJournal: string(session.UID)})).To(Succeed())
		return list.Items
	}

	It("workbench 46: are kept once and in order, whatever is repeated", func(ctx context.Context) {
		w.ctx = ctx
		Expect(send(batch())).To(BeZero())
		Expect(chunks()).To(BeEmpty())
		Expect(send(batch(1, 2))).To(Equal(int64(2)))
		Expect(send(batch(1, 2))).To(Equal(int64(2)))
		Expect(send(batch(2, 3))).To(Equal(int64(3)))
		Expect(send(batch())).To(Equal(int64(3)))
		Expect(texts()).To(Equal([]string{"1", "2", "3"}))
	}, NodeTimeout(time.Minute))

	It("workbench 46: must not leave a gap", func(ctx context.Context) {
		w.ctx = ctx
		send(batch(1))
		for _, sequences := range [][]int64{{3}, {2, 4}, {1, 3}} {
			got := w.asRunner("POST", "/events", batch(sequences...))
			expectProblem(got, http.StatusConflict, openapi.ProblemCodeConflict, "expected sequence")
			Expect(got.problem().Expected).To(BeElementOf("2", "3"))
			Expect(texts()).To(Equal([]string{"1"}))
		}
		Expect(w.asRunner("POST", "/events", batch(2, 4)).problem()).To(And(HaveField("Expected", "3"), HaveField("Actual", "4")))
	}, NodeTimeout(time.Minute))

	It("are numbered anew by each pod", func(ctx context.Context) {
		w.ctx = ctx
		send(batch(1, 2))
		fresh := reload(w, session)
		fresh.Status.Attempt = 2
		Expect(k8s.Status().Update(ctx, fresh)).To(Succeed())
		Expect(send(batch())).To(BeZero())
		Expect(send(batch(1))).To(Equal(int64(1)))
		Expect(texts()).To(Equal([]string{"1", "2", "1"}))
		Expect(chunks()[0].Annotations).To(And(
			HaveKeyWithValue("axiom.apitomy.io/journal-first", "1"), HaveKeyWithValue("axiom.apitomy.io/journal-last", "3"),
			HaveKeyWithValue("axiom.apitomy.io/journal-position", "2/1")))
	}, NodeTimeout(time.Minute))

	It("workbench 42: fill chunk after chunk", func(ctx context.Context) {
		w.ctx = ctx
		long := func(sequence int64) map[string]any {
			return map[string]any{"sequence": sequence, "type": "assistant_text", "data": map[string]any{"text": fmt.Sprintf("%07d", sequence) + strings.Repeat("x", 7900)}}
		}
		var events []any
		for sequence := range int64(30) {
			events = append(events, long(sequence+1))
		}
		Expect(send(map[string]any{"events": events})).To(Equal(int64(30)))
		Expect(send(batch(31))).To(Equal(int64(31)))
		got := chunks()
		Expect(len(got)).To(BeNumerically(">=", 4))
		for _, chunk := range got {
			Expect(len(chunk.Data[store.Key])).To(BeNumerically("<=", journal.MaxChunk))
			Expect(chunk.Name).To(HavePrefix("triage-agent-journal-"))
			Expect(metav1.IsControlledBy(&chunk, session)).To(BeTrue())
		}
		all := texts()
		Expect(all).To(HaveLen(31))
		for i, text := range all[:30] {
			Expect(text).To(HavePrefix(fmt.Sprintf("%07d", i+1)))
		}
	}, NodeTimeout(time.Minute))

	It("workbench 42: go with the oldest of more than 64 chunks", func(ctx context.Context) {
		w.ctx = ctx
		journals := store.Store{Client: k8s, Reader: k8s}
		live := reload(w, session)
		var list []any
		for range 5 {
			list = append(list, strings.Repeat("x", 8000))
		}
		event := journal.Event{Type: "tool_result", Data: map[string]any{"text": "t", "list": list}} // more than half a chunk
		for sequence := range int64(70) {
			_, err := journals.Append(ctx, live, []journal.Entry{{Event: event, Sequence: sequence + 1}})
			Expect(err).NotTo(HaveOccurred())
		}
		got := chunks()
		Expect(got).To(HaveLen(64))
		numbers := map[string]bool{}
		for _, chunk := range got {
			numbers[chunk.Annotations["axiom.apitomy.io/journal-chunk"]] = true
		}
		Expect(numbers).To(And(HaveKey("7"), HaveKey("70"), Not(HaveKey("6"))))
		Expect(texts()).To(HaveLen(64))
		Expect(send(batch(71))).To(Equal(int64(71)))
	}, NodeTimeout(2*time.Minute))

	It("that are no objects, or hardly JSON, count as empty", func(ctx context.Context) {
		w.ctx = ctx
		Expect(send(`{"events":[{"sequence":1,"type":"a"},{"sequence":2,"type":"b","data":[1]},{"sequence":3,"type":"c","data":{"n":1e999}}]}`)).To(Equal(int64(3)))
		events, err := store.Store{Client: k8s, Reader: k8s}.Load(ctx, reload(w, session))
		Expect(err).NotTo(HaveOccurred())
		Expect(events).To(HaveLen(3))
		Expect(events).To(HaveEach(HaveField("Data", BeEmpty())))
	}, NodeTimeout(time.Minute))

	It("make the session ready when its agent is", func(ctx context.Context) {
		w.ctx = ctx
		ready := `{"events":[{"sequence":1,"type":"session_init","data":{"agent":"a","protocolVersion":1,"attempt":1}}]}`
		gap := strings.Replace(ready, `"sequence":1`, `"sequence":2`, 1)
		Expect(w.asRunner("POST", "/events", gap).status).To(Equal(http.StatusConflict))
		Expect(reload(w, session).Status.ReadyAttempt).To(BeZero())
		for range 2 {
			send(ready)
			Expect(reload(w, session).Status.ReadyAttempt).To(Equal(int32(1)))
		}
	}, NodeTimeout(time.Minute))

	It("workbench 27: fail the prompt that an agent left behind untaken when its process ended", func(ctx context.Context) {
		w.ctx = ctx
		ended := func(sequence int) string {
			return fmt.Sprintf(`{"events":[{"sequence":%d,"type":"session_ended","data":{"exitCode":3}}]}`, sequence)
		}
		send(ended(1)) // nothing was asked yet
		w.prompt(session, "Hello")
		send(ended(1)) // which is old news
		Expect(reload(w, session).Status.Prompt.State).To(Equal(api.PromptQueued))
		send(ended(2))
		Expect(*reload(w, session).Status.Prompt).To(And(
			HaveField("State", api.PromptDone), HaveField("Result.Outcome", api.OutcomeFailed), HaveField("Attempt", int32(1)),
		))
	}, NodeTimeout(time.Minute))

	It("workbench 15: leave the prompt that an agent took to its runner's result; ProviderRetry fails nothing", func(ctx context.Context) {
		w.ctx = ctx
		w.prompt(session, "Hello")
		Expect(w.asRunner("POST", "/prompts/triage-1/ack", nil).status).To(Equal(http.StatusNoContent))
		send(`{"events":[{"sequence":1,"type":"session_error","data":{"name":"ProviderRetry","message":"busy"}},{"sequence":2,"type":"session_ended"}]}`)
		Expect(reload(w, session).Status.Prompt.State).To(Equal(api.PromptDelivered))
	}, NodeTimeout(time.Minute))

	It("make it ready although the journal cannot be written", func(ctx context.Context) {
		w = newWorld(ctx, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return errors.New("disk full")
		}})
		session = w.session("triage-agent", "triage")
		got := w.asRunner("POST", "/events", `{"events":[{"sequence":1,"type":"session_init"}]}`)
		expectProblem(got, http.StatusServiceUnavailable, openapi.ProblemCodeUnavailable, "try again")
		Expect(reload(w, session).Status.ReadyAttempt).To(Equal(int32(1)))
	}, NodeTimeout(time.Minute))

	It("are signs of activity, written once a minute", func(ctx context.Context) {
		w.ctx = ctx
		send(batch())
		Expect(reload(w, session).Status.LastActivityAt).To(BeNil())
		send(batch(1))
		first := reload(w, session).Status.LastActivityAt
		Expect(first.Time).To(BeTemporally("==", w.clock.Now()))
		w.clock.Step(50 * time.Second)
		send(batch(2))
		Expect(reload(w, session).Status.LastActivityAt).To(Equal(first))
		w.clock.Step(10 * time.Second)
		send(batch(3))
		Expect(reload(w, session).Status.LastActivityAt.Time).To(BeTemporally("==", w.clock.Now()))
	}, NodeTimeout(time.Minute))

	It("of two senders are appended once", func(ctx context.Context) {
		both := newBarrier(2)
		w = newWorld(ctx, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			both.wait()
			return c.Create(ctx, o, opts...)
		}})
		session = w.session("triage-agent", "triage")
		receipts := make(chan reply, 2)
		for range 2 {
			go func() {
				defer GinkgoRecover()
				receipts <- w.call("POST", w.path("/sessions/{ns}/triage-agent/events"), tokenOf(w, "triage-agent"), batch(1, 2))
			}()
		}
		for range 2 {
			Expect(into[openapi.EventReceipt](<-receipts).AcceptedThrough).To(Equal(int64(2)))
		}
		Expect(texts()).To(Equal([]string{"1", "2"}))
	}, NodeTimeout(time.Minute))

	It("find their way to a chunk that another writer began meanwhile", func(ctx context.Context) {
		began := false
		w = newWorld(ctx, interceptor.Funcs{Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if !began {
				began = true
				_, err := store.Store{Client: k8s, Reader: k8s}.Append(ctx, reload(w, session), []journal.Entry{{
					Event: journal.Event{Type: "assistant_text", Data: map[string]any{"text": "2", "list": slicesOf(8000, 8)}}, Sequence: 2,
				}})
				Expect(err).NotTo(HaveOccurred())
			}
			return c.Update(ctx, o, opts...)
		}})
		session = w.session("triage-agent", "triage")
		first := strings.Repeat("1", 2000) // so that what the rival adds does not fit behind it
		send(fmt.Sprintf(`{"events":[{"sequence":1,"type":"assistant_text","data":{"text":%q}}]}`, first))
		Expect(send(batch(2, 3))).To(Equal(int64(3)))
		Expect(chunks()).To(HaveLen(2))
		Expect(texts()).To(Equal([]string{first, "2", "3"}))
	}, NodeTimeout(time.Minute))
})

func slicesOf(size, n int) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = strings.Repeat("x", size)
	}
	return list
}

var _ = Describe("A server that shuts down", func() {
	It("sends those who wait away, and then ends", func(ctx context.Context) {
		w := newWorld(ctx, interceptor.Funcs{})
		w.session("triage-agent", "triage")
		certificate := issuer.TLS.Certificates[0]
		serving, stop := context.WithCancel(ctx)
		server := w.tlsServer(&certificate)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(serving, listener) }()

		answered := make(chan int, 1)
		go func() {
			defer GinkgoRecover()
			request, err := http.NewRequestWithContext(ctx, "GET", "https://"+listener.Addr().String()+w.path("/sessions/{ns}/triage-agent/prompts?wait=55"), nil)
			Expect(err).NotTo(HaveOccurred())
			request.Header.Set("X-Axiom-Session-Token", tokenOf(w, "triage-agent"))
			response, err := issuer.Client().Do(request)
			Expect(err).NotTo(HaveOccurred())
			Expect(response.TLS.Version).To(BeNumerically(">=", tls.VersionTLS12))
			Expect(response.Body.Close()).To(Succeed())
			answered <- response.StatusCode
		}()
		Eventually(server.Listeners).Should(Equal(1))
		stop()
		Expect(<-answered).To(Equal(http.StatusNoContent))
		Expect(<-ended).NotTo(HaveOccurred())
	}, NodeTimeout(time.Minute))

	It("reports an address that is taken", func(ctx context.Context) {
		w := newWorld(ctx, interceptor.Funcs{})
		Expect(w.tlsServer(nil).Start(ctx)).To(MatchError(ContainSubstring("listen")))
		Expect(w.server.NeedLeaderElection()).To(BeFalse())
	}, NodeTimeout(time.Minute))
})

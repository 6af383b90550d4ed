package gateway_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/client"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/internal/journal/store"
	"github.com/apitomy/axiom-operator/runner/events"
	"github.com/apitomy/axiom-operator/runner/redact"
)

var _ = Describe("The runner's sender", func() {
	It("workbench 40: brings newlines and 200 events in order with a flush, and may be closed twice", func(ctx context.Context) {
		w := newWorld(ctx, interceptor.Funcs{})
		session := w.session("triage-agent", "triage")
		gateway, err := client.NewOver(issuer.Client().Transport, w.url+"/api/v1", tokenOf(w, "triage-agent"))
		Expect(err).NotTo(HaveOccurred())
		queue := events.Start(ctx, events.Config{
			Append: func(ctx context.Context, batch []openapi.Event) (int64, error) {
				return gateway.AppendEvents(ctx, w.namespace, "triage-agent", batch)
			},
			Redactor: redact.New(nil), Log: slog.New(slog.DiscardHandler),
		})
		var want []string
		for i := range 200 {
			text := fmt.Sprintf("line %d\nand another\r\n\u2028end\n", i)
			queue.Add("assistant_text", map[string]any{"text": text})
			want = append(want, text)
		}
		queue.Flush(ctx)
		loaded, err := store.Store{Client: k8s, Reader: k8s}.Load(ctx, session)
		Expect(err).NotTo(HaveOccurred())
		var got []string
		for _, event := range loaded {
			got = append(got, event.Data["text"].(string))
		}
		Expect(got).To(Equal(want))

		queue.Close(ctx)
		queue.Close(ctx)
		queue.Add("assistant_text", map[string]any{"text": "too late"})
		queue.Flush(ctx) // returns at once
		Expect(store.Store{Client: k8s, Reader: k8s}.Load(ctx, session)).To(HaveLen(200))
	}, NodeTimeout(time.Minute))
})

var _ = Describe("A runner that repeats itself", func() {
	It("leaves the same journal and the same prompt, whatever it repeats", func(ctx context.Context) {
		rng := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 1)) //nolint:gosec // a seed of a test
		w := newWorld(ctx, interceptor.Funcs{})
		comp := w.composition("triage", blank())
		session := w.session("triage-agent", "triage")
		w.turn(comp, "triage-1")
		w.prompt(session, "Hello")
		send := func(first, last int64) func() int {
			var sequences []int64
			for sequence := first; sequence <= last; sequence++ {
				sequences = append(sequences, sequence)
			}
			return func() int { return w.asRunner("POST", "/events", batch(sequences...)).status }
		}
		post := func(path string, body any) func() int {
			return func() int { return w.asRunner("POST", path, body).status }
		}
		steps := []func() int{
			send(1, 2), post("/prompts/triage-1/ack", nil), send(3, 5), send(4, 9),
			post("/prompts/triage-1/result", map[string]any{"outcome": "Completed", "reply": "Done."}), send(8, 10),
		}
		for i, step := range steps {
			Expect(step()).To(BeElementOf(http.StatusOK, http.StatusNoContent))
			for range rng.IntN(4) {
				Expect(steps[rng.IntN(i+1)]()).To(BeElementOf(http.StatusOK, http.StatusNoContent))
			}
		}
		events, err := store.Store{Client: k8s, Reader: k8s}.Load(ctx, session)
		Expect(err).NotTo(HaveOccurred())
		var said []string
		for _, event := range events {
			said = append(said, fmt.Sprint(event.Data["text"], " ", event.Data["content"]))
		}
		Expect(said).To(Equal([]string{
			"1 <nil>", "2 <nil>", "<nil> Do something.", "3 <nil>", "4 <nil>", "5 <nil>", "6 <nil>", "7 <nil>", "8 <nil>", "9 <nil>", "10 <nil>",
		}))
		Expect(*reload(w, session).Status.Prompt).To(And(
			HaveField("State", api.PromptDone), HaveField("Attempt", int32(1)), HaveField("Result.Reply", "Done."),
		))
	}, NodeTimeout(time.Minute))
})

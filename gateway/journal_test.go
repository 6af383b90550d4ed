package gateway_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

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

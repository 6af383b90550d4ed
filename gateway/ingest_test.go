package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi"
)

const cloudEvent = `{"specversion":"1.0","id":"1","type":"t","source":"s","data":{}}`

// eventSource lets senders with the bearer "news" in.
func (w *world) eventSource(name string) {
	GinkgoHelper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: w.namespace, Labels: map[string]string{api.LabelEventSource: "true"},
	}, StringData: map[string]string{"bearer": "news"}}
	Expect(k8s.Create(w.ctx, secret)).To(Succeed())
}

// tell sends a structured CloudEvent.
func (w *world) tell(source, body string) reply {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(w.ctx, http.MethodPost, w.url+w.path("/events/{ns}/"+source), strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Content-Type", "application/cloudevents+json")
	request.Header.Set("Authorization", "Bearer news")
	return replyTo(request)
}

var _ = Describe("Ingest", func() {
	It("does not wait for a body that does not come", func(ctx SpecContext) {
		w := newWorld(ctx, interceptor.Funcs{})
		w.eventSource("shop")
		w.server.Hurry(time.Minute, 200*time.Millisecond)
		web := httptest.NewServer(w.server.Handler())
		DeferCleanup(web.Close)
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", strings.TrimPrefix(web.URL, "http://"))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(conn.Close)
		_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer news\r\nContent-Length: 1000\r\n\r\n{", w.path("/events/{ns}/shop"))
		Expect(err).NotTo(HaveOccurred())
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.StatusCode).To(Equal(http.StatusRequestTimeout))
		Expect(answer.Body.Close()).To(Succeed())
	})

	It("holds a sender to its rate, and lets others in meanwhile", func(ctx SpecContext) {
		w := newWorld(ctx, interceptor.Funcs{
			// What is stored does not matter here, and takes time.
			Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
				if _, isEvent := object.(*api.StreamEvent); isEvent {
					return nil
				}
				return c.Create(ctx, object, options...)
			},
		})
		w.eventSource("loud")
		w.eventSource("quiet")
		limited := false
		for range 2000 {
			if answer := w.tell("loud", cloudEvent); answer.status == http.StatusTooManyRequests {
				Expect(answer.header.Get("Retry-After")).To(Equal("1"))
				limited = true
				break
			}
		}
		Expect(limited).To(BeTrue())
		Expect(w.tell("quiet", cloudEvent).status).To(Equal(http.StatusOK))
		w.clock.Step(time.Second)
		Expect(w.tell("loud", cloudEvent).status).To(Equal(http.StatusOK))
	})

	It("asks a sender to come again when the API server is away", func(ctx SpecContext) {
		away := apierrors.NewServiceUnavailable("away")
		w := newWorld(ctx, interceptor.Funcs{
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return away },
		})
		w.eventSource("shop")
		answer := w.tell("shop", cloudEvent)
		expectProblem(answer, http.StatusServiceUnavailable, openapi.ProblemCodeUnavailable, "try again")
		Expect(answer.header.Get("Retry-After")).To(Equal("1"))
	})
})

package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
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
)

func (w *world) look(path string) reply {
	GinkgoHelper()
	w.clock.Step(time.Second)
	return w.call("GET", w.path(path), tokenOf(w, "triage-agent"), nil)
}

var _ = Describe("Events from outside", Ordered, func() {
	var w *world

	BeforeAll(func(ctx context.Context) {
		w = newWorld(ctx, interceptor.Funcs{})
		w.session("triage-agent", "triage")
		w.event("e1", "push", "gh", "r1", map[string]any{"n": 1})
		w.event("e2", "push", "other", "r1", nil)
		w.event("e3", "issue.created", "gh", "r2", map[string]any{
			"text": strings.Repeat("x", 9000), "issue": map[string]any{"body": "b"}, "labels": []any{"bug"}, "n": 1,
		})
	}, NodeTimeout(time.Minute))

	ids := func(query string) []string {
		GinkgoHelper()
		found := []string{}
		for _, item := range into[openapi.StreamEvents](w.look("/stream/events" + query)).Items {
			var event struct{ ID string }
			Expect(json.Unmarshal(item, &event)).To(Succeed())
			found = append(found, event.ID)
		}
		return found
	}

	It("are listed, the newest first", func(ctx context.Context) {
		w.ctx = ctx
		Expect(ids("")).To(Equal([]string{"e3", "e2", "e1"}))
		Expect(ids("?limit=2")).To(Equal([]string{"e3", "e2"}))
		Expect(ids("?filterType=push")).To(Equal([]string{"e2", "e1"}))
		Expect(ids("?filterEventSourceId=gh&filterRef=r1")).To(Equal([]string{"e1"}))
		Expect(ids("?filterRef=nothing")).To(BeEmpty())
		for _, limit := range []string{"0", "101", "-1", "x"} {
			expectProblem(w.look("/stream/events?limit="+limit), http.StatusBadRequest, openapi.ProblemCodeInvalid, "limit")
		}
	}, NodeTimeout(time.Minute))

	It("are abridged in lists, and complete by themselves", func(ctx context.Context) {
		w.ctx = ctx
		listed := into[openapi.StreamEvents](w.look("/stream/events")).Items
		Expect(string(listed[0])).To(MatchJSON(fmt.Sprintf(
			`{"id":"e3","type":"issue.created","source":"github","eventSourceId":"gh","ref":"r2",`+
				`"payload":{"text":"%s…[truncated 8800 chars]","issue":{},"labels":[],"n":1}}`, strings.Repeat("x", 200))))
		Expect(string(listed[2])).To(MatchJSON(`{"id":"e1","type":"push","source":"github","eventSourceId":"gh","ref":"r1","payload":{"n":1}}`))
		got := w.look("/stream/events/e3")
		Expect(got.status).To(Equal(http.StatusOK))
		Expect(got.header.Get("Content-Type")).To(Equal("application/json"))
		Expect(got.body).To(ContainSubstring(strings.Repeat("x", 9000)))
		for _, id := range []string{"e9", "..%2Fe1", "E1", "%20"} {
			expectProblem(w.look("/stream/events/"+id), http.StatusNotFound, openapi.ProblemCodeNotFound, "not found")
		}
	}, NodeTimeout(time.Minute))

	It("are those of the session's namespace", func(ctx context.Context) {
		other := newWorld(ctx, interceptor.Funcs{})
		other.session("triage-agent", "triage")
		Expect(into[openapi.StreamEvents](other.look("/stream/events")).Items).To(BeEmpty())
		expectProblem(other.look("/stream/events/e1"), http.StatusNotFound, openapi.ProblemCodeNotFound, "e1 not found")
	}, NodeTimeout(time.Minute))
})

var _ = Describe("The library", func() {
	It("tells what the namespace offers", func(ctx context.Context) {
		w := newWorld(ctx, interceptor.Funcs{})
		w.session("triage-agent", "triage")
		for _, name := range []string{"say", "ask"} {
			Expect(k8s.Create(ctx, &api.Tool{ObjectMeta: meta(w, name), Spec: api.ToolSpec{Description: "To " + name, ScriptTemplate: "echo"}})).To(Succeed())
			Expect(k8s.Create(ctx, &api.ActionType{ObjectMeta: meta(w, "do-"+name), Spec: api.ActionTypeSpec{Mode: "script"}})).To(Succeed())
		}
		Expect(w.look("/library/tools").body).To(MatchJSON(`{"items":[{"name":"ask","description":"To ask"},{"name":"say","description":"To say"}]}`))
		Expect(w.look("/library/action-types").body).To(MatchJSON(`{"items":[{"name":"do-ask","description":""},{"name":"do-say","description":""}]}`))
		Expect(w.look("/library/tools/say").body).To(MatchJSON(`{"description":"To say","scriptTemplate":"echo"}`))
		Expect(w.look("/library/action-types/do-say").body).To(MatchJSON(`{"mode":"script"}`))
		for _, name := range []string{"nothing", "..%2Fsay", "%2e%2e", "SAY", "say%20"} {
			expectProblem(w.look("/library/tools/"+name), http.StatusNotFound, openapi.ProblemCodeNotFound, "The library has no")
		}
		expectProblem(w.look("/library/rules"), http.StatusBadRequest, openapi.ProblemCodeInvalid, "Unknown part")
		expectProblem(w.look("/library/rules/say"), http.StatusBadRequest, openapi.ProblemCodeInvalid, "Unknown part")
	}, NodeTimeout(time.Minute))

	It("knows of Secrets that may be referred to, and nothing of what is in them", func(ctx context.Context) {
		asked := []client.Object{}
		w := newWorld(ctx, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				asked = append(asked, o)
				return c.Get(ctx, key, o, opts...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if _, isWhole := list.(*corev1.SecretList); isWhole {
					Fail("asked for whole Secrets")
				}
				return c.List(ctx, list, opts...)
			},
		})
		w.session("triage-agent", "triage")
		for name, label := range map[string]string{"model-key": "true", "other": "false", "token": ""} {
			secret := &corev1.Secret{ObjectMeta: meta(w, name), StringData: map[string]string{"key": "hunter2-hunter2"}}
			if label != "" {
				secret.Labels = map[string]string{api.LabelCredential: label}
			}
			Expect(k8s.Create(ctx, secret)).To(Succeed())
		}
		Expect(w.look("/library/secrets").body).To(MatchJSON(`{"items":[{"name":"model-key","description":""}]}`))
		Expect(w.look("/library/secrets/model-key").body).To(MatchJSON(`{"name":"model-key"}`))
		for _, name := range []string{"other", "token", "nothing"} {
			expectProblem(w.look("/library/secrets/"+name), http.StatusNotFound, openapi.ProblemCodeNotFound, "no "+name)
		}
		for _, object := range asked {
			Expect(object).NotTo(BeAssignableToTypeOf(&corev1.Secret{}))
		}
		Expect(asked).To(ContainElement(BeAssignableToTypeOf(&metav1.PartialObjectMetadata{})))
	}, NodeTimeout(time.Minute))
})

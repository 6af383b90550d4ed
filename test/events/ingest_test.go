package events

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

const placed = `{"specversion":"1.0","id":"A-1","type":"order.placed","source":"/shop","subject":"order/7","time":"2026-05-04T10:11:12Z","data":{"total":3}}`

const mergedBody = `{"action":"closed","pull_request":{"merged":true,"html_url":"https://github.com/o/r/pull/7","updated_at":"2026-05-04T09:00:00Z"},` +
	`"repository":{"html_url":"https://github.com/o/r"},"sender":{"login":"octo","html_url":"https://github.com/octo"}}`

// stored is the event of an id.
func (w *world) stored(id string) *api.StreamEvent {
	GinkgoHelper()
	return fresh(w, &api.StreamEvent{ObjectMeta: w.meta(id)})
}

// events of the namespace.
func (w *world) events() []api.StreamEvent {
	GinkgoHelper()
	var list api.StreamEventList
	Expect(admin.List(w.ctx, &list, client.InNamespace(w.namespace))).To(Succeed())
	return list.Items
}

var _ = Describe("A sender", func() {
	var w *world
	BeforeEach(func(ctx SpecContext) {
		w = newWorld(ctx)
		w.source("gh", map[string]string{"hmac": hmacSecret + "\n"})
		w.source("shop", map[string]string{"bearer": bearerToken})
		w.operate(process{})
	})

	It("workbench 49: tells in structured CloudEvents", func() {
		id, duplicate := w.cloudEvent("shop", placed).receipt()
		Expect(duplicate).To(BeFalse())
		spec := w.stored(id).Spec
		Expect(spec.ID).To(Equal(id))
		Expect(string(spec.Payload.Raw)).To(MatchJSON(`{"total":3}`))
		spec.Payload = nil
		Expect(spec).To(Equal(api.StreamEventSpec{
			ID: id, Type: "order.placed", Source: "/shop", EventSourceID: "shop", Ref: "order/7", Timestamp: "2026-05-04T10:11:12Z",
		}))
	})

	It("workbench 49: tells in binary CloudEvents, and the mode makes no other event of it", func() {
		structured, _ := w.cloudEvent("shop", placed).receipt()
		id, duplicate := w.post(w.ingest("shop"), []byte(`{"total":3}`), "Authorization", "bearer "+bearerToken,
			"Content-Type", "application/json", "ce-specversion", "1.0", "ce-id", "A-1", "ce-type", "order.placed", "ce-source", "/shop").receipt()
		Expect(duplicate).To(BeTrue())
		Expect(id).To(Equal(structured))
	})

	It("tells in batches, which may be sent again as a whole", func() {
		batch := "[" + placed + "," + strings.Replace(placed, "A-1", "A-2", 1) + "]"
		headers := []string{"Content-Type", "application/cloudevents-batch+json", "Authorization", "Bearer " + bearerToken}
		w.cloudEvent("shop", placed)
		first := w.post(w.ingest("shop"), []byte(batch), headers...)
		Expect(first.status).To(Equal(http.StatusOK))
		Expect(first.text).To(MatchRegexp(`"events":\[\{"duplicate":true,"id":"ev-[0-9a-f]{40}"\},\{"duplicate":false,"id":"ev-[0-9a-f]{40}"\}\]`))
		again, duplicate := w.post(w.ingest("shop"), []byte(batch), headers...).receipt()
		Expect(duplicate).To(BeTrue())
		Expect(again).NotTo(BeEmpty())
		Expect(w.events()).To(HaveLen(2))
		Expect(w.post(w.ingest("shop"), []byte("[]"), headers...).status).To(Equal(http.StatusNoContent))
		tooMany := "[" + strings.TrimSuffix(strings.Repeat(placed+",", 101), ",") + "]"
		Expect(w.post(w.ingest("shop"), []byte(tooMany), headers...).refusal(http.StatusBadRequest)).To(ContainSubstring("at most 100 events"))
	})

	It("workbench 49: tells in webhooks of GitHub", func() {
		id, _ := w.gitHub("gh", "pull_request", "d-1", mergedBody).receipt()
		spec := w.stored(id).Spec
		Expect(string(spec.Payload.Raw)).To(MatchJSON(mergedBody))
		spec.Payload = nil
		Expect(spec).To(Equal(api.StreamEventSpec{
			ID: id, Type: "pr.merged", Source: "github", EventSourceID: "gh", Ref: "https://github.com/o/r/pull/7",
			Timestamp: "2026-05-04T09:00:00Z", Actor: &api.EventActor{Login: "octo", URL: "https://github.com/octo"},
		}))
	})

	It("workbench 49: may repeat itself, and the first word stands", func() {
		id, _ := w.gitHub("gh", "pull_request", "d-1", mergedBody).receipt()
		again, duplicate := w.gitHub("gh", "pull_request", "d-1", strings.Replace(mergedBody, "octo", "mallory", 1)).receipt()
		Expect(duplicate).To(BeTrue())
		Expect(again).To(Equal(id))
		Expect(w.events()).To(HaveLen(1))
		Expect(w.stored(id).Spec.Actor.Login).To(Equal("octo"))

		By("another source calling its event the same")
		w.source("fork", map[string]string{"hmac": hmacSecret})
		other, duplicate := w.gitHub("fork", "pull_request", "d-1", mergedBody).receipt()
		Expect(duplicate).To(BeFalse())
		Expect(other).NotTo(Equal(id))
	})

	It("workbench 49: says nothing with a ping and with what is not told of", func() {
		for _, kind := range []string{"ping", "star", "workflow_run"} {
			Expect(w.gitHub("gh", kind, "d-"+kind, `{"zen":"z"}`).status).To(Equal(http.StatusNoContent))
		}
		Expect(w.events()).To(BeEmpty())
	})

	It("completes a run and starts another", func(ctx SpecContext) {
		w.compose("merge", merge, "")
		w.compose("review", reviewed, `[{name: merged, eventType: pr.merged, inputs: {ref: event.ref}}]`)
		run := w.run("merge-1", "merge", `{"ref":"https://github.com/o/r/pull/7"}`)
		w.opens(run, "merged#1")
		id, _ := w.gitHub("gh", "pull_request", "d-1", mergedBody).receipt()
		w.reaches(run, api.RunCompleted)
		Expect(by(run, "merged#1")).To(Equal(id))
		Eventually(func() []string { return triggersOf(w.stored(id)) }).Should(Equal([]string{"review/merged Started"}))
	})
})

var _ = Describe("Somebody who is no sender", func() {
	var w *world
	BeforeEach(func(ctx SpecContext) {
		w = newWorld(ctx)
		w.source("gh", map[string]string{"hmac": hmacSecret})
		w.source("shop", map[string]string{"bearer": bearerToken})
		w.source("empty", map[string]string{"bearer": "", "hmac": ""})
		w.operate(process{})
	})
	AfterEach(func() { Expect(w.events()).To(BeEmpty()) })

	It("workbench 49: learns nothing, whatever is wrong", func(ctx SpecContext) {
		unlabelled := w.source("unlabelled", map[string]string{"bearer": bearerToken})
		w.patch(unlabelled, `{"metadata":{"labels":null}}`)
		elsewhere := newWorld(ctx)
		elsewhere.source("theirs", map[string]string{"bearer": bearerToken})
		bearer := []string{"Content-Type", "application/cloudevents+json", "Authorization", "Bearer " + bearerToken}
		with := func(scheme string) []string {
			return []string{"Content-Type", "application/cloudevents+json", "Authorization", scheme}
		}
		signed := func(signature string) []string {
			return []string{"X-GitHub-Event", "push", "X-GitHub-Delivery", "d", "X-Hub-Signature-256", signature}
		}
		var answers []string
		for name, attempt := range map[string]struct {
			path    string
			headers []string
		}{
			"no credential":                     {w.ingest("shop"), with("")},
			"another bearer":                    {w.ingest("shop"), with("Bearer x")},
			"half a bearer":                     {w.ingest("shop"), with("Bearer " + bearerToken[:5])},
			"another scheme":                    {w.ingest("shop"), with("Basic " + bearerToken)},
			"an empty bearer for an empty key":  {w.ingest("empty"), with("Bearer ")},
			"a signature under an empty key":    {w.ingest("empty"), signed(signatureOf("", placed))},
			"a bearer where hooks are signed":   {w.ingest("gh"), bearer},
			"the secret as bearer":              {w.ingest("gh"), with("Bearer " + hmacSecret)},
			"a signature where bearers are":     {w.ingest("shop"), signed(signatureOf(bearerToken, placed))},
			"a signature of something else":     {w.ingest("gh"), signed(signatureOf(hmacSecret, placed+" "))},
			"a signature under another secret":  {w.ingest("gh"), signed(signatureOf("x", placed))},
			"no signature":                      {w.ingest("gh"), []string{"X-GitHub-Event", "push", "X-GitHub-Delivery", "d"}},
			"an old signature":                  {w.ingest("gh"), []string{"X-GitHub-Event", "push", "X-Hub-Signature", "sha1=" + signatureOf(hmacSecret, placed)[7:]}},
			"a source that is not there":        {w.ingest("nobody"), bearer},
			"a Secret that is no source":        {w.ingest("unlabelled"), bearer},
			"a source of another namespace":     {"/events/" + w.namespace + "/theirs", bearer},
			"a namespace that is not there":     {"/events/nowhere/shop", bearer},
			"a way up":                          {"/events/" + w.namespace + "/..%2F" + elsewhere.namespace + "%2Ftheirs", bearer},
			"a name that no object has":         {w.ingest("SHOP"), bearer},
			"a name with a line break":          {w.ingest("shop%0d%0a"), bearer},
			"a name longer than any":            {w.ingest(strings.Repeat("s", 300)), bearer},
			"a query that is another's token":   {w.ingest("shop") + "?access_token=" + bearerToken, with("")},
			"the secret's own resource version": {w.ingest("shop%3FresourceVersion=0"), bearer},
		} {
			By(name)
			answer := w.post(attempt.path, []byte(placed), attempt.headers...)
			answer.refusal(http.StatusUnauthorized)
			answers = append(answers, answer.text)
		}
		for _, text := range answers {
			Expect(text).To(Equal(answers[0]))
			Expect(text).NotTo(ContainSubstring(bearerToken))
		}
	})

	It("gets nowhere with a path that is none", func() {
		for _, path := range []string{"/events/" + w.namespace, "/events/" + w.namespace + "/shop/more", "/events//shop", w.ingest("shop%00")} {
			Expect(w.post(path, []byte(placed), "Authorization", "Bearer "+bearerToken).status).To(BeElementOf(http.StatusNotFound, http.StatusMovedPermanently, http.StatusTemporaryRedirect))
		}
	})
})

var _ = Describe("What a sender sends", func() {
	var w *world
	BeforeEach(func(ctx SpecContext) {
		w = newWorld(ctx)
		w.source("gh", map[string]string{"hmac": hmacSecret})
		w.source("shop", map[string]string{"bearer": bearerToken})
		w.operate(process{})
	})

	It("is refused with the member at fault", func() {
		for body, want := range map[string]string{
			`{`: "the body is not JSON",
			strings.Replace(placed, `"1.0"`, `"0.3"`, 1):            "specversion must be 1.0",
			strings.Replace(placed, `"order.placed"`, `""`, 1):      "type is required",
			strings.Replace(placed, `{"total":3}`, `[3]`, 1):        "data must be a JSON object",
			strings.Replace(placed, "2026-05-04T", "yesterday", 1):  "time must be",
			strings.Replace(placed, "order/7", `a\r\nX-Evil: b`, 1): "subject must not have control characters",
		} {
			Expect(w.cloudEvent("shop", body).refusal(http.StatusBadRequest)).To(ContainSubstring(want))
		}
		Expect(w.gitHub("gh", "push", "", `{}`).refusal(http.StatusBadRequest)).To(ContainSubstring("X-GitHub-Delivery"))
		form := "payload=%7B%7D"
		Expect(w.gitHub("gh", "push", "d", form).refusal(http.StatusBadRequest)).To(ContainSubstring("body must be a JSON object"))
		Expect(w.gitHub("gh", "push", "d", `{}`, "X-GitHub-Event", "ping").refusal(http.StatusBadRequest)).To(ContainSubstring("X-GitHub-Event"))
		Expect(w.events()).To(BeEmpty())
	})

	It("workbench 49: is refused when it is too large, before more is read", func() {
		big := func(n int) string {
			return strings.Replace(placed, `"total":3`, `"x":"`+strings.Repeat("x", n)+`"`, 1)
		}
		Expect(w.cloudEvent("shop", big(256<<10)).refusal(http.StatusRequestEntityTooLarge)).To(ContainSubstring("the limit is 262144"))
		Expect(w.cloudEvent("shop", big(320<<10)).refusal(http.StatusRequestEntityTooLarge)).To(ContainSubstring("327680 bytes"))
		id, _ := w.cloudEvent("shop", big(256<<10-len(`{"x":""}`))).receipt()
		Expect(w.stored(id)).NotTo(BeNil())

		By("a body of unknown length that never ends")
		request, err := http.NewRequestWithContext(w.ctx, http.MethodPost, "https://"+address+"/api/v1"+w.ingest("shop"), io.LimitReader(endless{}, 64<<20))
		Expect(err).NotTo(HaveOccurred())
		answer, err := sender().Do(request)
		if err == nil { // else the connection was closed on us, which is as good
			Expect(answer.Body.Close()).To(Succeed())
			Expect(answer.StatusCode).To(Equal(http.StatusRequestEntityTooLarge))
		}
	})

	It("does not take the place of somebody else's event", func(ctx SpecContext) {
		id, _ := w.cloudEvent("shop", placed).receipt()
		Expect(admin.Delete(ctx, w.stored(id))).To(Succeed())
		w.event(id, "order.placed", "", "")
		Expect(w.cloudEvent("shop", placed).refusal(http.StatusConflict)).To(ContainSubstring("is another event"))
	})

	It("cannot be changed afterwards, and is small enough also when made by hand", func(ctx SpecContext) {
		id, _ := w.cloudEvent("shop", placed).receipt()
		e := w.stored(id)
		err := admin.Patch(ctx, e, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"payload":{"total":4}}}`)))
		Expect(err).To(MatchError(ContainSubstring("must not change")))
		err = admin.Patch(ctx, e, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"ref":"order/8"}}`)))
		Expect(err).To(HaveOccurred())
		large := &api.StreamEvent{ObjectMeta: w.meta("large")}
		large.Spec = api.StreamEventSpec{ID: "large", Type: "t", EventSourceID: "hand", Payload: rawYAML(fmt.Sprintf(`{x: "%s"}`, strings.Repeat("x", 256<<10)))}
		Expect(apierrors.IsRequestEntityTooLargeError(admin.Create(ctx, large))).To(BeTrue())
	})
})

// endless is a body without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

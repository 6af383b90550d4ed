package console

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// listens gives the events of the page until the spec ends.
func (p *page) listens() <-chan map[string]any {
	GinkgoHelper()
	response, err := p.client.Do(p.request(http.MethodGet, "/api/events", nil))
	Expect(err).NotTo(HaveOccurred())
	Expect(response.Header.Get("Content-Type")).To(Equal("text/event-stream"))
	events := make(chan map[string]any, 1000)
	go func() {
		defer GinkgoRecover()
		defer close(events)
		defer func() { _ = response.Body.Close() }()
		lines := bufio.NewScanner(response.Body)
		for lines.Scan() {
			if data, isData := strings.CutPrefix(lines.Text(), "data: "); isData {
				event := map[string]any{}
				Expect(json.Unmarshal([]byte(data), &event)).To(Succeed())
				events <- event
			}
		}
	}()
	return events
}

var _ = Describe("changes", func() {
	It("reach the page as they happen, until the program ends", func(ctx SpecContext) {
		w := newWorld(ctx)
		p := w.opens(alice)
		events := p.listens()
		first := map[string]bool{}
		for len(first) < 4 {
			var event map[string]any
			Eventually(events).Should(Receive(&event))
			Expect(event).NotTo(HaveKey("name"))
			first[event["kind"].(string)] = true
		}
		w.asks("go", api.HumanTaskSpec{HumanContext: api.HumanContext{Title: "Go"}})
		Eventually(events).Should(Receive(Equal(map[string]any{"kind": "task", "name": "go"})))
		p.posts("tasks/go/answer", `{"whole":"{}"}`).gives(http.StatusOK)
		Eventually(events).Should(Receive(Equal(map[string]any{"kind": "task", "name": "go"})))
		Expect(p.ends()).To(Equal(0))
		Eventually(events).Should(BeClosed())
	})

	It("of what somebody may not see are said not to come, and the others come", func(ctx SpecContext) {
		w := newWorld(ctx)
		events := w.opens(bob).listens()
		Eventually(events).Should(Receive(And(HaveKeyWithValue("kind", "task"), HaveKeyWithValue("blind", ContainSubstring("cannot list")))))
		w.sample()
		Eventually(events).Should(Receive(And(HaveKeyWithValue("kind", "composition"), HaveKeyWithValue("name", "cve-triage"))))
	})
})

var _ = Describe("the door", func() {
	It("is open to the browser that followed the link, and to nobody else", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.asks("go", api.HumanTaskSpec{HumanContext: api.HumanContext{Title: "Go"}})
		p := w.serves(alice)
		Expect(p.origin).To(MatchRegexp(`^http://127\.0\.0\.1:[0-9]+$`))

		By("coming without having been let in")
		for _, path := range []string{"/", "/app.js", "/api/tasks", "/api/events", "/enter?token=guess"} {
			Expect(p.sends(p.request(http.MethodGet, path, nil)).StatusCode).To(BeElementOf(http.StatusUnauthorized, http.StatusForbidden), path)
		}
		Expect(p.posts("tasks/go/answer", `{"whole":"{}"}`).StatusCode).To(Equal(http.StatusUnauthorized))

		By("following the link a second time")
		entered := p.sends(p.request(http.MethodGet, "", nil, p.link))
		Expect(entered.Cookies()).To(HaveExactElements(And(
			HaveField("HttpOnly", true), HaveField("SameSite", http.SameSiteStrictMode), HaveField("Path", "/"), HaveField("Value", HaveLen(43)),
		)))
		Expect(p.sends(p.request(http.MethodGet, "", nil, p.link)).StatusCode).To(Equal(http.StatusForbidden))

		By("being let in")
		home := p.sends(p.request(http.MethodGet, "/", nil))
		Expect(home.StatusCode).To(Equal(http.StatusOK))
		Expect(home.Header.Get("Content-Security-Policy")).To(And(ContainSubstring("default-src 'none'"), Not(ContainSubstring("unsafe"))))
		Expect(home.text).NotTo(MatchRegexp(`(?i)<script>| on[a-z]+=|style=|//[a-z]`), "nothing inline, nothing from elsewhere")

		By("coming from elsewhere with the cookie")
		attacks := map[string]func(*http.Request){
			"a name that leads here":           func(r *http.Request) { r.Host = "rebound.example:" + r.URL.Port() },
			"another port":                     func(r *http.Request) { r.Host = "127.0.0.1:1" },
			"localhost by its name":            func(r *http.Request) { r.Host = "localhost:" + r.URL.Port() },
			"another page":                     func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
			"another page on the machine":      func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") },
			"a page without an origin":         func(r *http.Request) { r.Header.Set("Origin", "null") },
			"a write that says not from where": func(r *http.Request) { r.Header.Del("Origin"); r.Header.Del("Sec-Fetch-Site") },
			"a form of another page":           func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
			"a page of another port":           func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
			"a form":                           func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") },
			"text":                             func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") },
		}
		for name, attack := range attacks {
			request := p.request(http.MethodPost, "/api/tasks/go/answer", []byte(`{"whole":"{}"}`))
			attack(request)
			Expect(p.sends(request).StatusCode).To(BeElementOf(http.StatusForbidden, http.StatusMisdirectedRequest, http.StatusUnsupportedMediaType), name)
		}
		read := p.request(http.MethodGet, "/api/tasks", nil)
		read.Header.Set("Sec-Fetch-Site", "cross-site")
		Expect(p.sends(read).StatusCode).To(Equal(http.StatusForbidden))
		Expect(w.task("go").Status.AnsweredBy).To(BeNil())

		By("asking for what there is not")
		for path, method := range map[string]string{
			"/api/secrets": http.MethodGet, "/api/v1/namespaces/default/secrets": http.MethodGet, "/api/tasks/go": http.MethodDelete,
			"/api/turns/any/delete": http.MethodPost, "/api/tasks/..%2fsecrets%2fx": http.MethodGet, "/../server.go": http.MethodGet,
		} {
			Expect(p.sends(p.request(method, path, nil)).StatusCode).To(BeElementOf(http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusBadGateway), path)
		}

		By("ending")
		Expect(p.ends()).To(Equal(0))
		_, err := p.client.Do(p.request(http.MethodGet, "/", nil))
		Expect(err).To(HaveOccurred())
	})
})

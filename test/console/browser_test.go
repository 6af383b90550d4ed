//go:build browser

package console

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// envBrowser names the browser to drive, and envShots the directory that pictures of
// the pages are kept in; without one they are taken, and looked at by nobody.
const (
	envBrowser = "AXIOM_CONSOLE_BROWSER"
	envShots   = "AXIOM_CONSOLE_SHOTS"
)

// patience is how long a page may take to show something.
const patience = 30 * time.Second

// browserPath is the Chromium of the machine. There is no test without one.
func browserPath() string {
	GinkgoHelper()
	if path := os.Getenv(envBrowser); path != "" {
		return path
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	Fail("there is no Chromium: install the package chromium, or name one with " + envBrowser)
	return ""
}

// A browser is a tab of a headless Chromium.
type browser struct {
	ctx  context.Context
	page *page
	// isAbroad tells that the tab went to places that complain.
	isAbroad bool
}

// browses has somebody start the console and follow its link in a browser.
func (w *world) browses(p *page) *browser {
	GinkgoHelper()
	allocated, release := chromedp.NewExecAllocator(context.Background(), chromedp.ExecPath(browserPath()), chromedp.Headless, chromedp.NoSandbox,
		chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.DisableGPU, chromedp.WindowSize(1360, 900),
		chromedp.Flag("force-prefers-reduced-motion", true))
	DeferCleanup(release)
	ctx, closes := chromedp.NewContext(allocated)
	DeferCleanup(closes)
	b := &browser{ctx: ctx, page: p}
	// The first action starts the browser, so it must not end with a deadline.
	Expect(chromedp.Do(ctx, chromedp.EmulateViewport(1360, 900))).To(Succeed())
	b.hears()
	b.does(chromedp.Navigate(p.link), chromedp.WaitVisible(chromedp.CSS("main h1")))
	return b
}

// hears notes what the page complains of, which nothing may be; that the program
// refuses a request is no complaint.
func (b *browser) hears() {
	GinkgoHelper()
	var mutex sync.Mutex
	var complaints []string
	messages := chromedp.Console(b.ctx)
	go func() {
		for message, err := range messages {
			if err != nil {
				return
			}
			isFault := message.Type == chromedp.ConsoleError || message.Type == chromedp.ConsoleException
			if isFault && !strings.Contains(message.Text, "Failed to load resource") {
				mutex.Lock()
				complaints = append(complaints, message.Text)
				mutex.Unlock()
			}
		}
	}()
	DeferCleanup(func() {
		mutex.Lock()
		defer mutex.Unlock()
		if !b.isAbroad {
			Expect(complaints).To(BeEmpty())
		}
	})
}

// does what a person would.
func (b *browser) does(actions ...chromedp.Action[chromedp.Void]) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("location.href + '\\n' + document.body.innerText"))
		Expect(err).NotTo(HaveOccurred(), text)
	}
}

// goes to an address of the page, by its hash.
func (b *browser) goes(hash string) {
	GinkgoHelper()
	b.does(
		chromedp.Evaluate[chromedp.Void](fmt.Sprintf("location.hash = %q", hash)),
		chromedp.WaitVisible(chromedp.CSS(fmt.Sprintf("main[data-ready=%q] h1", hash))),
	)
}

// reads the value of an expression.
func (b *browser) reads(expression string) string {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string]("Promise.resolve("+expression+").then(String)", chromedp.EvalAwaitPromise))
	Expect(err).NotTo(HaveOccurred())
	return text
}

// shows waits until the text of an element has a part.
func (b *browser) shows(selector, part string) {
	GinkgoHelper()
	Eventually(func() string {
		return b.reads(fmt.Sprintf("[...document.querySelectorAll(%q)].map((e) => e.textContent).join('\\n')", selector))
	}).WithTimeout(patience).Should(ContainSubstring(part), func() string { return b.reads("document.body.innerText") })
}

// presses keys one after the other, as at a keyboard.
func (b *browser) presses(keys ...string) {
	GinkgoHelper()
	for _, key := range keys {
		b.does(chromedp.KeyEvent(key))
	}
}

// clicks an element, as a pointer or an assistive program does.
func (b *browser) clicks(selector string) {
	GinkgoHelper()
	Eventually(func() string {
		return b.reads(fmt.Sprintf("(document.querySelector(%q)?.click(), document.querySelector(%q) !== null)", selector, selector))
	}).WithTimeout(patience).Should(Equal("true"))
}

// types a text into an element.
func (b *browser) types(selector, text string) {
	GinkgoHelper()
	b.does(chromedp.Focus(chromedp.CSS(selector)), chromedp.KeyEvent(text))
}

// shoots pictures of the page in both colour schemes.
func (b *browser) shoots(name string) {
	GinkgoHelper()
	for _, scheme := range []string{"light", "dark"} {
		b.prefers(scheme)
		data, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		Expect(err).NotTo(HaveOccurred())
		Expect(len(data)).To(BeNumerically(">", 5_000))
		if directory := os.Getenv(envShots); directory != "" {
			Expect(os.WriteFile(filepath.Join(directory, "console-"+name+"-"+scheme+".png"), data, 0o600)).To(Succeed())
		}
		Expect(b.reads(contrasts)).To(BeEmpty(), "%s in %s cannot be read", name, scheme)
	}
}

func (b *browser) prefers(scheme string) {
	GinkgoHelper()
	b.does(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	}))
}

// contrasts lists texts whose contrast with what is behind them is below 4.5, which
// people with weak eyes need.
const contrasts = `(() => {
  const parse = (c) => (c.match(/[\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; })
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length === 3 || c[3] > 0) return c; } return [255, 255, 255]; };
  const bad = [];
  for (const e of document.querySelectorAll("body *:not(svg *):not(:disabled):not(.later *)")) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || !e.checkVisibility()) continue;
    const [a, b] = [light(parse(getComputedStyle(e).color)), light(behind(e))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) bad.push(e.tagName + "." + e.className + " " + e.textContent.slice(0, 20) + " " + contrast.toFixed(2));
  }
  return bad.join("; ");
})()`

var _ = Describe("in a browser", func() {
	It("a turn is reviewed, accepted and taken back with the keyboard alone", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.sample()
		p := w.serves(alice)
		b := w.browses(p)

		By("seeing the list, and the draft")
		b.shows("#live", "live")
		b.shows(".card", "cve-triage")
		b.shoots("compositions")
		b.presses("j", "\r")
		b.shows("h1", "cve-triage")
		Expect(b.reads("document.querySelectorAll('.graph .node').length")).To(Equal(w.nodes("cve-triage")))
		Expect(b.reads("document.activeElement.id")).To(Equal("main"), "the focus goes to what is new")

		By("hearing of a turn, live")
		w.sends("ask", question)
		b.shows(".notice.decide", "review ask")
		b.goes("#/turns/ask")
		b.shows(".graph .node.added", "Approve the patch")
		b.shows(".changes", "+ node approve")
		b.does(chromedp.Focus(chromedp.CSS(".graph .node[tabindex='0']")))
		first := b.reads("document.activeElement.dataset.node")
		b.does(chromedp.KeyEvent(kb.ArrowDown))
		Expect(b.reads("document.activeElement.dataset.node")).NotTo(Equal(first), "an arrow leads on")
		b.presses("\r")
		b.shows("aside .json", b.reads("document.activeElement.dataset.node"))
		b.shoots("turn")

		By("deciding")
		b.presses("a")
		b.shows("dialog h2", "Accept these changes?")
		b.presses("\r")
		b.shows("h1", "Applied")
		Expect(w.turn("ask").Annotations).To(HaveKeyWithValue(api.AnnotationResolvedBy, "alice"))
		Eventually(func() string { return b.reads("document.querySelector('#decide-undo') !== null") }).Should(Equal("true"))
		b.goes("#/compositions/cve-triage")
		b.shows(".graph .node", "Approve the patch")
		b.shoots("composition")
		b.goes("#/turns/ask")
		b.presses("u", "\r")
		b.shows("h1", "Undone")

		By("asking for the keys")
		b.presses("?")
		b.shows("dialog", "next of a list")
		b.shoots("keys")
		b.presses("\r")
		b.presses("2")
		b.shows("h1", "Inbox")
	})

	It("a question is answered by its form, and what does not fit stays on the page", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.starts("release", release, `{"ref":"v7"}`)
		task := w.opensTask("release")
		w.asks("rate", api.HumanTaskSpec{
			HumanContext: api.HumanContext{Title: "Rate the incident of Tuesday"}, Assignees: &api.Assignees{Groups: []string{"editors"}}, ExpiresAfter: "P2D",
		})
		b := w.browses(w.serves(alice))
		b.goes("#/inbox")
		b.shows("#waiting", "2")
		b.shows(".card", "for group editors")
		b.shoots("inbox")

		By("being asked in markup, while the page is open")
		w.asks("hostile", api.HumanTaskSpec{HumanContext: api.HumanContext{Title: "<img src=x onerror=alert(1)>", Description: "<script>alert(1)</script>"}})
		b.shows(".card", "<img src=x onerror=alert(1)>")
		b.goes("#/tasks/hostile")
		b.shows(".speech", "<script>alert(1)</script>")
		Expect(b.reads("document.querySelectorAll('main img, main script').length")).To(Equal("0"), "texts are no markup")

		By("sending less than is asked for")
		b.goes("#/tasks/" + task)
		b.types("#field-note", "mind the queue")
		b.clicks("#send")
		b.shows("#summary", "Goes out: It must be given.")
		b.shows("[data-field=approved] .wrong", "It must be given.")
		Expect(b.reads("document.activeElement.id")).To(Equal("summary"))
		Expect(b.reads("document.querySelector('#field-note').value")).To(Equal("mind the queue"))
		b.shoots("task")
		Expect(w.task(task).Status.AnsweredBy).To(BeNil())

		By("sending what is asked for")
		b.clicks("[data-field=approved] input[value=true]")
		b.types("#field-window", "Tonight")
		b.clicks("#send")
		b.shows(".notice.done", "Answered by alice.")
		Expect(string(w.task(task).Status.Answer.Raw)).To(MatchJSON(`{"approved":true,"window":"night","note":"mind the queue"}`))

		By("following the run")
		b.goes("#/runs")
		b.shows("table", "release")
		b.shoots("runs")
		b.goes("#/runs/release")
		b.shows(".timeline", "confirm#1")
		b.shows(".graph .node.open", "Confirm")
		b.presses("[")
		b.shows(".control", "after step 1 of 2")
		b.shows(".graph .node.open", "Approve")
		b.presses("l")
		b.shows(".control", "as it is now")

		By("seeing it go on, live")
		confirm := w.opensTask("release")
		p := b.page
		Expect(b.reads(fmt.Sprintf(`fetch("/api/tasks/%s/answer", {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({fields: {sure: "false"}})}).then((r) => r.status)`, confirm))).To(Equal("200"))
		b.shows(".timeline", "approve#2")
		b.clicks("#entry-2")
		b.shows("aside .json", "mind the queue")
		b.presses("l")
		b.shows(".graph .node.open .times", "×2")
		b.shoots("run")
		Expect(p.ends()).To(Equal(0))
		b.shows("#live", "reconnecting")
	})

	It("another page gets nothing", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.asks("go", api.HumanTaskSpec{HumanContext: api.HumanContext{Title: "Go"}})
		b := w.browses(w.serves(alice))
		other := w.serves(alice)
		b.isAbroad = true
		b.does(chromedp.Navigate(other.origin + "/"))
		b.shows("h1", "You are not let in")
		for _, options := range []string{
			`{credentials: "include"}`,
			`{credentials: "include", mode: "no-cors"}`,
			`{method: "POST", credentials: "include", mode: "no-cors", body: "{\"whole\":\"{}\"}"}`,
		} {
			Expect(b.reads(fmt.Sprintf(`fetch("%s/api/tasks/go/answer", %s).then((r) => r.status, () => "refused")`, b.page.origin, options))).To(BeElementOf("refused", "0"))
		}
		Expect(w.task("go").Status.AnsweredBy).To(BeNil())
	})
})

// nodes counts those of a draft.
func (w *world) nodes(name string) string {
	GinkgoHelper()
	var doc struct {
		Nodes []any `json:"nodes"`
	}
	Expect(json.Unmarshal(w.settles(name).Spec.Workflow.Raw, &doc)).To(Succeed())
	return strconv.Itoa(len(doc.Nodes))
}

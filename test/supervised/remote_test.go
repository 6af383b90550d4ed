package supervised

import (
	"net/http"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/effect"
	"github.com/apitomy/axiom-operator/internal/testing/forgedouble"
)

// tells publishes as `publish` does, and then opens a pull request and an issue.
var tells = strings.NewReplacer(
	"  - {name: branch,", "  - {name: tracker, type: string, required: true}\n  - {name: branch,",
	"  - {id: e7, source: push, target: done}\n", `  - {id: e7, source: push, target: publish}
  - {id: e8, source: publish, target: file}
  - {id: e9, source: file, target: done}
`,
	"  - {id: done, type", `  - id: publish
    type: action
    name: Ask for a pull
    config:
      actionType: pullRequest.upsert
      credentials: project
      body: "#told"
      inputs: {worktree: context.worktree, title: "'Add notes'"}
  - id: file
    type: action
    name: File an issue
    config:
      actionType: issue.upsert
      credentials: project
      body: "#told"
      inputs: {tracker: context.tracker, key: "'notes'", title: "'Read the notes'"}
  - {id: done, type`,
).Replace(publish) + "\n## Told\n\n${{ context.text }}\n"

// hurried gives an action of the definition less time than it has by default.
func hurried(definition, action, timeout string) string {
	GinkgoHelper()
	changed := definition
	for _, end := range []string{"\n", ", "} {
		changed = strings.ReplaceAll(changed, "actionType: "+action+end, "actionType: "+action+end+strings.Repeat(" ", 6*strings.Count(end, "\n"))+"timeout: "+timeout+end)
	}
	Expect(changed).NotTo(Equal(definition))
	return changed
}

// notesRun is one whose only question is answered, so that what comes after it can be
// prepared.
func (h *hub) notesRun(definition string) (run *api.WorkflowRun, goOn func()) {
	GinkgoHelper()
	commit := h.defines(map[string]string{"flows/start.md": definition, "flows/Gate.md": gate})
	run = h.starts("notes", commit, map[string]any{"repository": h.project.URL, "text": "All is well.\n", "tracker": h.git.URL + "/team/app"})
	task := h.checkpoint(run)
	return run, func() {
		h.answers(task, `{"proceed":true}`)
		h.resumes(run)
	}
}

// An outage is a way not to be there, of the forge or of the Git server.
type outage struct {
	activation string
	action     string
	reason     effect.Reason
	begin      func(h *hub)
}

func ofForge(activation, action string, fault forgedouble.Fault, reason effect.Reason) outage {
	return outage{activation, action, reason, func(h *hub) { h.forge.Fail("GET", "", -1, fault) }}
}

// ofGit has requests about the project answered, and those about definitions served.
func ofGit(answer func(http.ResponseWriter), reason effect.Reason) outage {
	return outage{"push#1", "git.push", reason, func(h *hub) {
		h.git.Answer(func(w http.ResponseWriter, r *http.Request) bool {
			isMeant := strings.HasPrefix(r.URL.Path, "/team/app")
			if isMeant {
				answer(w)
			}
			return isMeant
		})
	}}
}

func answers(status int, body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(status)
		_, err := w.Write([]byte(body))
		Expect(err).NotTo(HaveOccurred())
	}
}

// outages of every kind, at every kind of effect outside.
func outages() []TableEntry {
	const publish, file = "publish#1", "file#1"
	const pull, issue = "pullRequest.upsert", "issue.upsert"
	return []TableEntry{
		Entry("Git server, unreachable", ofGit(func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, effect.ReasonNetwork)),
		Entry("Git server, 401", ofGit(answers(http.StatusUnauthorized, ""), effect.ReasonAuthentication)),
		Entry("Git server, 404", ofGit(answers(http.StatusNotFound, ""), effect.ReasonServer)),
		Entry("Git server, rate limit", ofGit(answers(http.StatusTooManyRequests, ""), effect.ReasonRateLimited)),
		Entry("Git server, unreadable", ofGit(answers(http.StatusOK, "<html>"), effect.ReasonUnreadable)),
		Entry("pull request, unreachable", ofForge(publish, pull, forgedouble.Unreachable, effect.ReasonNetwork)),
		Entry("pull request, 401", ofForge(publish, pull, forgedouble.Unauthorized, effect.ReasonAuthentication)),
		Entry("pull request, 404", ofForge(publish, pull, forgedouble.NotFound, effect.ReasonRejected)),
		Entry("pull request, rate limit", ofForge(publish, pull, forgedouble.RateLimited, effect.ReasonRateLimited)),
		Entry("pull request, unreadable", ofForge(publish, pull, forgedouble.Unreadable, effect.ReasonUnreadable)),
		Entry("issue, 404", ofForge(file, issue, forgedouble.NotFound, effect.ReasonRejected)),
		Entry("issue, a page elsewhere", ofForge(file, issue, forgedouble.ElsewhereNext, effect.ReasonIncomplete)),
	}
}

// reachesOutage has everything before the effect done, and the effect tried.
func (h *hub) reachesOutage(definition string, o outage) *api.WorkflowRun {
	GinkgoHelper()
	run, goOn := h.notesRun(definition)
	isForLater := o.activation == "file#1"
	if isForLater {
		// The pull request is there before the forge is gone.
		h.forge.Fail("GET", "/issues", -1, forgedouble.ServerError)
	} else {
		o.begin(h)
	}
	goOn()
	sees(h.world, run, func(g Gomega, run *api.WorkflowRun) {
		g.Expect(run.Status.Intents).To(HaveLen(1), "%s", show(run.Status))
		g.Expect(run.Status.Intents[0].Activation).To(Equal(o.activation))
	})
	if isForLater {
		h.forge.Heal()
		o.begin(h)
	}
	return sees(h.world, run, func(g Gomega, run *api.WorkflowRun) {
		g.Expect(run.Status.Intents).To(HaveLen(1), "%s", show(run.Status))
		g.Expect(run.Status.Intents[0].Reason).To(Equal(string(o.reason)))
	})
}

// allMutations are those of both servers.
func (h *hub) allMutations() []string {
	pushes := slices.Repeat([]string{"push"}, h.git.Count("git-receive-pack"))
	return append(append([]string{}, pushes...), h.forge.Mutations()...)
}

var done = []string{"push", "POST /repos/team/app/pulls", "POST /repos/team/app/issues"}

func before(activation string) []string {
	return done[:slices.Index([]string{"push#1", "publish#1", "file#1"}, activation)]
}

var _ = Describe("A remote that is not there", func() {
	DescribeTable("supervised 44: is tried again, also by the next operator, and is never taken for one where nothing is",
		func(ctx SpecContext, o outage) {
			h := idleHub(ctx)
			stop := h.operate()
			run := h.reachesOutage(hurried(tells, o.action, "PT6S"), o)
			deadline := run.Status.Intents[0].Deadline.DeepCopy()
			stop()
			requests := h.forge.Requests() + len(h.git.Requests())
			h.operate()

			Expect(h.fails(run)).To(Equal(o.activation + " UNAVAILABLE"))
			failed := h.failure(run)
			Expect(failed.Error.Message).To(ContainSubstring(string(o.reason)))
			at, err := time.Parse(time.RFC3339Nano, failed.CompletedOn)
			Expect(err).NotTo(HaveOccurred())
			// The last look may begin right before the time is up.
			Expect(at.Add(time.Second).Before(deadline.Time)).To(BeFalse(), "the time of the activation counts, whatever operator there is")
			Expect(h.forge.Requests()+len(h.git.Requests())).To(BeNumerically(">", requests), "the second operator looked for itself")
			Expect(h.allMutations()).To(Equal(before(o.activation)))
		}, outages())

	DescribeTable("supervised 44: and where it is back in time, the run goes on",
		func(ctx SpecContext, o outage) {
			h := idleHub(ctx)
			stop := h.operate()
			run := h.reachesOutage(tells, o)
			stop()
			h.operate()
			h.forge.Heal()
			h.git.Answer(nil)

			h.reaches(run, api.RunCompleted)
			Expect(h.allMutations()).To(Equal(done))
			Expect(h.project.Git("show", "agent/notes:notes/today.md")).To(Equal("All is well."))
			Expect(h.app.Issues()).To(HaveLen(1))
			Expect(h.app.Pulls()).To(HaveLen(1))
		}, outages())
})

// failure is the first of a run's history.
func (w *world) failure(run *api.WorkflowRun) api.HistoryEntry {
	GinkgoHelper()
	entries := w.history(run)
	at := slices.IndexFunc(entries, func(e api.HistoryEntry) bool { return e.Error != nil })
	Expect(at).To(BeNumerically(">=", 0))
	return entries[at]
}

package supervised

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/testing/forgedouble"
	"github.com/apitomy/axiom-operator/internal/testing/gitserver"
	"github.com/apitomy/axiom-operator/internal/testing/testenv"
)

// workBranch is the one that the shipped workflow works on unless it is told another.
const workBranch = "agent/adversarial-implementation"

// The gates of the shipped workflow, by what its checkpoints are for.
const (
	toHandoff   = "validate the handoff"
	toPlan      = "resolve the plan review"
	toAuthorize = "authorize the implementation"
	toReview    = "resolve the pull-request review"
	toAccept    = "accept the result"
)

var gates = []string{toHandoff, toPlan, toAuthorize, toReview, toAccept}

// turnsOfAcceptance are all turns of a run that observes once and whose verdicts pass.
var turnsOfAcceptance = []string{
	"Discovery[1]/discover#1",
	"handoff[1]/assess#1",
	"Planning[1]/plan#1",
	"Planning[1]/verdict#1",
	"Planning[1]/checkpoint[1]/assess#1",
	"authorize[1]/assess#1",
	"Implementation[1]/observe[1]/prompt#1",
	"Implementation[1]/observe[2]/prompt#1",
	"Implementation[1]/verdict#1",
	"Implementation[1]/checkpoint[1]/assess#1",
	"accept[1]/assess#1",
}

// A cast is what the two agents say in a run of the shipped workflow.
type cast struct {
	// asks are the gates at which a person is needed.
	asks []string
	// plans and changes are the reviews of each round's plan and pull request.
	plans, changes []map[string]any
	// proposes takes the place of what the implementor proposes, round by round.
	proposes []any
	// assesses takes the place of what is said at each gate.
	assesses map[string]any
	// does takes the place of saying anything at a gate: steps of a playbook.
	does map[string]string
}

// passed is a review that found nothing.
func passed(review string) map[string]any {
	return map[string]any{"passed": true, "review": review, "revisionPrompt": ""}
}

// failed is a review that wants another round.
func failed(review, revision string) map[string]any {
	return map[string]any{"passed": false, "review": review, "revisionPrompt": revision}
}

// found gives the review of a pull request findings.
func found(review map[string]any, findings ...any) map[string]any {
	review["findings"] = append([]any{}, findings...)
	return review
}

// agreeing agents need nobody, and find nothing.
func agreeing() cast {
	return cast{
		plans:   []map[string]any{passed("The plan holds.")},
		changes: []map[string]any{found(passed("The change does what the plan says."))},
	}
}

// deferred is a finding that becomes an issue.
func deferred(key string) map[string]any {
	return map[string]any{
		"key": key, "disposition": "defer", "title": "Tell of readiness, too", "description": "Only health is told of.",
		"evidence": []any{"health.md has one paragraph"},
	}
}

// replies as JSON where a prompt says something.
func replies(when string, reply any) string {
	GinkgoHelper()
	text, err := json.Marshal(reply)
	Expect(err).NotTo(HaveOccurred())
	return says(when, string(text))
}

// planner is the book of the agent that contradicts, and that judges whether a
// person is needed.
func (c cast) planner() string {
	var book strings.Builder
	book.WriteString(says("Write a handoff", "The handoff: say that all is well."))
	for _, review := range c.plans {
		book.WriteString(replies("Review the plan below", review))
	}
	for _, review := range c.changes {
		book.WriteString(replies("Review the pull request below", review))
	}
	for _, gate := range gates {
		book.WriteString(strings.Repeat(c.judges(gate), 5))
	}
	for _, gate := range slices.Sorted(maps.Keys(c.assesses)) {
		book.WriteString(strings.Repeat(replies("What is wrong:", c.assesses[gate]), 2))
	}
	return book.String()
}

// judges is what happens when a person may be needed at a gate.
func (c cast) judges(gate string) string {
	when := "must be involved to " + gate
	if steps, isThere := c.does[gate]; isThere {
		return fmt.Sprintf("- when: %q\n  steps: %s\n", when, steps)
	}
	return replies(when, c.assessment(gate))
}

func (c cast) assessment(gate string) any {
	if said, isThere := c.assesses[gate]; isThere {
		return said
	}
	return map[string]any{
		"requiresUser": slices.Contains(c.asks, gate), "assessment": "Nothing to choose.", "question": "Shall this go on?",
		"options": []any{"yes", "no"}, "recommendation": "yes",
	}
}

// implementor is the book of the agent that plans and implements: it observes once.
func (c cast) implementor() string {
	var book strings.Builder
	for round := range c.plans {
		book.WriteString(says("Plan the implementation", fmt.Sprintf("Plan %d: add health.md.", round+1)))
	}
	book.WriteString(strings.Repeat(says("has not passed its review", "I shall do better."), len(c.plans)+len(c.changes)))
	book.WriteString(replies(`null: nothing yet\):\s+null`, observation()))
	for round := range max(len(c.changes), len(c.proposes)) {
		book.WriteString(replies("Implement the plan below|What is wrong:", c.proposal(round)))
	}
	return book.String()
}

func observation() map[string]any {
	return map[string]any{"kind": "observation", "fragment": map[string]any{"operations": []any{
		map[string]any{"read": map[string]any{"path": "README.md"}},
		map[string]any{"glob": map[string]any{"include": []any{"**/*.md"}}},
	}}}
}

func (c cast) proposal(round int) any {
	if round < len(c.proposes) {
		return c.proposes[round]
	}
	return proposes(fmt.Sprintf("# Health\n\nAll is well, says round %d.\n", round+1))
}

// proposes the content of health.md.
func proposes(text string) map[string]any {
	return map[string]any{"kind": "proposal", "proposal": map[string]any{
		"changes":       map[string]any{"operations": []any{map[string]any{"write": map[string]any{"path": "health.md", "content": text}}}},
		"title":         "Tell of health",
		"commitMessage": "Tell of health",
		"report":        "Adds health.md.",
	}}
}

// hub is the world of the shipped workflow: its forge knows the Git server's branches.
type hub struct {
	*world
	forge *forgedouble.Server
	app   *forgedouble.Repository
	// commit has the documents.
	commit string
}

// newHub is in operation.
func newHub(ctx context.Context) *hub {
	GinkgoHelper()
	h := idleHub(ctx)
	h.settles()
	h.operate()
	return h
}

// idleHub has neither node nor operator yet. The pages of its forge are at the Git server's address, as they
// are where one program serves both.
func idleHub(ctx context.Context) *hub {
	GinkgoHelper()
	w := newWorld(ctx)
	h := &hub{world: w, forge: forgedouble.Start(GinkgoTB())}
	h.forge.URL = w.git.URL
	h.forge.SetTime(time.Now())
	h.app = h.forge.Repository("team/app")
	h.forge.Heads(func(_, branch string) string { return w.project.Head(branch) })

	web, err := url.Parse(w.git.URL)
	Expect(err).NotTo(HaveOccurred())
	interfaces, err := url.Parse(h.forge.API)
	Expect(err).NotTo(HaveOccurred())
	allowed := &corev1.ConfigMap{ObjectMeta: w.meta("axiom-remotes")}
	Expect(admin.Get(w.ctx, client.ObjectKeyFromObject(allowed), allowed)).To(Succeed())
	allowed.Data["forges"] = fmt.Sprintf("- {host: %q, provider: github, api: %q, private: true, plaintext: true}\n", web.Host, h.forge.API)
	Expect(admin.Update(w.ctx, allowed)).To(Succeed())
	secret := &corev1.Secret{ObjectMeta: w.meta("git")}
	Expect(admin.Get(w.ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
	secret.Annotations["axiom.apitomy.io/hosts"] = web.Host + "," + interfaces.Host
	secret.StringData = map[string]string{"token": forgedouble.Token}
	Expect(admin.Update(w.ctx, secret)).To(Succeed())

	w.project.Commit("main", map[string]gitserver.FileSpec{
		"README.md": {Content: "# App\n"}, "AGENTS.md": {Content: "Be brief.\n"}, "docs/AGENTS.md": {Content: "Write in English.\n"},
	})
	h.commit = w.defines(shipped())
	return h
}

// shipped are the documents of the workflow.
func shipped() map[string]string {
	GinkgoHelper()
	documents := map[string]string{}
	files, err := filepath.Glob(filepath.Join(testenv.Root(), "config", "samples", "adversarial-implementation", "*.md"))
	Expect(err).NotTo(HaveOccurred())
	for _, file := range files {
		text, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		documents["flows/"+filepath.Base(file)] = string(text)
	}
	Expect(documents).To(HaveKey("flows/start.md"))
	return documents
}

// casts starts the workflow with agents that say what the cast says, once they are prepared.
func (h *hub) casts(c cast, prepare ...func()) *api.WorkflowRun {
	GinkgoHelper()
	h.teaches("planner", c.planner())
	h.teaches("implementor", c.implementor())
	for _, f := range prepare {
		f()
	}
	return h.starts("health", h.commit, map[string]any{
		"request": "Say that all is well.", "repository": h.project.URL, "tracker": h.git.URL + "/team/app",
	})
}

// decides answers the open checkpoint and resumes the run.
func (h *hub) decides(run *api.WorkflowRun, proceed bool) *api.HumanTask {
	GinkgoHelper()
	return h.responds(run, proceed, "As you say")
}

// responds is to decide with words of one's own.
func (h *hub) responds(run *api.WorkflowRun, proceed bool, response string) *api.HumanTask {
	GinkgoHelper()
	task := h.checkpoint(run)
	h.answers(task, fmt.Sprintf(`{"proceed":%t,"response":%q,"rationale":"I have read it"}`, proceed, response))
	h.resumes(run)
	return task
}

// ends waits for the outcome of a completed run.
func (h *hub) ends(run *api.WorkflowRun, outcome string) {
	GinkgoHelper()
	h.reaches(run, api.RunCompleted)
	Expect(run.Status.Outcome).To(Equal(outcome), "%s", show(run.Status))
}

// history is all of a run's, its pages included.
func (w *world) history(run *api.WorkflowRun) []api.HistoryEntry {
	GinkgoHelper()
	entries := run.Status.History.Entries
	for name := run.Status.History.Page; name != ""; {
		data, err := content.Store{Client: admin}.Named(w.ctx, w.namespace, name)
		Expect(err).NotTo(HaveOccurred())
		var page api.HistoryPage
		Expect(json.Unmarshal(data, &page)).To(Succeed())
		entries = append(page.Entries, entries...)
		name = page.Previous
	}
	Expect(entries).To(HaveLen(int(run.Status.History.Total)))
	return entries
}

// turns are the activations of a run that asked an agent, in the order they ended.
func (w *world) turns(run *api.WorkflowRun) []string {
	GinkgoHelper()
	var asked []string
	for _, entry := range w.history(run) {
		if entry.Receipt != nil && strings.Contains(string(entry.Receipt.Raw), `"agent.prompt"`) {
			asked = append(asked, entry.Activation)
		}
	}
	var all api.TurnList
	Expect(admin.List(w.ctx, &all, client.InNamespace(w.namespace))).To(Succeed())
	Expect(all.Items).To(HaveLen(len(asked)), "turns beyond those that the history tells of")
	return asked
}

var _ = Describe("The adversarial implementation", func() {
	It("supervised 56: is accepted with eleven turns, one pull request and one push", func(ctx SpecContext) {
		h := newHub(ctx)
		run := h.casts(agreeing())
		h.ends(run, "accepted")

		Expect(h.turns(run)).To(Equal(turnsOfAcceptance))
		Expect(h.forge.Mutations()).To(Equal([]string{"POST /repos/team/app/pulls"}))
		Expect(h.app.Pulls()).To(Equal([]string{"Adds health.md."}))
		Expect(h.git.Count("git-receive-pack")).To(Equal(1))
		Expect(h.project.Git("show", workBranch+":health.md")).To(Equal("# Health\n\nAll is well, says round 1."))
		var outputs struct {
			Implementation struct {
				Commit      string
				PullRequest struct{ HeadSha string }
			}
		}
		Expect(json.Unmarshal(run.Status.Outputs.Raw, &outputs)).To(Succeed())
		Expect(outputs.Implementation.Commit).To(Equal(h.project.Head(workBranch)))
		Expect(outputs.Implementation.PullRequest.HeadSha).To(Equal(h.project.Head(workBranch)))
	})

	It("supervised 56: a finding that a person lets be deferred becomes one issue", func(ctx SpecContext) {
		h := newHub(ctx)
		c := agreeing()
		c.asks = []string{toReview}
		c.changes = []map[string]any{found(passed("It is fine."), deferred("readiness"))}
		run := h.casts(c)
		h.decides(run, true)
		h.ends(run, "accepted")

		Expect(h.turns(run)).To(Equal(turnsOfAcceptance))
		Expect(h.forge.Mutations()).To(Equal([]string{"POST /repos/team/app/pulls", "POST /repos/team/app/issues"}))
		Expect(h.app.Issues()).To(HaveLen(1))
		Expect(h.app.Issues()[0]).To(ContainSubstring("health.md has one paragraph"))
		Expect(string(run.Status.Outputs.Raw)).To(ContainSubstring(h.git.URL + "/team/app/issues/2"))
	})
})

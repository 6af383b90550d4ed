package forge_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apitomy/axiom-operator/internal/effect"
	"github.com/apitomy/axiom-operator/internal/forge"
	"github.com/apitomy/axiom-operator/internal/remotes"
	"github.com/apitomy/axiom-operator/internal/testing/forgedouble"
	"github.com/apitomy/axiom-operator/internal/testing/giteaserver"
)

// TestForges runs what holds on every forge. One Gitea serves all of it.
func TestForges(t *testing.T) {
	t.Run("github", func(t *testing.T) { contract(t, onGitHub) })
	t.Run("gitea", func(t *testing.T) {
		server := giteaserver.Start(t, "../..")
		repositories := 0
		contract(t, func(t *testing.T) *fixture {
			repositories++
			return onGitea(t, server, fmt.Sprintf("app-%d", repositories))
		})
	})
}

// contract runs each test on a repository of its own.
func contract(t *testing.T, fresh func(*testing.T) *fixture) {
	for name, test := range map[string]func(*testing.T, *fixture){
		"supervised 42: none: one create":                     createsOnce,
		"supervised 42: one as wished":                        adopts,
		"supervised 42: one with another content":             refusesOtherContent,
		"supervised 42: one behind the push":                  awaitsHead,
		"supervised 42: one at a foreign head":                refusesForeignHead,
		"supervised 42: one closed or merged":                 refusesPast,
		"supervised 42: update of what differs":               updates,
		"supervised 42: update of closed, other and unknown":  refusesUpdates,
		"supervised 42: update behind the push":               awaitsUpdate,
		"supervised 42: many pages of others":                 readsPages,
		"supervised 45: reviews and comments over pages":      readsTalk,
		"supervised 45: checks of one head":                   readsChecks,
		"supervised 45: heads":                                checksHeads,
		"supervised 46: one key is one issue":                 oneIssue,
		"supervised 46: closed, two marks, labels, late list": refusesIssues,
		"supervised 46: issue.read hides the mark":            readsIssue,
	} {
		t.Run(name, func(t *testing.T) { test(t, fresh(t)) })
	}
}

func createsOnce(t *testing.T, f *fixture) {
	w := f.wish()
	if !w.IsCreate(f.want(w, effect.Absent, "")) {
		t.Error("it is no creation")
	}
	made := f.perform(w, 1)
	want := map[string]any{
		"provider": f.address.Forge.Provider, "repository": f.address.Repository, "number": number(made), "url": made.Result["url"], "state": "open", "draft": true,
		"headSha": f.head(), "baseSha": made.Result["baseSha"],
	}
	if fmt.Sprint(made.Result) != fmt.Sprint(want) || len(made.Result["baseSha"].(string)) != 40 {
		t.Errorf("the result is %v", made.Result)
	}
	a, err := forge.ParsePullRequestURL(f.remotes, made.Result["url"].(string))
	if err != nil || a.Number != number(made) || a.Repository != f.address.Repository {
		t.Errorf("its URL is read as %+v, %v", a, err)
	}
	if err := w.Perform(t.Context(), effect.Observation{Verdict: effect.Absent}); err == nil {
		t.Error("a second creation is told to be a success")
	}
	f.want(w, effect.Compatible, "")
}

func adopts(t *testing.T, f *fixture) {
	n := f.openPull(f.pull())
	if o := f.want(f.wish(), effect.Compatible, ""); number(o) != n {
		t.Errorf("it adopts %d, not %d", number(o), n)
	}
	other := f.wish()
	other.Head = "agent/other"
	other.Commit = f.commit(other.Head)
	f.want(other, effect.Absent, "")
}

func refusesOtherContent(t *testing.T, f *fixture) {
	n := f.openPull(f.pull())
	for _, change := range []func(*forge.PullRequest){
		func(w *forge.PullRequest) { w.Title = "Add more" },
		func(w *forge.PullRequest) { w.Body = "Another report" },
		func(w *forge.PullRequest) { w.Draft = false },
	} {
		w := f.wish()
		change(w)
		o := f.want(w, effect.Conflict, "")
		if len(o.Observed) != 1 || o.Observed[0].(map[string]any)["number"] != n {
			t.Errorf("it saw %v", o.Observed)
		}
	}
}

func awaitsHead(_ *testing.T, f *fixture) {
	f.openPull(f.pull())
	// The forge is at the first commit, while the run pushed another one.
	f.chain = append(f.chain, strings.Repeat("b", 40))
	f.want(f.wish(), effect.Unavailable, effect.ReasonLag)
}

func refusesForeignHead(_ *testing.T, f *fixture) {
	f.openPull(f.pull())
	w := f.wish()
	w.Commit = strings.Repeat("b", 40)
	f.want(w, effect.Conflict, "")
}

func refusesPast(t *testing.T, f *fixture) {
	n := f.openPull(f.pull())
	f.closePull(n)
	f.want(f.wish(), effect.Conflict, "")
	if f.address.Forge.Provider == remotes.ProviderGitHub {
		f.mergePull(n)
		f.want(f.wish(), effect.Conflict, "")
	}
	// One that is open beside it decides.
	f.push()
	again := f.openPull(f.pull())
	if o := f.want(f.wish(), effect.Compatible, ""); number(o) != again {
		t.Errorf("it is %d, not %d", number(o), again)
	}
}

func updates(_ *testing.T, f *fixture) {
	f.commit("release")
	w := f.wish()
	w.Number = f.openPull(f.pull())
	f.want(w, effect.Compatible, "")
	w.Title, w.Body, w.Base = "Add health, again", "Another report", "release"
	f.perform(w, 1)
	w.Draft = false
	f.perform(w, 1)
	w.Draft = true
	if w.IsCreate(f.want(w, effect.Absent, "")) {
		f.t.Error("it is a creation")
	}
	f.perform(w, 1)
	w.Title, w.Draft = "And again", false
	changes := 2
	if f.address.Forge.Provider == remotes.ProviderGitea {
		changes = 1
	}
	f.perform(w, changes)
}

func refusesUpdates(_ *testing.T, f *fixture) {
	w := f.wish()
	w.Number = 4711
	f.want(w, effect.Unavailable, effect.ReasonRejected)
	f.commit("agent/other")
	w.Number = f.openPull(forgedouble.Pull{Head: "agent/other", Base: "main", Title: "Other"})
	f.want(w, effect.Conflict, "")
	w.Number = f.openPull(f.pull())
	w.Commit = strings.Repeat("b", 40)
	f.want(w, effect.Conflict, "")
	w.Commit = f.head()
	f.closePull(w.Number)
	f.want(w, effect.Conflict, "")
}

func awaitsUpdate(_ *testing.T, f *fixture) {
	n := f.openPull(f.pull())
	f.chain = append(f.chain, strings.Repeat("b", 40))
	w := f.wish()
	w.Number = n
	f.want(w, effect.Unavailable, effect.ReasonLag)
}

func readsPages(t *testing.T, f *fixture) {
	n := f.openPull(f.pull())
	count := 3
	if g, ok := f.world.(*github); ok {
		g.server.PerPage(2)
		count = 9
	}
	for i := range count {
		branch := fmt.Sprintf("agent/other-%d", i)
		f.commit(branch)
		f.openPull(forgedouble.Pull{Head: branch, Base: "main", Title: branch})
	}
	if o := f.want(f.wish(), effect.Compatible, ""); number(o) != n {
		t.Errorf("it is %d, not %d", number(o), n)
	}
}

func (f *fixture) evidence(n int64, kind forge.Kind) *forge.Evidence {
	a := f.address
	a.Number = n
	return &forge.Evidence{Client: f.client, Address: a, Kind: kind, Commit: f.head(), IsAncestor: f.isAncestor}
}

func (f *fixture) items(e *forge.Evidence) []map[string]any {
	f.t.Helper()
	o := f.want(e, effect.Compatible, "")
	if o.Result["headSha"] != f.head() {
		f.t.Errorf("the head is %v", o.Result["headSha"])
	}
	var items []map[string]any
	for _, item := range o.Result[string(e.Kind)].([]any) {
		items = append(items, item.(map[string]any))
	}
	return items
}

func wantMembers(t *testing.T, item map[string]any, names string) {
	t.Helper()
	for name := range strings.FieldsSeq(names) {
		if _, has := item[name]; !has {
			t.Errorf("%v lacks %s", item, name)
		}
	}
	if len(item) != len(strings.Fields(names)) {
		t.Errorf("%v has more than %s", item, names)
	}
}

func readsTalk(t *testing.T, f *fixture) {
	n := f.openPull(f.pull())
	for _, kind := range []forge.Kind{forge.KindReviews, forge.KindComments} {
		if items := f.items(f.evidence(n, kind)); len(items) != 0 {
			t.Fatalf("%s of nothing are %v", kind, items)
		}
	}
	body := "Größe:\t1 < 2 & “x”\n\n```go\nx := `y`\n```"
	count := 53
	for i := range count {
		f.comment(n, fmt.Sprint("comment ", i))
		f.review(n, fmt.Sprint("review ", i), "")
	}
	f.comment(n, body)
	f.review(n, body, "at a line")
	reviews := f.items(f.evidence(n, forge.KindReviews))
	if len(reviews) != count+1 {
		t.Fatalf("there are %d reviews", len(reviews))
	}
	last := reviews[count]
	wantMembers(t, last, "id author state body commit submittedAt")
	if last["body"] != body || last["commit"] != f.head() || last["state"] != map[string]string{remotes.ProviderGitea: "COMMENT", remotes.ProviderGitHub: "COMMENTED"}[f.address.Forge.Provider] {
		t.Errorf("the review is %v", last)
	}
	comments := f.items(f.evidence(n, forge.KindComments))
	if len(comments) != count+2 {
		t.Fatalf("there are %d comments", len(comments))
	}
	said, line := comments[count], comments[count+1]
	wantMembers(t, said, "id kind author body path line commit createdAt updatedAt")
	if said["kind"] != "conversation" || said["body"] != body || said["path"] != nil || said["line"] != nil || said["commit"] != nil {
		t.Errorf("the comment is %v", said)
	}
	if line["kind"] != "line" || line["body"] != "at a line" || line["line"] != int64(1) || line["path"] == nil {
		t.Errorf("the comment at a line is %v", line)
	}
	if id, ok := line["id"].(string); !ok || strings.ContainsAny(id, ".e") {
		t.Errorf("the id is %v", line["id"])
	}
}

func readsChecks(t *testing.T, f *fixture) {
	n := f.openPull(f.pull())
	if items := f.items(f.evidence(n, forge.KindChecks)); len(items) != 0 {
		t.Fatalf("checks of nothing are %v", items)
	}
	f.status(f.head(), "build", "pending")
	f.status(f.head(), "build", "success")
	for i := range 60 {
		f.status(f.head(), fmt.Sprintf("lint-%02d", i), "failure")
	}
	f.status(f.commit("main"), "build", "error")
	items := f.items(f.evidence(n, forge.KindChecks))
	if len(items) != 61 || items[0]["name"] != "build" || items[0]["state"] != "success" || items[60]["name"] != "lint-59" {
		t.Fatalf("%d checks, the first is %v", len(items), items[0])
	}
	wantMembers(t, items[0], "id kind name state conclusion url startedAt completedAt")
}

func checksHeads(_ *testing.T, f *fixture) {
	n := f.openPull(f.pull())
	for _, kind := range []forge.Kind{forge.KindReviews, forge.KindComments, forge.KindChecks} {
		e := f.evidence(n, kind)
		e.Commit = ""
		f.items(e)
		e.Commit = strings.Repeat("b", 40)
		f.wantFailure(e, forge.CodeHeadMoved)
		e.IsAncestor = func(commit string) bool { return commit == f.head() }
		f.want(e, effect.Unavailable, effect.ReasonLag)
	}
}

// finding is an issue of a run that was created before its forge; the clock of the double stands still long ago.
func (f *fixture) finding(key string) *forge.Issue {
	return &forge.Issue{
		Client: f.client, Address: f.address, RunUID: "6a1f", Key: key, Since: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Title: "A finding", Body: "What is wrong\n\n- evidence",
	}
}

func oneIssue(t *testing.T, f *fixture) {
	f.label("bug")
	f.label("later")
	f.openIssue("A finding", "What is wrong\n\n- evidence")
	f.openPull(f.pull())
	w := f.finding("leak")
	w.Labels = []string{"later", "bug", "later"}
	w.Assignee = giteaserver.User
	if !w.IsCreate(f.want(w, effect.Absent, "")) {
		t.Error("it is no creation")
	}
	made := f.perform(w, 1)
	if len(made.Result) != 3 || made.Result["key"] != "leak" || number(made) == 0 {
		t.Errorf("the result is %v", made.Result)
	}
	w.Title, w.Body = "Another title", "Another body"
	if w.IsCreate(f.want(w, effect.Absent, "")) {
		t.Error("the second round is a creation")
	}
	if o := f.perform(w, 1); number(o) != number(made) {
		t.Errorf("the second round is of issue %d", number(o))
	}
	w.Labels = []string{"bug"}
	w.Known = number(made)
	f.perform(w, 1)
	w.Labels = nil
	f.want(w, effect.Compatible, "")
	other := f.finding("other")
	other.Since = w.Since
	f.want(other, effect.Absent, "")
	foreign := *w
	foreign.Known, foreign.RunUID = 0, "another"
	f.want(&foreign, effect.Absent, "")
}

func refusesIssues(t *testing.T, f *fixture) {
	w := f.finding("leak")
	w.Labels = []string{"nobody-knows"}
	f.wantFailure(w, forge.CodeLabelUnknown)
	w.Labels = nil
	n := number(f.perform(w, 1))
	w.Known = 4711
	f.want(w, effect.Unavailable, effect.ReasonRejected)
	w.Known = 0
	// A second creation, as of a forge that lists late, shows as what it is.
	if err := w.Perform(t.Context(), effect.Observation{Verdict: effect.Absent}); err != nil {
		t.Fatal(err)
	}
	if o := f.want(w, effect.Ambiguous, ""); len(o.Observed) != 2 {
		t.Errorf("it saw %v", o.Observed)
	}
	w.Known = n
	f.want(w, effect.Compatible, "")
	f.closeIssue(n)
	f.want(w, effect.Conflict, "")
	fresh := f.finding("fresh")
	fresh.Since = w.Since
	made := number(f.perform(fresh, 1))
	f.editIssue(made, "A finding", "without the mark")
	fresh.Known = made
	f.want(fresh, effect.Conflict, "")
}

func readsIssue(t *testing.T, f *fixture) {
	f.label("bug")
	w := f.finding("leak")
	w.Labels = []string{"bug"}
	made := f.perform(w, 1)
	a, err := forge.ParseIssueURL(f.remotes, made.Result["url"].(string))
	if err != nil {
		t.Fatal(err)
	}
	o := f.want(&forge.IssueRead{Client: f.client, Address: a}, effect.Compatible, "")
	issue := o.Result["issue"].(map[string]any)
	wantMembers(t, issue, "url number title body state labels assignee")
	if issue["body"] != w.Body || fmt.Sprint(issue["labels"]) != "[bug]" || issue["assignee"] != nil || issue["state"] != "open" {
		t.Errorf("the issue is %v", issue)
	}
	a.Number = f.openPull(f.pull())
	f.wantFailure(&forge.IssueRead{Client: f.client, Address: a}, remotes.CodeURLInvalid)
}

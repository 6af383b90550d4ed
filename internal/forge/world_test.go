package forge_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/apitomy/axiom-operator/internal/effect"
	"github.com/apitomy/axiom-operator/internal/forge"
	"github.com/apitomy/axiom-operator/internal/remotes"
	"github.com/apitomy/axiom-operator/internal/testing/forgedouble"
	"github.com/apitomy/axiom-operator/internal/testing/giteaserver"
)

// A world is a forge with one repository, and people who work in it.
type world interface {
	// commit adds a commit to a branch, which is made if it is not there, and returns it.
	commit(branch string) string
	openPull(p forgedouble.Pull) int64
	openIssue(title, body string) int64
	editPull(number int64, title, body string)
	editIssue(number int64, title, body string)
	closePull(number int64)
	mergePull(number int64)
	closeIssue(number int64)
	comment(number int64, body string)
	review(number int64, body, line string)
	status(commit, name, state string)
	label(name string)
}

// A fixture is a world, and the client that the tests are about.
type fixture struct {
	world
	t       *testing.T
	remotes *remotes.Remotes
	address forge.Address
	client  *forge.Client
	wire    *wire
	branch  string
	// chain are the commits of branch, oldest first.
	chain []string
}

// wire counts what a client changes.
type wire struct {
	next      http.RoundTripper
	mu        sync.Mutex
	mutations []string
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		w.mu.Lock()
		w.mutations = append(w.mutations, r.Method)
		w.mu.Unlock()
	}
	return w.next.RoundTrip(r)
}

func (w *wire) changes() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.mutations)
}

var clock = clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))

func newFixture(t *testing.T, w world, page, entry, token string) *fixture {
	t.Helper()
	r, err := remotes.Parse(map[string]string{"forges": "[" + entry + "]"})
	if err != nil {
		t.Fatal(err)
	}
	address, err := forge.ParseTrackerURL(r, page)
	if err != nil {
		t.Fatal(err)
	}
	network, err := remotes.NewNetwork(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(network.CloseIdleConnections)
	f := &fixture{world: w, t: t, remotes: r, address: address, branch: "agent/work", wire: &wire{next: network.Transport(address.Forge.Access)}}
	f.client = forge.NewClient(address.Forge, f.wire, token, clock)
	f.chain = []string{f.commit(f.branch)}
	return f
}

func onGitHub(t *testing.T) *fixture {
	t.Helper()
	w := newGitHub(t)
	entry := fmt.Sprintf("{host: %q, provider: github, api: %q, private: true, plaintext: true}", strings.TrimPrefix(w.server.URL, "http://"), w.server.API)
	return newFixture(t, w, w.server.URL+"/acme/app", entry, forgedouble.Token)
}

func onGitea(t *testing.T, server *giteaserver.Server, repository string) *fixture {
	t.Helper()
	w := &gitea{t: t, server: server, repository: server.CreateRepository(t, repository)}
	entry := fmt.Sprintf("{host: %q, provider: gitea, api: %q, private: true, plaintext: true}", strings.TrimPrefix(server.URL, "http://"), server.API)
	return newFixture(t, w, server.URL+"/"+w.repository, entry, server.Token)
}

// push adds a commit to the branch, as the run does.
func (f *fixture) push() { f.chain = append(f.chain, f.commit(f.branch)) }

func (f *fixture) head() string { return f.chain[len(f.chain)-1] }

func (f *fixture) isAncestor(commit string) bool {
	return slices.Contains(f.chain[:len(f.chain)-1], commit)
}

// wish is a pull request of the branch.
func (f *fixture) wish() *forge.PullRequest {
	return &forge.PullRequest{
		Client: f.client, Address: f.address, Head: f.branch, Base: "main", Commit: f.head(), IsAncestor: f.isAncestor, Title: "Add health", Body: "A report\n", Draft: true,
	}
}

// pull is what people open for the branch.
func (f *fixture) pull() forgedouble.Pull {
	return forgedouble.Pull{Head: f.branch, Base: "main", Title: "Add health", Body: "A report", Draft: true}
}

func (f *fixture) observe(e effect.Effect) effect.Observation {
	f.t.Helper()
	o, err := e.Observe(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	return o
}

// want observes a verdict, and that looking changes nothing.
func (f *fixture) want(e effect.Effect, verdict effect.Verdict, reason effect.Reason) effect.Observation {
	f.t.Helper()
	before := f.wire.changes()
	o := f.observe(e)
	if o.Verdict != verdict || o.Reason != reason {
		f.t.Fatalf("observed %+v, want %s %s", o, verdict, reason)
	}
	if f.wire.changes() != before {
		f.t.Fatal("looking changed something")
	}
	return o
}

// perform does what is absent, with a number of requests that change something, and sees it done.
func (f *fixture) perform(e effect.Effect, changes int) effect.Observation {
	f.t.Helper()
	absent := f.want(e, effect.Absent, "")
	before := f.wire.changes()
	if err := e.Perform(f.t.Context(), absent); err != nil {
		f.t.Fatal(err)
	}
	if got := f.wire.changes() - before; got != changes {
		f.t.Fatalf("%d changes, want %d", got, changes)
	}
	return f.want(e, effect.Compatible, "")
}

func (f *fixture) wantFailure(e effect.Effect, code string) {
	f.t.Helper()
	_, err := e.Observe(f.t.Context())
	failure, ok := errors.AsType[*effect.Failure](err)
	if !ok || failure.Code != code {
		f.t.Fatalf("the error is %v, want %s", err, code)
	}
}

func number(o effect.Observation) int64 {
	n, _ := o.Result["number"].(int64)
	return n
}

// github is the double.
type github struct {
	t          *testing.T
	server     *forgedouble.Server
	repository *forgedouble.Repository
	commits    int
}

func newGitHub(t *testing.T) *github {
	s := forgedouble.Start(t)
	r := s.Repository("acme/app")
	r.SetBranch("main", strings.Repeat("0", 39)+"1")
	return &github{t: t, server: s, repository: r}
}

func (g *github) commit(branch string) string {
	g.commits++
	commit := fmt.Sprintf("%040x", 0xa000+g.commits)
	g.repository.SetBranch(branch, commit)
	return commit
}

func (g *github) openPull(p forgedouble.Pull) int64 { return g.repository.OpenPull(p) }

func (g *github) openIssue(title, body string) int64 { return g.repository.OpenIssue(title, body) }

func (g *github) editPull(number int64, title, body string) { g.repository.Edit(number, title, body) }

func (g *github) editIssue(number int64, title, body string) { g.repository.Edit(number, title, body) }

func (g *github) closePull(number int64) { g.repository.Close(number, false) }

func (g *github) mergePull(number int64) { g.repository.Close(number, true) }

func (g *github) closeIssue(number int64) { g.repository.Close(number, false) }

func (g *github) comment(number int64, body string) { g.repository.Comment(number, body) }

func (g *github) review(number int64, body, line string) {
	lines := map[int64]string{}
	if line != "" {
		lines[1] = line
	}
	g.repository.Review(number, "COMMENTED", body, lines)
}

func (g *github) status(commit, name, state string) { g.repository.Status(commit, name, state) }

func (g *github) label(name string) { g.repository.AddLabel(name) }

// gitea is a real one; each test has a repository of its own there.
type gitea struct {
	t          *testing.T
	server     *giteaserver.Server
	repository string
	commits    int
}

func (g *gitea) commit(branch string) string {
	g.commits++
	return g.server.Commit(g.t, g.repository, branch, fmt.Sprintf("file-%d.md", g.commits))
}

func (g *gitea) call(method, path string, body any) map[string]any {
	g.t.Helper()
	value, err := g.server.Call(context.WithoutCancel(g.t.Context()), method, "/repos/"+g.repository+path, body)
	if err != nil {
		g.t.Fatal(err)
	}
	object, _ := value.(map[string]any)
	return object
}

func (g *gitea) openPull(p forgedouble.Pull) int64 {
	title := p.Title
	if p.Draft {
		title = "[WIP] " + title
	}
	made := g.call(http.MethodPost, "/pulls", map[string]any{"title": title, "body": p.Body, "head": p.Head, "base": p.Base})
	n, _ := made["number"].(float64)
	return int64(n)
}

func (g *gitea) openIssue(title, body string) int64 {
	n, _ := g.call(http.MethodPost, "/issues", map[string]any{"title": title, "body": body})["number"].(float64)
	return int64(n)
}

func (g *gitea) editPull(number int64, title, body string) {
	g.call(http.MethodPatch, fmt.Sprintf("/pulls/%d", number), map[string]any{"title": title, "body": body})
}

func (g *gitea) editIssue(number int64, title, body string) {
	g.call(http.MethodPatch, fmt.Sprintf("/issues/%d", number), map[string]any{"title": title, "body": body})
}

func (g *gitea) closePull(number int64) {
	g.call(http.MethodPatch, fmt.Sprintf("/pulls/%d", number), map[string]any{"state": "closed"})
}

func (g *gitea) mergePull(number int64) {
	g.call(http.MethodPost, fmt.Sprintf("/pulls/%d/merge", number), map[string]any{"Do": "manually-merged", "MergeCommitID": g.commit("main")})
}

func (g *gitea) closeIssue(number int64) {
	g.call(http.MethodPatch, fmt.Sprintf("/issues/%d", number), map[string]any{"state": "closed"})
}

func (g *gitea) comment(number int64, body string) {
	g.call(http.MethodPost, fmt.Sprintf("/issues/%d/comments", number), map[string]any{"body": body})
}

func (g *gitea) review(number int64, body, line string) {
	review := map[string]any{"event": "COMMENT", "body": body}
	if line != "" {
		review["comments"] = []any{map[string]any{"path": "file-1.md", "body": line, "new_position": 1}}
	}
	g.call(http.MethodPost, fmt.Sprintf("/pulls/%d/reviews", number), review)
}

func (g *gitea) status(commit, name, state string) {
	g.call(http.MethodPost, "/statuses/"+commit, map[string]any{"context": name, "state": state})
}

func (g *gitea) label(name string) {
	g.call(http.MethodPost, "/labels", map[string]any{"name": name, "color": "#00aabb"})
}

package forge_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apitomy/axiom-operator/internal/effect"
	"github.com/apitomy/axiom-operator/internal/forge"
	"github.com/apitomy/axiom-operator/internal/remotes"
	"github.com/apitomy/axiom-operator/internal/testing/forgedouble"
)

// every is one effect of each kind that asks a forge.
func (f *fixture) every() map[string]effect.Effect {
	n := f.openPull(f.pull())
	update := f.wish()
	update.Number = n
	a := f.address
	a.Number = f.openIssue("A finding", "")
	labelled := f.finding("labelled")
	labelled.Labels = []string{"bug"}
	f.label("bug")
	return map[string]effect.Effect{
		"create": f.wish(), "update": update, "reviews": f.evidence(n, forge.KindReviews), "comments": f.evidence(n, forge.KindComments),
		"checks": f.evidence(n, forge.KindChecks), "read": &forge.IssueRead{Client: f.client, Address: a}, "issue": f.finding("leak"), "labels": labelled,
	}
}

func TestSupervised44(t *testing.T) {
	for _, c := range []struct {
		name   string
		fault  forgedouble.Fault
		reason effect.Reason
		after  time.Duration
	}{
		{"unreachable", forgedouble.Unreachable, effect.ReasonNetwork, 0},
		{"401", forgedouble.Unauthorized, effect.ReasonAuthentication, 0},
		{"403", forgedouble.Forbidden, effect.ReasonAuthentication, 0},
		{"404", forgedouble.NotFound, effect.ReasonRejected, 0},
		{"rate limit", forgedouble.RateLimited, effect.ReasonRateLimited, 7 * time.Second},
		{"a limit that ends", forgedouble.Fault{Status: 429, Header: map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": strconv.FormatInt(clock.Now().Unix()+9, 10)}}, effect.ReasonRateLimited, 9 * time.Second},
		{"a date", forgedouble.Fault{Status: 503, Header: map[string]string{"Retry-After": clock.Now().Add(11 * time.Second).Format("Mon, 02 Jan 2006 15:04:05 GMT")}}, effect.ReasonServer, 11 * time.Second},
		{"5xx", forgedouble.ServerError, effect.ReasonServer, 0},
		{"redirect", forgedouble.Fault{Status: 302, Header: map[string]string{"Location": "https://elsewhere.example.com/"}}, effect.ReasonRejected, 0},
		{"half an answer", forgedouble.Unreadable, effect.ReasonUnreadable, 0},
		{"null", forgedouble.Fault{Status: 200, Body: "null"}, effect.ReasonUnreadable, 0},
		{"bytes", forgedouble.Fault{Status: 200, Body: "[{\"number\":1,\"body\":\"\xff\"}]"}, effect.ReasonUnreadable, 0},
	} {
		t.Run("supervised 44: "+c.name, func(t *testing.T) {
			f := onGitHub(t)
			server := f.world.(*github).server
			for name, e := range f.every() {
				server.Fail("", "", -1, c.fault)
				o := f.want(e, effect.Unavailable, c.reason)
				if o.RetryAfter != c.after {
					t.Errorf("%s is left alone for %s", name, o.RetryAfter)
				}
				server.Heal()
				if o := f.observe(e); o.Verdict == effect.Unavailable {
					t.Errorf("%s is not back: %v", name, o)
				}
			}
			if len(server.Mutations()) != 0 {
				t.Errorf("mutations are %v", server.Mutations())
			}
		})
	}
}

func TestLaterPagesCount(t *testing.T) {
	for _, kind := range []forge.Kind{forge.KindReviews, forge.KindComments, forge.KindChecks} {
		f := onGitHub(t)
		g := f.world.(*github)
		g.server.PerPage(2)
		n := f.openPull(f.pull())
		for i := range 5 {
			f.comment(n, "said")
			f.review(n, "said", "")
			f.status(f.head(), strconv.Itoa(i), "success")
		}
		// The pull request and, of checks, the runs come before the pages that are meant.
		end := map[forge.Kind]string{forge.KindReviews: "/reviews", forge.KindComments: "/comments", forge.KindChecks: "/statuses"}[kind]
		first := &firstPasses{next: f.wire.next, server: g.server, end: end}
		f.wire.next = first
		f.want(f.evidence(n, kind), effect.Unavailable, effect.ReasonServer)
		if !first.passed {
			t.Errorf("%s: no page was read", kind)
		}
	}
}

func TestPagesHaveAnEnd(t *testing.T) {
	f := onGitHub(t)
	g := f.world.(*github)
	n := f.openPull(f.pull())
	g.server.PerPage(1)
	for range 32 {
		f.review(n, "said", "")
	}
	if items := f.items(f.evidence(n, forge.KindReviews)); len(items) != 32 {
		t.Errorf("there are %d", len(items))
	}
	f.review(n, "said", "")
	f.want(f.evidence(n, forge.KindReviews), effect.Unavailable, effect.ReasonIncomplete)
	g.server.PerPage(100)
	g.server.Fail("GET", "/reviews", 1, forgedouble.ElsewhereNext)
	f.want(f.evidence(n, forge.KindReviews), effect.Unavailable, effect.ReasonIncomplete)
	g.server.Fail("GET", "/reviews", 1, forgedouble.Fault{Status: 200, Body: `[{"id":1},{"id":1}]`})
	f.want(f.evidence(n, forge.KindReviews), effect.Unavailable, effect.ReasonIncomplete)
	g.server.Fail("GET", "/reviews", 1, forgedouble.Fault{Status: 200, Body: `[{}]`})
	f.want(f.evidence(n, forge.KindReviews), effect.Unavailable, effect.ReasonUnreadable)
}

func TestLostAnswersAreFoundAgain(t *testing.T) {
	f := onGitHub(t)
	g := f.world.(*github)
	for name, e := range map[string]effect.Effect{"pull request": f.wish(), "issue": f.finding("leak")} {
		absent := f.want(e, effect.Absent, "")
		g.server.Fail("POST", "", 1, forgedouble.LostAnswer)
		if err := e.Perform(t.Context(), absent); err == nil {
			t.Errorf("%s: a lost answer is success", name)
		}
		f.want(e, effect.Compatible, "")
	}
	if got := g.server.Mutations(); len(got) != 2 {
		t.Errorf("mutations are %v", got)
	}
}

func TestLateListsShowAbsence(t *testing.T) {
	f := onGitHub(t)
	g := f.world.(*github)
	g.server.HideCreated()
	w := f.wish()
	if err := w.Perform(t.Context(), f.want(w, effect.Absent, "")); err != nil {
		t.Fatal(err)
	}
	f.want(w, effect.Absent, "")
	g.server.ShowCreated()
	f.want(w, effect.Compatible, "")
	g.server.HoldHeads()
	f.push()
	next := f.wish()
	f.want(next, effect.Unavailable, effect.ReasonLag)
	g.server.ReleaseHeads()
	f.want(next, effect.Compatible, "")
}

func TestIssuesAreFoundByTheClockOfASlowForge(t *testing.T) {
	f := onGitHub(t)
	f.world.(*github).server.SetTime(time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC))
	w := f.finding("leak")
	w.Since = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	if err := w.Perform(t.Context(), f.want(w, effect.Absent, "")); err != nil {
		t.Fatal(err)
	}
	f.want(w, effect.Compatible, "")
}

func TestRowsThatGiteaKeepsPeopleFrom(t *testing.T) {
	f := onGitHub(t)
	g := f.world.(*github)
	fork := f.pull()
	fork.Fork = "mallory/app"
	n := f.openPull(fork)
	f.want(f.wish(), effect.Absent, "")
	update := f.wish()
	update.Number = n
	f.want(update, effect.Conflict, "")
	g.server.Repository("mallory/app")
	f.want(update, effect.Conflict, "")
	f.openPull(f.pull())
	f.openPull(f.pull())
	if o := f.want(f.wish(), effect.Ambiguous, ""); len(o.Observed) != 2 {
		t.Errorf("it saw %v", o.Observed)
	}
}

func TestUnknownConclusionsAreVerbatim(t *testing.T) {
	f := onGitHub(t)
	g := f.world.(*github)
	n := f.openPull(f.pull())
	g.repository.CheckRun(f.head(), "build", "completed", "größer_than")
	g.repository.CheckRun(f.head(), "lint", "queued", "")
	f.status(f.head(), "deploy", "perhaps")
	items := f.items(f.evidence(n, forge.KindChecks))
	if len(items) != 3 {
		t.Fatalf("the checks are %v", items)
	}
	for i, want := range []string{"check build completed größer_than", "check lint queued <nil>", "status deploy perhaps <nil>"} {
		if got := fmt.Sprint(items[i]["kind"], " ", items[i]["name"], " ", items[i]["state"], " ", items[i]["conclusion"]); got != want {
			t.Errorf("check %d is %q, want %q", i, got, want)
		}
	}
}

func TestTokensAreNotInErrors(t *testing.T) {
	f := onGitHub(t)
	server := f.world.(*github).server
	server.Fail("POST", "", -1, forgedouble.Fault{Status: 400, Body: forgedouble.Token})
	w := f.wish()
	err := w.Perform(t.Context(), effect.Observation{Verdict: effect.Absent})
	if err == nil || strings.Contains(err.Error(), forgedouble.Token) || strings.Contains(err.Error(), server.URL) {
		t.Errorf("the error is %v", err)
	}
	elsewhere := f.address.Forge
	elsewhere.API = "http://127.0.0.1:1/api"
	w.Client = forge.NewClient(elsewhere, f.wire, forgedouble.Token, clock)
	f.wantFailure(w, effect.CodeRemoteNotAllowed)
}

func TestEndedContextsAreErrors(t *testing.T) {
	f := onGitHub(t)
	for name, e := range f.every() {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := e.Observe(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

func TestTitlesThatMarkDraftsAgainstTheWish(t *testing.T) {
	a := forge.Address{Forge: remotes.Forge{Provider: remotes.ProviderGitea}}
	w := &forge.PullRequest{Address: a, Title: "wip: x"}
	_, err := w.Observe(t.Context())
	failure, ok := errors.AsType[*effect.Failure](err)
	if !ok || failure.Code != effect.CodeInputContract || strings.Contains(failure.Message, "wip: x") {
		t.Errorf("the error is %v", err)
	}
}

func TestAddresses(t *testing.T) {
	r, err := remotes.Parse(map[string]string{"forges": "[{host: git.example.com, provider: gitea, api: 'https://git.example.com/api/v1'}]"})
	if err != nil {
		t.Fatal(err)
	}
	type parser func(*remotes.Remotes, string) (forge.Address, error)
	pull, issue, tracker := parser(forge.ParsePullRequestURL), parser(forge.ParseIssueURL), parser(forge.ParseTrackerURL)
	for _, c := range []struct {
		parse parser
		text  string
		code  string
	}{
		{pull, "https://git.example.com/acme/app/pulls/7", ""},
		{pull, "https://GIT.example.com:443/acme/app/pull/7/", ""},
		{pull, "https://git.example.com/acme/app/issues/7", remotes.CodeURLInvalid},
		{pull, "https://git.example.com/acme/app/pulls/0", remotes.CodeURLInvalid},
		{pull, "https://git.example.com/acme/app/pulls/07", remotes.CodeURLInvalid},
		{pull, "https://git.example.com/acme/app/pulls/7/files", remotes.CodeURLInvalid},
		{pull, "https://git.example.com/acme/app/pulls/7?x", remotes.CodeURLInvalid},
		{pull, "https://u:p@git.example.com/acme/app/pulls/7", remotes.CodeURLInvalid},
		{pull, "https://git.example.com/acme/../app/pulls/7", remotes.CodeURLInvalid},
		{pull, "https://git.example.com/acme/a%2fb/pulls/7", remotes.CodeURLInvalid},
		{pull, "https://other.example.com/acme/app/pulls/7", remotes.CodeForgeUnknown},
		{pull, "http://git.example.com/acme/app/pulls/7", remotes.CodeForgeUnknown},
		{issue, "https://git.example.com/acme/app/issues/7", ""},
		{issue, "https://git.example.com/acme/app/issues", remotes.CodeURLInvalid},
		{tracker, "https://git.example.com/acme/app", ""},
		{tracker, "https://git.example.com/acme/app/issues", ""},
		{tracker, "https://git.example.com/acme", remotes.CodeURLInvalid},
		{tracker, "git@git.example.com:acme/app", remotes.CodeURLInvalid},
	} {
		a, err := c.parse(r, c.text)
		failure, _ := errors.AsType[*effect.Failure](err)
		if c.code == "" && (err != nil || a.Repository != "acme/app") || c.code != "" && (failure == nil || failure.Code != c.code) {
			t.Errorf("%s is %+v, %v; want %q", c.text, a, err, c.code)
		}
	}
	l, err := remotes.ParseLocator("git@git.example.com:acme/app.git")
	if err != nil {
		t.Fatal(err)
	}
	if a, err := forge.OfRepository(r, l); err != nil || a.Repository != "acme/app" || a.Forge.Web != "git.example.com" {
		t.Errorf("the repository is %+v, %v", a, err)
	}
}

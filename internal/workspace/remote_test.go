package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testclock "k8s.io/utils/clock/testing"

	"github.com/apitomy/axiom-operator/internal/effect"
	"github.com/apitomy/axiom-operator/internal/testing/gitserver"
)

// remoteOf talks to a repository of a test.
func remoteOf(s *gitserver.Server, r *gitserver.Repository) *Remote {
	return &Remote{URL: r.URL, HTTP: s.Client.Transport, Auth: Auth{Username: gitserver.Username, Password: gitserver.Password}}
}

func newTestCache(t testing.TB) *Cache {
	t.Helper()
	cache, err := NewCache(t.TempDir(), 1<<30, testclock.NewFakePassiveClock(time.Unix(1700000000, 0)))
	if err != nil {
		t.Fatal(err)
	}
	return cache
}

func keyOf(commit string) Key {
	return Key{Scope: "team-a", Fingerprint: "sha256:f", Commit: commit}
}

// fetched is what the cache gives of a commit.
func fetched(t testing.TB, cache *Cache, remote *Remote, commit string) *Base {
	t.Helper()
	base, err := cache.Open(t.Context(), keyOf(commit), remote)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = base.Close() })
	return base
}

func file(content string) gitserver.FileSpec { return gitserver.FileSpec{Content: content} }

func files(pairs ...string) map[string]gitserver.FileSpec {
	specs := map[string]gitserver.FileSpec{}
	for i := 0; i < len(pairs); i += 2 {
		specs[pairs[i]] = file(pairs[i+1])
	}
	return specs
}

func TestListsRefs(t *testing.T) {
	server := gitserver.Start(t)
	repository := server.Create(t, "app")
	main := repository.Commit("main", files("a", "1"))
	topic := repository.Commit("topic/x", files("a", "2"))
	repository.Git("-c", "user.name=x", "-c", "user.email=x", "tag", "-a", "-m", "v", "v1", main)
	repository.Git("tag", "light", topic)
	listing, err := remoteOf(server, repository).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for base, want := range map[string]Resolved{
		"":                   {Commit: main, Branch: "main"},
		"main":               {Commit: main, Branch: "main"},
		"topic/x":            {Commit: topic, Branch: "topic/x"},
		"refs/heads/topic/x": {Commit: topic, Branch: "topic/x"},
		"v1":                 {Commit: main},
		"refs/tags/light":    {Commit: topic},
		main:                 {Commit: main},
	} {
		got, err := listing.Resolve(base)
		if err != nil || got != want {
			t.Errorf("base %q is %v, %v, want %v", base, got, err, want)
		}
	}
	_, err = listing.Resolve("other")
	wantFailure(t, err, CodeRefNotFound)
	_, err = listing.Resolve(strings.ToUpper(main))
	wantFailure(t, err, CodeRefNotFound)
}

func TestRepositoriesWithoutDefaultBranch(t *testing.T) {
	server := gitserver.Start(t)
	empty := server.Create(t, "empty")
	elsewhere := server.Create(t, "elsewhere")
	elsewhere.Commit("topic", files("a", "1"))
	for _, repository := range []*gitserver.Repository{empty, elsewhere} {
		listing, err := remoteOf(server, repository).List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = listing.Resolve("")
		wantFailure(t, err, CodeNoDefaultBranch)
	}
}

func TestUnavailableRemotes(t *testing.T) {
	server := gitserver.Start(t)
	repository := server.Create(t, "app")
	repository.Commit("main", files("a", "1"))
	for name, tc := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request) bool
		want   effect.Reason
		after  time.Duration
	}{
		"nobody is let in":             {answer: status(401), want: effect.ReasonAuthentication},
		"it is forbidden":              {answer: status(403), want: effect.ReasonAuthentication},
		"it is not found":              {answer: status(404), want: effect.ReasonServer},
		"the server is broken":         {answer: status(500), want: effect.ReasonServer},
		"it leads elsewhere":           {answer: status(302, "Location", server.URL+"/other.git/info/refs"), want: effect.ReasonServer},
		"it was asked too often":       {answer: status(429, "Retry-After", "17"), want: effect.ReasonRateLimited, after: 17 * time.Second},
		"it forbids for some time":     {answer: status(403, "Retry-After", "5"), want: effect.ReasonRateLimited, after: 5 * time.Second},
		"a time to come back is given": {answer: status(503, "Date", "Tue, 01 Dec 2026 00:00:00 GMT", "Retry-After", "Tue, 01 Dec 2026 00:01:00 GMT"), want: effect.ReasonServer, after: time.Minute},
		"the connection breaks":        {answer: func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }, want: effect.ReasonNetwork},
		"a page for people comes":      {answer: says("text/html", "<html>"), want: effect.ReasonUnreadable},
		"the list has no end":          {answer: saysRefs("003d" + strings.Repeat("a", 40) + " refs/heads/main\n"), want: effect.ReasonIncomplete},
		"the list breaks in a line":    {answer: saysRefs("003daaaa"), want: effect.ReasonIncomplete},
		"the list is no list":          {answer: saysRefs("zzzz"), want: effect.ReasonUnreadable},
		"a line is no ref":             {answer: saysRefs("000bnothing0000"), want: effect.ReasonUnreadable},
		"the server says no":           {answer: saysRefs("000eERR denied"), want: effect.ReasonServer},
		"another service answers":      {answer: says(refsType, "001f# service=git-receive-pack\n0000"), want: effect.ReasonUnreadable},
	} {
		t.Run(name, func(t *testing.T) {
			server.Answer(tc.answer)
			_, err := remoteOf(server, repository).List(t.Context())
			reason, after, ok := Unavailable(err)
			if !ok || reason != tc.want || after != tc.after {
				t.Errorf("error %v: reason %q after %v, want %q after %v", err, reason, after, tc.want, tc.after)
			}
			if strings.Contains(err.Error(), "127.0.0.1") || strings.Contains(err.Error(), "denied") {
				t.Errorf("error %q tells what it should not", err)
			}
		})
	}
}

const refsType = "application/x-git-upload-pack-advertisement"

func status(code int, header ...string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		return true
	}
}

func says(contentType, body string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write([]byte(body))
		return true
	}
}

func saysRefs(body string) func(http.ResponseWriter, *http.Request) bool {
	return says(refsType, "001e# service=git-upload-pack\n0000"+body)
}

func TestCredentialsAreShownToNobodyElse(t *testing.T) {
	server, other := gitserver.Start(t), gitserver.Start(t)
	repository := server.Create(t, "app")
	server.Answer(status(302, "Location", other.URL+"/app.git/info/refs?service=git-upload-pack"))
	if _, err := remoteOf(server, repository).List(t.Context()); err == nil {
		t.Error("a redirect was taken for a list")
	}
	if got := other.Requests(); len(got) != 0 {
		t.Errorf("the redirect was followed: %v", got)
	}
}

func TestWrongPasswordIsUnavailable(t *testing.T) {
	server := gitserver.Start(t)
	remote := remoteOf(server, server.Create(t, "app"))
	remote.Auth.Password = "wrong"
	_, err := remote.List(t.Context())
	if reason, _, _ := Unavailable(err); reason != effect.ReasonAuthentication {
		t.Errorf("error %v", err)
	}
}

func TestThereIsNoOtherWay(t *testing.T) {
	server := gitserver.StartPlain(t)
	repository := server.Create(t, "app")
	for _, url := range []string{repository.URL, "ssh://git@" + strings.TrimPrefix(repository.URL, "http://")} {
		_, err := (&Remote{URL: url}).List(t.Context())
		if reason, _, _ := Unavailable(err); reason != effect.ReasonNetwork {
			t.Errorf("error %v", err)
		}
	}
	if got := server.Requests(); len(got) != 0 {
		t.Errorf("requests %v", got)
	}
}

func TestCancelledRequestsEnd(t *testing.T) {
	server := gitserver.Start(t)
	repository := server.Create(t, "app")
	ctx, cancel := context.WithCancel(t.Context())
	server.Answer(func(_ http.ResponseWriter, r *http.Request) bool {
		cancel()
		<-r.Context().Done()
		return true
	})
	_, err := remoteOf(server, repository).List(ctx)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestFetchesWhatACommitHas(t *testing.T) {
	for name, tc := range map[string]struct{ refuseIDs, isOld bool }{
		"a tip, by its id":                          {},
		"an old commit, by its id":                  {isOld: true},
		"a tip, of a server that refuses ids":       {refuseIDs: true},
		"an old commit, through the heads and tags": {refuseIDs: true, isOld: true},
	} {
		t.Run(name, func(t *testing.T) {
			server := gitserver.Start(t)
			repository := server.Create(t, "app")
			commit := repository.Commit("main", files("a.txt", "one\n", "dir/b.txt", "two\n"))
			if tc.isOld {
				repository.Commit("main", files("a.txt", strings.Repeat("other\n", 1000)))
			}
			if tc.refuseIDs {
				repository.RefuseIDs()
			}
			base := fetched(t, newTestCache(t), remoteOf(server, repository), commit)
			objects := NewObjects(base)
			_, w, err := objects.OpenWorktree(Repository{Name: "app"}, "w", "topic", commit)
			if err != nil {
				t.Fatal(err)
			}
			got, err := objects.Read(w, []string{"dir/b.txt"})
			if err != nil || got[0].Content != "two\n" {
				t.Errorf("read %v, %v", got, err)
			}
			if want := repository.Git("rev-parse", commit+"^{tree}"); w.WorkTree != want {
				t.Errorf("tree %s, want %s", w.WorkTree, want)
			}
		})
	}
}

func TestWhatARemoteDoesNotHave(t *testing.T) {
	server := gitserver.Start(t)
	repository := server.Create(t, "app")
	commit := repository.Commit("main", files("a", "1"))
	tree := repository.Git("rev-parse", commit+"^{tree}")
	cache := newTestCache(t)
	_, err := cache.Open(t.Context(), keyOf(tree), remoteOf(server, repository))
	wantFailure(t, err, CodeRefNotFound)
	for _, refuse := range []bool{false, true} {
		if refuse {
			repository.RefuseIDs()
		}
		_, err := cache.Open(t.Context(), keyOf(strings.Repeat("1", 40)), remoteOf(server, repository))
		if reason, _, _ := Unavailable(err); reason != effect.ReasonMissingObjects {
			t.Errorf("error %v", err)
		}
	}
	if left, _ := os.ReadDir(cache.dir); len(left) != 0 {
		t.Errorf("left in the cache: %v", left)
	}
}

func TestLimitsOfAFetch(t *testing.T) {
	server := gitserver.Start(t)
	repository := server.Create(t, "app")
	commit := repository.Commit("main", files("zeros", strings.Repeat("0", 1<<20), "other", "x"))
	for name, limits := range map[string]Limits{
		"received":          {Received: 500},
		"unpacked":          {Unpacked: 1 << 20},
		"number of objects": {Objects: 3},
		"one object":        {Object: 1<<20 - 1},
	} {
		t.Run(name, func(t *testing.T) {
			remote := remoteOf(server, repository)
			remote.Limits = limits
			_, err := newTestCache(t).Open(t.Context(), keyOf(commit), remote)
			wantFailure(t, err, CodeRepositoryTooLarge)
		})
	}
}

func TestCacheIsUsedAndMended(t *testing.T) {
	server := gitserver.Start(t)
	repository := server.Create(t, "app")
	commit := repository.Commit("main", files("a", strings.Repeat("text\n", 100)))
	cache, remote := newTestCache(t), remoteOf(server, repository)
	fetched(t, cache, remote, commit)
	fetched(t, cache, remote, commit)
	if got := server.Count("git-upload-pack"); got != 1 {
		t.Fatalf("fetched %d times", got)
	}
	dir := filepath.Join(cache.dir, keyOf(commit).directory())
	for _, name := range []string{packFile, indexFile} {
		for _, damage := range []func(path string) error{os.Remove, truncate, flip} {
			if err := damage(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			if got := readMended(t, cache, remote, commit); got != strings.Repeat("text\n", 100) {
				t.Errorf("read %q after damage to %s", got, name)
			}
		}
	}
}

// readMended reads a file, a second time where the first attempt finds out that what is on disk is damaged.
func readMended(t *testing.T, cache *Cache, remote *Remote, commit string) string {
	t.Helper()
	for range 2 {
		objects := NewObjects(fetched(t, cache, remote, commit))
		_, w, err := objects.OpenWorktree(Repository{Name: "app"}, "w", "topic", commit)
		if errors.Is(err, ErrBaseLost) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := objects.Read(w, []string{"a"})
		if errors.Is(err, ErrBaseLost) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return got[0].Content
	}
	t.Fatal("it stays damaged")
	return ""
}

func truncate(path string) error { return os.Truncate(path, 60) }

// flip changes every byte from where objects or records start.
func flip(path string) error {
	data, err := os.ReadFile(path)
	for i := 12; i < len(data); i++ {
		data[i] ^= 0xff
	}
	return errors.Join(err, os.WriteFile(path, data, 0o600))
}

func TestCacheThrowsOutWhatWasNotUsed(t *testing.T) {
	server := gitserver.Start(t)
	repository := server.Create(t, "app")
	clock := testclock.NewFakePassiveClock(time.Unix(1700000000, 0))
	cache, err := NewCache(t.TempDir(), 1000, clock)
	if err != nil {
		t.Fatal(err)
	}
	remote := remoteOf(server, repository)
	var commits []string
	for i := range 3 {
		commits = append(commits, repository.Commit("main", files("a", strings.Repeat(string(rune('a'+i)), 50))))
	}
	open := func(i int) *Base {
		clock.SetTime(clock.Now().Add(time.Second))
		return fetched(t, cache, remote, commits[i])
	}
	first := open(0)
	open(1)
	open(0)
	open(2)
	entries, err := cache.list()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.name)
	}
	t.Log(entries)
	if cmp.Equal(names, nil) || len(names) != 2 {
		t.Errorf("cache has %d entries", len(names))
	}
	for _, name := range names {
		if name == keyOf(commits[1]).directory() {
			t.Error("what was not used for longest is still there")
		}
	}
	if _, err := NewObjects(first).CommitTree(commits[0]); err != nil {
		t.Errorf("what is open cannot be read: %v", err)
	}
}

func wantFailure(t testing.TB, err error, code string) {
	t.Helper()
	var final *effect.Failure
	if !errors.As(err, &final) || final.Code != code {
		t.Errorf("error %v, want failure %s", err, code)
	}
}

func TestWhereABranchStarts(t *testing.T) {
	server := gitserver.Start(t)
	repository := server.Create(t, "app")
	old := repository.Commit("main", files("a", "1"))
	main := repository.Commit("main", files("a", "2"))
	topic := repository.Commit("topic", files("a", "3"))
	listing, err := remoteOf(server, repository).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ branch, base, want string }{
		"where the remote has it":          {branch: "topic", base: "main", want: topic},
		"at its base":                      {branch: "new", base: "main", want: main},
		"at the pinned commit without one": {branch: "new", want: old},
	} {
		if got, err := listing.Start(tc.branch, tc.base, old); err != nil || got != tc.want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	_, err = listing.Start("new", "none", old)
	wantFailure(t, err, CodeRefNotFound)
	server.Answer(saysRefs(strings.Repeat(fmt.Sprintf("003d%s refs/heads/main\n", main), 2) + "0000"))
	twice, err := remoteOf(server, repository).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = twice.Start("main", "", old)
	wantFailure(t, err, effect.CodeAmbiguous)
}

func TestFetchesATagOfAServerThatRefusesIDs(t *testing.T) {
	server := gitserver.Start(t)
	repository := server.Create(t, "app")
	commit := repository.Commit("main", files("a", "1"))
	repository.Git("-c", "user.name=x", "-c", "user.email=x", "tag", "-a", "-m", "v", "v1", commit)
	repository.Commit("main", files("a", "2"))
	repository.RefuseIDs()
	base := fetched(t, newTestCache(t), remoteOf(server, repository), commit)
	if base.count != 4 {
		t.Errorf("fetched %d objects, want tag, commit, tree and file", base.count)
	}
}

func TestFaultsOfThisMachineAreNotTheRemotes(t *testing.T) {
	server := gitserver.Start(t)
	repository := server.Create(t, "app")
	commit := repository.Commit("main", files("a", "1"))
	full := errors.New("disk is full")
	err := remoteOf(server, repository).fetch(t.Context(), commit, writerFunc(func([]byte) (int, error) { return 0, full }))
	if _, _, ok := Unavailable(err); ok || !errors.Is(err, full) {
		t.Errorf("error %v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestFetchesThatBreak(t *testing.T) {
	server := gitserver.Start(t)
	repository := server.Create(t, "app")
	commit := repository.Commit("main", files("a", "1"))
	const resultType = "application/x-git-upload-pack-result"
	for name, tc := range map[string]struct {
		body string
		want effect.Reason
	}{
		"nothing":               {"", effect.ReasonNetwork},
		"no pack":               {"0000", effect.ReasonNetwork},
		"something else":        {"00000008ACK\n", effect.ReasonUnreadable},
		"the server gives up":   {"00000008NAK\n000a\x03sorry", effect.ReasonServer},
		"a band without an end": {"00000008NAK\n0009\x01PACK", effect.ReasonNetwork},
		"a pack that is cut":    {"00000008NAK\n0009\x01PACK0000", effect.ReasonUnreadable},
		"a refusal":             {"000eERR sorry.", effect.ReasonMissingObjects},
	} {
		t.Run(name, func(t *testing.T) {
			server.Answer(func(w http.ResponseWriter, r *http.Request) bool {
				return r.Method == http.MethodPost && says(resultType, tc.body)(w, r)
			})
			_, err := newTestCache(t).Open(t.Context(), keyOf(commit), remoteOf(server, repository))
			if reason, _, _ := Unavailable(err); reason != tc.want {
				t.Errorf("error %v (%s), want %s", err, reason, tc.want)
			}
		})
	}
}

func TestReportsOnUpdates(t *testing.T) {
	const ref = "refs/heads/topic"
	for name, tc := range map[string]struct {
		report string
		want   error
	}{
		"all is well":            {"000eunpack ok\n0017ok refs/heads/topic0000", nil},
		"the ref is refused":     {"000eunpack ok\n001eng refs/heads/topic no way0000", errRefused},
		"the pack is refused":    {"000funpack bad\n0017ok refs/heads/topic0000", errRefused},
		"another ref is updated": {"000eunpack ok\n0017ok refs/heads/other0000", errRefused},
		"nothing about the ref":  {"000eunpack ok\n0000", io.ErrUnexpectedEOF},
		"nothing":                {"", io.ErrUnexpectedEOF},
		"an error":               {"000aERR no", errRefused},
	} {
		if err := readReport(strings.NewReader(tc.report), ref); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
}

package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"

	"github.com/apitomy/axiom-operator/internal/testing/gitserver"
)

func TestCallersAtOnceFetchOnce(t *testing.T) {
	server := gitserver.Start(t)
	repository := server.Create(t, "app")
	commits := []string{repository.Commit("main", files("a", "1")), repository.Commit("main", files("a", "2"))}
	cache := newTestCache(t)
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			commit := commits[i%2]
			base, err := cache.Open(t.Context(), keyOf(commit), remoteOf(server, repository))
			if err != nil {
				t.Error(err)
				return
			}
			defer base.Close() //nolint:errcheck // It was only read.
			if _, err := NewObjects(base).CommitTree(commit); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if got := server.Count("git-upload-pack"); got != 2 {
		t.Errorf("fetched %d times", got)
	}
	if len(cache.busy) != 0 {
		t.Errorf("%d are still busy", len(cache.busy))
	}
}

func TestScopesShareNothing(t *testing.T) {
	server := gitserver.Start(t)
	repository := server.Create(t, "app")
	commit := repository.Commit("main", files("a", "1"))
	cache := newTestCache(t)
	fetched(t, cache, remoteOf(server, repository), commit)
	stranger := remoteOf(server, repository)
	stranger.Auth = Auth{}
	key := keyOf(commit)
	key.Scope = "team-b"
	if _, err := cache.Open(t.Context(), key, stranger); err == nil {
		t.Error("a stranger was given what somebody else fetched")
	}
}

func TestCacheOfAProgramThatWasKilled(t *testing.T) {
	dir := t.TempDir()
	unfinished := filepath.Join(dir, receivingPrefix+"1")
	if err := os.MkdirAll(unfinished, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := NewCache(dir, 1, testclock.NewFakePassiveClock(time.Unix(0, 0))); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(unfinished); !os.IsNotExist(err) {
		t.Errorf("what was not finished is still there: %v", err)
	}
}

// Git sends what resembles each other as deltas; with and without offsets they come to the same.
func TestFetchesDeltas(t *testing.T) {
	server := gitserver.Start(t)
	repository := server.Create(t, "app")
	specs := map[string]gitserver.FileSpec{}
	lines := strings.Repeat("a line of a text that is long enough\n", 200)
	for i := range 40 {
		specs[fmt.Sprintf("dir/f%d", i)] = file(fmt.Sprintf("%s%d\n%s", lines[:i*100], i, lines))
	}
	f := openFixture(t, server, repository, repository.Commit("main", specs))
	info, err := f.base.pack.Stat()
	if err != nil {
		t.Fatal(err)
	}
	deltas := 0
	entries, err := scanPack(f.base.pack, DefaultLimits().pack())
	for _, e := range entries {
		if e.isDelta() {
			deltas++
		}
	}
	if err != nil || deltas == 0 {
		t.Fatalf("a pack of %d bytes with %d deltas, %v", info.Size(), deltas, err)
	}
	for path, content := range f.files(f.worktree.WorkTree) {
		if content != "100644 "+specs[path].Content {
			t.Errorf("%s is not what was committed", path)
		}
	}
}

package workspace

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/effect"
)

// round commits one more change.
func (f *fixture) round(content string) Commit {
	f.t.Helper()
	f.write(write("a", content))
	f.add(".")
	made := f.commit(content)
	f.takePack()
	return made
}

func (f *fixture) push() *PushEffect {
	return &PushEffect{Remote: f.remote(), Objects: f.objects, Worktree: f.worktree}
}

func observe(t testing.TB, e effect.Effect) effect.Observation {
	t.Helper()
	observation, err := e.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return observation
}

func TestSupervisedPush(t *testing.T) {
	t.Run("supervised 41: an absent branch is pushed, and there it is", func(t *testing.T) {
		f := newFixture(t, files("a", "1", "b", "2"))
		made := f.round("two")
		push := f.push()
		absent := observe(t, push)
		want := effect.Observation{Verdict: effect.Absent, PreState: map[string]any{"remoteCommit": nil}}
		if diff := cmp.Diff(want, absent); diff != "" {
			t.Error(diff)
		}
		if err := push.Perform(t.Context(), absent); err != nil {
			t.Fatal(err)
		}
		want = effect.Observation{Verdict: effect.Compatible, Result: map[string]any{
			"push": map[string]any{"ref": "refs/heads/topic", "commit": made.Commit},
		}}
		if diff := cmp.Diff(want, observe(t, push)); diff != "" {
			t.Error(diff)
		}
		f.repository.Git("fsck", "--strict", "--full")
	})
	t.Run("supervised 41: round two fast-forwards round one with its own objects alone", func(t *testing.T) {
		f := newFixture(t, files("a", "1", "b", "2"))
		one := f.round("two")
		first := f.push()
		if err := first.Perform(t.Context(), observe(t, first)); err != nil {
			t.Fatal(err)
		}
		two := f.round("three")
		push := f.push()
		absent := observe(t, push)
		want := effect.Observation{
			Verdict: effect.Absent, PreState: map[string]any{"remoteCommit": one.Commit, "relation": "ancestor"},
		}
		if diff := cmp.Diff(want, absent); diff != "" {
			t.Error(diff)
		}
		pack, err := f.objects.PackFor(f.worktree, one.Commit)
		if err != nil {
			t.Fatal(err)
		}
		if pack[11] != 3 {
			t.Errorf("pack has %d objects, want commit, tree and file", pack[11])
		}
		if err := push.Perform(t.Context(), absent); err != nil {
			t.Fatal(err)
		}
		if got := f.repository.Head("topic"); got != two.Commit {
			t.Errorf("branch is at %s", got)
		}
		if got := f.repository.Git("rev-list", "--count", "topic"); got != "3" {
			t.Errorf("branch has %s commits", got)
		}
	})
	t.Run("supervised 41: the commit the branch started at is an ancestor", func(t *testing.T) {
		f := newFixture(t, files("a", "1"))
		f.repository.Move("topic", f.worktree.Start)
		f.round("two")
		push := f.push()
		absent := observe(t, push)
		if absent.PreState["remoteCommit"] != f.worktree.Start {
			t.Errorf("observed %+v", absent)
		}
		if err := push.Perform(t.Context(), absent); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("supervised 41: a branch without commits of its own is pushed where it started", func(t *testing.T) {
		f := newFixture(t, files("a", "1"))
		push := f.push()
		if err := push.Perform(t.Context(), observe(t, push)); err != nil {
			t.Fatal(err)
		}
		if got := f.repository.Head("topic"); got != f.worktree.Start || push.IsCreate(effect.Observation{}) {
			t.Errorf("branch is at %s", got)
		}
	})
	t.Run("supervised 41: any other commit is a conflict, known or not", func(t *testing.T) {
		f := newFixture(t, files("a", "1"))
		f.round("two")
		for name, commit := range map[string]string{
			"unknown":                   f.repository.Commit("topic", files("a", "theirs")),
			"before the branch's start": olderThan(f),
		} {
			f.repository.Move("topic", commit)
			got := observe(t, f.push())
			if got.Verdict != effect.Conflict {
				t.Errorf("%s: %+v", name, got)
			}
			if head := f.repository.Head("topic"); head != commit {
				t.Errorf("%s: the branch was touched", name)
			}
		}
		if got := f.server.Count("git-receive-pack"); got != 0 {
			t.Errorf("%d pushes", got)
		}
	})
	t.Run("supervised 41: a branch that moves in between is untouched", func(t *testing.T) {
		for name, move := range map[string]func(*fixture) string{
			"it appears":   func(f *fixture) string { return f.repository.Commit("topic", files("a", "theirs")) },
			"it goes on":   func(f *fixture) string { return f.repository.Commit("topic", files("a", "theirs")) },
			"it goes back": func(f *fixture) string { f.repository.Move("topic", f.worktree.Start); return f.worktree.Start },
		} {
			t.Run(name, func(t *testing.T) {
				f := newFixture(t, files("a", "1"))
				f.round("two")
				if name != "it appears" {
					first := f.push()
					if err := first.Perform(t.Context(), observe(t, first)); err != nil {
						t.Fatal(err)
					}
					f.round("three")
				}
				push := f.push()
				absent := observe(t, push)
				var moved string
				f.server.BeforePush(func() { moved = move(f) })
				if err := push.Perform(t.Context(), absent); err == nil {
					t.Error("the update was made")
				}
				if got := f.repository.Head("topic"); got != moved {
					t.Errorf("branch is at %s, was moved to %s", got, moved)
				}
			})
		}
	})
	t.Run("supervised 41: a branch listed twice is ambiguous", func(t *testing.T) {
		f := newFixture(t, files("a", "1"))
		line := fmt.Sprintf("003e%s refs/heads/topic\n", f.worktree.Start)
		f.server.Answer(saysRefs(line + line + "0000"))
		if got := observe(t, f.push()); got.Verdict != effect.Ambiguous {
			t.Errorf("observed %+v", got)
		}
	})
	t.Run("supervised 44: an unavailable remote is never absent", func(t *testing.T) {
		f := newFixture(t, files("a", "1"))
		f.round("two")
		for _, code := range []int{401, 403, 404, 429, 500} {
			f.server.AnswerStatus(code)
			if got := observe(t, f.push()); got.Verdict != effect.Unavailable || got.Reason == "" {
				t.Errorf("status %d: %+v", code, got)
			}
		}
		f.server.HangUp()
		if got := observe(t, f.push()); got.Reason != effect.ReasonNetwork {
			t.Errorf("observed %+v", got)
		}
	})
}

// olderThan is a commit the branch's start has as its parent.
func olderThan(f *fixture) string {
	old := f.worktree.Start
	f.repository.Commit("main", files("a", "newer"))
	newer := openFixture(f.t, f.server, f.repository, f.repository.Head("main"))
	f.objects, f.base, f.worktree = newer.objects, newer.base, newer.worktree
	f.round("mine")
	return old
}

func TestRefusedPushIsObservedAgain(t *testing.T) {
	t.Run("unchanged: rejected once, then absent again", func(t *testing.T) {
		f := newFixture(t, files("a", "1"))
		f.round("two")
		f.repository.Hook("pre-receive", "echo the secret word is swordfish >&2; exit 1")
		push := f.push()
		absent := observe(t, push)
		err := push.Perform(t.Context(), absent)
		if err == nil || strings.Contains(err.Error(), "swordfish") {
			t.Errorf("error %v", err)
		}
		want := effect.Observation{Verdict: effect.Unavailable, Reason: effect.ReasonRejected}
		if diff := cmp.Diff(want, observe(t, push)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(absent, observe(t, push)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("the answer is lost: it is there", func(t *testing.T) {
		f := newFixture(t, files("a", "1"))
		f.round("two")
		push := f.push()
		absent := observe(t, push)
		f.server.Answer(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPost {
				f.server.Answer(nil)
				f.server.Forward(r)
				panic(http.ErrAbortHandler)
			}
			return false
		})
		if err := push.Perform(t.Context(), absent); err == nil {
			t.Error("the answer came")
		}
		if got := observe(t, push); got.Verdict != effect.Compatible {
			t.Errorf("observed %+v", got)
		}
	})
}

func TestWhatNoRepetitionMends(t *testing.T) {
	f := newFixture(t, files("a", "1"))
	f.server.Answer(saysRefs(fmt.Sprintf("%04x", 4+64+5+21) + strings.Repeat("a", 64) + " HEAD\x00object-format=sha2560000"))
	_, err := f.push().Observe(t.Context())
	wantFailure(t, err, CodeObjectFormatUnsupported)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.push().Observe(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestIsAncestor(t *testing.T) {
	f := newFixture(t, files("a", "1"))
	start := f.worktree.Start
	one, two := f.round("2").Commit, f.round("3").Commit
	for commit, want := range map[string]bool{start: true, one: true, two: false, strings.Repeat("1", 40): false} {
		if got, err := f.objects.IsAncestor(f.worktree, commit); err != nil || got != want {
			t.Errorf("%s: %v, %v", commit, got, err)
		}
	}
	broken := f.worktree
	broken.Start = strings.Repeat("1", 40)
	if _, err := f.objects.IsAncestor(broken, one[:39]+"0"); !errors.Is(err, ErrDamaged) {
		t.Errorf("error %v", err)
	}
}

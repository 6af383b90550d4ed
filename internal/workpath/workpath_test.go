package workpath_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/apitomy/axiom-operator/internal/workpath"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	sound := []string{
		"a", "a/b.go", ".github/workflows/ci.yml", ".gitignore", ".gitmodules", "git", "digit/x", "x.git", "a b", "…", ".git-x", "git~", "git~x", "...",
		"-rf", "~", "*", "日本/語.md", strings.Repeat("a", workpath.MaxLength),
	}
	for _, path := range sound {
		if err := workpath.Check(path); err != nil {
			t.Errorf("%q: %v", path, err)
		}
	}
	unsound := []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "a/./b", "a/../b", "../a", `a\b`, "a\x00b", "a\nb", "a\x7f", "a\u0085", "\xff",
		strings.Repeat("a", workpath.MaxLength+1),
		".git", "a/.git", ".git/config", ".GIT", ".Git/x", ".git.", ".git ", ".git . .", ".git::$INDEX_ALLOCATION", ".git:x", "git~1", "GIT~1/x", "git~2",
		"git~1.", "git~1:x", ".g\u200cit", ".gi\u200dt", "\ufeff.git", ".git\u206a", ".\u202egit", ".git\ufe0f",
	}
	for _, path := range unsound {
		if err := workpath.Check(path); !errors.Is(err, workpath.ErrInvalid) || err.Error() != "PATH_INVALID" {
			t.Errorf("%q: %v, want PATH_INVALID", path, err)
		}
	}
}

func TestPattern(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		pattern, path string
		want          bool
	}{
		{"**", "a/b/c", true},
		{"**/*.go", "a.go", true},
		{"**/*.go", "a/b.go", true},
		{"*.go", "a/b.go", false},
		{".github/**", ".github/workflows/x", true},
		{".github/**", ".githubx/y", false},
		{".gitmodules", ".gitmodules", true},
		{".gitmodules", "a/.gitmodules", false},
		{"a?c", "abc", true},
		{"a?c", "a/c", false},
		{"[a-c]x", "bx", true},
		{"[!a-c]x", "bx", false},
		{"{a,b}", "a", false},
		{"{a,b}", "{a,b}", true},
		{"A", "a", false},
	} {
		pattern, err := workpath.NewPattern(tc.pattern)
		if err != nil {
			t.Errorf("%q: %v", tc.pattern, err)
		} else if got := pattern.Match(tc.path); got != tc.want {
			t.Errorf("%q on %q: %v", tc.pattern, tc.path, got)
		}
	}
	for _, text := range []string{"", "/a", "a/", "a//b", "../a", "a/./b", "[a", `a\*`, "a**", "a\x00", "\xff", "[]", strings.Repeat("a", 1025)} {
		if _, err := workpath.NewPattern(text); !errors.Is(err, workpath.ErrPattern) || err.Error() != "PATTERN_INVALID" {
			t.Errorf("%q: %v, want PATTERN_INVALID", text, err)
		}
	}
	if (workpath.Pattern{}).Match("a") {
		t.Error("the zero pattern names a path")
	}
}

func TestSelects(t *testing.T) {
	t.Parallel()
	code, err := workpath.NewPatterns([]string{"**/*.go"})
	if err != nil {
		t.Fatal(err)
	}
	vendored, err := workpath.NewPatterns([]string{"vendor/**"})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{"a.go": true, "a.md": false, "vendor/a.go": false} {
		if got := workpath.Selects(code, vendored, path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	if !workpath.Selects(nil, nil, "a") {
		t.Error("without patterns a path is not selected")
	}
	if _, err := workpath.NewPatterns([]string{"a", "["}); !errors.Is(err, workpath.ErrPattern) {
		t.Errorf("error %v", err)
	}
}

// A path that passes cannot leave the work tree or enter what is Git's.
func FuzzCheck(f *testing.F) {
	for _, path := range []string{"a/b", "../a", ".GIT/x", "git~1", `a\..`} {
		f.Add(path, "**/*.go")
	}
	f.Fuzz(func(t *testing.T, path, glob string) {
		if pattern, err := workpath.NewPattern(glob); err == nil {
			pattern.Match(path)
		}
		if workpath.Check(path) != nil {
			return
		}
		for segment := range strings.SplitSeq(path, "/") {
			if segment == ".." || segment == "." || segment == "" || strings.EqualFold(strings.TrimRight(segment, " ."), ".git") {
				t.Errorf("%q passes", path)
			}
		}
	})
}

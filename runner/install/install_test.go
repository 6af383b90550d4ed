package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPrograms(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "deep", "axiom")
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(from, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write("a", "first")
	write("b", "second")
	for range 2 { // the second time over what is there
		if err := Programs(from, to, "a", "b"); err != nil {
			t.Fatal(err)
		}
		write("a", "changed")
	}
	assertFile(t, filepath.Join(to, "a"), "changed")
	assertFile(t, filepath.Join(to, "b"), "second")
	assertNames(t, to, "a", "b")
}

func TestMissingProgramLeavesNothingBehind(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	err := Programs(from, to, "axiom-mcp")
	if err == nil || !strings.HasPrefix(err.Error(), "install axiom-mcp: open ") {
		t.Errorf("error %v", err)
	}
	assertNames(t, to)
}

func TestCopyThatFailsLeavesNothingBehind(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(from, "a"), 0o700); err != nil { // cannot be read as a file
		t.Fatal(err)
	}
	if err := Programs(from, to, "a"); err == nil {
		t.Error("a directory was installed")
	}
	assertNames(t, to)
}

func TestDirectoryThatCannotBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Programs(t.TempDir(), filepath.Join(file, "axiom")); err == nil || !strings.HasPrefix(err.Error(), "make directory: ") {
		t.Errorf("error %v", err)
	}
}

func assertFile(t *testing.T, path, want string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil || string(text) != want {
		t.Errorf("%s holds %q, %v", path, text, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o555 {
		t.Errorf("%s has mode %v, %v", path, info.Mode(), err)
	}
}

func assertNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%s holds %v, want %v", dir, got, want)
	}
}

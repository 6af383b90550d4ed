package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apitomy/axiom-operator/internal/testing/console"
)

// The page about the command line is true: its files are written, its commands
// run in the order they stand in, and their output is the one shown. Those that
// need a cluster are in blocks of another language, and are run where there is one.
func TestPageAboutTheCommandLine(t *testing.T) {
	page, err := os.ReadFile("../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../config/samples/release")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	commands := 0
	for _, block := range console.Blocks(string(page)) {
		if name, isFile := fileOf(block); isFile {
			if err := os.WriteFile(filepath.Clean(name), []byte(block.Text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if block.Language == "console" {
			count, faults := block.Play(func(words []string) (string, int) {
				if words[0] != "axiom" {
					t.Fatalf("cannot run %q", words)
				}
				c := run(t, words[1:]...)
				return c.stdout.String() + c.stderr.String(), c.code
			})
			commands += count
			for _, fault := range faults {
				t.Error(fault)
			}
		}
	}
	if commands < 10 {
		t.Errorf("only %d commands were run", commands)
	}
}

// fileOf is the name that a block of YAML begins with.
func fileOf(block console.Block) (string, bool) {
	first, _, _ := strings.Cut(block.Text, "\n")
	name, isComment := strings.CutPrefix(first, "# ")
	return name, block.Language == "yaml" && isComment && strings.HasSuffix(name, ".yaml")
}

package cli_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The page about the command line is true: its files are written, its commands
// run in the order they stand in, and their output is the one shown. A line that
// is an ellipsis stands for any number of lines.
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
	for _, block := range strings.Split(string(page), "\n```")[1:] {
		language, text, _ := strings.Cut(block, "\n")
		text += "\n"
		if name, isFile := fileOf(language, text); isFile {
			if err := os.WriteFile(filepath.Clean(name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if language == "console" {
			commands += runConsole(t, text)
		}
	}
	if commands < 10 {
		t.Errorf("only %d commands were run", commands)
	}
}

// fileOf is the name that a block of YAML begins with.
func fileOf(language, text string) (string, bool) {
	first, _, _ := strings.Cut(text, "\n")
	name, isComment := strings.CutPrefix(first, "# ")
	return name, language == "yaml" && isComment && strings.HasSuffix(name, ".yaml")
}

func runConsole(t *testing.T, text string) (commands int) {
	t.Helper()
	last := ""
	for _, part := range strings.Split("\n"+text, "\n$ ")[1:] {
		command, want, _ := strings.Cut(part+"\n", "\n")
		args := words(command)
		if command == "echo $?" {
			if strings.TrimSpace(want) != last {
				t.Errorf("the page says %q, the exit code was %s", want, last)
			}
			continue
		}
		if args[0] != "axiom" {
			t.Fatalf("cannot run %q", command)
		}
		c := run(t, args[1:]...)
		last = strconv.Itoa(c.code)
		if got := c.stdout.String() + c.stderr.String(); !matches(strings.TrimRight(want, "\n"), strings.TrimRight(got, "\n")) {
			t.Errorf("%s (-want +got):\n%s", command, cmp.Diff(want, got))
		}
		commands++
	}
	return commands
}

// words splits a command like a shell, as far as quotes go.
func words(command string) []string {
	var words []string
	word, quote := "", rune(0)
	for _, r := range command {
		switch {
		case r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case quote == 0 && r == ' ':
			words, word = append(words, word), ""
		default:
			word += string(r)
		}
	}
	return append(words, word)
}

func matches(want, got string) bool {
	parts := strings.Split("\n"+want+"\n", "\n…\n")
	got = "\n" + got + "\n"
	if len(parts) == 1 {
		return got == parts[0]
	}
	if !strings.HasPrefix(got, parts[0]+"\n") || !strings.HasSuffix(got, "\n"+parts[len(parts)-1]) {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(got, "\n"+part+"\n")
		if at < 0 {
			return false
		}
		got = got[at:]
	}
	return true
}

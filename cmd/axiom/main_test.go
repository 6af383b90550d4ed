package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// envProgram makes the test binary be the program itself, so that what is tested
// is a process with its exit code.
const envProgram = "AXIOM_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(envProgram) != "" {
		os.Exit(run())
	}
	os.Exit(m.Run())
}

// program runs the program by the given name.
func program(t *testing.T, name, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = append(os.Environ(), envProgram+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func TestExitCodes(t *testing.T) {
	const (
		valid = `{"id": "w", "name": "W", "nodes": [{"id": "s", "type": "start", "name": "S", "config": {"inputs": []}}, {"id": "e", "type": "end", "name": "E"}],
			"edges": [{"id": "x", "source": "s", "target": "e"}]}`
		invalid = "{id: w, name: W}"
	)
	file := filepath.Join(t.TempDir(), "workflow.json")
	if err := os.WriteFile(file, []byte(valid), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		stdin string
		args  []string
		want  int
	}{
		"a valid workflow":             {valid, []string{"workflow", "validate", "-f", "-"}, 0},
		"an invalid workflow":          {invalid, []string{"workflow", "validate", "-f", "-"}, 1},
		"an unreadable workflow":       {"a: [", []string{"workflow", "validate", "-f", "-"}, 2},
		"a missing file":               {"", []string{"workflow", "validate", "-f", "gone.yaml"}, 2},
		"an unknown flag":              {valid, []string{"workflow", "validate", "--file", "-"}, 2},
		"an unknown command":           {"", []string{"deploy"}, 2},
		"a revision":                   {valid, []string{"workflow", "revision", "-f", "-"}, 0},
		"a change set that applies":    {"ops: []", []string{"workflow", "apply", "-f", file, "--changeset", "-", "--unchecked"}, 0},
		"a change set that is stale":   {"ops: []", []string{"workflow", "apply", "-f", file, "--changeset", "-"}, 1},
		"a difference":                 {invalid, []string{"workflow", "diff", file, "-"}, 0},
		"a difference that signals":    {invalid, []string{"workflow", "diff", file, "-", "--exit-code"}, 1},
		"standard input twice":         {invalid, []string{"workflow", "diff", "-", "-"}, 2},
		"an inverse":                   {"ops: []", []string{"workflow", "inverse", "-f", file, "--changeset", "-"}, 0},
		"an inverse of nothing":        {"[]", []string{"workflow", "inverse", "-f", file, "--changeset", "-"}, 1},
		"an undo":                      {valid, []string{"workflow", "undo", "--before", file, "--after", file, "-f", "-"}, 0},
		"an undo in conflict":          {"[]", []string{"workflow", "undo", "--before", file, "--after", file, "-f", "-"}, 1},
		"a graph":                      {invalid, []string{"workflow", "graph", "-f", "-", "-o", "svg"}, 0},
		"a graph of a stale set":       {"ops: []", []string{"workflow", "graph", "-f", file, "--changeset", "-"}, 1},
		"a simulation":                 {"- start:", []string{"workflow", "simulate", "-f", file, "--script", "-"}, 0},
		"a simulation with a mistake":  {"- cancel:", []string{"workflow", "simulate", "-f", file, "--script", "-"}, 1},
		"a simulation without script":  {"start:", []string{"workflow", "simulate", "-f", file, "--script", "-"}, 2},
		"an expression":                {"", []string{"expression", "eval", "--scope", "action-input", "--expression", "1 + 1"}, 0},
		"an expression without value":  {"", []string{"expression", "eval", "--scope", "action-input", "--expression", "1 / 0"}, 1},
		"an expression without scope":  {"", []string{"expression", "eval", "--expression", "1"}, 2},
		"an answer that fits":          {"{}", []string{"form", "check", "--schema", "-", "--answer", file}, 0},
		"an answer that does not":      {"responseSchema: {type: string}", []string{"form", "check", "--schema", "-", "--answer", file}, 1},
		"an answer without a question": {"fields: []", []string{"form", "check", "--schema", "-", "--answer", file}, 2},
		"help":                         {"", []string{"workflow", "apply", "--help"}, 0},
		"version":                      {"", []string{"version"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := program(t, "axiom", tc.stdin, tc.args...)
			if code != tc.want {
				t.Errorf("exit code %d, want %d\n%s%s", code, tc.want, stdout, stderr)
			}
			if code == 2 && stdout != "" {
				t.Errorf("standard output is %q", stdout)
			}
			if strings.Contains(stdout+stderr, "\x1b") {
				t.Errorf("colours in a pipe: %q %q", stdout, stderr)
			}
		})
	}
}

func TestNameOfAPlugin(t *testing.T) {
	stdout, _, code := program(t, "kubectl-axiom", "", "form", "check", "--help")
	if code != 0 || !strings.Contains(stdout, "Usage:\n  kubectl axiom form check ") {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
}

func TestVersionIsThatOfTheBuild(t *testing.T) {
	if v := version(); v.Version == "" || !strings.HasPrefix(v.Go, "go") {
		t.Errorf("version() = %+v", v)
	}
}

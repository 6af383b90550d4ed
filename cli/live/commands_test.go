package live_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/apitomy/axiom-operator/cli"
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/live"
)

type call struct {
	stdin          string
	stdout, stderr bytes.Buffer
	code           int
}

func (c *call) run(t *testing.T, args ...string) *call {
	t.Helper()
	c.code = cli.Run(t.Context(), command.Environment{
		Program: "axiom", Stdin: strings.NewReader(c.stdin), Stdout: &c.stdout, Stderr: &c.stderr, Getenv: func(string) string { return "" },
	}, args, live.Commands(live.Options{Clock: clocktesting.NewFakeClock(time.Unix(0, 0))}))
	return c
}

func run(t *testing.T, args ...string) *call {
	t.Helper()
	return new(call).run(t, args...)
}

func TestEveryCommandHasHelpWithExamples(t *testing.T) {
	for _, words := range []string{
		"turn send", "turn watch", "turn diff", "turn accept", "turn reject", "turn undo", "turn interrupt", "turn export",
		"run create", "run watch", "run explain", "run show", "run graph", "run cancel", "resume", "inbox", "answer", "doctor", "conformance", "session logs", "template list", "template show", "template clone",
	} {
		c := run(t, append(strings.Fields(words), "--help")...)
		for _, want := range []string{"Usage:\n  axiom " + words, "Examples:\n  ", "-o, --output FORMAT", "-n, --namespace", "--kubeconfig FILE", "--as-group"} {
			if c.code != command.ExitOK || !strings.Contains(c.stdout.String(), want) {
				t.Errorf("%s: exit code %d, %q is not in\n%s", words, c.code, want, c.stdout.String())
			}
		}
	}
}

func TestUsageErrors(t *testing.T) {
	large := filepath.Join(t.TempDir(), "large.md")
	if err := os.WriteFile(large, []byte(strings.Repeat("x", 64<<10+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"an unknown command":            {[]string{"turn", "list"}, `unknown command "list" for "axiom turn"`},
		"no turn":                       {[]string{"turn", "watch"}, "axiom turn watch takes the name of a turn, got 0 arguments"},
		"two turns":                     {[]string{"turn", "accept", "a", "b"}, "axiom turn accept takes the name of a turn, got 2 arguments"},
		"no composition":                {[]string{"turn", "send"}, "name a composition, or a session with --session"},
		"no message":                    {[]string{"turn", "send", "triage"}, "there is no message"},
		"no message for a session":      {[]string{"turn", "send", "--session", "helper"}, "there is no message"},
		"a message without quotes":      {[]string{"turn", "send", "--session", "helper", "two", "words"}, "one message is expected: put it in quotes"},
		"many words":                    {[]string{"turn", "send", "triage", "two", "words"}, "accepts between 0 and 2 arg(s), received 3"},
		"two messages":                  {[]string{"turn", "send", "triage", "hello", "-f", large}, "the message is given twice"},
		"a file that is missing":        {[]string{"turn", "send", "triage", "-f", "gone.md"}, "read message: open gone.md: no such file"},
		"a message that is too large":   {[]string{"turn", "send", "triage", "-f", large}, "the message is larger than 64 KiB"},
		"a patience that is none":       {[]string{"turn", "watch", "t", "--timeout", "soon"}, `invalid argument "soon" for "--timeout"`},
		"a format that is none":         {[]string{"turn", "diff", "t", "-o", "yaml"}, "there is no such output, only text, json, mermaid, dot, svg"},
		"no cluster":                    {[]string{"turn", "watch", "t"}, "no cluster to speak with: name a kubeconfig with KUBECONFIG or --kubeconfig"},
		"a kubeconfig that is missing":  {[]string{"turn", "watch", "t", "--kubeconfig", "gone"}, "read kubeconfig: stat gone: no such file"},
		"a session that has no name":    {[]string{"session", "logs"}, "axiom session logs takes the name of a session, got 0 arguments"},
		"a run without a repository":    {[]string{"run", "create", "r", "--ref", "main", "--path", "a.md"}, `required flag(s) "git" not set`},
		"a run of nothing":              {[]string{"run", "create", "r", "--git", "https://e/a", "--path", "a.md"}, "at least one of the flags in the group [ref commit] is required"},
		"a run of two commits":          {[]string{"run", "create", "r", "--git", "u", "--path", "a.md", "--ref", "a", "--commit", "b"}, "none of the others can be"},
		"an input without a value":      {[]string{"run", "create", "r", "--git", "u", "--path", "a.md", "--ref", "a", "--input", "x"}, "--input takes NAME=VALUE"},
		"a resume of nothing":           {[]string{"resume"}, "axiom resume takes the name of a run, got 0 arguments"},
		"an answer to nothing":          {[]string{"answer", "--answer", "{}"}, "axiom answer takes the name of a human task, got 0 arguments"},
		"an answer that says nothing":   {[]string{"answer", "t"}, "at least one of the flags in the group [answer field field-json failure] is required"},
		"an answer in two ways":         {[]string{"answer", "t", "--answer", "{}", "--field", "a=b"}, "none of the others can be"},
		"a failure with an answer":      {[]string{"answer", "t", "--failure", "no", "--field-json", "a=1"}, "none of the others can be"},
		"an answer that is no JSON":     {[]string{"answer", "t", "--answer", "yes"}, "--answer is no JSON"},
		"a watch of nothing":            {[]string{"run", "watch"}, "axiom run watch takes the name of a run, got 0 arguments"},
		"a run that is drawn as YAML":   {[]string{"run", "graph", "r", "-o", "yaml"}, "there is no such output, only mermaid, dot, svg, text, json"},
		"a template that is not in any": {[]string{"template", "show", "mine"}, "no cluster to speak with"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
			c := run(t, tc.args...)
			if c.code != command.ExitUsage || c.stdout.Len() > 0 {
				t.Errorf("exit code %d, standard output %q", c.code, c.stdout.String())
			}
			if got := c.stderr.String(); !strings.HasPrefix(got, "axiom: ") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// What is built in is shown and cloned without a cluster.
func TestBuiltInTemplates(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	shown := run(t, "template", "show", "axiom-workbench")
	for _, want := range []string{"axiom-workbench  built-in\n", "\ncapabilities  composition\n", "\nservers       @axiom-workbench\n", "\nsystem prompt\n  "} {
		if shown.code != command.ExitOK || !strings.Contains(shown.stdout.String(), want) {
			t.Errorf("exit code %d, %q is not in %.600s", shown.code, want, shown.stdout.String())
		}
	}
	clone := run(t, "template", "clone", "general-assistant")
	if want := "apiVersion: axiom.apitomy.io/v1alpha1\nkind: SessionTemplate\nmetadata:\n  name: general-assistant-copy\nspec:\n"; clone.code != command.ExitOK ||
		!strings.HasPrefix(clone.stdout.String(), want) || strings.Contains(clone.stdout.String(), "capabilities") {
		t.Errorf("exit code %d\n%s", clone.code, clone.stdout.String())
	}
	if c := run(t, "template", "clone", "axiom-config-assistant"); c.code != command.ExitVerdict || c.stdout.Len() > 0 ||
		!strings.Contains(c.stderr.String(), "no other template may have: config-items, validation-feedback") {
		t.Errorf("exit code %d, %s", c.code, c.stderr.String())
	}
}

// Without a cluster a shell completes what is built in, and is told of no error.
func TestCompletionWithoutACluster(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for words, want := range map[string]string{
		"template show axiom-": "axiom-config-assistant\tbuilt-in\naxiom-workbench\tbuilt-in\n:4\n", "run watch r": ":4\n", "turn accept t more": ":4\n",
	} {
		c := run(t, append([]string{"__complete"}, strings.Fields(words)...)...)
		if c.code != command.ExitOK || c.stdout.String() != want {
			t.Errorf("%s: exit code %d, completes %q", words, c.code, c.stdout.String())
		}
	}
}

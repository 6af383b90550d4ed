package supervised

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apitomy/axiom-operator/cli"
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/internal/definition"
)

const samples = "../../config/samples"

func run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, complaints bytes.Buffer
	env := command.Environment{
		Program: "axiom", Stdin: strings.NewReader(""), Stdout: &out, Stderr: &complaints, Getenv: func(string) string { return "" },
	}
	code = cli.Run(t.Context(), env, append([]string{"definition", "check"}, args...), Commands)
	return out.String(), complaints.String(), code
}

// copied is a directory with the shipped definition, in which a file is changed.
func copied(t *testing.T, name string, change func(string) string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(samples, "adversarial-implementation"))); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, name)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(change(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func replacing(t *testing.T, from, to string) func(string) string {
	t.Helper()
	return func(text string) string {
		if !strings.Contains(text, from) {
			t.Fatalf("there is no %q", from)
		}
		return strings.Replace(text, from, to, 1)
	}
}

func TestCheckTellsWhatARunWouldPin(t *testing.T) {
	stdout, stderr, code := run(t, "adversarial-implementation/start.md", "-C", samples)
	if code != command.ExitOK || stderr != "" {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	if first, _, _ := strings.Cut(stdout, "\n"); first != "adversarial-implementation/start.md: may run, AdversarialImplementation with 7 components" {
		t.Errorf("it says %q", first)
	}
	stdout, _, code = run(t, "adversarial-implementation/start.md", "-C", samples, "-o", "json")
	var got checked
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != command.ExitOK {
		t.Fatalf("exit code %d: %v", code, err)
	}
	planning, err := os.ReadFile(filepath.Join(samples, "adversarial-implementation", "Planning.md"))
	if err != nil {
		t.Fatal(err)
	}
	want := component{"Planning", "adversarial-implementation/Planning.md", definition.BlobID(planning)}
	if len(got.Components) != 7 || got.Components[5] != want || !got.Valid || got.Refusals == nil {
		t.Errorf("got %+v", got)
	}
}

func TestCheckTellsOfRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		file     string
		change   func(string) string
		want     string
		isPrefix bool
	}{
		"an unknown member":        {"start.md", replacing(t, "name:", "nom: x\nname:"), "start.md:2: FRONTMATTER_INVALID ", true},
		"a component that is gone": {"start.md", replacing(t, "Planning.md", "Plan.md"), "start.md: COMPONENT_MISSING Planning\n", false},
		"a path upwards":           {"start.md", replacing(t, "Planning: ", "Planning: ../"), "start.md:22: COMPONENT_PATH_INVALID Planning: dot-segment\n", false},
		"an action in a component": {"Planning.md", replacing(t, "actionType: agent.prompt", "actionType: agent.ask"), "Planning.md:", true},
		"a secret in a component":  {"Planning.md", func(text string) string { return text + "\npassword: hunter2-hunter2-hunter2\n" }, "Planning.md:", true},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := run(t, "start.md", "-C", copied(t, tc.file, tc.change))
			if code != command.ExitVerdict || stderr != "" {
				t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
			}
			if tc.isPrefix && !strings.HasPrefix(stdout, tc.want) || !tc.isPrefix && stdout != tc.want {
				t.Errorf("it says %q, not %q", stdout, tc.want)
			}
			if strings.Contains(stdout, "hunter2") {
				t.Errorf("it repeats what it refuses: %q", stdout)
			}
		})
	}
}

func TestCheckFollowsNoLink(t *testing.T) {
	dir := copied(t, "Planning.md", func(text string) string { return text })
	if err := os.Symlink("Planning.md", filepath.Join(dir, "Link.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".", filepath.Join(dir, "down")); err != nil {
		t.Fatal(err)
	}
	start := filepath.Join(dir, "start.md")
	for path, want := range map[string]string{
		"Link.md":          "start.md: COMPONENT_NOT_A_FILE Planning: symlink\n",
		"down/Planning.md": "start.md: COMPONENT_MISSING Planning\n",
	} {
		text, err := os.ReadFile(filepath.Join(samples, "adversarial-implementation", "start.md"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(start, []byte(replacing(t, "Planning.md", path)(string(text))), 0o600); err != nil {
			t.Fatal(err)
		}
		if stdout, _, code := run(t, "start.md", "-C", dir); code != command.ExitVerdict || stdout != want {
			t.Errorf("exit code %d: %q, not %q", code, stdout, want)
		}
	}
	if stdout, _, _ := run(t, "../start.md", "-C", dir); stdout != "../start.md: ROOT_MISSING ../start.md\n" {
		t.Errorf("it says %q", stdout)
	}
}

func TestCheckWithoutAnAnswer(t *testing.T) {
	for _, args := range [][]string{{}, {"a.md", "b.md"}, {"a.md", "-C", filepath.Join(t.TempDir(), "gone")}} {
		if stdout, stderr, code := run(t, args...); code != command.ExitUsage || stdout != "" || stderr == "" {
			t.Errorf("%q: exit code %d: %s%s", args, code, stdout, stderr)
		}
	}
}

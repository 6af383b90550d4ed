package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// The vectors of change sets hold through the program too. Fields are parted by a
// blank, the last one is JSON.
const vectorDir = "../internal/changeset/testdata/"

func vectors(t *testing.T, name string, fields int) [][]string {
	t.Helper()
	text, err := os.ReadFile(vectorDir + name)
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for line := range strings.Lines(string(text)) {
		rows = append(rows, strings.SplitN(strings.TrimSuffix(line, "\n"), " ", fields))
	}
	return rows
}

const baseFile = vectorDir + "base.json"

// writeSet writes a change set for the base and returns the path.
func writeSet(t *testing.T, ops string) string {
	t.Helper()
	revision := run(t, "workflow", "revision", "-f", baseFile, "-o", "json").value(t)["contentRevision"]
	set, err := json.Marshal(map[string]any{
		"id": "cs-1", "baseRevision": revision, "author": "host", "summary": "Try", "ops": json.RawMessage(ops),
	})
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "set.json", string(set))
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRevisionVectors(t *testing.T) {
	for _, row := range vectors(t, "revisions.txt", 3) {
		for _, name := range []string{"doc.json", "doc.yaml"} {
			c := run(t, "workflow", "revision", "-f", write(t, name, row[2]))
			if c.code != command.ExitOK || c.stdout.String() != row[1]+"\n" {
				t.Errorf("%s as %s: exit code %d, %s%s", row[0], name, c.code, c.stdout.String(), c.stderr.String())
			}
		}
	}
	for _, text := range []string{"[]", `"x"`, "null", `{"id":1e400}`} {
		if c := run(t, "workflow", "revision", "-f", write(t, "doc.json", text)); c.code != command.ExitUsage || c.stdout.Len() > 0 {
			t.Errorf("%s: exit code %d, %s", text, c.code, c.stdout.String())
		}
	}
}

// What applies has the revision of the vector, and its inverse leads back.
func TestAppliedVectors(t *testing.T) {
	base := run(t, "workflow", "revision", "-f", baseFile).stdout.String()
	for _, row := range vectors(t, "applied.txt", 3) {
		set := writeSet(t, row[2])
		applied := run(t, "workflow", "apply", "-f", baseFile, "--changeset", set, "-o", "json")
		answer := applied.value(t)
		if applied.code != command.ExitOK || answer["contentRevision"] != row[1] || answer["applied"] != true {
			t.Errorf("%s: exit code %d, revision %v, want %s", row[0], applied.code, answer["contentRevision"], row[1])
		}
		inverse := run(t, "workflow", "inverse", "-f", baseFile, "--changeset", set, "-o", "json")
		result := write(t, "result.json", encode(t, answer["workflow"]))
		back := run(t, "workflow", "apply", "-f", result, "--changeset", write(t, "inverse.json", inverse.stdout.String()), "-o", "json")
		if got := back.value(t)["contentRevision"]; got != strings.TrimSpace(base) {
			t.Errorf("%s: the inverse leads to %v", row[0], got)
		}
		undone := run(t, "workflow", "undo", "--before", baseFile, "--after", result, "-f", result, "-o", "json")
		if got := undone.value(t)["contentRevision"]; undone.code != command.ExitOK || got != strings.TrimSpace(base) {
			t.Errorf("%s: undone to %v", row[0], got)
		}
	}
}

func TestInverseVectors(t *testing.T) {
	ops := map[string]string{}
	for _, row := range vectors(t, "applied.txt", 3) {
		ops[row[0]] = row[2]
	}
	for _, row := range vectors(t, "inverses.txt", 2) {
		c := run(t, "workflow", "inverse", "-f", baseFile, "--changeset", writeSet(t, ops[row[0]]), "-o", "json")
		want, err := jsonvalue.Decode([]byte(row[1]))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, c.value(t)["ops"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row[0], diff)
		}
	}
}

func TestRejectedVectors(t *testing.T) {
	for _, row := range vectors(t, "rejected.txt", 4) {
		index, err := strconv.ParseInt(row[2], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		for _, verb := range []string{"apply", "inverse", "graph"} {
			c := run(t, "workflow", verb, "-f", baseFile, "--changeset", writeSet(t, row[3]), "-o", "json")
			assertRejected(t, row[0]+" "+verb, c, row[1], index)
		}
	}
}

func assertRejected(t *testing.T, name string, c *call, code string, index any) {
	t.Helper()
	answer := c.value(t)
	refused, _ := answer["error"].(map[string]any)
	if c.code != command.ExitVerdict || answer["applied"] != false || len(answer) != 2 {
		t.Errorf("%s: exit code %d, %v", name, c.code, answer)
	}
	if refused["code"] != code || refused["opIndex"] != index || refused["reason"] == "" {
		t.Errorf("%s: %v, want %s at %v", name, refused, code, index)
	}
}

func TestCheckedForm(t *testing.T) {
	base := strings.TrimSpace(run(t, "workflow", "revision", "-f", baseFile).stdout.String())
	for set, tc := range map[string]struct {
		checked, unchecked, inverse string
	}{
		`{"baseRevision":"` + base + `","ops":[]}`:           {"", "", ""},
		`{"baseRevision":"sha256:00","ops":[{"op":"nope"}]}`: {"stale", "malformed", "stale"},
		`{"baseRevision":"sha256:00"}`:                       {"stale", "malformed", "stale"},
		`{"ops":[]}`:                                         {"stale", "", ""},
		`{"baseRevision":7,"ops":[]}`:                        {"stale", "", "stale"},
		`{"baseRevision":"` + base + `"}`:                    {"malformed", "malformed", "malformed"},
		`{"baseRevision":"` + base + `","ops":{}}`:           {"malformed", "malformed", "malformed"},
		`[]`:   {"malformed", "malformed", "malformed"},
		`null`: {"malformed", "malformed", "malformed"},
		`"x"`:  {"malformed", "malformed", "malformed"},
		`{"author":"agent:a","ops":[{"op":"restore","member":"x"}]}`: {"stale", "malformed", "malformed"},
		`{"author":"host","ops":[{"op":"restore","member":"x"}]}`:    {"stale", "", ""},
	} {
		path := write(t, "set.json", set)
		for verb, want := range map[string]string{"apply": tc.checked, "apply --unchecked": tc.unchecked, "inverse": tc.inverse} {
			args := append([]string{"workflow"}, strings.Fields(verb)...)
			c := run(t, append(args, "-f", baseFile, "--changeset", path, "-o", "json")...)
			refused, _ := c.value(t)["error"].(map[string]any)
			got, _ := refused["code"].(string)
			if got != want || (c.code == command.ExitOK) != (want == "") {
				t.Errorf("%s %s: %q, exit code %d, want %q", verb, set, got, c.code, want)
			}
		}
	}
}

// A document that is no object has no revision, so nothing applies to it.
func TestChangesOfWhatIsNoWorkflow(t *testing.T) {
	for _, text := range []string{"[]", "7", `{"nodes": 7}`} {
		c := run(t, "workflow", "apply", "-f", write(t, "doc.json", text), "--changeset", write(t, "set.json", `{"ops": []}`), "--unchecked", "-o", "json")
		assertRejected(t, text, c, "malformed", nil)
	}
}

func encode(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

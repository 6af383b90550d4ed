package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/gateway/openapi"
)

// startScript starts an action pod with a bash script.
func startScript(t *testing.T, g *fakeGateway, script string, environ ...string) *pod {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "script")
	inputs := filepath.Join(dir, "inputs.json")
	for name, text := range map[string]string{path: script, inputs: `{"ref": "r-17", "n": 3}`} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	environ = append([]string{
		"AXIOM_API_URL=" + g.url(), "AXIOM_CA_FILE=" + g.caFile, "AXIOM_ATTEMPT_ID=team-a/run-assess-a1",
		"AXIOM_ATTEMPT_TOKEN=" + testToken, "AXIOM_INPUTS=" + inputs, "AXIOM_OUTPUTS=" + filepath.Join(dir, "outputs.json"),
	}, environ...)
	return start(t, environ, []string{"script", "--interpreter", "bash", "--script", path})
}

func TestScriptResultIsDeliveredInTheEnd(t *testing.T) {
	g := newFakeGateway(t)
	g.fails = func(n int) bool { return n <= 2 }
	p := startScript(t, g, `
echo "for $AXIOM_INPUT_ref"
env | grep -c AXIOM_ATTEMPT_TOKEN
printf '{"risk":%d}' "$AXIOM_INPUT_n" > "$AXIOM_OUTPUTS"
`)
	if code := p.exitCode(); code != exitOK {
		t.Errorf("exit code %d, want %d", code, exitOK)
	}
	want := map[string]openapi.AttemptResult{"run-assess-a1": {Outputs: []byte(`{"risk":3}`)}}
	if diff := cmp.Diff(want, g.attempts); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if got, want := p.stdout.String(), "for r-17\n0\n"; got != want {
		t.Errorf("output %q, want %q: the token must not be there", got, want)
	}
}

// TestScriptCannotReadTheTokenFromItsParent runs wrapper and script as the same
// user, as a pod does, and not as root, who may read everything.
func TestScriptCannotReadTheTokenFromItsParent(t *testing.T) {
	g := newFakeGateway(t)
	dir := openDir(t)
	own, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	certificates, err := os.ReadFile(g.caFile)
	if err != nil {
		t.Fatal(err)
	}
	// The line shows that others could have been read. The two outputs come through
	// pipes of their own, so it need not be the last.
	script := "cat /proc/$PPID/environ\ncat /proc/$PPID/cmdline >/dev/null && cat /proc/$$/environ >/dev/null && echo end\n"
	for name, text := range map[string][]byte{"axiom-runner": own, "ca.crt": certificates, "script": []byte(script)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(filepath.Join(dir, "axiom-runner"), "script", "--script", filepath.Join(dir, "script"))
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "AXIOM_API_URL=" + g.url(), "AXIOM_CA_FILE=" + filepath.Join(dir, "ca.crt"),
		"AXIOM_ATTEMPT_ID=team-a/run-assess-a1", "AXIOM_ATTEMPT_TOKEN=" + testToken,
	}
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "end\n") {
		t.Fatalf("%v\n%s", err, out)
	}
	if strings.Contains(string(out), "AXIOM_ATTEMPT_TOKEN=") { // its value would be redacted
		t.Errorf("the script read the token:\n%s", out)
	}
}

// openDir returns a directory that every user may read.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "axiom-runner") //nolint:usetesting // t.TempDir is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestFailedScriptIsAResult(t *testing.T) {
	g := newFakeGateway(t)
	p := startScript(t, g, "echo $MODEL_API_KEY; exit 9", "MODEL_API_KEY=sk-very-secret-value")
	if code := p.exitCode(); code != exitOK {
		t.Errorf("exit code %d, want %d", code, exitOK)
	}
	want := map[string]openapi.AttemptResult{"run-assess-a1": {ExitCode: 9}}
	if diff := cmp.Diff(want, g.attempts); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if got, want := p.stdout.String(), "[redacted]\n"; got != want {
		t.Errorf("output %q, want %q", got, want)
	}
}

func TestScriptThatIsStoppedHasNoResult(t *testing.T) {
	g := newFakeGateway(t)
	marker := filepath.Join(t.TempDir(), "ready")
	if err := syscall.Mkfifo(marker, 0o600); err != nil {
		t.Fatal(err)
	}
	p := startScript(t, g, "echo go > "+marker+"; sleep 3600")
	if _, err := os.ReadFile(marker); err != nil { // returns once the script writes
		t.Fatal(err)
	}
	p.terminate()
	if code := p.exitCode(); code != exitStopped {
		t.Errorf("exit code %d, want %d", code, exitStopped)
	}
	if len(g.attempts) != 0 {
		t.Errorf("results %+v, want none", g.attempts)
	}
}

func TestResultThatIsTooLargeForTheGatewayIsReportedSo(t *testing.T) {
	g := newFakeGateway(t)
	g.maxOutputs = 10
	p := startScript(t, g, `printf '{"text":"more than fits"}' > "$AXIOM_OUTPUTS"`)
	if code := p.exitCode(); code != exitOK {
		t.Errorf("exit code %d, want %d", code, exitOK)
	}
	if got := g.attempts["run-assess-a1"]; got.Error == nil || got.Error.Code != "RESULT_TOO_LARGE" || got.Outputs != nil {
		t.Errorf("result %+v", got)
	}
}

func TestRefusedResultIsAnError(t *testing.T) {
	g := newFakeGateway(t)
	p := startScript(t, g, "true", "AXIOM_ATTEMPT_TOKEN=closed-closed-closed-closed")
	if code := p.exitCode(); code != exitError {
		t.Errorf("exit code %d, want %d", code, exitError)
	}
}

func TestInstallCopiesWhatIsBesideIt(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "axiom")
	own, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	// The program finds its siblings by its own path, so a link will not do.
	for name, text := range map[string][]byte{"axiom-runner": own, "axiom-mcp": []byte("mcp")} {
		if err := os.WriteFile(filepath.Join(from, name), text, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	runProgram(t, filepath.Join(from, "axiom-runner"), "install", "--to", to)
	runProgram(t, filepath.Join(from, "axiom-runner"), "install", "--to", to)
	copied, err := os.ReadFile(filepath.Join(to, "axiom-mcp"))
	if err != nil || string(copied) != "mcp" {
		t.Errorf("axiom-mcp is %q, %v", copied, err)
	}
	runProgram(t, filepath.Join(to, "axiom-runner"), "--help")
}

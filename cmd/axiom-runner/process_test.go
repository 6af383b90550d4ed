package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestMain makes the test binary stand for the programs of a pod when it is
// called by their names.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "axiom-runner":
		main()
	case "axiom-mcp":
		serveMCP()
	default:
		os.Exit(m.Run())
	}
}

// serveMCP is an MCP server over stdio with tools that show what it was given.
func serveMCP() {
	server := mcp.NewServer(&mcp.Implementation{Name: "workbench", Version: "1"}, nil)
	type echoInput struct {
		Text string `json:"text"`
		Rev  string `json:"rev,omitempty"`
	}
	text := func(s string) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}, nil, nil
	}
	mcp.AddTool(server, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in echoInput) (*mcp.CallToolResult, any, error) {
		return text(in.Text + in.Rev)
	})
	mcp.AddTool(server, &mcp.Tool{Name: "get_composition"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return text(`{"workflowRevision": "sha256:3f", "items": [{"name": "triage"}]}`)
	})
	mcp.AddTool(server, &mcp.Tool{Name: "environment"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return text(strings.Join(slices.Sorted(slices.Values(os.Environ())), "\n"))
	})
	_ = server.Run(context.Background(), &mcp.StdioTransport{})
}

// programs returns a directory with the programs of a pod.
func programs(t *testing.T) string {
	t.Helper()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"axiom-runner", "axiom-mcp"} {
		if err := os.Symlink(own, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// pod is a running axiom-runner.
type pod struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout bytes.Buffer
	stderr syncBuffer
	exited chan struct{}
}

type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.text.String()
}

// start starts axiom-runner with the given variables besides the usual ones.
func start(t *testing.T, environ, args []string) *pod {
	t.Helper()
	dir := programs(t)
	p := &pod{t: t, exited: make(chan struct{})}
	p.cmd = exec.Command(filepath.Join(dir, "axiom-runner"), args...)
	p.cmd.Dir = t.TempDir()
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.cmd.Dir, "AXIOM_MCP_COMMAND=" + filepath.Join(dir, "axiom-mcp")}, environ...)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.exited
		if t.Failed() {
			t.Logf("stderr of the runner:\n%s", p.stderr.String())
		}
	})
	return p
}

func sessionEnv(g *fakeGateway) []string {
	return []string{
		"AXIOM_API_URL=" + g.url(), "AXIOM_CA_FILE=" + g.caFile, "AXIOM_SESSION_ID=team-a/helper",
		"AXIOM_SESSION_TOKEN=" + testToken, "AXIOM_COMPOSITION_ID=team-a/triage",
	}
}

// startScripted starts a session whose agent plays the playbook.
func startScripted(t *testing.T, g *fakeGateway, playbook string, environ ...string) *pod {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "playbook.yaml")
	if err := os.WriteFile(path, []byte(playbook), 0o600); err != nil {
		t.Fatal(err)
	}
	agent := filepath.Join(programs(t), "axiom-runner")
	return start(t, append(sessionEnv(g), environ...), []string{"--", agent, "scripted", "--playbook", path})
}

func (p *pod) terminate() { _ = p.cmd.Process.Signal(syscall.SIGTERM) }

// exitCode waits for the end of the program.
func (p *pod) exitCode() int {
	p.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode()
	case <-timer.C:
		p.t.Fatal("the runner did not end")
		return -1
	}
}

func decodeEvent[T any](t *testing.T, g *fakeGateway, kind string) T {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()

	var data T
	for _, event := range g.events {
		if event.Type == kind {
			if err := json.Unmarshal(event.Data, &data); err != nil {
				t.Fatal(err)
			}
			return data
		}
	}
	t.Fatalf("no event of type %s", kind)
	return data
}

// runProgram runs a program that must succeed.
func runProgram(t *testing.T, path string, args ...string) {
	t.Helper()
	if out, err := exec.Command(path, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", filepath.Base(path), args, err, out)
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// build builds the program as it is shipped: static.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "axiom-mcp")
	command := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, output)
	}
	return binary
}

// gateway answers like one that knows a single token.
func gateway(t *testing.T) (url, caFile string) {
	t.Helper()
	mux := http.NewServeMux()
	answer := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Axiom-Session-Token") != "good-token" {
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusUnauthorized)
				_, _ = io.WriteString(w, `{"status":401,"title":"Unauthorized","code":"unauthorized","detail":"Missing or invalid X-Axiom-Session-Token"}`)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, body)
		}
	}
	mux.HandleFunc("GET /api/v1/compositions/team-a/triage/agent/composition",
		answer(`{"compositionId":"team-a/triage","items":[{"type":"workflow","name":"triage","contentRevision":"sha256:3f","valid":true,"problems":[]}]}`))
	mux.HandleFunc("POST /api/v1/compositions/team-a/triage/agent/workflow/changesets",
		answer(`{"applied":true,"contentRevision":"sha256:a1","problems":[]}`))
	mux.HandleFunc("POST /api/v1/expressions/evaluate", answer(`{"ok":true,"valueJson":"42","valueType":"number"}`))
	web := httptest.NewTLSServer(mux)
	t.Cleanup(web.Close)
	caFile = filepath.Join(t.TempDir(), "ca.crt")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	if err := os.WriteFile(caFile, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	return web.URL + "/api/v1", caFile
}

func TestStdio(t *testing.T) {
	binary := build(t)
	url, caFile := gateway(t)
	for name, tc := range map[string]struct {
		env       []string
		warning   string
		tool      string
		arguments any
		want      string
		fails     bool
	}{
		"a tool that reads": {
			[]string{envURL + "=" + url, envComposition + "=team-a/triage", envToken + "=good-token", envCAFile + "=" + caFile},
			"", "validate_composition", nil, "workflow 'triage': VALID", false,
		},
		"a tool that writes": {
			[]string{envURL + "=" + url, envComposition + "=team-a/triage", envToken + "=good-token", envCAFile + "=" + caFile},
			"", "propose_workflow_changes",
			map[string]any{"changeSet": map[string]any{}},
			"APPLIED. New revision: sha256:a1", false,
		},
		"a wrong token": {
			[]string{envURL + "=" + url, envComposition + "=team-a/triage", envToken + "=bad-token", envCAFile + "=" + caFile},
			"", "get_composition", nil, "HTTP 401: Missing or invalid X-Axiom-Session-Token", true,
		},
		"no composition and no token": {
			[]string{envURL + "=" + url, envCAFile + "=" + caFile},
			"axiom-mcp: warning: not set: AXIOM_COMPOSITION_ID, AXIOM_SESSION_TOKEN; tools will fail\n",
			"evaluate_expression",
			map[string]any{"expression": "1", "scope": "action-input"},
			"HTTP 401: Missing or invalid X-Axiom-Session-Token", true,
		},
		"nothing at all": {
			[]string{},
			"axiom-mcp: warning: not set: AXIOM_API_URL, AXIOM_COMPOSITION_ID, AXIOM_SESSION_TOKEN; tools will fail\n",
			"evaluate_expression",
			map[string]any{"expression": "1", "scope": "action-input"},
			`make gateway client: "" is no HTTP address`, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			command := exec.Command(binary)
			command.Env, command.Stderr = tc.env, &stderr
			agent := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
			session, err := agent.Connect(t.Context(), &mcp.CommandTransport{Command: command}, nil)
			if err != nil {
				t.Fatal(err)
			}
			tools, err := session.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(tools.Tools) != 14 {
				t.Errorf("%d tools", len(tools.Tools))
			}
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tc.tool, Arguments: tc.arguments})
			if err != nil {
				t.Fatal(err)
			}
			if got := result.Content[0].(*mcp.TextContent).Text; got != tc.want || result.IsError != tc.fails {
				t.Errorf("got %q, error %v; want %q, error %v", got, result.IsError, tc.want, tc.fails)
			}
			// Closing waits for the program; it must end by itself, and well.
			if err := session.Close(); err != nil || command.ProcessState.ExitCode() != exitOK {
				t.Errorf("close: %v, %v", err, command.ProcessState)
			}
			if diff := cmp.Diff(tc.warning, stderr.String()); diff != "" {
				t.Errorf("standard error (-want +got):\n%s", diff)
			}
		})
	}
}

// process is a program on pipes instead of a terminal.
type process struct {
	program
	stdout, stderr bytes.Buffer
}

type closer struct{ *bytes.Buffer }

func (closer) Close() error { return nil }

func newProcess(stdin string) *process {
	p := &process{}
	p.program = program{
		getenv: func(string) string { return "" },
		stdin:  io.NopCloser(strings.NewReader(stdin)),
		stdout: closer{&p.stdout}, stderr: closer{&p.stderr},
	}
	return p
}

func TestUsage(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no arguments":       {nil, exitOK, "warning"},
		"the server's name":  {[]string{"--server", "workbench"}, exitOK, "AXIOM_COMPOSITION_ID"},
		"the other server":   {[]string{"--server", "axiom"}, exitOK, "AXIOM_ASSISTANT_SESSION_ID"},
		"help":               {[]string{"--help"}, exitOK, "-server"},
		"an unknown server":  {[]string{"--server", "nobody"}, exitUsage, "usage: axiom-mcp"},
		"an unknown flag":    {[]string{"--nothing"}, exitUsage, "-nothing"},
		"a needless operand": {[]string{"workbench"}, exitUsage, "usage: axiom-mcp"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProcess("")
			if code := p.run(t.Context(), tc.args); code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			if !strings.Contains(p.stderr.String(), tc.says) {
				t.Errorf("standard error %q does not say %q", p.stderr.String(), tc.says)
			}
			if p.stdout.Len() > 0 {
				t.Errorf("standard output %q", p.stdout.String())
			}
		})
	}
}

func TestEndsWhenTold(t *testing.T) {
	p := newProcess("")
	reader, writer := io.Pipe()
	t.Cleanup(func() { _ = writer.Close() })
	p.stdin = reader
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code := p.run(ctx, nil); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

func TestGarbageDoesNotEndWell(t *testing.T) {
	p := newProcess("this is no JSON-RPC\n")
	if code := p.run(t.Context(), nil); code != exitError {
		t.Errorf("exit code %d", code)
	}
	if json.Valid(p.stdout.Bytes()) && p.stdout.Len() > 0 {
		t.Errorf("answered %s", p.stdout.String())
	}
}

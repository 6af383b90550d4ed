// Package giteaserver runs a real Gitea for tests, the one that hack/forge/build makes and hack/forge/serve serves: with a
// directory of its own, ended with the test.
package giteaserver

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// User is the account that tests act as.
const User = "axiom"

const (
	startTimeout = 60 * time.Second
	endTimeout   = 20 * time.Second
	pollEvery    = 100 * time.Millisecond
)

// A Server is a Gitea that runs.
type Server struct {
	// URL of the pages; API of the interface; Token of User, for everything.
	URL, API, Token string
}

// IsBuilt tells whether the program is there. root is the repository's directory.
func IsBuilt(root string) bool {
	_, err := os.Stat(filepath.Join(root, "bin", "forge", "gitea"))
	return err == nil
}

// Start starts a server on the loopback address. Without the program the test is skipped, unless AXIOM_FORGE is 1.
func Start(t testing.TB, root string) *Server {
	t.Helper()
	return StartOn(t, root, "127.0.0.1")
}

// StartOn is Start on another address of the machine.
func StartOn(t testing.TB, root, address string) *Server {
	t.Helper()
	if !IsBuilt(root) {
		if os.Getenv("AXIOM_FORGE") == "1" {
			t.Fatal("no forge: run hack/forge/build")
		}
		t.Skip("no forge: run hack/forge/build")
	}
	host, err := freePort(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{URL: "http://" + host, API: "http://" + host + "/api/v1"}
	if err := s.start(t, root, host); err != nil {
		t.Fatal(err)
	}
	return s
}

func freePort(ctx context.Context, address string) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return "", fmt.Errorf("find port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}

// start runs the server until the test ends.
func (s *Server) start(t testing.TB, root, host string) error {
	directory := filepath.Join(t.TempDir(), "forge")
	serve := exec.Command(filepath.Join(root, "hack", "forge", "serve"), directory, host) //nolint:gosec // The program is the repository's own.
	var log bytes.Buffer
	serve.Stdout, serve.Stderr = &log, &log
	serve.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := serve.Start(); err != nil {
		return fmt.Errorf("start forge: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- serve.Wait() }()
	t.Cleanup(func() {
		_ = serve.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(endTimeout):
			_ = serve.Process.Kill()
			<-ended
		}
		if t.Failed() {
			t.Logf("forge: %s", &log)
		}
	})
	return s.await(t.Context(), filepath.Join(directory, "token"), ended)
}

// await waits until the server answers who has its token.
func (s *Server) await(ctx context.Context, token string, ended chan error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		if s.answers(ctx, token) {
			return nil
		}
		select {
		case err := <-ended:
			ended <- err
			return fmt.Errorf("forge ended: %w", errors.Join(err, errors.New("before it answered")))
		case <-ctx.Done():
			return fmt.Errorf("await forge: %w", ctx.Err())
		case <-ticker.C:
		}
	}
}

// answers tells whether the server is there, and reads the token.
func (s *Server) answers(ctx context.Context, token string) bool {
	data, err := os.ReadFile(token) //nolint:gosec // The file is the test's own.
	if err != nil {
		return false
	}
	s.Token = strings.TrimSpace(string(data))
	_, err = s.Call(ctx, http.MethodGet, "/user", nil)
	return err == nil
}

// Call sends a request to the interface, as User, and reads the JSON of its answer. A status that is no success is an error.
func (s *Server) Call(ctx context.Context, method, path string, body any) (any, error) {
	content, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, method, s.API+path, bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	r.Header.Set("Authorization", "token "+s.Token)
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, fmt.Errorf("send request: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	if response.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s %s: status %d: %s", method, path, response.StatusCode, data)
	}
	if len(data) == 0 {
		return nil, nil
	}
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return nil, fmt.Errorf("decode answer: %w", err)
	}
	return value, nil
}

// CreateRepository makes a repository of User with a first commit on main. The name it returns is owner/name.
func (s *Server) CreateRepository(t testing.TB, name string) string {
	t.Helper()
	if _, err := s.Call(t.Context(), http.MethodPost, "/user/repos", map[string]any{"name": name, "auto_init": true, "default_branch": "main"}); err != nil {
		t.Fatal(err)
	}
	return User + "/" + name
}

// Commit adds a file on a branch, which is made from main if it is not there, and returns the commit.
func (s *Server) Commit(t testing.TB, repository, branch, path string) string {
	t.Helper()
	body := map[string]any{"content": base64.StdEncoding.EncodeToString([]byte(path + "\n")), "message": "Add " + path, "branch": branch}
	if _, err := s.Call(t.Context(), http.MethodGet, "/repos/"+repository+"/branches/"+branch, nil); err != nil {
		body["branch"], body["new_branch"] = "main", branch
	}
	value, err := s.Call(t.Context(), http.MethodPost, "/repos/"+repository+"/contents/"+path, body)
	if err != nil {
		t.Fatal(err)
	}
	answer, _ := value.(map[string]any)
	commit, _ := answer["commit"].(map[string]any)
	sha, _ := commit["sha"].(string)
	return sha
}

// Push makes a repository of User whose main branch has one commit with what a directory has. It returns the URL to clone.
func (s *Server) Push(t testing.TB, name, directory string) string {
	t.Helper()
	at := s.URL + "/" + User + "/" + name + ".git"
	scratch := t.TempDir()
	if err := os.CopyFS(scratch, os.DirFS(directory)); err != nil {
		t.Fatal(err)
	}
	login := base64.StdEncoding.EncodeToString([]byte(User + ":" + s.Token))
	for _, arguments := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"commit", "-q", "-m", "Begin"}, {"push", "-q", at, "main"}} {
		git := exec.CommandContext(t.Context(), "git", arguments...) //nolint:gosec // The arguments are the test's own.
		git.Dir = scratch
		git.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "NO_PROXY=*", "no_proxy=*",
			"GIT_AUTHOR_NAME="+User, "GIT_AUTHOR_EMAIL=axiom@example.com", "GIT_COMMITTER_NAME="+User, "GIT_COMMITTER_EMAIL=axiom@example.com",
			"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=http.extraHeader", "GIT_CONFIG_VALUE_0=Authorization: Basic "+login)
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v: %s", arguments[0], err, out)
		}
	}
	return at
}

// Package giteaserver runs a real Gitea for tests, the one that hack/forge/build makes: on a loopback address, with a
// directory of its own, ended with the test.
package giteaserver

import (
	"bytes"
	"context"
	"crypto/rand"
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

// Start starts a server. root is the repository's directory. Without the program the test is skipped, unless AXIOM_FORGE is 1.
func Start(t testing.TB, root string) *Server {
	t.Helper()
	home, err := filepath.Abs(filepath.Join(root, "bin", "forge"))
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(home, "gitea")
	if _, err := os.Stat(program); err != nil {
		if os.Getenv("AXIOM_FORGE") == "1" {
			t.Fatalf("no forge: run hack/forge/build: %v", err)
		}
		t.Skip("no forge: run hack/forge/build")
	}
	s, run, err := install(t, program, home)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.start(t, run); err != nil {
		t.Fatal(err)
	}
	return s
}

// run makes a command of the program.
type run func(arguments ...string) *exec.Cmd

// install writes the configuration, and makes database, user and token.
func install(t testing.TB, program, home string) (*Server, run, error) {
	address, err := freeAddress(t.Context())
	if err != nil {
		return nil, nil, err
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "app.ini")
	if err := os.WriteFile(config, []byte(configuration(dir, home, address)), 0o600); err != nil {
		return nil, nil, fmt.Errorf("write configuration: %w", err)
	}
	command := func(arguments ...string) *exec.Cmd {
		c := exec.Command(program, append([]string{"--config", config, "--work-path", dir}, arguments...)...) //nolint:gosec // The program is the test's own.
		c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GITEA_I_AM_BEING_UNSAFE_RUNNING_AS_ROOT=true"}
		c.Dir = dir
		return c
	}
	password := "Pw1-" + rand.Text()
	for _, arguments := range [][]string{
		{"migrate"},
		{"admin", "user", "create", "--username", User, "--password", password, "--email", User + "@example.com", "--admin", "--must-change-password=false"},
	} {
		if out, err := command(arguments...).CombinedOutput(); err != nil {
			return nil, nil, fmt.Errorf("run %s: %w: %s", arguments[0], err, out)
		}
	}
	token, err := command("admin", "user", "generate-access-token", "--username", User, "--scopes", "all", "--raw").Output()
	if err != nil {
		return nil, nil, fmt.Errorf("make token: %w", err)
	}
	lines := strings.Fields(string(token))
	s := &Server{URL: "http://" + address, API: "http://" + address + "/api/v1", Token: lines[len(lines)-1]}
	return s, command, nil
}

func freeAddress(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}

func configuration(dir, home, address string) string {
	host, port, _ := net.SplitHostPort(address)
	account := os.Getenv("USER")
	if os.Getuid() == 0 || account == "" {
		account = "root"
	}
	return fmt.Sprintf(`RUN_USER = %s
RUN_MODE = prod
[server]
HTTP_ADDR = %s
HTTP_PORT = %s
ROOT_URL = http://%s/
STATIC_ROOT_PATH = %s
DISABLE_SSH = true
OFFLINE_MODE = true
[database]
DB_TYPE = sqlite3
PATH = %s
[security]
INSTALL_LOCK = true
SECRET_KEY = %s
PASSWORD_HASH_ALGO = pbkdf2$2
[service]
DISABLE_REGISTRATION = true
[repository]
ROOT = %s
DEFAULT_BRANCH = main
[log]
LEVEL = Error
[cron]
ENABLED = false
[indexer]
ISSUE_INDEXER_TYPE = db
[picture]
DISABLE_GRAVATAR = true
[session]
PROVIDER = memory
[actions]
ENABLED = false
[packages]
ENABLED = false
`, account, host, port, address, filepath.Join(home, "static"), filepath.Join(dir, "gitea.db"), rand.Text(), filepath.Join(dir, "repositories"))
}

// start runs the server until the test ends.
func (s *Server) start(t testing.TB, command run) error {
	web := command("web")
	var log bytes.Buffer
	web.Stdout, web.Stderr = &log, &log
	web.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := web.Start(); err != nil {
		return fmt.Errorf("start forge: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- web.Wait() }()
	t.Cleanup(func() {
		_ = web.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(endTimeout):
			_ = web.Process.Kill()
			<-ended
		}
		if t.Failed() {
			t.Logf("forge: %s", &log)
		}
	})
	return s.await(t.Context(), ended)
}

func (s *Server) await(ctx context.Context, ended chan error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		if _, err := s.Call(ctx, http.MethodGet, "/version", nil); err == nil {
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

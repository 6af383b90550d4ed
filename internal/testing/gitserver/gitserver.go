// Package gitserver is a Git server for tests: the program of Git itself behind HTTP with TLS and Basic authentication, and
// behind SSH. Its repositories are real ones, in a directory of the test.
//
// A test can move and delete branches while a request is on its way, take the server away, have it answer with a status or
// show and refuse what it likes, and count what reached it.
package gitserver

import (
	"bytes"
	"crypto/subtle"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Username and Password that the server asks for.
const (
	Username = "operator"
	Password = "correct horse battery staple"
)

// A Server serves the repositories in a directory.
type Server struct {
	// URL of the server, without a path.
	URL string
	// Client trusts the server's certificate.
	Client *http.Client
	// Authority is the certificate it is trusted by, in PEM; nil without TLS.
	Authority []byte
	root      string
	home      string

	mu       sync.Mutex
	requests []Request
	answer   func(http.ResponseWriter, *http.Request) bool
	before   func(Request)
}

// A Request is one that reached the server.
type Request struct {
	Method string
	// Path from the repository on, with the service that is asked for: `info/refs?service=git-upload-pack`.
	Path string
	// Repository it is about.
	Repository string
	// Authorized tells whether it had the right credentials.
	Authorized bool
}

// Start serves until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{root: t.TempDir(), home: t.TempDir()}
	web := httptest.NewTLSServer(http.HandlerFunc(s.serve))
	t.Cleanup(web.Close)
	s.URL, s.Client = web.URL, web.Client()
	s.Authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	return s
}

// StartPlain serves without TLS.
func StartPlain(t testing.TB) *Server {
	t.Helper()
	s := &Server{root: t.TempDir(), home: t.TempDir()}
	web := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(web.Close)
	s.URL, s.Client = web.URL, web.Client()
	return s
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	request := s.note(r)
	s.mu.Lock()
	answer, before := s.answer, s.before
	s.mu.Unlock()
	if answer != nil && answer(w, r) {
		return
	}
	if before != nil {
		before(request)
	}
	if !request.Authorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	s.backend().ServeHTTP(w, r)
}

func (s *Server) backend() http.Handler {
	return &cgi.Handler{
		Path:   filepath.Join(execPath(), "git-http-backend"),
		Env:    append(s.environment(), "GIT_PROJECT_ROOT="+s.root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER="+Username),
		Stderr: io.Discard,
	}
}

// Forward has the server do what a request asks for; the answer is lost.
func (s *Server) Forward(r *http.Request) {
	s.backend().ServeHTTP(httptest.NewRecorder(), r)
}

func (s *Server) note(r *http.Request) Request {
	username, password, _ := r.BasicAuth()
	isRight := subtle.ConstantTimeCompare([]byte(username+":"+password), []byte(Username+":"+Password)) == 1
	repository, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), ".git/")
	if r.URL.RawQuery != "" {
		path += "?" + r.URL.RawQuery
	}
	request := Request{Method: r.Method, Path: path, Repository: repository, Authorized: isRight}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, request)
	return request
}

// Requests are those that reached the server so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Count is how many requests had a path, such as `git-receive-pack`.
func (s *Server) Count(path string) int {
	count := 0
	for _, request := range s.Requests() {
		if request.Path == path {
			count++
		}
	}
	return count
}

// Answer has requests answered by something else where it says so; nil: the server answers again.
func (s *Server) Answer(answer func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// AnswerStatus has every request answered by a status; 0: the server answers again.
func (s *Server) AnswerStatus(status int) {
	if status == 0 {
		s.Answer(nil)
		return
	}
	s.Answer(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(status)
		return true
	})
}

// HangUp has the server hang up on every request.
func (s *Server) HangUp() {
	s.Answer(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
}

// Before runs something before a request is answered; nil: nothing any more.
func (s *Server) Before(before func(Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = before
}

// BeforePush runs something once, after the refs were shown to a push and before the push is made.
func (s *Server) BeforePush(run func()) {
	var once sync.Once
	s.Before(func(request Request) {
		if request.Path == "git-receive-pack" {
			once.Do(run)
		}
	})
}

// A Repository of a server.
type Repository struct {
	// URL it is served at.
	URL string
	// Dir of the bare repository.
	Dir string

	t       testing.TB
	server  *Server
	scratch string
}

// Create makes an empty repository whose HEAD names the branch main. It gives any commit by its id.
func (s *Server) Create(t testing.TB, name string) *Repository {
	t.Helper()
	dir := filepath.Join(s.root, name+".git")
	r := &Repository{URL: s.URL + "/" + name + ".git", Dir: dir, t: t, server: s, scratch: t.TempDir()}
	r.git("init", "--quiet", "--bare", "--initial-branch=main", dir)
	r.Git("config", "http.receivepack", "true")
	r.Git("config", "uploadpack.allowAnySHA1InWant", "true")
	return r
}

// RefuseIDs has the server give only what refs name.
func (r *Repository) RefuseIDs() {
	r.t.Helper()
	r.Git("config", "--unset-all", "uploadpack.allowAnySHA1InWant")
}

// A FileSpec is a file to commit.
type FileSpec struct {
	Content string
	// Mode such as `100755`, `120000` for a link to Content, or `160000` for the submodule commit in Content; empty: `100644`.
	Mode string
}

// Commit makes a commit of exactly these files on a branch, after what the branch has, and returns its id.
func (r *Repository) Commit(branch string, files map[string]FileSpec) string {
	r.t.Helper()
	return r.commit(branch, r.tree(files), r.Head(branch))
}

// RawCommit makes a commit of a tree on a branch, however malformed the tree is.
func (r *Repository) RawCommit(branch, tree string) string {
	r.t.Helper()
	const somebody = "Somebody <somebody@example.com> 1700000000 +0000"
	commit := r.Object("commit", []byte("tree "+tree+"\nauthor "+somebody+"\ncommitter "+somebody+"\n\nraw\n"))
	r.Move(branch, commit)
	return commit
}

func (r *Repository) commit(branch, tree, parent string) string {
	r.t.Helper()
	args := []string{"commit-tree", "-m", "change " + branch, tree}
	if parent != "" {
		args = append(args, "-p", parent)
	}
	commit := r.Git(args...)
	r.Move(branch, commit)
	return commit
}

// tree writes files by way of an index of its own.
func (r *Repository) tree(files map[string]FileSpec) string {
	r.t.Helper()
	index := filepath.Join(r.scratch, "index")
	if err := os.RemoveAll(index); err != nil {
		r.t.Fatal(err)
	}
	var lines bytes.Buffer
	known := map[string]string{}
	for path, file := range files {
		mode, id := file.Mode, file.Content
		if mode == "" {
			mode = "100644"
		}
		if mode != "160000" {
			if known[file.Content] == "" {
				known[file.Content] = r.Object("blob", []byte(file.Content))
			}
			id = known[file.Content]
		}
		lines.WriteString(mode + " " + id + "\t" + path + "\x00")
	}
	r.run(&lines, []string{"GIT_INDEX_FILE=" + index}, "update-index", "-z", "--add", "--index-info")
	return r.run(nil, []string{"GIT_INDEX_FILE=" + index}, "write-tree")
}

// Object writes an object as it is, however malformed, and returns its id.
func (r *Repository) Object(kind string, data []byte) string {
	r.t.Helper()
	return r.run(bytes.NewReader(data), nil, "hash-object", "-w", "-t", kind, "--literally", "--stdin")
}

// Move a branch to a commit, whatever it is at.
func (r *Repository) Move(branch, commit string) {
	r.t.Helper()
	r.Git("update-ref", "refs/heads/"+branch, commit)
}

// Delete a branch.
func (r *Repository) Delete(branch string) {
	r.t.Helper()
	r.Git("update-ref", "-d", "refs/heads/"+branch)
}

// Head is the commit of a branch; empty: there is none.
func (r *Repository) Head(branch string) string {
	r.t.Helper()
	return r.Git("for-each-ref", "--format=%(objectname)", "refs/heads/"+branch)
}

// Hook has the server run a script, such as one named `pre-receive`.
func (r *Repository) Hook(name, script string) {
	r.t.Helper()
	path := filepath.Join(r.Dir, "hooks", name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil { //nolint:gosec // It is to be run.
		r.t.Fatal(err)
	}
}

// Git runs the git program in the repository and returns its output without blanks around it.
func (r *Repository) Git(args ...string) string {
	r.t.Helper()
	return r.run(nil, nil, args...)
}

// GitWith runs the git program with something on its standard input.
func (r *Repository) GitWith(input []byte, args ...string) string {
	r.t.Helper()
	return r.run(bytes.NewReader(input), nil, args...)
}

func (r *Repository) git(args ...string) {
	r.t.Helper()
	r.command(nil, nil, args...)
}

func (r *Repository) run(input io.Reader, env []string, args ...string) string {
	r.t.Helper()
	return r.command(input, env, append([]string{"--git-dir=" + r.Dir}, args...)...)
}

func (r *Repository) command(input io.Reader, env []string, args ...string) string {
	r.t.Helper()
	command := exec.Command("git", args...)
	command.Env = append(append(r.server.environment(), identity()...), env...)
	if input != nil {
		command.Stdin = input
	}
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		r.t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(output))
}

// environment keeps the machine's configuration out.
func (s *Server) environment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "GIT_CONFIG_NOSYSTEM=1"}
}

func identity() []string {
	return []string{
		"GIT_AUTHOR_NAME=Somebody", "GIT_AUTHOR_EMAIL=somebody@example.com", "GIT_AUTHOR_DATE=1700000000 +0000",
		"GIT_COMMITTER_NAME=Somebody", "GIT_COMMITTER_EMAIL=somebody@example.com", "GIT_COMMITTER_DATE=1700000000 +0000",
	}
}

// execPath is where the programs of Git are.
var execPath = sync.OnceValue(func() string {
	output, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		panic("the tests need git: " + err.Error())
	}
	return strings.TrimSpace(string(output))
})

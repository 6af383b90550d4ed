// Package forgedouble stands for GitHub in tests: a server in this process that speaks the part of its REST interface, and
// of its GraphQL for drafts, that pull requests, reads and issues need. It can be told to be unavailable, to answer with
// errors, to lose answers of what it did, and to show heads and new objects late; and it counts what changes it.
package forgedouble

import (
	"fmt"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Token is the one that the server knows.
const Token = "ghp_double"

// User is the account of Token.
const User = "axiom-bot"

// A Server has repositories. It is safe for concurrent use.
type Server struct {
	// URL of the pages; API of the interface.
	URL, API string

	mu           sync.Mutex
	repositories map[string]*Repository
	heads        func(repository, branch string) string
	faults       []fault
	mutations    []string
	requests     int
	perPage      int
	held         map[string]string
	hiding       bool
	id           int64
	now          time.Time
}

// A Repository is the forge's side of one.
type Repository struct {
	server    *Server
	name      string
	branches  map[string]string
	labels    []string
	items     []*item
	statuses  map[string][]object
	checkRuns map[string][]object
}

// An item is an issue or a pull request: both are counted together.
type item struct {
	number                       int64
	title, body, state           string
	draft, merged, hidden        bool
	head, base, headRepo, closed string
	labels                       []string
	assignees                    []string
	updated                      time.Time
	comments, reviews, lines     []object
	pull                         bool
}

type object = map[string]any

// A Pull is one to open.
type Pull struct {
	Head, Base, Title, Body string
	Draft                   bool
	// Fork is the full name of the repository that has the head; empty: the same one.
	Fork string
}

// Start starts a server, which ends with the test.
func Start(t testing.TB) *Server {
	s := &Server{repositories: map[string]*Repository{}, perPage: 100, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL, s.API = server.URL, server.URL+"/api/v3"
	return s
}

// Repository adds one, named owner/name, or gives the one there is.
func (s *Server) Repository(name string) *Repository {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, has := s.repositories[name]; has {
		return r
	}
	r := &Repository{server: s, name: name, branches: map[string]string{}, statuses: map[string][]object{}, checkRuns: map[string][]object{}}
	s.repositories[name] = r
	return r
}

// Heads has branches read from elsewhere, such as Git repositories: an empty commit is a branch that is not there.
func (s *Server) Heads(heads func(repository, branch string) string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heads = heads
}

// SetTime has the clock go on from a time.
func (s *Server) SetTime(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = t
}

// PerPage bounds pages, as the largest that a client gets.
func (s *Server) PerPage(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.perPage = n
}

// HoldHeads keeps showing the heads there are now, until they are released.
func (s *Server) HoldHeads() {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := map[string]string{}
	for _, r := range s.repositories {
		for _, i := range r.items {
			if i.pull {
				held[r.name+":"+i.head] = r.head(i.head)
			}
		}
	}
	s.held = held
}

// ReleaseHeads shows heads as they are.
func (s *Server) ReleaseHeads() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = nil
}

// HideCreated has lists leave out what is created from now on, until ShowCreated.
func (s *Server) HideCreated() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hiding = true
}

// ShowCreated lists all there is.
func (s *Server) ShowCreated() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hiding = false
	for _, r := range s.repositories {
		for _, i := range r.items {
			i.hidden = false
		}
	}
}

// Mutations are the changes that requests made, as method and path, in order.
func (s *Server) Mutations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mutations)
}

// Requests is how many requests came.
func (s *Server) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// SetBranch moves a branch, or makes it.
func (r *Repository) SetBranch(branch, commit string) {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	r.branches[branch] = commit
}

// AddLabel makes a label.
func (r *Repository) AddLabel(name string) {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	r.labels = append(r.labels, name)
}

// OpenPull opens a pull request as somebody else would.
func (r *Repository) OpenPull(p Pull) int64 {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	i := r.add(&item{pull: true, title: p.Title, body: p.Body, draft: p.Draft, head: p.Head, base: p.Base, headRepo: r.name})
	if p.Fork != "" {
		i.headRepo = p.Fork
	}
	return i.number
}

// OpenIssue opens an issue as somebody else would.
func (r *Repository) OpenIssue(title, body string) int64 {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	return r.add(&item{title: title, body: body}).number
}

// Close closes an issue or a pull request; a pull request may be merged by that. The head it had stays.
func (r *Repository) Close(number int64, merged bool) {
	r.change(number, func(i *item) {
		i.closed = r.head(i.head)
		i.state, i.merged = "closed", merged
	})
}

// Edit changes title and body as somebody else would.
func (r *Repository) Edit(number int64, title, body string) {
	r.change(number, func(i *item) { i.title, i.body = title, body })
}

// Comment adds to the conversation.
func (r *Repository) Comment(number int64, body string) {
	r.change(number, func(i *item) {
		i.comments = append(i.comments, object{"id": r.server.nextID(), "user": account(User), "body": body, "created_at": r.server.stamp(), "updated_at": r.server.stamp()})
	})
}

// Review adds a review of a state, with comments at lines of a file.
func (r *Repository) Review(number int64, state, body string, lines map[int64]string) {
	r.change(number, func(i *item) {
		i.reviews = append(i.reviews, object{
			"id": r.server.nextID(), "user": account("reviewer"), "state": state, "body": body, "commit_id": r.head(i.head), "submitted_at": r.server.stamp(),
		})
		for _, line := range slices.Sorted(maps.Keys(lines)) {
			i.lines = append(i.lines, object{
				"id": r.server.nextID(), "user": account("reviewer"), "path": "README.md", "line": line, "body": lines[line], "commit_id": r.head(i.head),
				"created_at": r.server.stamp(), "updated_at": r.server.stamp(),
			})
		}
	})
}

// Status adds a status of a commit.
func (r *Repository) Status(commit, context, state string) {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	r.statuses[commit] = append([]object{{
		"id": r.server.nextID(), "context": context, "state": state, "target_url": nil, "created_at": r.server.stamp(),
	}}, r.statuses[commit]...)
}

// CheckRun adds a check run of a commit; an empty conclusion is none.
func (r *Repository) CheckRun(commit, name, status, conclusion string) {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	run := object{"id": r.server.nextID(), "name": name, "status": status, "conclusion": nil, "html_url": nil, "started_at": r.server.stamp(), "completed_at": nil}
	if conclusion != "" {
		run["conclusion"], run["completed_at"] = conclusion, r.server.stamp()
	}
	r.checkRuns[commit] = append(r.checkRuns[commit], run)
}

// Issues are the bodies of all issues, pull requests left out.
func (r *Repository) Issues() []string {
	return r.bodies(false)
}

// Pulls are the bodies of all pull requests.
func (r *Repository) Pulls() []string {
	return r.bodies(true)
}

func (r *Repository) bodies(pull bool) []string {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	var bodies []string
	for _, i := range r.items {
		if i.pull == pull {
			bodies = append(bodies, i.body)
		}
	}
	return bodies
}

func (r *Repository) change(number int64, change func(*item)) {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	if i := r.find(number); i != nil {
		change(i)
		i.updated = r.server.tick()
	}
}

// add gives an item its number. The lock is held.
func (r *Repository) add(i *item) *item {
	i.number, i.state, i.updated = int64(len(r.items))+1, "open", r.server.tick()
	i.hidden = r.server.hiding
	r.items = append(r.items, i)
	return i
}

func (r *Repository) find(number int64) *item {
	if number < 1 || number > int64(len(r.items)) {
		return nil
	}
	return r.items[number-1]
}

// head is the commit a branch is at.
func (r *Repository) head(branch string) string {
	if commit, held := r.server.held[r.name+":"+branch]; held {
		return commit
	}
	if r.server.heads != nil {
		return r.server.heads(r.name, branch)
	}
	return r.branches[branch]
}

func (s *Server) nextID() int64 {
	s.id++
	return 9_000_000_000 + s.id
}

// tick is the time, which goes on by a second each time it is looked at.
func (s *Server) tick() time.Time {
	s.now = s.now.Add(time.Second)
	return s.now
}

func (s *Server) stamp() string { return s.tick().Format(time.RFC3339) }

func account(login string) object { return object{"login": login} }

func owner(name string) string {
	first, _, _ := strings.Cut(name, "/")
	return first
}

func (r *Repository) page(kind string, number int64) string {
	return fmt.Sprintf("%s/%s/%s/%d", r.server.URL, r.name, kind, number)
}

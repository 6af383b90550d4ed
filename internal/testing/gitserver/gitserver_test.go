package gitserver

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// refs asks for the refs of a repository and returns the status.
func refs(t *testing.T, s *Server, r *Repository, password string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.URL+"/info/refs?service=git-upload-pack", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth(Username, password)
	response, err := s.Client.Do(request)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

func TestServer(t *testing.T) {
	s := Start(t)
	r := s.Create(t, "app")
	first := r.Commit("main", map[string]FileSpec{"a": {Content: "1"}, "x": {Content: "x", Mode: "100755"}})
	if refs(t, s, r, Password) != http.StatusOK || refs(t, s, r, "guess") != http.StatusUnauthorized {
		t.Error("the password does not decide")
	}
	s.AnswerStatus(http.StatusTeapot)
	if got := refs(t, s, r, Password); got != http.StatusTeapot {
		t.Errorf("status %d", got)
	}
	const path = "info/refs?service=git-upload-pack"
	if got := s.Count(path); got != 3 {
		t.Errorf("%d requests", got)
	}
	s.HangUp()
	if got := refs(t, s, r, Password); got != 0 {
		t.Errorf("status %d", got)
	}
	s.AnswerStatus(0)
	s.Before(func(Request) { r.Delete("main") })
	if got := refs(t, s, r, Password); got != http.StatusOK || r.Head("main") != "" {
		t.Errorf("status %d, and the branch is there", got)
	}
	want := Request{Method: http.MethodGet, Path: path, Repository: "app", Authorized: true}
	if got := s.Requests(); !slices.Contains(got, want) {
		t.Errorf("requests %v", got)
	}
	if got := r.Git("ls-tree", "--format=%(objectmode) %(path)", first); got != "100644 a\n100755 x" {
		t.Errorf("tree %q", got)
	}
}

func TestCommitsFollowEachOther(t *testing.T) {
	s := StartPlain(t)
	r := s.Create(t, "app")
	first := r.Commit("main", map[string]FileSpec{"a": {Content: "1"}})
	second := r.Commit("main", map[string]FileSpec{"b": {Content: "2"}})
	if got := r.Git("rev-list", "main"); got != second+"\n"+first {
		t.Errorf("commits %q", got)
	}
	if !strings.HasPrefix(r.URL, "http://127.0.0.1:") {
		t.Errorf("address %s", r.URL)
	}
	r.Hook("update", "exit 1")
	r.RefuseIDs()
}

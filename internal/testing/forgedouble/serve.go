package forgedouble

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Fault is a way to answer that is none of the forge's.
type Fault struct {
	// Drop the connection without an answer.
	Drop bool
	// After: what was asked for is done before the answer is replaced.
	After bool
	// Status, Header and Body of the answer otherwise.
	Status int
	Header map[string]string
	Body   string
}

// Faults that forges have.
var (
	Unreachable   = Fault{Drop: true}
	LostAnswer    = Fault{Drop: true, After: true}
	Unauthorized  = Fault{Status: http.StatusUnauthorized, Body: `{"message":"Bad credentials"}`}
	NotFound      = Fault{Status: http.StatusNotFound, Body: `{"message":"Not Found"}`}
	Forbidden     = Fault{Status: http.StatusForbidden, Body: `{"message":"Resource not accessible"}`}
	RateLimited   = Fault{Status: http.StatusForbidden, Header: map[string]string{"Retry-After": "7"}, Body: `{"message":"rate limit"}`}
	ServerError   = Fault{Status: http.StatusBadGateway, Body: "<html>"}
	Unreadable    = Fault{Status: http.StatusOK, Body: `{"number":`}
	ElsewhereNext = Fault{Status: http.StatusOK, Header: map[string]string{"Link": `<https://elsewhere.example.com/2>; rel="next"`}, Body: "[]"}
)

type fault struct {
	method, path string
	times        int
	fault        Fault
}

// Fail has requests of a method, whose path ends as given, answered with a fault: the next times of them, or all for a
// negative number. Any method and any path are meant by empty ones.
func (s *Server) Fail(method, pathEnd string, times int, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, fault{method: method, path: pathEnd, times: times, fault: f})
}

// Heal ends all faults.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// fault takes the one for a request. The lock is held.
func (s *Server) fault(r *http.Request) *Fault {
	for i := range s.faults {
		f := &s.faults[i]
		if f.times == 0 || f.method != "" && f.method != r.Method || !strings.HasSuffix(r.URL.Path, f.path) {
			continue
		}
		f.times--
		return &f.fault
	}
	return nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	f := s.fault(r)
	if f == nil {
		s.serve(w, r)
		return
	}
	if f.After {
		s.serve(httptest.NewRecorder(), r)
	}
	if f.Drop {
		panic(http.ErrAbortHandler)
	}
	for name, value := range f.Header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(f.Status)
	_, _ = w.Write([]byte(f.Body))
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+Token {
		reply(w, http.StatusUnauthorized, object{"message": "Bad credentials"})
		return
	}
	if r.URL.Path == "/api/graphql" && r.Method == http.MethodPost {
		s.graphQL(w, r)
		return
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v3/repos/"), "/")
	if !strings.HasPrefix(r.URL.Path, "/api/v3/repos/") || len(parts) < 2 || s.repositories[parts[0]+"/"+parts[1]] == nil {
		notFound(w)
		return
	}
	s.repositories[parts[0]+"/"+parts[1]].route(w, r, parts[2:])
}

// route finds what a path is about: parts of it that are numbers or commits are written *.
func (r *Repository) route(w http.ResponseWriter, q *http.Request, parts []string) {
	argument := ""
	if len(parts) > 1 {
		argument, parts[1] = parts[1], "*"
	}
	number, _ := strconv.ParseInt(argument, 10, 64)
	i := r.find(number)
	path := strings.Join(parts, "/")
	switch q.Method + " " + path {
	case "GET ":
		reply(w, http.StatusOK, object{"full_name": r.name, "default_branch": "main"})
	case "GET pulls":
		r.list(w, q, r.listPulls(q.URL.Query()))
	case "POST pulls":
		r.createPull(w, q)
	case "GET issues":
		r.list(w, q, r.listIssues(q.URL.Query()))
	case "POST issues":
		r.createIssue(w, q)
	case "GET labels":
		r.list(w, q, r.listLabels())
	case "GET commits/*/statuses":
		r.list(w, q, r.statuses[argument])
	case "GET commits/*/check-runs":
		r.list(w, q, r.checkRuns[argument])
	default:
		if i == nil {
			notFound(w)
			return
		}
		r.routeItem(w, q, path, i)
	}
}

func (r *Repository) routeItem(w http.ResponseWriter, q *http.Request, path string, i *item) {
	if strings.HasPrefix(path, "pulls/") && !i.pull {
		notFound(w)
		return
	}
	switch q.Method + " " + path {
	case "GET pulls/*":
		reply(w, http.StatusOK, r.showPull(i))
	case "PATCH pulls/*", "PATCH issues/*":
		r.update(w, q, i)
	case "GET pulls/*/reviews":
		r.list(w, q, i.reviews)
	case "GET pulls/*/comments":
		r.list(w, q, i.lines)
	case "GET issues/*":
		reply(w, http.StatusOK, r.showIssue(i))
	case "GET issues/*/comments":
		r.list(w, q, i.comments)
	default:
		notFound(w)
	}
}

// list writes one page; check runs come in an object, as GitHub has it.
func (r *Repository) list(w http.ResponseWriter, q *http.Request, all []object) {
	query := q.URL.Query()
	size := positive(query.Get("per_page"), 30)
	size = min(size, r.server.perPage)
	page := positive(query.Get("page"), 1)
	from := min((page-1)*size, len(all))
	to := min(from+size, len(all))
	if to < len(all) {
		query.Set("page", strconv.Itoa(page+1))
		next := url.URL{Scheme: "http", Host: q.Host, Path: q.URL.Path, RawQuery: query.Encode()}
		w.Header().Set("Link", fmt.Sprintf(`<%s>; rel="next", <%s>; rel="last"`, next.String(), next.String()))
	}
	items := append([]object{}, all[from:to]...)
	if strings.HasSuffix(q.URL.Path, "/check-runs") {
		reply(w, http.StatusOK, object{"total_count": len(all), "check_runs": items})
		return
	}
	reply(w, http.StatusOK, items)
}

func positive(text string, otherwise int) int {
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return n
	}
	return otherwise
}

func (r *Repository) listPulls(query url.Values) []object {
	all := []object{}
	for _, i := range slices.Backward(r.items) {
		if !i.pull || i.hidden || !inState(i, query.Get("state")) {
			continue
		}
		if head := query.Get("head"); head != "" && head != owner(i.headRepo)+":"+i.head {
			continue
		}
		if base := query.Get("base"); base != "" && base != i.base {
			continue
		}
		all = append(all, r.showPull(i))
	}
	return all
}

// listIssues has pull requests as well, as GitHub's does.
func (r *Repository) listIssues(query url.Values) []object {
	since, err := time.Parse(time.RFC3339, query.Get("since"))
	all := []object{}
	for _, i := range slices.Backward(r.items) {
		if i.hidden || !inState(i, query.Get("state")) || err == nil && i.updated.Before(since) {
			continue
		}
		all = append(all, r.showIssue(i))
	}
	return all
}

func inState(i *item, state string) bool {
	return state == "all" || i.state == state || state == "" && i.state == "open"
}

func (r *Repository) listLabels() []object {
	all := []object{}
	for n, name := range r.labels {
		all = append(all, object{"id": n + 1, "name": name})
	}
	return all
}

func (r *Repository) showPull(i *item) object {
	sha := r.head(i.head)
	if i.closed != "" {
		sha = i.closed
	}
	var repo any
	if r.server.repositories[i.headRepo] != nil {
		repo = object{"full_name": i.headRepo}
	}
	return object{
		"number": i.number, "node_id": fmt.Sprintf("PR_%s_%d", r.name, i.number), "html_url": r.page("pull", i.number), "state": i.state, "title": i.title,
		"body": orNull(i.body), "draft": i.draft, "merged": i.merged,
		"head": object{"label": owner(i.headRepo) + ":" + i.head, "ref": i.head, "sha": sha, "repo": repo},
		"base": object{"label": owner(r.name) + ":" + i.base, "ref": i.base, "sha": r.head(i.base), "repo": object{"full_name": r.name}},
	}
}

func (r *Repository) showIssue(i *item) object {
	labels, assignees := []object{}, []object{}
	for _, name := range i.labels {
		labels = append(labels, object{"id": slices.Index(r.labels, name) + 1, "name": name})
	}
	for _, login := range i.assignees {
		assignees = append(assignees, account(login))
	}
	shown := object{
		"number": i.number, "html_url": r.page("issues", i.number), "title": i.title, "body": orNull(i.body), "state": i.state, "labels": labels,
		"assignees": assignees, "assignee": nil,
	}
	if len(assignees) > 0 {
		shown["assignee"] = assignees[0]
	}
	if i.pull {
		shown["pull_request"] = object{"html_url": r.page("pull", i.number)}
	}
	return shown
}

// orNull is how GitHub shows a body that is empty.
func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// A change is what requests say of an item.
type change struct {
	Title     *string  `json:"title"`
	Body      *string  `json:"body"`
	Head      string   `json:"head"`
	Base      *string  `json:"base"`
	Draft     bool     `json:"draft"`
	State     *string  `json:"state"`
	Labels    []string `json:"labels"`
	Assignees []string `json:"assignees"`
}

func readChange(w http.ResponseWriter, q *http.Request) (change, bool) {
	var c change
	if json.NewDecoder(q.Body).Decode(&c) != nil {
		reply(w, http.StatusBadRequest, object{"message": "Problems parsing JSON"})
		return c, false
	}
	return c, true
}

func (r *Repository) createPull(w http.ResponseWriter, q *http.Request) {
	c, ok := readChange(w, q)
	if !ok {
		return
	}
	if c.Title == nil || c.Base == nil || !r.canPull(c.Head, *c.Base) {
		invalid(w)
		return
	}
	r.server.mutated(q)
	i := r.add(&item{pull: true, title: *c.Title, draft: c.Draft, head: c.Head, base: *c.Base, headRepo: r.name})
	i.apply(change{Body: c.Body})
	reply(w, http.StatusCreated, r.showPull(i))
}

// canPull tells whether there are commits to ask for, and nobody asks yet.
func (r *Repository) canPull(head, base string) bool {
	if r.head(head) == "" || r.head(base) == "" || r.head(head) == r.head(base) {
		return false
	}
	return !slices.ContainsFunc(r.items, func(i *item) bool {
		return i.pull && i.state == "open" && i.head == head && i.base == base && i.headRepo == r.name
	})
}

func (r *Repository) createIssue(w http.ResponseWriter, q *http.Request) {
	c, ok := readChange(w, q)
	if !ok {
		return
	}
	if c.Title == nil {
		invalid(w)
		return
	}
	r.server.mutated(q)
	i := r.add(&item{})
	r.label(c.Labels)
	i.apply(c)
	reply(w, http.StatusCreated, r.showIssue(i))
}

func (r *Repository) update(w http.ResponseWriter, q *http.Request, i *item) {
	c, ok := readChange(w, q)
	if !ok {
		return
	}
	if c.Base != nil && r.head(*c.Base) == "" {
		invalid(w)
		return
	}
	r.server.mutated(q)
	r.label(c.Labels)
	i.apply(c)
	i.updated = r.server.tick()
	if i.pull {
		reply(w, http.StatusOK, r.showPull(i))
		return
	}
	reply(w, http.StatusOK, r.showIssue(i))
}

// label makes labels that are not there, which is what GitHub does with those of an issue.
func (r *Repository) label(names []string) {
	for _, name := range names {
		if !slices.Contains(r.labels, name) {
			r.labels = append(r.labels, name)
		}
	}
}

func (i *item) apply(c change) {
	for from, to := range map[*string]*string{c.Title: &i.title, c.Body: &i.body, c.Base: &i.base, c.State: &i.state} {
		if from != nil {
			*to = *from
		}
	}
	if c.Labels != nil {
		i.labels = c.Labels
	}
	if c.Assignees != nil {
		i.assignees = c.Assignees
	}
}

// graphQL changes draft states, the one thing it knows.
func (s *Server) graphQL(w http.ResponseWriter, q *http.Request) {
	var asked struct {
		Query     string            `json:"query"`
		Variables map[string]string `json:"variables"`
	}
	if json.NewDecoder(q.Body).Decode(&asked) != nil {
		reply(w, http.StatusBadRequest, object{"message": "Problems parsing JSON"})
		return
	}
	toDraft, toReady := strings.Contains(asked.Query, "convertPullRequestToDraft("), strings.Contains(asked.Query, "markPullRequestReadyForReview(")
	for _, r := range s.repositories {
		for _, i := range r.items {
			if i.pull && asked.Variables["id"] == fmt.Sprintf("PR_%s_%d", r.name, i.number) && toDraft != toReady {
				s.mutated(q)
				i.draft, i.updated = toDraft, s.tick()
				reply(w, http.StatusOK, object{"data": object{}})
				return
			}
		}
	}
	reply(w, http.StatusOK, object{"data": nil, "errors": []object{{"type": "NOT_FOUND", "message": "Could not resolve to a node"}}})
}

func (s *Server) mutated(q *http.Request) {
	s.mutations = append(s.mutations, q.Method+" "+strings.TrimPrefix(q.URL.Path, "/api/v3"))
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func notFound(w http.ResponseWriter) { reply(w, http.StatusNotFound, object{"message": "Not Found"}) }

func invalid(w http.ResponseWriter) {
	reply(w, http.StatusUnprocessableEntity, object{"message": "Validation Failed"})
}

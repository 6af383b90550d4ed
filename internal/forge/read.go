package forge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apitomy/axiom-operator/internal/effect"
	"github.com/apitomy/axiom-operator/internal/remotes"
)

// CodeHeadMoved is of a pull request at another head than the one the caller means.
const CodeHeadMoved = "HEAD_MOVED"

// errNothing: a read performs nothing.
var errNothing = errors.New("a read performs nothing")

// A read is an effect that leaves no trace: it is observed, never performed.
type read struct{}

// Perform refuses.
func (read) Perform(context.Context, effect.Observation) error { return errNothing }

// IsCreate tells that nothing is made.
func (read) IsCreate(effect.Observation) bool { return false }

// Kind is what is read of a pull request.
type Kind string

// The kinds, as members of results are named.
const (
	KindReviews  Kind = "reviews"
	KindComments Kind = "comments"
	KindChecks   Kind = "checks"
)

// Evidence reads what was said and checked about a pull request: all of it, or nothing. The result has a list named by the
// kind, and headSha.
type Evidence struct {
	read
	// Client of the forge.
	Client *Client
	// Address of the pull request.
	Address Address
	Kind    Kind
	// Commit is the head the caller means; empty: whichever there is.
	Commit string
	// IsAncestor tells whether a commit comes before Commit.
	IsAncestor func(commit string) bool
}

var _ effect.Effect = (*Evidence)(nil)

// Observe reads.
func (e *Evidence) Observe(ctx context.Context) (effect.Observation, error) {
	p, err := e.Client.pull(ctx, e.Address, e.Address.Number)
	if err == nil && p.Head.SHA == "" {
		err = miss(effect.ReasonUnreadable)
	}
	if err == nil {
		err = e.checkHead(p.Head.SHA)
	}
	if err != nil {
		return settle(ctx, err)
	}
	items, err := e.items(ctx, p.Head.SHA)
	if err != nil {
		return settle(ctx, err)
	}
	return effect.Observation{Verdict: effect.Compatible, Result: map[string]any{string(e.Kind): items, "headSha": p.Head.SHA}}, nil
}

func (e *Evidence) checkHead(head string) error {
	if e.Commit == "" || head == e.Commit {
		return nil
	}
	if e.IsAncestor(head) {
		return miss(effect.ReasonLag)
	}
	return &effect.Failure{Code: CodeHeadMoved, Message: "the head of the pull request is another commit"}
}

func (e *Evidence) items(ctx context.Context, head string) ([]any, error) {
	switch e.Kind {
	case KindReviews:
		return e.Client.reviews(ctx, e.Address)
	case KindComments:
		return e.Client.comments(ctx, e.Address)
	case KindChecks:
		return e.Client.checks(ctx, e.Address, head)
	default:
		return nil, fmt.Errorf("read evidence: no kind %s", e.Kind)
	}
}

// user is an account; forges leave out those that are gone.
type user struct {
	Login string `json:"login"`
}

func (u *user) value() any {
	if u == nil {
		return nil
	}
	return given(&u.Login)
}

// given is a text, or null for one that is not there or empty.
func given(text *string) any {
	if text == nil || *text == "" {
		return nil
	}
	return *text
}

type review struct {
	ID        json64  `json:"id"`
	User      *user   `json:"user"`
	State     string  `json:"state"`
	Body      string  `json:"body"`
	Commit    *string `json:"commit_id"`
	Submitted *string `json:"submitted_at"`
	Comments  *int    `json:"comments_count"`
}

func (r review) identity() string { return r.ID.String() }

func (c *Client) reviews(ctx context.Context, a Address) ([]any, error) {
	all, err := list[review](ctx, c, fmt.Sprintf("%s/pulls/%d/reviews", a.path(), a.Number))
	if err != nil {
		return nil, err
	}
	items := make([]any, len(all))
	for i, r := range all {
		items[i] = map[string]any{
			"id": r.identity(), "author": r.User.value(), "state": r.State, "body": r.Body, "commit": given(r.Commit), "submittedAt": given(r.Submitted),
		}
	}
	return items, nil
}

type comment struct {
	ID       json64  `json:"id"`
	User     *user   `json:"user"`
	Body     string  `json:"body"`
	Path     *string `json:"path"`
	Line     *int64  `json:"line"`
	Position *int64  `json:"position"`
	Original *int64  `json:"original_position"`
	Commit   *string `json:"commit_id"`
	Created  *string `json:"created_at"`
	Updated  *string `json:"updated_at"`
}

func (m comment) identity() string { return m.ID.String() }

func (m comment) item(kind string, line *int64) map[string]any {
	item := map[string]any{
		"id": m.identity(), "kind": kind, "author": m.User.value(), "body": m.Body, "path": given(m.Path), "line": nil, "commit": given(m.Commit),
		"createdAt": given(m.Created), "updatedAt": given(m.Updated),
	}
	if line != nil && *line != 0 {
		item["line"] = *line
	}
	return item
}

// comments are those of the conversation, then those at lines.
func (c *Client) comments(ctx context.Context, a Address) ([]any, error) {
	conversation, err := list[comment](ctx, c, fmt.Sprintf("%s/issues/%d/comments", a.path(), a.Number))
	if err != nil {
		return nil, err
	}
	items := make([]any, 0, len(conversation))
	for _, m := range conversation {
		items = append(items, m.item("conversation", nil))
	}
	if c.forge.Provider == remotes.ProviderGitea {
		return c.reviewComments(ctx, a, items)
	}
	lines, err := list[comment](ctx, c, fmt.Sprintf("%s/pulls/%d/comments", a.path(), a.Number))
	if err != nil {
		return nil, err
	}
	for _, m := range lines {
		items = append(items, m.item("line", m.Line))
	}
	return items, nil
}

// reviewComments adds the comments at lines where a forge lists them by review. What it calls a position is a line, of the
// new side or else of the old one.
func (c *Client) reviewComments(ctx context.Context, a Address, items []any) ([]any, error) {
	reviews, err := list[review](ctx, c, fmt.Sprintf("%s/pulls/%d/reviews", a.path(), a.Number))
	if err != nil {
		return nil, err
	}
	for _, r := range reviews {
		if r.Comments != nil && *r.Comments == 0 {
			continue
		}
		lines, err := list[comment](ctx, c, fmt.Sprintf("%s/pulls/%d/reviews/%s/comments", a.path(), a.Number, r.identity()))
		if err != nil {
			return nil, err
		}
		for _, m := range lines {
			line := m.Position
			if line == nil || *line == 0 {
				line = m.Original
			}
			items = append(items, m.item("line", line))
		}
	}
	return items, nil
}

type checkRun struct {
	ID         json64  `json:"id"`
	Name       string  `json:"name"`
	Status     string  `json:"status"`
	Conclusion *string `json:"conclusion"`
	URL        *string `json:"html_url"`
	Started    *string `json:"started_at"`
	Completed  *string `json:"completed_at"`
}

func (r checkRun) identity() string { return r.ID.String() }

type commitStatus struct {
	ID      json64  `json:"id"`
	Context string  `json:"context"`
	State   string  `json:"state"`
	Status  string  `json:"status"`
	URL     *string `json:"target_url"`
	Created *string `json:"created_at"`
}

func (s commitStatus) identity() string { return s.ID.String() }

// checks are the check runs, where a forge has them, then the latest status of each context.
func (c *Client) checks(ctx context.Context, a Address, head string) ([]any, error) {
	items := []any{}
	if c.forge.Provider == remotes.ProviderGitHub {
		runs, err := list[checkRun](ctx, c, a.path()+"/commits/"+head+"/check-runs")
		if err != nil {
			return nil, err
		}
		for _, r := range runs {
			items = append(items, map[string]any{
				"id": r.identity(), "kind": "check", "name": r.Name, "state": r.Status, "conclusion": given(r.Conclusion), "url": given(r.URL),
				"startedAt": given(r.Started), "completedAt": given(r.Completed),
			})
		}
	}
	statuses, err := list[commitStatus](ctx, c, a.path()+"/commits/"+head+"/statuses")
	if err != nil {
		return nil, err
	}
	for _, s := range latest(statuses) {
		items = append(items, map[string]any{
			"id": s.identity(), "kind": "status", "name": s.Context, "state": cmp.Or(s.State, s.Status), "conclusion": nil, "url": given(s.URL),
			"startedAt": given(s.Created), "completedAt": nil,
		})
	}
	return items, nil
}

// latest keeps the newest status of each context, by context: a status is replaced by giving another one.
func latest(all []commitStatus) []commitStatus {
	newest := map[string]commitStatus{}
	for _, s := range all {
		if s.ID > newest[s.Context].ID {
			newest[s.Context] = s
		}
	}
	kept := make([]commitStatus, 0, len(newest))
	for _, s := range newest {
		kept = append(kept, s)
	}
	slices.SortFunc(kept, func(a, b commitStatus) int { return strings.Compare(a.Context, b.Context) })
	return kept
}

// UnmarshalJSON takes whole numbers that are larger than none.
func (n *json64) UnmarshalJSON(data []byte) error {
	var number int64
	if err := json.Unmarshal(data, &number); err != nil {
		return fmt.Errorf("decode number: %w", err)
	}
	*n = json64(number)
	return nil
}

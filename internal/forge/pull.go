package forge

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/apitomy/axiom-operator/internal/effect"
	"github.com/apitomy/axiom-operator/internal/remotes"
)

// States of pull requests and issues.
const stateOpen = "open"

// A PullRequest is the wish for one: that there is one of the head branch into the base, with this title, body and draft
// state, whose head is the pushed commit. With a number it is that one which is changed.
type PullRequest struct {
	// Client of the forge.
	Client *Client
	// Address of the repository.
	Address Address
	// Head and Base are names of branches.
	Head, Base string
	// Commit that was pushed to Head.
	Commit string
	// IsAncestor tells whether a commit comes before Commit in the run's own chain. It is not asked about Commit itself.
	IsAncestor  func(commit string) bool
	Title, Body string
	Draft       bool
	// Number of the one to change; 0: create.
	Number int64
}

var _ effect.Effect = (*PullRequest)(nil)

// pull is a pull request as both forges show it.
type pull struct {
	Number json64 `json:"number"`
	NodeID string `json:"node_id"`
	URL    string `json:"html_url"`
	State  string `json:"state"`
	Title  string `json:"title"`
	Body   string `json:"body"`
	Draft  bool   `json:"draft"`
	Head   branch `json:"head"`
	Base   branch `json:"base"`
}

// A branch is one side of a pull request.
type branch struct {
	Label      string      `json:"label"`
	Ref        string      `json:"ref"`
	SHA        string      `json:"sha"`
	Repository *repository `json:"repo"`
}

type repository struct {
	FullName string `json:"full_name"`
}

func (p pull) identity() string { return p.Number.String() }

// isReadable tells whether the members that decisions are made of are there.
func (p pull) isReadable() bool {
	return p.Number > 0 && p.State != "" && p.URL != "" && p.Head.Ref != "" && p.Base.Ref != "" && (p.Head.SHA == "" || commitForm.MatchString(p.Head.SHA))
}

// commitForm is that of commits, which addresses are made of.
var commitForm = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// headBranch is the name of the head branch. Gitea keeps it as the label of a branch that is gone, and prefixes no owner.
func (p pull) headBranch() string {
	if strings.HasPrefix(p.Head.Ref, "refs/pull/") && p.Head.Label != "" {
		return p.Head.Label
	}
	return p.Head.Ref
}

// isOf tells whether both sides are in one repository.
func (p pull) isOf(repository string) bool {
	return p.Base.Repository != nil && strings.EqualFold(p.Base.Repository.FullName, repository) &&
		p.Head.Repository != nil && strings.EqualFold(p.Head.Repository.FullName, repository)
}

// Observe looks for the pull request.
func (w *PullRequest) Observe(ctx context.Context) (effect.Observation, error) {
	if !w.Draft && w.marksDrafts() && draftMark.MatchString(w.Title) {
		return effect.Observation{}, &effect.Failure{Code: effect.CodeInputContract, Message: "title: marks a draft, which draft says it is not"}
	}
	if w.Number != 0 {
		return w.observeNumber(ctx)
	}
	return w.observeBranch(ctx)
}

// observeNumber looks at the one to change.
func (w *PullRequest) observeNumber(ctx context.Context) (effect.Observation, error) {
	p, err := w.Client.pull(ctx, w.Address, w.Number)
	if err != nil {
		return settle(ctx, err)
	}
	seen := []any{p.seen()}
	switch {
	case int64(p.Number) != w.Number, !p.isOf(w.Address.Repository), p.headBranch() != w.Head:
		return conflict(seen, "the pull request is another one, or from a fork"), nil
	case p.State != stateOpen:
		return conflict(seen, "the pull request is closed or merged"), nil
	case p.Head.SHA != w.Commit:
		return w.otherHead(p, seen), nil
	}
	if differs := w.differs(p); len(differs) > 0 {
		pre := p.seen()
		pre["differs"] = differs
		if p.NodeID != "" {
			pre["node"] = p.NodeID
		}
		return effect.Observation{Verdict: effect.Absent, PreState: pre, Observed: seen}, nil
	}
	return effect.Observation{Verdict: effect.Compatible, Result: w.result(p), Observed: seen}, nil
}

// observeBranch looks for one of the head branch into the base.
func (w *PullRequest) observeBranch(ctx context.Context) (effect.Observation, error) {
	all, err := w.Client.pulls(ctx, w.Address, w.Head, w.Base)
	if err != nil {
		return settle(ctx, err)
	}
	var open, past []pull
	for _, p := range all {
		switch {
		case !p.isOf(w.Address.Repository) || p.headBranch() != w.Head || p.Base.Ref != w.Base:
		case p.State == stateOpen:
			open = append(open, p)
		default:
			past = append(past, p)
		}
	}
	switch {
	case len(open) > 1:
		return ambiguous(seenPulls(open), "more than one pull request is open for these branches"), nil
	case len(open) == 1:
		return w.found(open[0]), nil
	case len(past) > 0:
		return conflict(seenPulls(past), "the pull request for these branches is closed or merged"), nil
	}
	return effect.Observation{Verdict: effect.Absent, PreState: map[string]any{}}, nil
}

// found decides about the one that is open.
func (w *PullRequest) found(p pull) effect.Observation {
	seen := []any{p.seen()}
	if p.Head.SHA != w.Commit {
		return w.otherHead(p, seen)
	}
	if len(w.differs(p)) > 0 {
		return conflict(seen, "a pull request for these branches has another content")
	}
	return effect.Observation{Verdict: effect.Compatible, Result: w.result(p), Observed: seen}
}

// otherHead decides about one whose head is not the pushed commit: a forge shows a push late.
func (w *PullRequest) otherHead(p pull, seen []any) effect.Observation {
	if p.Head.SHA != "" && w.IsAncestor(p.Head.SHA) {
		return effect.Missed(effect.ReasonLag, 0)
	}
	return conflict(seen, "the head of the pull request is another commit")
}

// Perform sends one creation, or one change of what differs and one of the draft state.
func (w *PullRequest) Perform(ctx context.Context, absent effect.Observation) error {
	if w.IsCreate(absent) {
		return w.create(ctx)
	}
	path := fmt.Sprintf("%s/pulls/%d", w.Address.path(), w.Number)
	body := map[string]any{}
	draft := false
	differs, _ := absent.PreState["differs"].([]any)
	for _, field := range differs {
		switch field {
		case "title":
			body["title"] = w.wireTitle()
		case "body":
			body["body"] = w.Body
		case "base":
			body["base"] = w.Base
		case "draft":
			draft = true
		}
	}
	if draft && w.marksDrafts() {
		body["title"], draft = w.wireTitle(), false
	}
	if len(body) > 0 {
		if err := w.Client.change(ctx, http.MethodPatch, path, body); err != nil {
			return err
		}
	}
	if !draft {
		return nil
	}
	node, _ := absent.PreState["node"].(string)
	return w.Client.setDraft(ctx, node, w.Draft)
}

// IsCreate tells whether there is no pull request to change.
func (w *PullRequest) IsCreate(absent effect.Observation) bool {
	_, has := absent.PreState["number"]
	return !has
}

func (w *PullRequest) create(ctx context.Context) error {
	body := map[string]any{"title": w.wireTitle(), "body": w.Body, "head": w.Head, "base": w.Base}
	if !w.marksDrafts() {
		body["draft"] = w.Draft
	}
	return w.Client.change(ctx, http.MethodPost, w.Address.path()+"/pulls", body)
}

// differs lists, sorted, what is not as it should be.
func (w *PullRequest) differs(p pull) []any {
	var list []any
	if p.Base.Ref != w.Base {
		list = append(list, "base")
	}
	if !sameText(p.Body, w.Body) {
		list = append(list, "body")
	}
	if p.Draft != w.Draft {
		list = append(list, "draft")
	}
	if w.bareTitle(p.Title) != w.bareTitle(w.Title) {
		list = append(list, "title")
	}
	return list
}

// draftMark is how titles mark drafts on a forge that has no other way.
var draftMark = regexp.MustCompile(`^(?i:(?:wip:|\[wip\])\s*)+`)

// marksDrafts tells whether the forge knows drafts by their titles.
func (w *PullRequest) marksDrafts() bool { return w.Address.Forge.Provider == remotes.ProviderGitea }

// wireTitle is the title as the forge is told it.
func (w *PullRequest) wireTitle() string {
	if w.Draft && w.marksDrafts() {
		return "WIP: " + w.bareTitle(w.Title)
	}
	return strings.TrimSpace(w.Title)
}

// bareTitle is a title without what is not part of it.
func (w *PullRequest) bareTitle(title string) string {
	title = strings.TrimSpace(title)
	if w.marksDrafts() {
		title = draftMark.ReplaceAllString(title, "")
	}
	return title
}

// result is what the action returns.
func (w *PullRequest) result(p pull) map[string]any {
	return map[string]any{
		"provider": w.Address.Forge.Provider, "repository": w.Address.Repository, "number": int64(p.Number), "url": p.URL, "state": p.State,
		"draft": p.Draft, "headSha": p.Head.SHA, "baseSha": p.Base.SHA,
	}
}

// seen is what a receipt keeps of one.
func (p pull) seen() map[string]any {
	return map[string]any{
		"number": int64(p.Number), "state": p.State, "draft": p.Draft, "head": p.headBranch(), "base": p.Base.Ref, "headSha": p.Head.SHA, "baseSha": p.Base.SHA,
	}
}

func seenPulls(pulls []pull) []any {
	list := make([]any, len(pulls))
	for i, p := range pulls {
		list[i] = p.seen()
	}
	return list
}

// pull reads one pull request.
func (c *Client) pull(ctx context.Context, a Address, number int64) (pull, error) {
	var p pull
	if err := c.get(ctx, fmt.Sprintf("%s/pulls/%d", a.path(), number), &p); err != nil {
		return pull{}, err
	}
	if !p.isReadable() {
		return pull{}, miss(effect.ReasonUnreadable)
	}
	return p, nil
}

// pulls lists those of every state that may be of a head branch and a base; a forge may ignore either filter.
func (c *Client) pulls(ctx context.Context, a Address, head, base string) ([]pull, error) {
	query := url.Values{"state": {"all"}, "head": {a.owner() + ":" + head}, "base": {base}}
	if a.Forge.Provider == remotes.ProviderGitea {
		query = url.Values{"state": {"all"}, "base_branch": {base}}
	}
	all, err := list[pull](ctx, c, a.path()+"/pulls?"+query.Encode())
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if !p.isReadable() {
			return nil, miss(effect.ReasonUnreadable)
		}
	}
	return all, nil
}

// setDraft changes the draft state where the REST interface cannot.
func (c *Client) setDraft(ctx context.Context, node string, draft bool) error {
	mutation := "markPullRequestReadyForReview"
	if draft {
		mutation = "convertPullRequestToDraft"
	}
	query := "mutation($id: ID!) { " + mutation + "(input: {pullRequestId: $id}) { pullRequest { isDraft } } }"
	address := strings.TrimSuffix(c.forge.API, "/v3") + "/graphql"
	a, err := c.send(ctx, http.MethodPost, address, map[string]any{"query": query, "variables": map[string]any{"id": node}})
	if err != nil {
		return err
	}
	var told struct {
		Errors []any `json:"errors"`
	}
	if a.status != http.StatusOK {
		return c.refusal(a)
	}
	if err := decode(a.body, &told); err != nil {
		return err
	}
	if len(told.Errors) > 0 {
		return miss(effect.ReasonRejected)
	}
	return nil
}

// json64 is a whole number of JSON.
type json64 int64

// String is the number in decimal; empty for one that was not given.
func (n json64) String() string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(int64(n), 10)
}

// sameText compares texts but for what forges do not keep: kinds of line endings and white space around them.
func sameText(a, b string) bool {
	return strings.TrimSpace(strings.ReplaceAll(a, "\r\n", "\n")) == strings.TrimSpace(strings.ReplaceAll(b, "\r\n", "\n"))
}

func conflict(seen []any, message string) effect.Observation {
	return effect.Observation{Verdict: effect.Conflict, Observed: seen, Message: message}
}

func ambiguous(seen []any, message string) effect.Observation {
	return effect.Observation{Verdict: effect.Ambiguous, Observed: seen, Message: message}
}

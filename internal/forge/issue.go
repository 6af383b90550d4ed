package forge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/apitomy/axiom-operator/internal/effect"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/remotes"
)

// CodeLabelUnknown is of a label that a tracker lacks. Labels are not made.
const CodeLabelUnknown = "LABEL_UNKNOWN"

// clockSkew is how far a forge's clock may be behind the cluster's. An issue that is
// left out by it would be made a second time; one that is listed in vain costs only
// its line.
const clockSkew = 24 * time.Hour

// IssueRead reads one issue. The result is {issue: {url, number, title, body, state, labels, assignee}}.
type IssueRead struct {
	read
	// Client of the forge.
	Client *Client
	// Address of the issue.
	Address Address
}

// Issue is the wish for one issue of a key: that there is one in the tracker, open, with this content.
type Issue struct {
	// Client of the forge.
	Client *Client
	// Address of the tracker.
	Address Address
	// RunUID and Key name the issue, whatever its title.
	RunUID, Key string
	// Since is when the run was created, by the cluster's clock: no issue of it is
	// older.
	Since time.Time
	// Known is the number of an earlier receipt for the key; 0: none.
	Known       int64
	Title, Body string
	// Labels the issue has, and no others; nil: whichever.
	Labels []string
	// Assignee it has, and nobody else; empty: whoever.
	Assignee string
}

var (
	_ effect.Effect = (*IssueRead)(nil)
	_ effect.Effect = (*Issue)(nil)
)

// issue is an issue as both forges show it.
type issue struct {
	Number      json64  `json:"number"`
	URL         string  `json:"html_url"`
	Title       string  `json:"title"`
	Body        string  `json:"body"`
	State       string  `json:"state"`
	Labels      []label `json:"labels"`
	Assignees   []user  `json:"assignees"`
	PullRequest any     `json:"pull_request"`
}

type label struct {
	ID   json64 `json:"id"`
	Name string `json:"name"`
}

func (i issue) identity() string { return i.Number.String() }

func (l label) identity() string { return l.ID.String() }

func (i issue) isReadable() bool { return i.Number > 0 && i.URL != "" && i.State != "" }

// labelNames are sorted and unique.
func (i issue) labelNames() []string {
	names := make([]string, len(i.Labels))
	for n, l := range i.Labels {
		names[n] = l.Name
	}
	return sortedUnique(names)
}

// Observe reads.
func (w *IssueRead) Observe(ctx context.Context) (effect.Observation, error) {
	i, err := w.Client.issue(ctx, w.Address, w.Address.Number)
	if err != nil {
		return settle(ctx, err)
	}
	if i.PullRequest != nil {
		return effect.Observation{}, urlInvalid("is the address of a pull request")
	}
	labels := []any{}
	for _, name := range i.labelNames() {
		labels = append(labels, name)
	}
	var assignee any
	if len(i.Assignees) > 0 {
		assignee = i.Assignees[0].value()
	}
	body, _ := cutMarker(i.Body)
	return effect.Observation{Verdict: effect.Compatible, Result: map[string]any{"issue": map[string]any{
		"url": i.URL, "number": int64(i.Number), "title": i.Title, "body": body, "state": i.State, "labels": labels, "assignee": assignee,
	}}}, nil
}

// Observe looks for the issue.
func (w *Issue) Observe(ctx context.Context) (effect.Observation, error) {
	marked, err := w.marked(ctx)
	if err != nil {
		return settle(ctx, err)
	}
	if len(marked) == 0 {
		_, err := w.labels(ctx)
		if err != nil {
			return settle(ctx, err)
		}
		return effect.Observation{Verdict: effect.Absent, PreState: map[string]any{}}, nil
	}
	if len(marked) > 1 {
		return ambiguous(seenIssues(marked), "more than one issue has the mark of this key"), nil
	}
	return w.found(ctx, marked[0])
}

// found decides about the one issue.
func (w *Issue) found(ctx context.Context, i issue) (effect.Observation, error) {
	seen := seenIssues([]issue{i})
	_, mark := cutMarker(i.Body)
	switch {
	case i.State != stateOpen:
		return conflict(seen, "the issue is closed"), nil
	case !w.Address.has(i.URL):
		return conflict(seen, "the issue is in another tracker"), nil
	case mark != w.digest():
		return conflict(seen, "the issue lost the mark of this key"), nil
	}
	differs := w.differs(i)
	if len(differs) == 0 {
		result := map[string]any{"url": i.URL, "number": int64(i.Number), "key": w.Key}
		return effect.Observation{Verdict: effect.Compatible, Result: result, Observed: seen}, nil
	}
	if _, err := w.labels(ctx); err != nil {
		return settle(ctx, err)
	}
	pre := map[string]any{"number": int64(i.Number), "state": i.State, "differs": differs}
	return effect.Observation{Verdict: effect.Absent, PreState: pre, Observed: seen}, nil
}

// marked lists the issues of the key: the known one, or those with its mark among all that changed since the run is there.
func (w *Issue) marked(ctx context.Context) ([]issue, error) {
	if w.Known != 0 {
		i, err := w.Client.issue(ctx, w.Address, w.Known)
		if err != nil {
			return nil, err
		}
		return []issue{i}, nil
	}
	query := url.Values{"state": {"all"}, "since": {w.Since.Add(-clockSkew).UTC().Format(time.RFC3339)}}
	if w.Address.Forge.Provider == remotes.ProviderGitea {
		query.Set("type", "issues")
	}
	all, err := list[issue](ctx, w.Client, w.Address.path()+"/issues?"+query.Encode())
	if err != nil {
		return nil, err
	}
	var marked []issue
	for _, i := range all {
		if !i.isReadable() {
			return nil, miss(effect.ReasonUnreadable)
		}
		if _, mark := cutMarker(i.Body); mark == w.digest() && i.PullRequest == nil {
			marked = append(marked, i)
		}
	}
	return marked, nil
}

// differs lists, sorted, what is not as it should be.
func (w *Issue) differs(i issue) []any {
	var list []any
	if w.Assignee != "" && (len(i.Assignees) != 1 || !strings.EqualFold(i.Assignees[0].Login, w.Assignee)) {
		list = append(list, "assignee")
	}
	if body, _ := cutMarker(i.Body); !sameText(body, w.Body) {
		list = append(list, "body")
	}
	if w.Labels != nil && !slices.Equal(sortedUnique(w.Labels), i.labelNames()) {
		list = append(list, "labels")
	}
	if !sameText(i.Title, w.Title) {
		list = append(list, "title")
	}
	return list
}

// labels finds the labels of the wish in the tracker, or gives LABEL_UNKNOWN. The message has no name.
func (w *Issue) labels(ctx context.Context) ([]label, error) {
	wanted := sortedUnique(w.Labels)
	if len(wanted) == 0 {
		return nil, nil
	}
	all, err := list[label](ctx, w.Client, w.Address.path()+"/labels")
	if err != nil {
		return nil, err
	}
	found := make([]label, 0, len(wanted))
	for n, name := range wanted {
		at := slices.IndexFunc(all, func(l label) bool { return l.Name == name })
		if at < 0 {
			return nil, &effect.Failure{Code: CodeLabelUnknown, Message: fmt.Sprintf("the tracker lacks label %d, as sorted", n+1)}
		}
		found = append(found, all[at])
	}
	return found, nil
}

// Perform sends one creation or one change of what differs.
func (w *Issue) Perform(ctx context.Context, absent effect.Observation) error {
	labels, err := w.labels(ctx)
	if err != nil {
		return err
	}
	if w.IsCreate(absent) {
		return w.create(ctx, labels)
	}
	number, _ := absent.PreState["number"].(int64)
	path := fmt.Sprintf("%s/issues/%d", w.Address.path(), number)
	body := map[string]any{}
	differs, _ := absent.PreState["differs"].([]any)
	for _, field := range differs {
		switch field {
		case "title":
			body["title"] = w.Title
		case "body":
			body["body"] = w.marks()
		case "assignee":
			body["assignees"] = []string{w.Assignee}
		case "labels":
			body["labels"] = w.wireLabels(labels)
		}
	}
	return w.change(ctx, path, body)
}

// change sends a change; Gitea takes labels apart from the rest.
func (w *Issue) change(ctx context.Context, path string, body map[string]any) error {
	labels, has := body["labels"]
	if has && w.Address.Forge.Provider == remotes.ProviderGitea {
		delete(body, "labels")
		if err := w.Client.change(ctx, http.MethodPut, path+"/labels", map[string]any{"labels": labels}); err != nil {
			return err
		}
	}
	if len(body) == 0 {
		return nil
	}
	return w.Client.change(ctx, http.MethodPatch, path, body)
}

// IsCreate tells whether there is no issue to change.
func (w *Issue) IsCreate(absent effect.Observation) bool {
	_, has := absent.PreState["number"]
	return !has
}

func (w *Issue) create(ctx context.Context, labels []label) error {
	body := map[string]any{"title": w.Title, "body": w.marks()}
	if len(labels) > 0 {
		body["labels"] = w.wireLabels(labels)
	}
	if w.Assignee != "" {
		body["assignees"] = []string{w.Assignee}
	}
	return w.Client.change(ctx, http.MethodPost, w.Address.path()+"/issues", body)
}

// wireLabels are the names or, for Gitea, the ids.
func (w *Issue) wireLabels(labels []label) []any {
	wire := make([]any, len(labels))
	for i, l := range labels {
		wire[i] = l.Name
		if w.Address.Forge.Provider == remotes.ProviderGitea {
			wire[i] = int64(l.ID)
		}
	}
	return wire
}

// markForm is the last line of bodies that the operator wrote, which pages do not show.
var markForm = regexp.MustCompile(`(?:^|\r?\n)(?:\r?\n)?<!-- axiom-operator: ([0-9a-f]{64}) -->\s*$`)

// cutMarker parts a body from its mark, if it has one.
func cutMarker(body string) (bare, mark string) {
	m := markForm.FindStringSubmatchIndex(body)
	if m == nil {
		return body, ""
	}
	return body[:m[0]], body[m[2]:m[3]]
}

// marks is the body as the forge is told it.
func (w *Issue) marks() string {
	return w.Body + "\n\n<!-- axiom-operator: " + w.digest() + " -->"
}

// digest stands for run, tracker and key.
func (w *Issue) digest() string {
	named, err := jsonvalue.Canonical([]any{w.RunUID, w.Address.tracker(), w.Key})
	if err != nil {
		// A text that is not UTF-8 has no canonical form; none of the three, being names, is one.
		return ""
	}
	sum := sha256.Sum256(named)
	return hex.EncodeToString(sum[:])
}

// issue reads one.
func (c *Client) issue(ctx context.Context, a Address, number int64) (issue, error) {
	var i issue
	if err := c.get(ctx, fmt.Sprintf("%s/issues/%d", a.path(), number), &i); err != nil {
		return issue{}, err
	}
	if !i.isReadable() || int64(i.Number) != number {
		return issue{}, miss(effect.ReasonUnreadable)
	}
	return i, nil
}

func seenIssues(issues []issue) []any {
	list := make([]any, len(issues))
	for n, i := range issues {
		list[n] = map[string]any{"number": int64(i.Number), "state": i.State}
	}
	return list
}

func sortedUnique(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

package controllers

import (
	"context"
	"errors"
	"slices"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/definition"
	"github.com/apitomy/axiom-operator/internal/effect"
	"github.com/apitomy/axiom-operator/internal/forge"
	"github.com/apitomy/axiom-operator/internal/remotes"
	"github.com/apitomy/axiom-operator/internal/workspace"
)

// Codes of effects that only the run can tell.
const (
	codePushMissing = "PUSH_MISSING"
	codePushStale   = "PUSH_STALE"
)

// effectOf is what an action wishes for outside. All that can be checked here is
// checked before any credential is read.
func (r *SupervisedRunReconciler) effectOf(ctx context.Context, p *supervisedPass, request *actionRequest) (effect.Effect, error) {
	switch request.Action {
	case definition.ActionGitPush:
		return r.pushOf(ctx, p, request)
	case definition.ActionPullRequestUpsert:
		return r.pullRequestOf(ctx, p, request)
	case definition.ActionPullRequestReviews:
		return r.evidenceOf(ctx, p, request, forge.KindReviews)
	case definition.ActionPullRequestComments:
		return r.evidenceOf(ctx, p, request, forge.KindComments)
	case definition.ActionPullRequestChecks:
		return r.evidenceOf(ctx, p, request, forge.KindChecks)
	case definition.ActionIssueRead:
		return r.issueOf(ctx, p, request)
	case definition.ActionIssueUpsert:
		return r.filedIssueOf(ctx, p, request)
	case definition.ActionHTTPFetch:
		return r.fetchOf(ctx, p, request)
	}
	return nil, &effect.Failure{Code: "ACTION_CONTRACT", Message: "the action is unknown"}
}

// upsertOutputs name the outputs of actions that say how they came about.
var upsertOutputs = map[string]string{definition.ActionGitPush: "push", definition.ActionPullRequestUpsert: "pullRequest", definition.ActionIssueUpsert: "issue"}

func (r *SupervisedRunReconciler) pushOf(ctx context.Context, p *supervisedPass, request *actionRequest) (effect.Effect, error) {
	tree, kept, err := p.branchOf(request)
	if err != nil {
		return nil, err
	}
	secret, err := secretOf(p.run, request.Credentials)
	if err != nil {
		return nil, err
	}
	origin, err := r.originOf(ctx, p.run, kept)
	if err != nil {
		return nil, err
	}
	remote, _, err := r.gitRemote(ctx, p.run, origin.URL, secret)
	if err != nil {
		return nil, err
	}
	if err := r.openObjects(ctx, p); err != nil {
		return nil, err
	}
	pushed := workspace.Worktree(*tree)
	pushed.Head = request.Head
	return &workspace.PushEffect{Remote: remote, Objects: p.objects.Objects, Worktree: pushed}, nil
}

func (r *SupervisedRunReconciler) pullRequestOf(ctx context.Context, p *supervisedPass, request *actionRequest) (effect.Effect, error) {
	tree, kept, err := p.branchOf(request)
	if err != nil {
		return nil, err
	}
	if err := isPushed(p, tree); err != nil {
		return nil, err
	}
	origin, err := r.originOf(ctx, p.run, kept)
	if err != nil {
		return nil, err
	}
	at, err := r.forgeOf(ctx, origin.URL)
	if err != nil {
		return nil, err
	}
	base := request.text("base")
	if base == "" {
		if base, err = r.baseOf(ctx, p, kept); err != nil {
			return nil, err
		}
	}
	client, err := r.forgeClient(ctx, p.run, at, request.Credentials)
	if err != nil {
		return nil, err
	}
	if err := r.openObjects(ctx, p); err != nil {
		return nil, err
	}
	number, _ := request.Inputs["number"].(int64)
	draft, _ := request.Inputs["draft"].(bool)
	return &forge.PullRequest{
		Client: client, Address: at, Head: tree.Branch, Base: base, Commit: tree.Head, IsAncestor: p.comesBefore(*tree),
		Title: request.text("title"), Body: request.Body, Draft: draft, Number: number,
	}, nil
}

// isPushed tells whether the run's last push of the branch is its present head.
func isPushed(p *supervisedPass, tree *api.WorkspaceTree) error {
	ref := "refs/heads/" + tree.Branch
	for _, push := range p.workspace.Pushes {
		if push.Repository != tree.Repository || push.Ref != ref {
			continue
		}
		if push.Commit != tree.Head {
			return &effect.Failure{Code: codePushStale, Message: "the branch's last push is not its present head"}
		}
		return nil
	}
	return &effect.Failure{Code: codePushMissing, Message: "the branch was not pushed"}
}

// baseOf is the branch a pull request goes to where nothing is said.
func (r *SupervisedRunReconciler) baseOf(ctx context.Context, p *supervisedPass, kept *api.WorkspaceRepository) (string, error) {
	if kept.Base != "" {
		return kept.Base, nil
	}
	remote, err := r.remoteOf(ctx, p.run, kept)
	if err != nil {
		return "", err
	}
	listing, err := listRemote(ctx, remote)
	if err != nil {
		return "", err
	}
	branch, has := listing.DefaultBranch()
	if !has {
		return "", &effect.Failure{Code: workspace.CodeNoDefaultBranch, Message: "the repository has no default branch"}
	}
	return branch, nil
}

// comesBefore tells whether a commit precedes the head of a worktree in what the
// run did.
func (p *supervisedPass) comesBefore(tree api.WorkspaceTree) func(string) bool {
	return func(commit string) bool {
		before, err := p.objects.IsAncestor(workspace.Worktree(tree), commit)
		return err == nil && before
	}
}

func (r *SupervisedRunReconciler) forgeOf(ctx context.Context, locatorText string) (forge.Address, error) {
	locator, err := remotes.ParseLocator(locatorText)
	if err != nil {
		return forge.Address{}, err
	}
	list, err := r.allowed(ctx)
	if err != nil {
		return forge.Address{}, err
	}
	return forge.OfRepository(list, locator)
}

func (r *SupervisedRunReconciler) evidenceOf(ctx context.Context, p *supervisedPass, request *actionRequest, kind forge.Kind) (effect.Effect, error) {
	at, client, err := r.page(ctx, p, request, "url", forge.ParsePullRequestURL)
	if err != nil {
		return nil, err
	}
	if err := r.openObjects(ctx, p); err != nil {
		return nil, err
	}
	commit := request.text("commit")
	return &forge.Evidence{Client: client, Address: at, Kind: kind, Commit: commit, IsAncestor: p.comesBeforeAny(commit)}, nil
}

// comesBeforeAny tells whether a commit precedes another one on the chain of any
// worktree of the run.
func (p *supervisedPass) comesBeforeAny(commit string) func(string) bool {
	return func(earlier string) bool {
		return slices.ContainsFunc(p.workspace.Worktrees, func(tree api.WorkspaceTree) bool {
			tree.Head = commit
			return p.comesBefore(tree)(earlier)
		})
	}
}

func (r *SupervisedRunReconciler) issueOf(ctx context.Context, p *supervisedPass, request *actionRequest) (effect.Effect, error) {
	at, client, err := r.page(ctx, p, request, "url", forge.ParseIssueURL)
	if err != nil {
		return nil, err
	}
	return &forge.IssueRead{Client: client, Address: at}, nil
}

func (r *SupervisedRunReconciler) filedIssueOf(ctx context.Context, p *supervisedPass, request *actionRequest) (effect.Effect, error) {
	at, client, err := r.page(ctx, p, request, "tracker", forge.ParseTrackerURL)
	if err != nil {
		return nil, err
	}
	wish := &forge.Issue{
		Client: client, Address: at, RunUID: string(p.run.UID), Key: request.text("key"), Since: p.run.CreationTimestamp.Time,
		Title: request.text("title"), Body: request.Body, Assignee: request.text("assignee"),
	}
	if request.Inputs["labels"] != nil {
		wish.Labels = request.texts("labels")
	}
	for _, filed := range p.workspace.Issues {
		if filed.Tracker == content.Digest([]byte(request.text("tracker"))) && filed.Key == wish.Key {
			wish.Known = filed.Number
		}
	}
	return wish, nil
}

// page is what a URL among the inputs names, with the way there.
func (r *SupervisedRunReconciler) page(ctx context.Context, p *supervisedPass, request *actionRequest, input string, parse func(*remotes.Remotes, string) (forge.Address, error)) (forge.Address, *forge.Client, error) {
	list, err := r.allowed(ctx)
	if err != nil {
		return forge.Address{}, nil, err
	}
	at, err := parse(list, request.text(input))
	if err != nil {
		return at, nil, err
	}
	client, err := r.forgeClient(ctx, p.run, at, request.Credentials)
	return at, client, err
}

func (r *SupervisedRunReconciler) fetchOf(ctx context.Context, p *supervisedPass, request *actionRequest) (effect.Effect, error) {
	list, err := r.allowed(ctx)
	if err != nil {
		return nil, err
	}
	access, err := list.Fetch(request.Method, request.text("url"))
	if err != nil {
		return nil, err
	}
	headers := map[string]string{}
	given, _ := request.Inputs["headers"].(map[string]any)
	for name, value := range given {
		text, isText := value.(string)
		if !isText {
			return nil, &effect.Failure{Code: effect.CodeInputContract, Message: "input headers: must have text values"}
		}
		headers[name] = text
	}
	token, err := r.token(ctx, p.run, access.Host, request.Credentials)
	if err != nil {
		return nil, err
	}
	return &forge.Fetch{
		Transport: r.Network.Transport(access), Method: request.Method, URL: request.text("url"), Headers: headers, Token: token, Require2xx: request.Require2xx,
	}, errors.Join(forge.CheckHeaders(headers))
}

// noteRemote keeps of a receipt what later actions look for.
func noteRemote(p *supervisedPass, request *actionRequest, outputs map[string]any) {
	switch request.Action {
	case definition.ActionGitPush:
		tree, err := p.worktree(request.named("worktree"))
		if err != nil {
			return
		}
		push := api.WorkspacePush{Repository: tree.Repository, Ref: "refs/heads/" + tree.Branch, Commit: request.Head}
		p.workspace.Pushes = slices.DeleteFunc(p.workspace.Pushes, func(old api.WorkspacePush) bool {
			return old.Repository == push.Repository && old.Ref == push.Ref
		})
		p.workspace.Pushes = append(p.workspace.Pushes, push)
	case definition.ActionIssueUpsert:
		issue, _ := outputs["issue"].(map[string]any)
		number, _ := issue["number"].(int64)
		filed := api.FiledIssue{Tracker: content.Digest([]byte(request.text("tracker"))), Key: request.text("key"), Number: number}
		p.workspace.Issues = slices.DeleteFunc(p.workspace.Issues, func(old api.FiledIssue) bool {
			return old.Tracker == filed.Tracker && old.Key == filed.Key
		})
		p.workspace.Issues = append(p.workspace.Issues, filed)
	}
}

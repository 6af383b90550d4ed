package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/definition"
	"github.com/apitomy/axiom-operator/internal/effect"
	"github.com/apitomy/axiom-operator/internal/fragment"
	"github.com/apitomy/axiom-operator/internal/workspace"
)

// Codes of actions on repositories and worktrees that the workspace does not know.
const (
	codeRepositoryUnknown = "REPOSITORY_UNKNOWN"
	codeWorktreeUnknown   = "WORKTREE_UNKNOWN"
)

// maxRepositories is how many a run may open.
const maxRepositories = 8

// shortName is what a run may call its repositories, worktrees and sessions.
var shortName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// A localAction works on the run's Git objects. It returns its outputs, and what
// its receipt tells besides.
type localAction func(ctx context.Context, p *supervisedPass, request *actionRequest) (outputs, receipt map[string]any, err error)

// localActions by type.
func (r *SupervisedRunReconciler) localActions() map[string]localAction {
	return map[string]localAction{
		definition.ActionRepositoryOpen:   r.openRepository,
		definition.ActionWorktreeOpen:     r.openWorktree,
		definition.ActionGitSwitch:        r.switchBranch,
		definition.ActionFilesGlob:        globFiles,
		definition.ActionFilesRead:        readFiles,
		definition.ActionGitAdd:           addFiles,
		definition.ActionGitCommit:        commitFiles,
		definition.ActionFragmentEvaluate: r.evaluateFragment,
	}
}

// checkName holds an input against what a run may call things.
func checkName(input, name string) error {
	if !shortName.MatchString(name) {
		return &effect.Failure{Code: effect.CodeInputContract, Message: "input " + input + ": must match " + shortName.String()}
	}
	return nil
}

func (r *SupervisedRunReconciler) openRepository(ctx context.Context, p *supervisedPass, request *actionRequest) (outputs, receipt map[string]any, err error) {
	name, url, base := request.text("name"), request.text("url"), request.text("base")
	if err := checkName("name", name); err != nil {
		return nil, nil, err
	}
	secret, err := secretOf(p.run, request.Credentials)
	if err != nil {
		return nil, nil, err
	}
	remote, locator, err := r.gitRemote(ctx, p.run, url, secret)
	if err != nil {
		return nil, nil, err
	}
	if kept, err := p.repository(name); err == nil {
		return r.adoptRepository(ctx, p, kept, repositoryOrigin{URL: url, Base: base, Credentials: request.Credentials})
	}
	if len(p.workspace.Repositories) == maxRepositories {
		return nil, nil, &effect.Failure{Code: workspace.CodeWorkspaceTooLarge, Message: fmt.Sprintf("a run has at most %d repositories", maxRepositories)}
	}
	listing, err := listRemote(ctx, remote)
	if err != nil {
		return nil, nil, err
	}
	resolved, err := listing.Resolve(base)
	if err != nil {
		return nil, nil, err
	}
	key := workspace.Key{Scope: p.run.Namespace, Fingerprint: locator.Fingerprint(), Commit: resolved.Commit}
	if err := r.fetchBase(ctx, p, key, remote); err != nil {
		return nil, nil, err
	}
	origin, err := json.Marshal(repositoryOrigin{URL: url, Base: base, Credentials: request.Credentials})
	if err != nil {
		return nil, nil, fmt.Errorf("encode origin: %w", err)
	}
	ref, err := r.store().contents().Put(ctx, p.run, origin)
	if err != nil {
		return nil, nil, err
	}
	opened := api.WorkspaceRepository{
		Name: name, Fingerprint: locator.Fingerprint(), ObjectFormat: workspace.ObjectFormat, Commit: resolved.Commit, Base: resolved.Branch, Origin: &ref,
	}
	p.workspace.Repositories = append(p.workspace.Repositories, opened)
	return repositoryOutput(opened), map[string]any{"decision": decisionPerformed}, nil
}

func listRemote(ctx context.Context, remote *workspace.Remote) (*workspace.Listing, error) {
	ctx, cancel := context.WithTimeout(ctx, remoteTimeout)
	defer cancel()
	return remote.List(ctx)
}

// adoptRepository takes the repository of that name as it is if it was opened
// with equal inputs.
func (r *SupervisedRunReconciler) adoptRepository(ctx context.Context, p *supervisedPass, kept *api.WorkspaceRepository, wanted repositoryOrigin) (outputs, receipt map[string]any, err error) {
	origin, err := r.originOf(ctx, p.run, kept)
	if err != nil {
		return nil, nil, err
	}
	if origin != wanted {
		return nil, nil, &effect.Failure{Code: effect.CodeConflict, Message: "a repository of that name is open with other inputs"}
	}
	return repositoryOutput(*kept), map[string]any{"decision": decisionAdopted}, nil
}

func repositoryOutput(opened api.WorkspaceRepository) map[string]any {
	return map[string]any{"repository": map[string]any{
		"name": opened.Name, "commit": opened.Commit, "base": opened.Base, "fingerprint": opened.Fingerprint,
	}}
}

func (r *SupervisedRunReconciler) openWorktree(ctx context.Context, p *supervisedPass, request *actionRequest) (outputs, receipt map[string]any, err error) {
	name, branch := request.text("name"), request.text("branch")
	if err := checkName("name", name); err != nil {
		return nil, nil, err
	}
	kept, err := p.repository(request.named("repository"))
	if err != nil {
		return nil, nil, err
	}
	if open, err := p.worktree(name); err == nil {
		if open.Repository != kept.Name || open.Branch != branch {
			return nil, nil, &effect.Failure{Code: effect.CodeConflict, Message: "a worktree of that name is open with other inputs"}
		}
		return worktreeOutput(*open), map[string]any{"decision": decisionAdopted}, nil
	}
	if err := workspace.CheckBranch(branch, kept.Name, p.worktrees()); err != nil {
		return nil, nil, err
	}
	start, err := r.startOf(ctx, p, kept, branch, request.text("base"))
	if err != nil {
		return nil, nil, err
	}
	repository, opened, err := p.objects.OpenWorktree(gitRepository(*kept), name, branch, start)
	if err != nil {
		return nil, nil, err
	}
	keepRepository(kept, repository)
	tree := api.WorkspaceTree(opened)
	p.workspace.Worktrees = append(p.workspace.Worktrees, tree)
	return worktreeOutput(tree), map[string]any{"decision": decisionPerformed, "after": asJSON(tree)}, nil
}

// startOf finds the commit that a branch starts at, and has its objects at hand.
func (r *SupervisedRunReconciler) startOf(ctx context.Context, p *supervisedPass, kept *api.WorkspaceRepository, branch, base string) (string, error) {
	if known, found := gitRepository(*kept).FindBranch(branch); found {
		return known.Start, r.addBase(ctx, p, kept, known.Start)
	}
	remote, err := r.remoteOf(ctx, p.run, kept)
	if err != nil {
		return "", err
	}
	listing, err := listRemote(ctx, remote)
	if err != nil {
		return "", err
	}
	start, err := listing.Start(branch, base, kept.Commit)
	if err != nil {
		return "", err
	}
	return start, r.addBase(ctx, p, kept, start)
}

func (r *SupervisedRunReconciler) switchBranch(ctx context.Context, p *supervisedPass, request *actionRequest) (outputs, receipt map[string]any, err error) {
	tree, kept, err := p.branchOf(request)
	if err != nil {
		return nil, nil, err
	}
	before, branch := *tree, request.text("branch")
	if err := p.objects.CheckClean(workspace.Worktree(*tree)); err != nil {
		return nil, nil, err
	}
	start := tree.Start
	if branch != tree.Branch {
		if err := workspace.CheckBranch(branch, kept.Name, p.worktrees()); err != nil {
			return nil, nil, err
		}
		if start, err = r.startOf(ctx, p, kept, branch, request.text("base")); err != nil {
			return nil, nil, err
		}
	}
	repository, after, err := p.objects.Switch(gitRepository(*kept), workspace.Worktree(*tree), branch, start)
	if err != nil {
		return nil, nil, err
	}
	keepRepository(kept, repository)
	*tree = api.WorkspaceTree(after)
	return worktreeOutput(*tree), changedWorktree(before, *tree), nil
}

func worktreeOutput(tree api.WorkspaceTree) map[string]any {
	return map[string]any{"worktree": map[string]any{
		"name": tree.Name, "repository": tree.Repository, "branch": tree.Branch, "commit": tree.Head,
	}}
}

// changedWorktree is what a receipt tells of a worktree.
func changedWorktree(before, after api.WorkspaceTree) map[string]any {
	return map[string]any{"before": asJSON(before), "after": asJSON(after)}
}

func globFiles(_ context.Context, p *supervisedPass, request *actionRequest) (outputs, receipt map[string]any, err error) {
	tree, err := p.worktree(request.named("worktree"))
	if err != nil {
		return nil, nil, err
	}
	paths, err := p.objects.Glob(workspace.Worktree(*tree), request.texts("include"), request.texts("exclude"))
	if err != nil {
		return nil, nil, err
	}
	return map[string]any{"paths": textList(paths)}, changedWorktree(*tree, *tree), nil
}

func readFiles(_ context.Context, p *supervisedPass, request *actionRequest) (outputs, receipt map[string]any, err error) {
	tree, err := p.worktree(request.named("worktree"))
	if err != nil {
		return nil, nil, err
	}
	files, err := p.objects.Read(workspace.Worktree(*tree), request.texts("paths"))
	if err != nil {
		return nil, nil, err
	}
	read := make([]any, 0, len(files))
	for _, file := range files {
		read = append(read, file.JSON())
	}
	return map[string]any{"files": read}, changedWorktree(*tree, *tree), nil
}

func addFiles(_ context.Context, p *supervisedPass, request *actionRequest) (outputs, receipt map[string]any, err error) {
	tree, err := p.worktree(request.named("worktree"))
	if err != nil {
		return nil, nil, err
	}
	before := *tree
	after, staged, err := p.objects.Add(workspace.Worktree(*tree), request.texts("paths"))
	if err != nil {
		return nil, nil, err
	}
	*tree = api.WorkspaceTree(after)
	return map[string]any{"staged": textList(staged), "indexTree": tree.IndexTree}, changedWorktree(before, *tree), nil
}

func commitFiles(_ context.Context, p *supervisedPass, request *actionRequest) (outputs, receipt map[string]any, err error) {
	tree, err := p.worktree(request.named("worktree"))
	if err != nil {
		return nil, nil, err
	}
	before := *tree
	after, made, err := p.objects.Commit(workspace.Worktree(*tree), request.text("message"), request.at.Unix())
	if err != nil {
		return nil, nil, err
	}
	*tree = api.WorkspaceTree(after)
	receipt = changedWorktree(before, *tree)
	receipt["commit"] = asJSON(made)
	return map[string]any{"commit": made.Commit, "parent": made.Parent, "tree": made.Tree}, receipt, nil
}

// fragmentTree shows a worktree to the admission of fragments.
type fragmentTree struct{ tree workspace.Tree }

// Kind is what stands at a path.
func (t fragmentTree) Kind(path string) (fragment.Kind, error) {
	kind, err := t.tree.Kind(path)
	return fragment.Kind(kind), err
}

func (r *SupervisedRunReconciler) evaluateFragment(_ context.Context, p *supervisedPass, request *actionRequest) (outputs, receipt map[string]any, err error) {
	tree, err := p.worktree(request.named("worktree"))
	if err != nil {
		return nil, nil, err
	}
	files, err := p.objects.TreeAt(tree.WorkTree)
	if err != nil {
		return nil, nil, err
	}
	options := fragment.Options{Allow: request.Allow, Include: request.Include, Exclude: request.Exclude}
	admitted, err := fragment.Admit(request.Inputs["fragment"], options, fragmentTree{files}, r.Scanner.CheckValue)
	if refusal := refusalOf(err); refusal != nil {
		return nil, nil, refusal
	}
	if err != nil {
		return nil, nil, err
	}
	before := *tree
	outputs = map[string]any{"observations": []any{}, "changed": []any{}}
	if admitted.Class == fragment.Read {
		outputs["observations"], err = observeFiles(p.objects.Objects, workspace.Worktree(*tree), admitted, options)
	} else {
		outputs["changed"], err = changeFiles(p.objects.Objects, tree, admitted)
	}
	if err != nil {
		return nil, nil, err
	}
	receipt = changedWorktree(before, *tree)
	receipt["fragment"], receipt["class"] = admitted.Digest, string(admitted.Class)
	return outputs, receipt, nil
}

// refusalOf makes a failure of what an admission of a fragment said.
func refusalOf(err error) error {
	refusal, isRefusal := errors.AsType[*fragment.Refusal](err)
	if !isRefusal {
		return nil
	}
	return &effect.Failure{Code: refusal.Code, Message: refusal.Error()}
}

func observeFiles(objects *workspace.Objects, tree workspace.Worktree, admitted *fragment.Fragment, options fragment.Options) ([]any, error) {
	observations := []any{}
	for _, op := range admitted.Operations {
		if op.Kind == fragment.OpGlob {
			paths, err := objects.Glob(tree, op.Include, op.Exclude)
			if err != nil {
				return nil, err
			}
			shown := []any{}
			for _, path := range paths {
				if options.Selects(path) {
					shown = append(shown, path)
				}
			}
			observations = append(observations, map[string]any{"include": textList(op.Include), "exclude": textList(op.Exclude), "paths": shown})
			continue
		}
		files, err := objects.Read(tree, []string{op.Path})
		if failure := failureOf(err); failure != nil && failure.Code == workspace.CodeFileNotFound {
			observations = append(observations, map[string]any{"path": op.Path, "found": false})
			continue
		}
		if err != nil {
			return nil, err
		}
		item := files[0].JSON()
		item["found"] = true
		observations = append(observations, item)
	}
	return observations, nil
}

func changeFiles(objects *workspace.Objects, tree *api.WorkspaceTree, admitted *fragment.Fragment) ([]any, error) {
	var operations []workspace.Operation
	for _, op := range admitted.Operations {
		operations = append(operations, workspace.Operation{
			Path: op.Path, Delete: op.Kind == fragment.OpDelete, Content: []byte(op.Content), Executable: op.Executable,
		})
	}
	after, changes, err := objects.Write(workspace.Worktree(*tree), operations)
	if err != nil {
		return nil, err
	}
	*tree = api.WorkspaceTree(after)
	changed := []any{}
	for _, c := range changes {
		changed = append(changed, map[string]any{"path": c.Path, "change": c.Change})
	}
	return changed, nil
}

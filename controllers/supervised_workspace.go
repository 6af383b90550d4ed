package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/effect"
	"github.com/apitomy/axiom-operator/internal/workspace"
)

// maxPackPart is the size in bytes of what one ConfigMap keeps of a pack.
const maxPackPart = 512 << 10

// repositoryOrigin is what reaching a repository again takes. It is kept as
// content: a status has fingerprints alone.
type repositoryOrigin struct {
	URL string `json:"url"`
	// Base as the action gave it.
	Base        string `json:"base,omitempty"`
	Credentials string `json:"credentials,omitempty"`
}

// openObjects are the Git objects of a run, put together from what its remotes
// have and what it made itself.
type openObjects struct {
	*workspace.Objects
	bases map[workspace.Key]*workspace.Base
	// packs that are loaded.
	packs int
}

func (o *openObjects) close() {
	for _, base := range o.bases {
		_ = base.Close() // only files that were read
	}
}

// open puts the run's objects together, or adds what is missing to those that are
// open.
func (r *SupervisedRunReconciler) openObjects(ctx context.Context, p *supervisedPass) error {
	if p.objects == nil {
		p.objects = &openObjects{Objects: workspace.NewObjects(), bases: map[workspace.Key]*workspace.Base{}}
	}
	for i := range p.workspace.Repositories {
		repository := &p.workspace.Repositories[i]
		for _, commit := range commitsOf(&p.workspace, repository) {
			if err := r.addBase(ctx, p, repository, commit); err != nil {
				return err
			}
		}
	}
	for ; p.objects.packs < len(p.workspace.Packs); p.objects.packs++ {
		pack, err := r.readPack(ctx, p.run, p.workspace.Packs[p.objects.packs])
		if err == nil {
			err = p.objects.Load(pack)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// commitsOf are the commits of a repository that the run's own objects rest on.
func commitsOf(held *api.RunWorkspace, repository *api.WorkspaceRepository) []string {
	commits := []string{repository.Commit}
	for _, branch := range repository.Branches {
		commits = append(commits, branch.Start)
	}
	for _, tree := range held.Worktrees {
		if tree.Repository == repository.Name {
			commits = append(commits, tree.Start)
		}
	}
	slices.Sort(commits)
	return slices.Compact(commits)
}

func (r *SupervisedRunReconciler) addBase(ctx context.Context, p *supervisedPass, repository *api.WorkspaceRepository, commit string) error {
	key := workspace.Key{Scope: p.run.Namespace, Fingerprint: repository.Fingerprint, Commit: commit}
	if p.objects.bases[key] != nil {
		return nil
	}
	remote, err := r.remoteOf(ctx, p.run, repository)
	if err != nil {
		return err
	}
	return r.fetchBase(ctx, p, key, remote)
}

func (r *SupervisedRunReconciler) fetchBase(ctx context.Context, p *supervisedPass, key workspace.Key, remote *workspace.Remote) error {
	if p.objects.bases[key] != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, remoteTimeout)
	defer cancel()
	base, err := r.Bases.Open(ctx, key, remote)
	if err != nil {
		return err
	}
	p.objects.bases[key] = base
	p.objects.AddBase(base)
	return nil
}

// originOf is how a repository that the run opened is reached.
func (r *SupervisedRunReconciler) originOf(ctx context.Context, run *api.WorkflowRun, repository *api.WorkspaceRepository) (repositoryOrigin, error) {
	var origin repositoryOrigin
	err := r.store().readContent(ctx, run.Namespace, repository.Origin, func(data []byte) error { return json.Unmarshal(data, &origin) })
	if err != nil {
		return origin, fmt.Errorf("read origin of repository %s: %w", repository.Name, err)
	}
	return origin, nil
}

// remoteOf is the way to a repository that the run opened, with the credentials it
// was opened with.
func (r *SupervisedRunReconciler) remoteOf(ctx context.Context, run *api.WorkflowRun, repository *api.WorkspaceRepository) (*workspace.Remote, error) {
	origin, err := r.originOf(ctx, run, repository)
	if err != nil {
		return nil, err
	}
	secret, err := secretOf(run, origin.Credentials)
	if err != nil {
		return nil, err
	}
	remote, _, err := r.gitRemote(ctx, run, origin.URL, secret)
	return remote, err
}

func (r *SupervisedRunReconciler) readPack(ctx context.Context, run *api.WorkflowRun, pack api.WorkspacePack) ([]byte, error) {
	var whole []byte
	for _, part := range pack.Parts {
		data, err := r.store().contents().Get(ctx, run.Namespace, part.Digest)
		if isBeyondRepair(err) {
			return nil, fmt.Errorf("%w: %w", workspace.ErrDamaged, err)
		}
		if err != nil {
			return nil, err
		}
		whole = append(whole, data...)
	}
	return whole, nil
}

// keepObjects stores what an action made as one pack, before the status that
// names it is written.
func (r *SupervisedRunReconciler) keepObjects(ctx context.Context, p *supervisedPass) error {
	pack, err := p.objects.TakePack()
	if err != nil || pack == nil {
		return err
	}
	var kept api.WorkspacePack
	for part := range slices.Chunk(pack, maxPackPart) {
		ref, err := r.store().contents().Put(ctx, p.run, part)
		if err != nil {
			return err
		}
		kept.Parts = append(kept.Parts, ref)
	}
	p.workspace.Packs = append(p.workspace.Packs, kept)
	p.workspace.Bytes += int64(len(pack))
	p.objects.packs++
	return nil
}

// repository finds a repository that the run opened.
func (p *supervisedPass) repository(name string) (*api.WorkspaceRepository, error) {
	for i := range p.workspace.Repositories {
		if p.workspace.Repositories[i].Name == name {
			return &p.workspace.Repositories[i], nil
		}
	}
	return nil, &effect.Failure{Code: codeRepositoryUnknown, Message: "input repository: the run has no repository of that name"}
}

// worktree finds a worktree that the run opened.
func (p *supervisedPass) worktree(name string) (*api.WorkspaceTree, error) {
	for i := range p.workspace.Worktrees {
		if p.workspace.Worktrees[i].Name == name {
			return &p.workspace.Worktrees[i], nil
		}
	}
	return nil, &effect.Failure{Code: codeWorktreeUnknown, Message: "input worktree: the run has no worktree of that name"}
}

// branchOf is the worktree that an action is about, and its repository.
func (p *supervisedPass) branchOf(request *actionRequest) (*api.WorkspaceTree, *api.WorkspaceRepository, error) {
	tree, err := p.worktree(request.named("worktree"))
	if err != nil {
		return nil, nil, err
	}
	kept, err := p.repository(tree.Repository)
	return tree, kept, err
}

// worktrees are all worktrees, as the workspace knows them.
func (p *supervisedPass) worktrees() []workspace.Worktree {
	var all []workspace.Worktree
	for _, tree := range p.workspace.Worktrees {
		all = append(all, workspace.Worktree(tree))
	}
	return all
}

func gitRepository(kept api.WorkspaceRepository) workspace.Repository {
	var branches []workspace.Branch
	for _, branch := range kept.Branches {
		branches = append(branches, workspace.Branch(branch))
	}
	return workspace.Repository{
		Name: kept.Name, Fingerprint: kept.Fingerprint, ObjectFormat: kept.ObjectFormat, Commit: kept.Commit, Base: kept.Base, Branches: branches,
	}
}

// keepRepository notes what became of a repository's branches.
func keepRepository(kept *api.WorkspaceRepository, after workspace.Repository) {
	kept.Branches = nil
	for _, branch := range after.Branches {
		kept.Branches = append(kept.Branches, api.WorkspaceBranch(branch))
	}
}

// isDamaged tells whether the run's own objects cannot be put together, which no
// repetition mends.
func isDamaged(err error) bool {
	return errors.Is(err, workspace.ErrDamaged)
}

package workspace

import (
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// ObjectFormat of the repositories this version works with.
const ObjectFormat = "sha1"

// A Repository is one that a run has opened, at the commit it was pinned to.
type Repository struct {
	Name string `json:"name"`
	// Fingerprint stands for the locator, which is not kept.
	Fingerprint  string `json:"fingerprint"`
	ObjectFormat string `json:"objectFormat"`
	Commit       string `json:"commit"`
	// Base is the branch it was opened at; empty: it was opened at a tag or a commit.
	Base string `json:"base,omitempty"`
	// Branches are those of the run that no worktree is at, by name.
	Branches []Branch `json:"branches,omitempty"`
}

// A Branch is one that the run has in a repository.
type Branch struct {
	Name string `json:"name"`
	Head string `json:"head"`
	// Start is the commit it had when the run came to it.
	Start string `json:"start"`
}

// A Worktree is a branch with what is staged on it and what is in its files.
type Worktree struct {
	Name       string `json:"name"`
	Repository string `json:"repository"`
	Branch     string `json:"branch"`
	Head       string `json:"head"`
	IndexTree  string `json:"indexTree"`
	WorkTree   string `json:"workTree"`
	// Start is the commit the branch had when the run came to it. The objects of the run begin where its own end.
	Start string `json:"start"`
}

// FindBranch is the branch a repository keeps for when a worktree comes back to it. To do so takes no look at the remote, and
// the base of the commit it started at.
func (r Repository) FindBranch(name string) (Branch, bool) {
	i := slices.IndexFunc(r.Branches, func(b Branch) bool { return b.Name == name })
	if i < 0 {
		return Branch{}, false
	}
	return r.Branches[i], true
}

// branch that is kept, or a new one.
func (r Repository) branch(name, start string) Branch {
	if kept, found := r.FindBranch(name); found {
		return kept
	}
	return Branch{Name: name, Head: start, Start: start}
}

// without has the repository without a branch that a worktree comes to.
func (r Repository) without(name string) Repository {
	r.Branches = slices.DeleteFunc(slices.Clone(r.Branches), func(b Branch) bool { return b.Name == name })
	return r
}

// with has the repository with a branch that a worktree leaves.
func (r Repository) with(branch Branch) Repository {
	r = r.without(branch.Name)
	r.Branches = append(r.Branches, branch)
	slices.SortFunc(r.Branches, func(a, b Branch) int { return strings.Compare(a.Name, b.Name) })
	return r
}

// CheckBranch fails with BRANCH_INVALID for what is no name of a branch, and with BRANCH_IN_USE for one that another of
// the worktrees of the repository is at.
func CheckBranch(branch string, repository string, others []Worktree) error {
	if !IsBranchName(branch) {
		return failure(CodeBranchInvalid, "input branch is no name of a branch")
	}
	for _, other := range others {
		if other.Repository == repository && other.Branch == branch {
			return failure(CodeBranchInUse, "another worktree is at the branch of input branch")
		}
	}
	return nil
}

// OpenWorktree is a new worktree with nothing changed, at the branch the repository keeps by that name, else at a new one at
// start. The caller has checked the name with CheckBranch.
func (o *Objects) OpenWorktree(r Repository, name, branch, start string) (Repository, Worktree, error) {
	w := Worktree{Name: name, Repository: r.Name}
	if err := o.checkOut(&w, r.branch(branch, start)); err != nil {
		return r, Worktree{}, err
	}
	return r.without(branch), w, nil
}

// checkOut brings a worktree to a branch.
func (o *Objects) checkOut(w *Worktree, branch Branch) error {
	tree, err := o.CommitTree(branch.Head)
	if err == nil {
		w.Branch, w.Head, w.Start, w.IndexTree, w.WorkTree = branch.Name, branch.Head, branch.Start, tree, tree
	}
	return err
}

// CheckClean fails with LOCAL_CHANGES where index or files differ from the head.
func (o *Objects) CheckClean(w Worktree) error {
	tree, err := o.CommitTree(w.Head)
	if err == nil && (w.IndexTree != tree || w.WorkTree != tree) {
		err = failure(CodeLocalChanges, "the worktree has changes that are not committed")
	}
	return err
}

// Switch brings a worktree without changes to another branch: the one the repository keeps by that name, else a new one at
// start. The branch it leaves is kept. Switching to the branch it is at changes nothing. The failure is LOCAL_CHANGES; the
// caller has checked the name with CheckBranch.
func (o *Objects) Switch(r Repository, w Worktree, branch, start string) (Repository, Worktree, error) {
	if err := o.CheckClean(w); err != nil || w.Branch == branch {
		return r, w, err
	}
	left := Branch{Name: w.Branch, Head: w.Head, Start: w.Start}
	if err := o.checkOut(&w, r.branch(branch, start)); err != nil {
		return r, w, err
	}
	return r.without(branch).with(left), w, nil
}

// CommitTree is the tree of a commit.
func (o *Objects) CommitTree(commit string) (string, error) {
	id, err := parseID(commit)
	if err != nil {
		return "", err
	}
	c, err := o.commit(id)
	return c.tree.String(), err
}

// A commit has what is needed of one.
type commit struct {
	tree    plumbing.Hash
	parents []plumbing.Hash
}

func (o *Objects) commit(id plumbing.Hash) (commit, error) {
	data, err := o.read(plumbing.CommitObject, id, maxTree)
	if err != nil {
		return commit{}, err
	}
	return parseCommit(data)
}

// parseCommit reads the first lines of a commit, which name its tree and its parents in this order.
func parseCommit(data []byte) (commit, error) {
	var c commit
	line, rest, _ := strings.Cut(string(data), "\n")
	tree, found := strings.CutPrefix(line, "tree ")
	if !found || !IsCommitID(tree) {
		return c, errUnreadable
	}
	c.tree = plumbing.NewHash(tree)
	for {
		line, rest, _ = strings.Cut(rest, "\n")
		parent, found := strings.CutPrefix(line, "parent ")
		if !found {
			return c, nil
		}
		if !IsCommitID(parent) {
			return c, errUnreadable
		}
		c.parents = append(c.parents, plumbing.NewHash(parent))
	}
}

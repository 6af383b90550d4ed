package workspace

import (
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/apitomy/axiom-operator/internal/effect"
)

// errNoCommit says that an id is there and is no commit.
var errNoCommit = failure(CodeRefNotFound, "the id is that of an object that is no commit")

// checkComplete tells whether a base has a commit and everything its tree has. Afterwards an object that is missing is not
// the remote's fault, and no tree of the base is malformed. Each tree is looked at once, however often it occurs.
func (b *Base) checkComplete() error {
	id := plumbing.NewHash(b.Commit)
	r, found, err := b.find(id)
	switch {
	case err != nil:
		return err
	case !found:
		return unavailable(effect.ReasonMissingObjects, "the commit is not there")
	case r.kind != plumbing.CommitObject:
		return errNoCommit
	}
	data, _, err := b.read(plumbing.CommitObject, id, maxTree)
	if err != nil {
		return fmt.Errorf("check what was fetched: %w", err)
	}
	c, err := parseCommit(data)
	if err != nil {
		return fmt.Errorf("check what was fetched: %w", err)
	}
	return b.checkTrees(c.tree)
}

func (b *Base) checkTrees(root plumbing.Hash) error {
	seen := map[plumbing.Hash]bool{root: true}
	waiting := []plumbing.Hash{root}
	for len(waiting) > 0 {
		id := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		entries, err := b.tree(id)
		if err != nil {
			return fmt.Errorf("check what was fetched: %w", err)
		}
		for _, e := range entries {
			switch {
			case e.kind() == KindSubmodule || seen[e.id]:
			case e.kind() == KindDirectory:
				seen[e.id] = true
				waiting = append(waiting, e.id)
			default:
				if err := b.checkBlob(e.id); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// tree of the base; a root without entries need not be there.
func (b *Base) tree(id plumbing.Hash) ([]treeEntry, error) {
	data, found, err := b.read(plumbing.TreeObject, id, maxTree)
	if err == nil && !found && id != emptyTree {
		return nil, unavailable(effect.ReasonMissingObjects, "a tree of the commit is not there")
	}
	if err != nil {
		return nil, err
	}
	return parseTree(data)
}

func (b *Base) checkBlob(id plumbing.Hash) error {
	r, found, err := b.find(id)
	if err == nil && (!found || r.kind != plumbing.BlobObject) {
		err = unavailable(effect.ReasonMissingObjects, "a file of the commit is not there")
	}
	return err
}

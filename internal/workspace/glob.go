package workspace

import (
	"slices"

	"github.com/apitomy/axiom-operator/internal/workpath"
)

// Bounds of a glob.
const (
	// MaxGlobbed is how many paths a glob may find.
	MaxGlobbed = 10_000
	// maxVisited is how many entries it looks at. Trees that are in each other many times would have no end.
	maxVisited = 1 << 19
)

// Glob finds the files and links of a worktree that a pattern includes and none excludes, sorted by bytes. What has a path
// that no worktree may have is not found. The failures are PATTERN_INVALID, which names the pattern by its place, and
// TOO_MANY_PATHS.
func (o *Objects) Glob(w Worktree, include, exclude []string) ([]string, error) {
	tree, err := o.TreeAt(w.WorkTree)
	if err != nil {
		return nil, err
	}
	included, err := patterns("include", include)
	if err != nil {
		return nil, err
	}
	excluded, err := patterns("exclude", exclude)
	if err != nil {
		return nil, err
	}
	return tree.Glob(included, excluded)
}

func patterns(input string, texts []string) ([]workpath.Pattern, error) {
	found := make([]workpath.Pattern, 0, len(texts))
	for i, text := range texts {
		pattern, err := workpath.NewPattern(text)
		if err != nil {
			return nil, failure(workpath.CodePattern, "%s[%d]: the pattern is none", input, i)
		}
		found = append(found, pattern)
	}
	return found, nil
}

// Glob finds files and links by patterns that were read already. Without patterns to include nothing is found.
func (t Tree) Glob(include, exclude []workpath.Pattern) ([]string, error) {
	g := &globbing{objects: t.objects, include: include, exclude: exclude, paths: []string{}}
	if len(include) == 0 {
		return g.paths, nil
	}
	if err := g.visit(treeEntry{mode: modeDirectory, id: t.root}, ""); err != nil {
		return nil, err
	}
	slices.Sort(g.paths)
	return g.paths, nil
}

// A globbing goes through a tree.
type globbing struct {
	objects          *Objects
	include, exclude []workpath.Pattern
	paths            []string
	visited          int
}

func (g *globbing) visit(dir treeEntry, prefix string) error {
	entries, err := g.objects.entriesOf(dir.id)
	if err != nil {
		return err
	}
	if g.visited += len(entries); g.visited > maxVisited {
		return failure(CodeTooManyPaths, "the worktree has more than %d entries", maxVisited)
	}
	for _, e := range entries {
		path := prefix + e.name
		// Below a path that is too long or Git's own nothing can be named either.
		if e.kind() == KindSubmodule || workpath.Check(path) != nil {
			continue
		}
		if e.kind() == KindDirectory {
			if err := g.visit(e, path+"/"); err != nil {
				return err
			}
			continue
		}
		if err := g.take(path); err != nil {
			return err
		}
	}
	return nil
}

func (g *globbing) take(path string) error {
	if !workpath.Selects(g.include, g.exclude, path) {
		return nil
	}
	if g.paths = append(g.paths, path); len(g.paths) > MaxGlobbed {
		return failure(CodeTooManyPaths, "more than %d paths are found", MaxGlobbed)
	}
	return nil
}

package workspace

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Add stages what the files of a worktree are at these paths, which name files, directories or, as `.`, all there is: what
// was added, changed or deleted. It is all or nothing. The staged paths are those whose entry in the index changed, by
// their bytes. Files that are not in the index and match a rule of a .gitignore are left out. Naming one is refused, and so
// is naming a directory that is ignored, or anything in it. The failures are PATHSPEC_UNMATCHED, PATHSPEC_IGNORED,
// PATHSPEC_INVALID and those of paths.
func (o *Objects) Add(w Worktree, paths []string) (Worktree, []string, error) {
	s, err := o.newStaging(w)
	if err != nil {
		return w, nil, err
	}
	for i, path := range paths {
		if err := s.add(path); err != nil {
			return w, nil, about("paths", i, err)
		}
	}
	if len(s.staged) == 0 {
		return w, []string{}, nil
	}
	w.IndexTree = s.index.save().String()
	return w, slices.Sorted(maps.Keys(s.staged)), nil
}

// A staging brings an index to what files are.
type staging struct {
	objects *Objects
	index   *directory
	work    Tree
	staged  map[string]bool
	// rules by directory, as far as they were read.
	rules map[string]*ignoreRules
}

func (o *Objects) newStaging(w Worktree) (*staging, error) {
	work, err := o.TreeAt(w.WorkTree)
	if err != nil {
		return nil, err
	}
	index, err := o.openRoot(w.IndexTree)
	return &staging{objects: o, index: index, work: work, staged: map[string]bool{}, rules: map[string]*ignoreRules{}}, err
}

func (s *staging) add(path string) error {
	if path == "." {
		return s.mergeDirectory(s.index, s.work.root, nil, false)
	}
	work, err := s.named(path)
	if err != nil {
		return err
	}
	segments := strings.Split(path, "/")
	index, err := s.indexed(segments)
	if err != nil {
		return err
	}
	if work.kind() == KindNone && index.kind() == KindNone {
		return failure(CodePathspecUnmatched, "nothing has the path")
	}
	depth, err := s.ignoredAt(segments)
	if err != nil {
		return err
	}
	// What is in the index by this very name may be named whatever the rules say of it, but not of what it is in.
	isTracked := index.kind() != KindNone && index.kind() != KindDirectory
	if depth > 0 && (!isTracked || depth < len(segments)) {
		return failure(CodePathspecIgnored, "the path is ignored")
	}
	return s.stage(segments, work, depth > 0)
}

// named is what the files have at a path that is to be staged.
func (s *staging) named(path string) (treeEntry, error) {
	if strings.HasPrefix(path, ":") {
		return treeEntry{}, failure(CodePathspecInvalid, "the path has the form of a pattern of Git")
	}
	if err := checkPath(path); err != nil {
		return treeEntry{}, err
	}
	work, err := s.work.reach(path)
	if err == nil && work.kind() == KindSubmodule {
		err = failure(CodePathInSubmodule, "the path is a submodule")
	}
	return work, err
}

// indexed is what a path is in the index.
func (s *staging) indexed(segments []string) (treeEntry, error) {
	dir := s.index
	for _, segment := range segments[:len(segments)-1] {
		if dir.entries[segment].kind() != KindDirectory {
			return treeEntry{}, nil
		}
		var err error
		if dir, err = dir.child(segment); err != nil {
			return treeEntry{}, err
		}
	}
	return dir.entries[segments[len(segments)-1]], nil
}

// stage brings one path of the index to what it is in the files. A file in the place of a directory on the way goes.
func (s *staging) stage(segments []string, work treeEntry, ignored bool) error {
	dir := s.index
	for i, segment := range segments[:len(segments)-1] {
		kind := dir.entries[segment].kind()
		if kind != KindDirectory && work.kind() == KindNone {
			return nil
		}
		if kind != KindDirectory && kind != KindNone {
			s.note(segments[:i+1])
		}
		var err error
		if dir, err = dir.child(segment); err != nil {
			return err
		}
	}
	work.name = segments[len(segments)-1]
	return s.merge(dir, work, segments, ignored)
}

// merge brings an entry of a directory of the index to what it is in the files: an entry without a mode, if it is not there.
func (s *staging) merge(dir *directory, work treeEntry, path []string, ignored bool) error {
	index := dir.entries[work.name]
	if index.mode == work.mode && index.id == work.id && dir.opened[work.name] == nil {
		return nil
	}
	switch {
	case work.kind() == KindDirectory:
		return s.mergeChild(dir, work, path, ignored)
	case index.kind() == KindDirectory:
		if err := s.noteBelow(dir, work.name, path); err != nil {
			return err
		}
		dir.remove(work.name)
		if work.kind() == KindNone || ignored {
			return nil
		}
	case work.kind() == KindNone:
		dir.remove(work.name)
		s.note(path)
		return nil
	case index.kind() == KindNone && ignored:
		return nil
	}
	dir.put(work)
	s.note(path)
	return nil
}

// mergeChild brings a directory of the index to what it is in the files. A file that was there before is gone.
func (s *staging) mergeChild(dir *directory, work treeEntry, path []string, ignored bool) error {
	if kind := dir.entries[work.name].kind(); kind != KindDirectory && kind != KindNone {
		dir.remove(work.name)
		s.note(path)
	}
	child, err := dir.child(work.name)
	if err != nil {
		return err
	}
	return s.mergeDirectory(child, work.id, path, ignored)
}

// mergeDirectory brings a directory of the index to the files of a tree. What is ignored as a whole is looked through for
// what is in the index all the same.
func (s *staging) mergeDirectory(dir *directory, tree plumbing.Hash, path []string, ignored bool) error {
	entries, err := s.objects.entriesOf(tree)
	if err != nil {
		return err
	}
	if ignored && len(dir.entries) == 0 {
		return nil
	}
	here := map[string]bool{}
	for _, e := range entries {
		here[e.name] = true
		below := append(slices.Clone(path), e.name)
		if err := s.mergeEntry(dir, e, below, ignored); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(dir.entries)) {
		if here[name] {
			continue
		}
		if err := s.merge(dir, treeEntry{name: name}, append(slices.Clone(path), name), ignored); err != nil {
			return err
		}
	}
	return nil
}

// mergeEntry asks the rules only about what differs.
func (s *staging) mergeEntry(dir *directory, work treeEntry, path []string, ignored bool) error {
	index := dir.entries[work.name]
	if index.mode == work.mode && index.id == work.id && dir.opened[work.name] == nil {
		return nil
	}
	if !ignored {
		rules, err := s.rulesOf(path[:len(path)-1])
		if err != nil {
			return err
		}
		ignored = rules.ignores(path, work.kind() == KindDirectory)
	}
	return s.merge(dir, work, path, ignored)
}

// ignoredAt finds the first part of a path that is ignored, by the number of its segments; 0: none is.
func (s *staging) ignoredAt(segments []string) (int, error) {
	for i := range segments {
		found, err := s.work.reach(strings.Join(segments[:i+1], "/"))
		if err != nil || found.kind() == KindNone {
			return 0, err
		}
		rules, err := s.rulesOf(segments[:i])
		if err != nil {
			return 0, err
		}
		if rules.ignores(segments[:i+1], found.kind() == KindDirectory) {
			return i + 1, nil
		}
	}
	return 0, nil
}

// rulesOf are the rules in a directory of the files.
func (s *staging) rulesOf(dir []string) (*ignoreRules, error) {
	key := strings.Join(dir, "/")
	if rules, found := s.rules[key]; found {
		return rules, nil
	}
	rules := &ignoreRules{depth: len(dir)}
	if len(dir) > 0 {
		outer, err := s.rulesOf(dir[:len(dir)-1])
		if err != nil {
			return nil, err
		}
		rules.outer = outer
	}
	// A link is not followed to a file of rules elsewhere.
	text, _, _, err := s.work.Blob(strings.TrimPrefix(key+"/"+ignoreFile, "/"), maxIgnoreFile)
	rules.rules = parseRules(string(text))
	s.rules[key] = rules
	return rules, err
}

// note keeps a path as staged.
func (s *staging) note(path []string) {
	s.staged[strings.Join(path, "/")] = true
}

// noteBelow keeps all files of a directory of the index as staged, which go with it.
func (s *staging) noteBelow(dir *directory, name string, path []string) error {
	child, err := dir.child(name)
	if err != nil {
		return err
	}
	for _, e := range child.entries {
		below := append(slices.Clone(path), e.name)
		if e.kind() != KindDirectory {
			s.note(below)
			continue
		}
		if err := s.noteBelow(child, e.name, below); err != nil {
			return err
		}
	}
	return nil
}

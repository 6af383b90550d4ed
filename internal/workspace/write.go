package workspace

import (
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// An Operation writes or deletes one path.
type Operation struct {
	Path string
	// Delete the file or link; otherwise Content is what the file holds.
	Delete  bool
	Content []byte
	// Executable of the file; nil: it keeps what it has.
	Executable *bool
}

// What became of a path.
const (
	ChangeAdded     = "added"
	ChangeModified  = "modified"
	ChangeDeleted   = "deleted"
	ChangeUnchanged = "unchanged"
)

// A Change says what became of a path.
type Change struct {
	Path   string `json:"path"`
	Change string `json:"change"`
}

// Write applies operations to the files of a worktree in their order: all of them, or none. Deleting what is not there
// changes nothing. The failures are those of paths, and FRAGMENT_PATH where a file would be in the place of a directory or
// the other way round.
func (o *Objects) Write(w Worktree, operations []Operation) (Worktree, []Change, error) {
	dir, err := o.openRoot(w.WorkTree)
	if err != nil {
		return w, nil, err
	}
	changes := make([]Change, 0, len(operations))
	err = o.atomically(func() error {
		for i, operation := range operations {
			change, err := dir.apply(operation)
			if err != nil {
				return about("operations", i, err)
			}
			changes = append(changes, Change{Path: operation.Path, Change: change})
		}
		return nil
	})
	if err != nil {
		return w, nil, err
	}
	if slices.ContainsFunc(changes, func(c Change) bool { return c.Change != ChangeUnchanged }) {
		w.WorkTree = dir.save().String()
	}
	return w, changes, nil
}

func (d *directory) apply(operation Operation) (string, error) {
	if err := checkPath(operation.Path); err != nil {
		return "", err
	}
	found, below, err := d.reach(operation.Path)
	if err != nil {
		return "", err
	}
	if below && !operation.Delete {
		return "", failure(CodeFragmentPath, "the path leads through a file")
	}
	switch found.kind() {
	case KindDirectory:
		return "", failure(CodeFragmentPath, "the path is a directory")
	case KindSubmodule:
		return "", failure(CodePathInSubmodule, "the path is a submodule")
	default:
	}
	if operation.Delete {
		return d.delete(operation.Path, found)
	}
	return d.write(operation, found)
}

// reach finds the entry of a path, which may be none, and whether it is none because a file is on the way.
func (d *directory) reach(path string) (found treeEntry, below bool, err error) {
	segments := strings.Split(path, "/")
	for _, segment := range segments[:len(segments)-1] {
		switch d.entries[segment].kind() {
		case KindDirectory:
		case KindLink:
			return treeEntry{}, false, failure(CodePathThroughLink, "the path leads through a symbolic link")
		case KindSubmodule:
			return treeEntry{}, false, failure(CodePathInSubmodule, "the path leads into a submodule")
		default:
			return treeEntry{}, d.entries[segment].kind() == KindFile, nil
		}
		if d, err = d.child(segment); err != nil {
			return treeEntry{}, false, err
		}
	}
	return d.entries[segments[len(segments)-1]], false, nil
}

func (d *directory) delete(path string, found treeEntry) (string, error) {
	if found.kind() == KindNone {
		return ChangeUnchanged, nil
	}
	parent, name, err := d.parentOf(path)
	if err != nil {
		return "", err
	}
	parent.remove(name)
	return ChangeDeleted, nil
}

func (d *directory) write(operation Operation, found treeEntry) (string, error) {
	if found.kind() == KindLink {
		return "", failure(CodePathIsLink, "the path is a symbolic link")
	}
	if len(operation.Content) > MaxFile {
		return "", failure(CodeFileTooLarge, "the file has %d bytes, more than %d", len(operation.Content), MaxFile)
	}
	id := plumbing.ComputeHash(plumbing.BlobObject, operation.Content)
	mode := modeOf(found, operation.Executable)
	if found.id == id && found.mode == mode {
		return ChangeUnchanged, nil
	}
	// A file whose mode alone changes is where it was.
	if found.id != id {
		d.objects.write(plumbing.BlobObject, operation.Content)
	}
	parent, name, err := d.parentOf(operation.Path)
	if err != nil {
		return "", err
	}
	parent.put(treeEntry{name: name, mode: mode, id: id})
	if found.kind() == KindNone {
		return ChangeAdded, nil
	}
	return ChangeModified, nil
}

// modeOf a file that is written: what it has, where that agrees with what is wanted.
func modeOf(found treeEntry, executable *bool) string {
	isFile := found.kind() == KindFile
	if isFile && (executable == nil || *executable == found.isExecutable()) {
		return found.mode
	}
	if executable != nil && *executable {
		return modeExecutable
	}
	return modeFile
}

package workspace

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// A Kind is what a path of a tree is.
type Kind string

// The kinds.
const (
	KindNone       Kind = ""
	KindFile       Kind = "file"
	KindExecutable Kind = "executable"
	KindDirectory  Kind = "directory"
	KindLink       Kind = "symlink"
	KindSubmodule  Kind = "submodule"
)

// Modes of what is written.
const (
	modeFile       = "100644"
	modeExecutable = "100755"
	modeDirectory  = "40000"
)

// Parts of a mode.
const (
	modeKindMask   = 0o170000
	modeKindDir    = 0o040000
	modeKindFile   = 0o100000
	modeKindLink   = 0o120000
	modeKindModule = 0o160000
	modeUserExec   = 0o100
)

// A treeEntry is one of a tree. Its mode is kept as it is written, since old programs wrote modes that nobody writes any more.
type treeEntry struct {
	name string
	mode string
	id   plumbing.Hash
}

// kind of an entry, which is that of a file whether it can be executed or not.
func (e treeEntry) kind() Kind {
	kind, _ := kindOf(e.mode)
	return kind
}

func (e treeEntry) isExecutable() bool {
	mode, _ := strconv.ParseUint(e.mode, 8, 32)
	return mode&modeUserExec != 0
}

func kindOf(mode string) (Kind, bool) {
	bits, err := strconv.ParseUint(mode, 8, 32)
	if err != nil {
		return KindNone, false
	}
	switch bits & modeKindMask {
	case modeKindDir:
		return KindDirectory, true
	case modeKindFile:
		return KindFile, true
	case modeKindLink:
		return KindLink, true
	case modeKindModule:
		return KindSubmodule, true
	}
	return KindNone, false
}

// parseTree reads a tree. Its entries are sorted and have different names, or it is none: whatever looks a name up could
// otherwise find one thing and whatever lists them another.
func parseTree(data []byte) ([]treeEntry, error) {
	var entries []treeEntry
	names := map[string]bool{}
	for len(data) > 0 {
		e, rest, ok := parseEntry(data)
		if !ok || names[e.name] {
			return nil, fmt.Errorf("%w: a tree is malformed", errUnreadable)
		}
		if n := len(entries); n > 0 && compareEntries(entries[n-1], e) >= 0 {
			return nil, fmt.Errorf("%w: a tree is not sorted", errUnreadable)
		}
		names[e.name] = true
		entries, data = append(entries, e), rest
	}
	return entries, nil
}

func parseEntry(data []byte) (treeEntry, []byte, bool) {
	head, rest, found := bytes.Cut(data, []byte{0})
	mode, name, spaced := strings.Cut(string(head), " ")
	e := treeEntry{name: name, mode: mode}
	_, known := kindOf(mode)
	if !found || !spaced || !known || name == "" || strings.Contains(name, "/") || len(rest) < len(e.id) {
		return e, nil, false
	}
	copy(e.id[:], rest)
	return e, rest[len(e.id):], true
}

// compareEntries has Git's order, in which a directory's name ends in a slash.
func compareEntries(a, b treeEntry) int {
	return strings.Compare(a.sortName(), b.sortName())
}

func (e treeEntry) sortName() string {
	if e.kind() == KindDirectory {
		return e.name + "/"
	}
	return e.name
}

func encodeTree(entries []treeEntry) []byte {
	var data bytes.Buffer
	for _, e := range entries {
		data.WriteString(e.mode)
		data.WriteByte(' ')
		data.WriteString(e.name)
		data.WriteByte(0)
		data.Write(e.id[:])
	}
	return data.Bytes()
}

// entriesOf reads a tree of the run.
func (o *Objects) entriesOf(id plumbing.Hash) ([]treeEntry, error) {
	if id == emptyTree {
		return nil, nil
	}
	data, err := o.read(plumbing.TreeObject, id, maxTree)
	if err != nil {
		return nil, err
	}
	entries, err := parseTree(data)
	if err != nil {
		return nil, fmt.Errorf("%w: tree %s: %w", ErrDamaged, id, err)
	}
	return entries, nil
}

// find returns the entry of a name; its kind is KindNone where there is none.
func findEntry(entries []treeEntry, name string) treeEntry {
	if i := slices.IndexFunc(entries, func(e treeEntry) bool { return e.name == name }); i >= 0 {
		return entries[i]
	}
	return treeEntry{}
}

// A Tree is a directory as a commit, an index or the files of a worktree have it.
type Tree struct {
	objects *Objects
	root    plumbing.Hash
}

// TreeAt is the tree of an id. It is read when it is looked into.
func (o *Objects) TreeAt(id string) (Tree, error) {
	root, err := parseID(id)
	return Tree{objects: o, root: root}, err
}

// lookup finds a path. Links are not followed: found is where the path ends, or the link, submodule or file on the way at
// which it cannot go on, and below whether something of the path remained.
func (t Tree) lookup(path string) (found treeEntry, below bool, err error) {
	found = treeEntry{mode: modeDirectory, id: t.root}
	for segment := range strings.SplitSeq(path, "/") {
		if found.kind() != KindDirectory {
			return found, true, nil
		}
		entries, err := t.objects.entriesOf(found.id)
		if err != nil {
			return treeEntry{}, false, err
		}
		if found = findEntry(entries, segment); found.name == "" {
			return treeEntry{}, false, nil
		}
	}
	return found, false, nil
}

// Kind is what stands at a path; KindNone: nothing does. The failures are PATH_THROUGH_LINK and PATH_IN_SUBMODULE, for a path
// that leads through something that is not followed.
func (t Tree) Kind(path string) (Kind, error) {
	found, err := t.reach(path)
	if found.kind() == KindFile && found.isExecutable() {
		return KindExecutable, err
	}
	return found.kind(), err
}

// reach finds what stands at a path; an entry of KindNone: nothing does.
func (t Tree) reach(path string) (treeEntry, error) {
	found, below, err := t.lookup(path)
	switch {
	case err != nil:
		return treeEntry{}, err
	case below && found.kind() == KindLink:
		return treeEntry{}, failure(CodePathThroughLink, "the path leads through a symbolic link")
	case below && found.kind() == KindSubmodule:
		return treeEntry{}, failure(CodePathInSubmodule, "the path leads into a submodule")
	case below:
		return treeEntry{}, nil
	}
	return found, nil
}

package workspace

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// A directory is one that is being changed: what it held is read when it is looked into, and what became of it is written
// at the end, so a change of many paths makes each tree once.
type directory struct {
	objects *Objects
	entries map[string]treeEntry
	// opened are those of its directories that were looked into, by name.
	opened map[string]*directory
	// origin is the tree it was opened from.
	origin plumbing.Hash
	// isRoot of a tree that there is even if it is empty.
	isRoot bool
}

// emptyTree is the id of a tree without entries.
var emptyTree = plumbing.ComputeHash(plumbing.TreeObject, nil)

// openRoot opens the root of a tree.
func (o *Objects) openRoot(id string) (*directory, error) {
	root, err := parseID(id)
	if err != nil {
		return nil, err
	}
	d, err := o.openDirectory(root)
	d.isRoot = true
	return d, err
}

func (o *Objects) openDirectory(id plumbing.Hash) (*directory, error) {
	entries, err := o.entriesOf(id)
	d := o.emptyDirectory()
	d.origin = id
	for _, e := range entries {
		d.entries[e.name] = e
	}
	return d, err
}

func (o *Objects) emptyDirectory() *directory {
	return &directory{objects: o, entries: map[string]treeEntry{}, opened: map[string]*directory{}}
}

// child opens a directory in this one, making it of what is not there or is no directory.
func (d *directory) child(name string) (*directory, error) {
	if opened := d.opened[name]; opened != nil {
		return opened, nil
	}
	child := d.objects.emptyDirectory()
	if e := d.entries[name]; e.kind() == KindDirectory {
		var err error
		if child, err = d.objects.openDirectory(e.id); err != nil {
			return nil, err
		}
	} else {
		d.entries[name] = treeEntry{name: name, mode: modeDirectory}
	}
	d.opened[name] = child
	return child, nil
}

// put places an entry, instead of what is there.
func (d *directory) put(e treeEntry) {
	d.remove(e.name)
	d.entries[e.name] = e
}

func (d *directory) remove(name string) {
	delete(d.entries, name)
	delete(d.opened, name)
}

// save writes what changed and returns the tree. Directories that became empty are gone, but for the root.
func (d *directory) save() plumbing.Hash {
	for name, child := range d.opened {
		id := child.save()
		e := d.entries[name]
		if e.id = id; id == emptyTree {
			d.remove(name)
			continue
		}
		d.entries[name] = e
	}
	if len(d.entries) == 0 && !d.isRoot {
		return emptyTree
	}
	entries := slices.SortedFunc(maps.Values(d.entries), compareEntries)
	data := encodeTree(entries)
	// What was only looked into is not made again.
	if plumbing.ComputeHash(plumbing.TreeObject, data) == d.origin {
		return d.origin
	}
	return d.objects.write(plumbing.TreeObject, data)
}

// parentOf opens the directory a path is in, making it where it is not there, and returns the last segment.
func (d *directory) parentOf(path string) (*directory, string, error) {
	segments := strings.Split(path, "/")
	for _, segment := range segments[:len(segments)-1] {
		var err error
		if d, err = d.child(segment); err != nil {
			return nil, "", err
		}
	}
	return d, segments[len(segments)-1], nil
}

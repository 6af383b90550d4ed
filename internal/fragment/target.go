package fragment

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apitomy/axiom-operator/internal/workpath"
)

// A Kind is what stands at a path of a tree.
type Kind string

// The kinds of entries.
const (
	None       Kind = ""
	File       Kind = "file"
	Executable Kind = "executable"
	Symlink    Kind = "symlink"
	Submodule  Kind = "submodule"
	Directory  Kind = "directory"
)

// A Tree is what a fragment is about.
type Tree interface {
	// Kind returns what stands at a path whose parents are directories, None if nothing does.
	Kind(path string) (Kind, error)
}

// A Gate tells why a JSON tree must not be kept, by rule and position alone; nil lets it pass.
type Gate func(value any) error

// Causes of refusals of paths.
var (
	ErrThroughLink = errors.New("PATH_THROUGH_LINK")
	ErrIsLink      = errors.New("PATH_IS_LINK")
	ErrSubmodule   = errors.New("PATH_IN_SUBMODULE")
	ErrDirectory   = errors.New("the path is a directory")
	ErrBelowFile   = errors.New("a parent of the path is a file")
	ErrOutside     = errors.New("the path is not among those that may be named")
)

// checkTargets holds what the operations name against the tree and the limits, and notes what stands there.
func checkTargets(operations []Operation, limits limits, tree Tree) error {
	for i := range operations {
		if err := checkTarget(&operations[i], limits, tree); err != nil {
			if isRefusal(err) {
				return &Refusal{Code: CodePath, Index: i, Cause: err}
			}
			return fmt.Errorf("look at the path of operation %d: %w", i, err)
		}
	}
	if i := repeated(operations); i >= 0 {
		return refuse(CodeDuplicate, i)
	}
	return nil
}

// isRefusal tells a refused path from a tree that could not be read.
func isRefusal(err error) bool {
	causes := []error{
		workpath.ErrInvalid, workpath.ErrPattern, ErrThroughLink, ErrIsLink, ErrSubmodule, ErrDirectory, ErrBelowFile, ErrOutside,
	}
	return slices.ContainsFunc(causes, func(cause error) bool { return errors.Is(err, cause) })
}

func checkTarget(o *Operation, limits limits, tree Tree) error {
	if o.Kind == OpGlob {
		_, err := workpath.NewPatterns(slices.Concat(o.Include, o.Exclude))
		return err
	}
	if err := workpath.Check(o.Path); err != nil {
		return err
	}
	kind, err := kindAt(tree, o.Path, o.Kind == OpWrite)
	if err != nil {
		return err
	}
	o.Before = kind
	if err := checkKind(o.Kind, kind); err != nil {
		return err
	}
	if !limits.selects(o.Path) {
		return ErrOutside
	}
	return nil
}

// checkKind tells why an operation cannot be about what stands at its path. A link is read and deleted as a link; where a
// directory stands there is no file to read.
func checkKind(operation string, kind Kind) error {
	switch {
	case kind == Submodule:
		return ErrSubmodule
	case kind == Symlink && operation == OpWrite:
		return ErrIsLink
	case kind == Directory && operation != OpRead:
		return ErrDirectory
	}
	return nil
}

// kindAt looks at a path from the root on, so that no link is followed. Below a file there is nothing, and no place for
// anything.
func kindAt(tree Tree, path string, isWrite bool) (Kind, error) {
	for i, r := range path {
		if r != '/' {
			continue
		}
		kind, err := tree.Kind(path[:i])
		switch {
		case err != nil:
			return None, err
		case kind == Symlink:
			return None, ErrThroughLink
		case kind == Submodule:
			return None, ErrSubmodule
		case kind == None:
			return None, nil
		case kind != Directory && isWrite:
			return None, ErrBelowFile
		case kind != Directory:
			return None, nil
		}
	}
	return tree.Kind(path)
}

// repeated is the first operation whose path was named before, or that stands below a written file or above what is
// named; -1 if there is none.
func repeated(operations []Operation) int {
	for i, o := range operations {
		for _, before := range operations[:i] {
			if o.Path != "" && collide(before, o) {
				return i
			}
		}
	}
	return -1
}

func collide(a, b Operation) bool {
	return a.Path == b.Path ||
		a.Kind == OpWrite && strings.HasPrefix(b.Path, a.Path+"/") ||
		b.Kind == OpWrite && strings.HasPrefix(a.Path, b.Path+"/")
}

// checkContents looks at the size of files and asks the gate about each operation.
func checkContents(operations []Operation, entries []entry, gate Gate) *Refusal {
	for i, o := range operations {
		if len(o.Content) > MaxFile {
			return refuse(CodeTooLarge, i)
		}
	}
	if gate == nil {
		return refuse(CodeSecret, -1)
	}
	for i, e := range entries {
		if err := gate(map[string]any{e.kind: e.value}); err != nil {
			return &Refusal{Code: CodeSecret, Index: i, Cause: err}
		}
	}
	return nil
}

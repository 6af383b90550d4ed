package supervised

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/apitomy/axiom-operator/internal/definition"
)

// A tree is a directory in the place of a commit.
type tree struct{ *os.Root }

func openTree(directory string) (*tree, error) {
	root, err := os.OpenRoot(directory)
	if err != nil {
		return nil, fmt.Errorf("open the repository: %w", err)
	}
	return &tree{root}, nil
}

// Entry implements [definition.Tree]. Nothing stands behind a link, as in a commit.
func (t *tree) Entry(_ context.Context, name string) (definition.Entry, bool, error) {
	if !fs.ValidPath(name) || name == "." {
		return definition.Entry{}, false, nil
	}
	for parent := path.Dir(name); parent != "."; parent = path.Dir(parent) {
		if info, found, err := t.look(parent); err != nil || !found || !info.IsDir() {
			return definition.Entry{}, false, err
		}
	}
	info, found, err := t.look(name)
	if err != nil || !found {
		return definition.Entry{}, false, err
	}
	entry, err := t.entry(name, info)
	return entry, err == nil, err
}

// look tells what stands at a path; a part of it that is no directory, or that no
// file can be called, has nothing behind it.
func (t *tree) look(name string) (fs.FileInfo, bool, error) {
	info, err := t.Lstat(filepath.FromSlash(name))
	switch {
	case err == nil:
		return info, true, nil
	case errors.Is(err, fs.ErrPermission):
		return nil, false, fmt.Errorf("look at %s: %w", name, err)
	}
	return nil, false, nil
}

func (t *tree) entry(name string, info fs.FileInfo) (definition.Entry, error) {
	entry := definition.Entry{Mode: definition.File, Size: info.Size()}
	switch mode := info.Mode(); {
	case mode.IsDir():
		entry.Mode = definition.Directory
		return entry, nil
	case !mode.IsRegular():
		entry.Mode = definition.Symlink
		return entry, nil
	case strings.Contains(mode.Perm().String(), "x"):
		entry.Mode = definition.Executable
	}
	if info.Size() > definition.MaxSource {
		return entry, nil
	}
	content, err := t.ReadFile(filepath.FromSlash(name))
	if err != nil {
		return entry, fmt.Errorf("read %s: %w", name, err)
	}
	entry.Content, entry.Size, entry.Blob = content, int64(len(content)), definition.BlobID(content)
	return entry, nil
}

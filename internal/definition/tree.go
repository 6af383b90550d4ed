package definition

import (
	"context"
	"crypto/sha1" //nolint:gosec // what Git names objects by
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// A Mode is what stands at a path of a commit.
type Mode string

// The modes.
const (
	File       Mode = "file"
	Executable Mode = "executable"
	Symlink    Mode = "symlink"
	Directory  Mode = "directory"
	Submodule  Mode = "submodule"
)

// An Entry is what stands at a path of a commit.
type Entry struct {
	Mode Mode
	// Blob is the Git id, in hex digits.
	Blob string
	// Size of the content, in bytes.
	Size int64
	// Content of a file. It may be absent if the size is over MaxSource.
	Content []byte
}

// A Tree is what one commit holds.
type Tree interface {
	// Entry finds what stands at a path relative to the repository; false: nothing does.
	Entry(ctx context.Context, path string) (Entry, bool, error)
}

// A Source is a document as it stands in its commit.
type Source struct {
	// Path relative to the repository.
	Path string
	// Blob is the Git id.
	Blob    string
	Content []byte
}

// Retained is the tree of sources that were kept. Their ids are those of their contents, whatever they are said to be, so
// that admitting them again finds what was changed.
func Retained(sources []Source) Tree { return retained(sources) }

type retained []Source

// Entry implements [Tree].
func (r retained) Entry(_ context.Context, path string) (Entry, bool, error) {
	at := slices.IndexFunc(r, func(s Source) bool { return s.Path == path })
	if at < 0 {
		return Entry{}, false, nil
	}
	content := r[at].Content
	return Entry{Mode: File, Blob: BlobID(content), Size: int64(len(content)), Content: content}, true, nil
}

// BlobID is the id that a repository with SHA-1 ids gives to a content.
func BlobID(content []byte) string {
	hash := sha1.New() //nolint:gosec // what Git names objects by
	hash.Write(fmt.Appendf(nil, "blob %d\x00", len(content)))
	hash.Write(content)
	return hex.EncodeToString(hash.Sum(nil))
}

// sibling is the path of a file relative to the directory of another.
func sibling(root, path string) string {
	return root[:strings.LastIndexByte(root, '/')+1] + path
}

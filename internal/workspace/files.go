package workspace

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/apitomy/axiom-operator/internal/effect"
)

// maxRead is the size in bytes of all files together beyond which no result can hold them.
const maxRead = 192 << 10

// MaxFile is the size in bytes up to which a file is read and written.
const MaxFile = 128 << 10

// A File is what a path of a worktree holds: a file, or a link that was not followed.
type File struct {
	Path string `json:"path"`
	// Content, Executable, Size and Digest are those of a file.
	Content    string `json:"content"`
	Executable bool   `json:"executable"`
	Size       int64  `json:"size"`
	// Digest is `sha256:` and hex digits.
	Digest string `json:"digest"`
	// Link is where a link leads; nil: it is a file.
	Link *string `json:"link,omitempty"`
}

// JSON is the file as an action returns it.
func (f File) JSON() map[string]any {
	if f.Link != nil {
		return map[string]any{"path": f.Path, "link": *f.Link}
	}
	return map[string]any{
		"path": f.Path, "content": f.Content, "executable": f.Executable, "size": f.Size, "digest": f.Digest,
	}
}

// ReadFile reads the file or link at a path. The failures are FILE_NOT_FOUND, for a directory as well, FILE_NOT_TEXT,
// FILE_TOO_LARGE and those of paths. They do not say which path it was: the caller knows its place among the inputs.
func (t Tree) ReadFile(path string) (File, error) {
	if err := checkPath(path); err != nil {
		return File{}, err
	}
	found, err := t.reach(path)
	if err != nil {
		return File{}, err
	}
	switch found.kind() {
	case KindFile, KindLink:
	case KindSubmodule:
		return File{}, failure(CodePathInSubmodule, "the path is a submodule")
	case KindDirectory:
		return File{}, failure(CodeFileNotFound, "the path is a directory")
	default:
		return File{}, failure(CodeFileNotFound, "there is no such file")
	}
	data, err := t.text(found.id)
	if err != nil {
		return File{}, err
	}
	if found.kind() == KindLink {
		link := string(data)
		return File{Path: path, Link: &link}, nil
	}
	return File{
		Path: path, Content: string(data), Executable: found.isExecutable(), Size: int64(len(data)), Digest: digestOf(data),
	}, nil
}

// text reads a blob that is UTF-8.
func (t Tree) text(id plumbing.Hash) ([]byte, error) {
	size, err := t.objects.size(plumbing.BlobObject, id)
	if err != nil {
		return nil, err
	}
	if size > MaxFile {
		return nil, failure(CodeFileTooLarge, "the file has %d bytes, more than %d", size, MaxFile)
	}
	data, err := t.objects.read(plumbing.BlobObject, id, MaxFile)
	if err == nil && (!utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0) {
		err = failure(CodeFileNotText, "the file is not UTF-8 text")
	}
	return data, err
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Blob reads the bytes and the Git id of the regular file at a path. Where there is none, kind says what there is instead, or
// what is on the way. The failure is FILE_TOO_LARGE.
func (t Tree) Blob(path string, maxSize int64) (data []byte, id string, kind Kind, err error) {
	found, below, err := t.lookup(path)
	switch {
	case err != nil || found.kind() != KindFile:
		return nil, "", found.kind(), err
	case below:
		return nil, "", KindNone, nil
	}
	size, err := t.objects.size(plumbing.BlobObject, found.id)
	if err == nil && size > maxSize {
		err = failure(CodeFileTooLarge, "the file has %d bytes, more than %d", size, maxSize)
	}
	if err != nil {
		return nil, "", KindFile, err
	}
	data, err = t.objects.read(plumbing.BlobObject, found.id, maxSize)
	return data, found.id.String(), KindFile, err
}

// Read reads the files of a worktree in the order of the paths. A failure says which of them it is about; it may also be
// RESULT_TOO_LARGE.
func (o *Objects) Read(w Worktree, paths []string) ([]File, error) {
	tree, err := o.TreeAt(w.WorkTree)
	if err != nil {
		return nil, err
	}
	total := 0
	files := make([]File, 0, len(paths))
	for i, path := range paths {
		file, err := tree.ReadFile(path)
		if err != nil {
			return nil, about("paths", i, err)
		}
		if total += len(file.Content); total > maxRead {
			return nil, failure(effect.CodeResultTooLarge, "paths[%d]: the files up to it have more than %d bytes", i, maxRead)
		}
		files = append(files, file)
	}
	return files, nil
}

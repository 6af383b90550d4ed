package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	nonroot      = 65532
	userAndGroup = "65532:65532"
)

// tree is the content of one layer by absolute path; parents of its entries are implied.
type tree map[string]node

type node struct {
	header  tar.Header
	content []byte
}

// newTree starts the layout that every image has.
func newTree() tree {
	t := tree{}
	t.directory("/tmp", 0o1777, 0)
	t.directory("/home/nonroot", 0o750, nonroot)
	t.directory("/etc/ssl/certs", 0o755, 0)
	t.file("/etc/passwd", 0o644, []byte("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n"))
	t.file("/etc/group", 0o644, []byte("root:x:0:\nnonroot:x:65532:\n"))
	t.file("/etc/nsswitch.conf", 0o644, []byte("hosts: files dns\n"))
	return t
}

func (t tree) directory(at string, mode int64, owner int) {
	t.put(at, node{header: tar.Header{Typeflag: tar.TypeDir, Mode: mode, Uid: owner, Gid: owner}})
}

func (t tree) file(at string, mode int64, content []byte) {
	header := tar.Header{Typeflag: tar.TypeReg, Mode: mode, Size: int64(len(content))}
	t.put(at, node{header: header, content: content})
}

func (t tree) link(at, target string) {
	t.put(at, node{header: tar.Header{Typeflag: tar.TypeSymlink, Mode: 0o777, Linkname: target}})
}

// put adds a node and the directories above it that nobody has described.
func (t tree) put(at string, n node) {
	at = path.Clean(at)
	t[at] = n
	parent := path.Dir(at)
	if _, exists := t[parent]; parent != "/" && !exists {
		t.directory(parent, 0o755, 0)
	}
}

// layer packs the tree, parents first. It is not compressed: these images never travel
// farther than the machine, where compressing costs more than it saves.
func (t tree) layer() (v1.Layer, error) {
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	for _, at := range slices.Sorted(maps.Keys(t)) {
		if err := write(writer, at, t[at]); err != nil {
			return nil, fmt.Errorf("pack %s: %w", at, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("close layer: %w", err)
	}
	return static.NewLayer(archive.Bytes(), types.DockerUncompressedLayer), nil
}

func write(writer *tar.Writer, at string, n node) error {
	header := n.header
	header.Name = at[1:]
	header.ModTime = epoch
	if header.Typeflag == tar.TypeDir {
		header.Name += "/"
	}
	if err := writer.WriteHeader(&header); err != nil {
		return err
	}
	_, err := writer.Write(n.content)
	return err
}

package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Entry is one thing in an image: an absolute path, and the file on this machine (or, for
// a link, the target) behind it.
type Entry struct {
	Path   string
	Source string
}

// Spec says what an image holds.
type Spec struct {
	// Reference is the name and tag, such as axiom.local/axiom-operator:dev.
	Reference string
	// Architecture in Go's spelling, such as amd64.
	Architecture string
	// Programs are executable; each must be static, for there is nothing to link with.
	Programs []Entry
	// Data are readable files.
	Data []Entry
	// Links are symbolic; Source is the target.
	Links []Entry
	// Entrypoint is the command the image runs, empty for none.
	Entrypoint []string
}

const searchPath = "PATH=/usr/local/bin:/usr/bin:/bin"

// Build makes the image: one layer for the layout, links and data, then one for each
// program, so that a new build of one program leaves the layers of the others alone.
func Build(spec Spec) (v1.Image, error) {
	layout, err := layoutLayer(spec)
	if err != nil {
		return nil, err
	}
	layers := []v1.Layer{layout}
	for _, program := range spec.Programs {
		layer, err := programLayer(program)
		if err != nil {
			return nil, fmt.Errorf("add program %s: %w", program.Path, err)
		}
		layers = append(layers, layer)
	}
	img, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		return nil, fmt.Errorf("append layers: %w", err)
	}
	return configure(img, spec)
}

func configure(img v1.Image, spec Spec) (v1.Image, error) {
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read image config: %w", err)
	}
	config = config.DeepCopy()
	config.OS = "linux"
	config.Architecture = spec.Architecture
	config.Created = v1.Time{Time: epoch}
	config.Config = v1.Config{
		User:       userAndGroup,
		Entrypoint: spec.Entrypoint,
		Env:        []string{searchPath},
		WorkingDir: "/",
	}
	return mutate.ConfigFile(img, config)
}

func layoutLayer(spec Spec) (v1.Layer, error) {
	tree := newTree()
	for _, data := range spec.Data {
		content, err := os.ReadFile(data.Source)
		if err != nil {
			return nil, fmt.Errorf("add data %s: %w", data.Path, err)
		}
		tree.file(data.Path, 0o644, content)
	}
	for _, link := range spec.Links {
		tree.link(link.Path, link.Source)
	}
	return tree.layer()
}

func programLayer(program Entry) (v1.Layer, error) {
	if err := requireStatic(program.Source); err != nil {
		return nil, err
	}
	content, err := os.ReadFile(program.Source)
	if err != nil {
		return nil, err
	}
	tree := tree{}
	tree.file(program.Path, 0o755, content)
	return tree.layer()
}

// requireStatic refuses a program that asks for a dynamic linker: the kernel would answer
// its start with "no such file or directory", which names the wrong file.
func requireStatic(path string) error {
	program, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	defer program.Close()
	for _, segment := range program.Progs {
		if segment.Type == elf.PT_INTERP {
			return fmt.Errorf("%s is not a static program (build it with CGO_ENABLED=0)", path)
		}
	}
	return nil
}

// WriteIfChanged writes the archive unless it already holds this image under this
// reference, and says whether it wrote. A reader never sees half an archive.
func WriteIfChanged(path, reference string, img v1.Image) (bool, error) {
	tag, err := name.NewTag(reference)
	if err != nil {
		return false, fmt.Errorf("parse reference: %w", err)
	}
	same, err := holds(path, tag, img)
	if err != nil || same {
		return false, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return false, err
	}
	partial := path + ".partial"
	if err := tarball.WriteToFile(partial, tag, img); err != nil {
		return false, errors.Join(err, os.Remove(partial))
	}
	return true, os.Rename(partial, path)
}

// holds compares config digests: the config lists the digest of every layer's content.
// An archive that cannot be read does not hold the image.
func holds(path string, tag name.Tag, img v1.Image) (bool, error) {
	want, err := img.ConfigName()
	if err != nil {
		return false, fmt.Errorf("digest image config: %w", err)
	}
	existing, err := tarball.ImageFromPath(path, &tag)
	if err != nil {
		return false, nil //nolint:nilerr // absent, damaged or of another tag: it is written anew
	}
	have, err := existing.ConfigName()
	return err == nil && have == want, nil
}

// epoch dates everything in an image, so that a build does not depend on when it ran.
var epoch = time.Unix(0, 0).UTC()

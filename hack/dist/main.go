// Command dist makes what is installed from what config/ says: the manifests in
// dist/, the role of namespaced installations, and the parts of the Helm chart that
// follow config/ word for word.
//
// The same inputs give the same bytes. It knows nothing of a cluster.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// defaultImage is the image that config/ names.
const defaultImage = "ghcr.io/apitomy/axiom-operator:v0.1.0"

func main() {
	if err := run(os.Args[1:], os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

func run(args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("dist", flag.ContinueOnError)
	flags.SetOutput(stderr)
	root := flags.String("root", ".", "directory of the repository")
	image := flags.String("image", defaultImage, "image of the operator, best by digest: NAME@sha256:…")
	if err := flags.Parse(args); err != nil {
		return err
	}
	files, err := makeAll(*root, *image)
	if err != nil {
		return err
	}
	return writeAll(*root, files)
}

// makeAll returns all generated files by their path in the repository.
func makeAll(root, image string) (map[string][]byte, error) {
	role, err := namespacedRole(root)
	if err != nil {
		return nil, err
	}
	// The overlays are made of what is on disk, so this one goes there first.
	files := map[string][]byte{watchedRole: role}
	if err := writeAll(root, files); err != nil {
		return nil, err
	}
	for _, add := range []func(map[string][]byte) error{
		func(files map[string][]byte) error { return addManifests(files, root, image) },
		func(files map[string][]byte) error { return addChartParts(files, root) },
	} {
		if err := add(files); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func writeAll(root string, files map[string][]byte) error {
	for path, content := range files {
		target := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return fmt.Errorf("make directory of %s: %w", path, err)
		}
		if err := os.WriteFile(target, content, 0o644); err != nil { //nolint:gosec // manifests are for everybody
			return fmt.Errorf("write %s: %w", path, err)
		}
	}
	return nil
}

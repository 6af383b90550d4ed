// Package install copies the runner's programs to where an agent's container
// finds them. It knows nothing of what they do.
package install

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// mode of an installed program: whoever the container runs as may run it, and
// nobody may change it.
const mode = 0o555

// Programs copies the named files of one directory into another. Each appears
// there whole or not at all, so that a copy that was cut short can simply be
// repeated.
func Programs(from, to string, names ...string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	for _, name := range names {
		if err := program(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return fmt.Errorf("install %s: %w", name, err)
		}
	}
	return nil
}

func program(from, to string) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()

	partial, err := os.CreateTemp(filepath.Dir(to), "."+filepath.Base(to)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(partial.Name()))
		}
	}()
	if err := fill(partial, source); err != nil {
		return err
	}
	return os.Rename(partial.Name(), to)
}

func fill(partial *os.File, source io.Reader) error {
	_, err := io.Copy(partial, source)
	return errors.Join(err, partial.Chmod(mode), partial.Sync(), partial.Close())
}

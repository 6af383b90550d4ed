package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// markerName is the file by which a home tells which conversation it belongs to:
// a volume that was lost or mixed up has none, or another's.
const markerName = ".axiom-conversation"

// maxMarker bounds what is read of it, in bytes.
const maxMarker = 4 << 10

// home is the agent's home directory, absolute.
type home string

// conversation returns the id of the conversation that the home belongs to, empty
// if it belongs to none.
func (h home) conversation() (string, error) {
	info, err := os.Lstat(h.marker())
	if errors.Is(err, fs.ErrNotExist) || err == nil && (!info.Mode().IsRegular() || info.Size() > maxMarker) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look at home: %w", err)
	}
	data, err := os.ReadFile(h.marker())
	if err != nil {
		return "", fmt.Errorf("read home: %w", err)
	}
	return strings.TrimSuffix(string(data), "\n"), nil
}

// belongTo makes the home that of a conversation, for longer than the machine runs.
func (h home) belongTo(id string) error {
	file, err := os.CreateTemp(string(h), markerName+"-*")
	if err != nil {
		return fmt.Errorf("mark home: %w", err)
	}
	_, err = file.WriteString(id + "\n")
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), h.marker())
	}
	if err != nil {
		return fmt.Errorf("mark home: %w", errors.Join(err, os.Remove(file.Name())))
	}
	return h.sync()
}

// sync makes what was renamed stay so.
func (h home) sync() error {
	dir, err := os.Open(string(h))
	if err != nil {
		return fmt.Errorf("open home: %w", err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("keep mark of home: %w", err)
	}
	return nil
}

func (h home) marker() string { return filepath.Join(string(h), markerName) }

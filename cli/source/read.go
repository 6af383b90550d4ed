package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Stdin is the name of a document from standard input.
const Stdin = "<stdin>"

// ErrStdinTaken reports that standard input was asked for twice.
var ErrStdinTaken = errors.New("standard input can be read for one file only")

var errNoPath = errors.New("the name of a file is empty")

// A Loader reads files, and standard input under the path "-".
type Loader struct {
	// Stdin is read at most once.
	Stdin io.Reader

	taken bool
}

// Load reads the document at a path. The error is an *Error if the file is no
// document.
func (l *Loader) Load(path string) (*Document, error) {
	switch path {
	case "-":
		return l.loadStdin()
	case "":
		return nil, errNoPath
	}
	file, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	defer func() { _ = file.Close() }()
	return load(path, file)
}

func (l *Loader) loadStdin() (*Document, error) {
	if l.taken {
		return nil, ErrStdinTaken
	}
	l.taken = true
	return load(Stdin, l.Stdin)
}

func load(name string, r io.Reader) (*Document, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return Parse(name, data)
}

// Parse reads a document. The name is for messages, and if it ends in .json the
// data must be JSON. The error is an *Error.
func Parse(name string, data []byte) (*Document, error) {
	if len(data) > MaxBytes {
		return nil, &Error{Name: name, Reason: fmt.Sprintf("the file is over %d MiB", MaxBytes>>20)}
	}
	if at := invalidUTF8(data); at >= 0 {
		return nil, &Error{Name: name, Position: positionOf(data, at), Reason: "this is not valid UTF-8"}
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, &Error{Name: name, Reason: "the file is empty"}
	}
	mustBeJSON := strings.EqualFold(filepath.Ext(name), ".json")
	if mustBeJSON || looksLikeJSON(data) {
		doc, err := parseJSON(name, data)
		var syntax syntaxError
		switch {
		case !errors.As(err, &syntax):
			return doc, err
		case mustBeJSON:
			return nil, syntax.cause
		}
	}
	return parseYAML(name, data)
}

// looksLikeJSON tells whether the data begins like a JSON list, object or text.
// YAML in flow style does too.
func looksLikeJSON(data []byte) bool {
	data = bytes.TrimLeft(data, " \t\r\n")
	return len(data) > 0 && strings.IndexByte(`{["`, data[0]) >= 0
}

// invalidUTF8 finds the first byte that belongs to no character, -1 if all do.
func invalidUTF8(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	for i := 0; ; {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
}

// positionOf is the position of a byte.
func positionOf(data []byte, offset int) Position {
	before := data[:min(max(offset, 0), len(data))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return Position{
		Line:   1 + bytes.Count(before, []byte("\n")),
		Column: 1 + utf8.RuneCount(before[start:]),
	}
}

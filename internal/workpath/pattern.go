package workpath

import (
	"errors"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// CodePattern is the code of a pattern that is none.
const CodePattern = "PATTERN_INVALID"

// ErrPattern reports a pattern that is none. It does not hold the pattern.
var ErrPattern = errors.New(CodePattern)

// A Pattern names paths: `*` stands for any text of one segment, `?` for one character of it, `[…]` for one character of
// a class, and a segment `**` for any number of segments. The zero Pattern names none.
type Pattern struct {
	glob string
}

// NewPattern reads a pattern of at most MaxLength bytes. It is written like a path: relative, without backslashes,
// control characters, and empty, `.` or `..` segments. Braces stand for themselves. The error is ErrPattern.
func NewPattern(text string) (Pattern, error) {
	if text == "" || len(text) > MaxLength || strings.ToValidUTF8(text, "") != text || strings.ContainsFunc(text, isForbidden) {
		return Pattern{}, ErrPattern
	}
	for segment := range strings.SplitSeq(text, "/") {
		if segment == "" || segment == "." || segment == ".." || strings.Contains(segment, "**") && segment != "**" {
			return Pattern{}, ErrPattern
		}
	}
	glob := braces.Replace(text)
	if !doublestar.ValidatePattern(glob) {
		return Pattern{}, ErrPattern
	}
	return Pattern{glob: glob}, nil
}

// NewPatterns reads patterns. The error is ErrPattern.
func NewPatterns(texts []string) ([]Pattern, error) {
	patterns := make([]Pattern, 0, len(texts))
	for _, text := range texts {
		pattern, err := NewPattern(text)
		if err != nil {
			return nil, err
		}
		patterns = append(patterns, pattern)
	}
	return patterns, nil
}

// braces are alternatives to the library; a backslash makes them what they are in a path.
var braces = strings.NewReplacer("{", `\{`, "}", `\}`)

// Match tells whether the pattern names a path that Check lets pass.
func (p Pattern) Match(path string) bool {
	return p.glob != "" && doublestar.MatchUnvalidated(p.glob, path)
}

// Selects tells whether a path is one of those to be included, and none of those to be excluded. Without patterns to be
// included all paths are.
func Selects(include, exclude []Pattern, path string) bool {
	return (len(include) == 0 || matchesAny(include, path)) && !matchesAny(exclude, path)
}

func matchesAny(patterns []Pattern, path string) bool {
	for _, pattern := range patterns {
		if pattern.Match(path) {
			return true
		}
	}
	return false
}

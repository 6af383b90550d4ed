// Package workpath decides which paths may name something in a work tree, and which of them a pattern names.
//
// A path that is sound here stays inside the work tree on every file system, and names nothing that Git keeps for itself:
// not under the name .git, and under none of the names that a file system takes for it.
//
// The package knows nothing of what a work tree holds, of links or of submodules.
package workpath

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxLength bounds a path, in bytes.
const MaxLength = 1024

// CodeInvalid is the code of a path that no work tree may have.
const CodeInvalid = "PATH_INVALID"

// ErrInvalid reports a path that no work tree may have. It does not hold the path.
var ErrInvalid = errors.New(CodeInvalid)

// Check tells whether a path is relative, written in one way only, and outside of what is Git's own: UTF-8 of at most
// MaxLength bytes, without backslashes and control characters, in segments that are neither empty nor `.`, `..` or a name
// for `.git`. The error is ErrInvalid.
func Check(path string) error {
	if path == "" || len(path) > MaxLength || !utf8.ValidString(path) || strings.ContainsFunc(path, isForbidden) {
		return ErrInvalid
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "" || segment == "." || segment == ".." || isGit(segment) {
			return ErrInvalid
		}
	}
	return nil
}

func isForbidden(r rune) bool {
	return r == '\\' || unicode.IsControl(r)
}

// isGit tells whether some file system opens .git under this name. Windows cuts off a stream and what stands behind a
// colon, dots and spaces at the end, and gives short names; macOS passes over code points that are not shown.
func isGit(segment string) bool {
	shown := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, segment)
	name, _, _ := strings.Cut(shown, ":")
	name = strings.TrimRight(name, ". ")
	if name == ".git" {
		return true
	}
	number, isShort := strings.CutPrefix(name, "git~")
	return isShort && number != "" && strings.Trim(number, "0123456789") == ""
}

package definition

import (
	"slices"
	"strings"
)

// maxPath bounds the path of a document, in bytes.
const maxPath = 1024

// wordTooLong is the word of a path that does not fit where it is kept.
const wordTooLong = "too-long"

// componentPath is what a bundle says where a component is, relative to the root's directory. Of what is wrong with it,
// word names the first.
func componentPath(v any) (path, word string) {
	text, isString := v.(string)
	if !isString {
		return "", "not-a-string"
	}
	path = strings.TrimPrefix(text, "./")
	segments := strings.Split(path, "/")
	for _, rule := range []struct {
		word     string
		isBroken bool
	}{
		{"empty", path == ""},
		{"nul", strings.Contains(path, "\x00")},
		{"backslash", strings.Contains(path, `\`)},
		{"absolute", strings.HasPrefix(path, "/")},
		{"url", strings.Contains(segments[0], ":")},
		{"glob", strings.ContainsAny(path, "*?[]{}")},
		{"directory", strings.HasSuffix(path, "/")},
		{"empty-segment", slices.Contains(segments, "")},
		{"dot-segment", slices.Contains(segments, ".") || slices.Contains(segments, "..")},
		{"package", strings.HasPrefix(path, "@")},
		{"not-markdown", !strings.HasSuffix(path, ".md")},
		{wordTooLong, len(path) > maxPath},
	} {
		if rule.isBroken {
			return "", rule.word
		}
	}
	return path, ""
}

package workspace

import "strings"

// refPrefixes of branches and tags.
const (
	headsPrefix = "refs/heads/"
	tagsPrefix  = "refs/tags/"
)

// maxRefName is what servers that keep a ref in a file can take, with room for the suffix of a lock.
const maxRefName = 240

// IsBranchName tells whether Git takes a text as the name of a branch.
func IsBranchName(name string) bool {
	if name == "HEAD" || strings.HasPrefix(name, "-") || len(name) > maxRefName {
		return false
	}
	return isRefPath(name)
}

// isRefPath has the rules for what follows `refs/heads/`.
func isRefPath(name string) bool {
	if name == "@" || strings.HasSuffix(name, ".") || strings.Contains(name, "..") || strings.Contains(name, "@{") {
		return false
	}
	if strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c == 0x7f || strings.ContainsRune(`~^:?*[\`, c) }) {
		return false
	}
	for segment := range strings.SplitSeq(name, "/") {
		if segment == "" || strings.HasPrefix(segment, ".") || strings.HasSuffix(segment, ".lock") {
			return false
		}
	}
	return true
}

package workspace

import (
	"slices"
	"strings"
)

// ignoreFile has the rules of the directory it is in, and of those below.
const ignoreFile = ".gitignore"

// maxIgnoreFile is the size in bytes up to which rules are read.
const maxIgnoreFile = 1 << 20

// ignoreRules are those that hold in a directory: its own, then those of the directories it is in.
type ignoreRules struct {
	outer *ignoreRules
	// depth of the directory below the root.
	depth int
	rules []ignoreRule
}

// An ignoreRule is one line of a file of rules.
type ignoreRule struct {
	segments []string
	// negated brings back what earlier rules ignored.
	negated bool
	// dirOnly rules are about directories.
	dirOnly bool
}

// parseRules reads a file of rules. Lines that can match nothing are left out.
func parseRules(text string) []ignoreRule {
	var rules []ignoreRule
	// A byte-order mark is not part of the first rule.
	for line := range strings.SplitSeq(strings.TrimPrefix(text, "\ufeff"), "\n") {
		if rule, ok := parseRule(strings.TrimSuffix(line, "\r")); ok {
			rules = append(rules, rule)
		}
	}
	return rules
}

func parseRule(line string) (ignoreRule, bool) {
	var rule ignoreRule
	if strings.HasPrefix(line, "#") {
		return rule, false
	}
	line = trimRule(line)
	line, rule.negated = strings.CutPrefix(line, "!")
	line, rule.dirOnly = strings.CutSuffix(line, "/")
	if line == "" {
		return rule, false
	}
	if !strings.Contains(line, "/") {
		// A name is meant wherever it occurs.
		rule.segments = []string{"**", line}
		return rule, true
	}
	rule.segments = strings.Split(strings.TrimPrefix(line, "/"), "/")
	return rule, true
}

// trimRule removes the blanks at the end of a rule but for one that is escaped.
func trimRule(line string) string {
	trimmed := strings.TrimRight(line, " ")
	escapes := len(trimmed) - len(strings.TrimRight(trimmed, `\`))
	if escapes%2 == 1 && len(trimmed) < len(line) {
		return trimmed + " "
	}
	return trimmed
}

// ignores tells whether a path is ignored by itself, not because of a directory it is in. The last rule that matches it
// decides, and those of an inner directory come after those of an outer one.
func (r *ignoreRules) ignores(segments []string, isDirectory bool) bool {
	for ; r != nil; r = r.outer {
		for _, rule := range slices.Backward(r.rules) {
			if (isDirectory || !rule.dirOnly) && matchSegments(rule.segments, segments[r.depth:]) {
				return !rule.negated
			}
		}
	}
	return false
}

// matchSegments matches a path with a pattern of which `**` stands for any segments, at the end for at least one. It does
// not go back further than to the last `**`, so the effort is bounded by the product of the lengths.
func matchSegments(pattern, path []string) bool {
	backPattern, backPath := -1, 0
	p, s := 0, 0
	for s < len(path) {
		switch {
		case p < len(pattern) && pattern[p] == "**":
			if p == len(pattern)-1 {
				return true
			}
			backPattern, backPath = p, s
			p++
		case p < len(pattern) && matchSegment(pattern[p], path[s]):
			p, s = p+1, s+1
		case backPattern >= 0:
			backPath++
			p, s = backPattern+1, backPath
		default:
			return false
		}
	}
	return p == len(pattern)
}

// matchSegment matches a segment with a pattern of `*`, `?`, classes and escapes, the same way: back to the last `*`.
func matchSegment(pattern, name string) bool {
	backPattern, backName := -1, 0
	p, n := 0, 0
	for n < len(name) {
		if p < len(pattern) && pattern[p] == '*' {
			backPattern, backName = p, n
			p++
			continue
		}
		if width, matches := matchByte(pattern[p:], name[n]); matches {
			p, n = p+width, n+1
			continue
		}
		if backPattern < 0 {
			return false
		}
		backName++
		p, n = backPattern+1, backName
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// matchByte matches one byte with what a pattern starts with, and returns how long that is.
func matchByte(pattern string, c byte) (int, bool) {
	if pattern == "" {
		return 0, false
	}
	switch pattern[0] {
	case '?':
		return 1, true
	case '[':
		return matchClass(pattern, c)
	case '\\':
		return 2, len(pattern) > 1 && pattern[1] == c
	}
	return 1, pattern[0] == c
}

// matchClass matches one byte with a class in brackets. A class without an end matches nothing.
func matchClass(pattern string, c byte) (int, bool) {
	at, negated := 1, false
	if strings.HasPrefix(pattern[at:], "!") || strings.HasPrefix(pattern[at:], "^") {
		at, negated = at+1, true
	}
	matched := false
	for first := true; at < len(pattern); first = false {
		if pattern[at] == ']' && !first {
			return at + 1, matched != negated
		}
		width, hit, ok := matchNamedClass(pattern[at:], c)
		if !ok {
			width, hit = matchRange(pattern[at:], c)
		}
		at, matched = at+width, matched || hit
	}
	return 0, false
}

// matchRange matches one byte with one of a class, or with a range of them.
func matchRange(pattern string, c byte) (width int, hit bool) {
	low, width := classByte(pattern)
	high := low
	if rest := pattern[width:]; len(rest) > 1 && rest[0] == '-' && rest[1] != ']' {
		end, endWidth := classByte(rest[1:])
		high, width = end, width+1+endWidth
	}
	return width, low <= c && c <= high
}

// classByte is the byte a class goes on with, and how long it is written.
func classByte(pattern string) (byte, int) {
	if pattern[0] == '\\' && len(pattern) > 1 {
		return pattern[1], 2
	}
	return pattern[0], 1
}

// matchNamedClass matches one byte with a class such as `[:alpha:]` within a class.
func matchNamedClass(pattern string, c byte) (width int, hit, ok bool) {
	rest, found := strings.CutPrefix(pattern, "[:")
	if !found {
		return 0, false, false
	}
	name, _, found := strings.Cut(rest, ":]")
	class, known := namedClasses[name]
	if !found || !known {
		return 0, false, false
	}
	return len("[::]") + len(name), class(c), true
}

// namedClasses of bytes, in the C locale.
var namedClasses = map[string]func(byte) bool{
	"alnum":  func(c byte) bool { return isAlpha(c) || isDigit(c) },
	"alpha":  isAlpha,
	"blank":  func(c byte) bool { return c == ' ' || c == '\t' },
	"cntrl":  func(c byte) bool { return c < ' ' || c == 0x7f },
	"digit":  isDigit,
	"graph":  isGraph,
	"lower":  func(c byte) bool { return 'a' <= c && c <= 'z' },
	"print":  func(c byte) bool { return c == ' ' || isGraph(c) },
	"punct":  func(c byte) bool { return isGraph(c) && !isAlpha(c) && !isDigit(c) },
	"space":  func(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' },
	"upper":  func(c byte) bool { return 'A' <= c && c <= 'Z' },
	"xdigit": func(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' },
}

func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isGraph(c byte) bool { return ' ' < c && c < 0x7f }

package frames

import (
	"strconv"
	"strings"
)

// join puts the address of a frame before one that is within it.
func join(path, within string) string {
	if path == "" {
		return within
	}
	return path + "/" + within
}

// split takes the last part off an address.
func split(address string) (path, last string) {
	at := strings.LastIndexByte(address, '/')
	if at < 0 {
		return "", address
	}
	return address[:at], address[at+1:]
}

// segment is the last part of the address of a frame.
func segment(node string, count int) string {
	return node + "[" + strconv.Itoa(count) + "]"
}

func parseSegment(text string) (node string, count int, ok bool) {
	node, rest, _ := strings.Cut(text, "[")
	count, err := strconv.Atoi(strings.TrimSuffix(rest, "]"))
	return node, count, err == nil && count >= 1 && segment(node, count) == text
}

// depth is how many frames an address names.
func depth(path string) int {
	if path == "" {
		return 0
	}
	return strings.Count(path, "/") + 1
}

// hadFrame tells whether the run had a frame that is no longer live. Of a frame within one that is gone too, it only
// knows the outer one.
func (s State) hadFrame(path string) bool {
	enclosing, last := split(path)
	node, count, ok := parseSegment(last)
	switch {
	case !ok:
		return false
	case enclosing != "" && s.frameAt(enclosing) < 0:
		return s.hadFrame(enclosing)
	}
	return count <= s.Opened[join(enclosing, node)]
}

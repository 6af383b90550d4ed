// Package yamlerror reads the errors of the YAML library, which tell their lines in prose, and some of them wrong.
//
// The package knows nothing of what a text is for.
package yamlerror

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var withLine = regexp.MustCompile(`^(?:line (\d+): )?(.*)$`)

// lineCountsFromZero are the errors of the library's parser, whose lines it gives one too small; its scanner's are right.
var lineCountsFromZero = []string{
	"did not find expected <document start>",
	"found undefined tag handle",
	"did not find expected node content",
	"did not find expected '-' indicator",
	"did not find expected key",
	"did not find expected ',' or ']'",
	"did not find expected ',' or '}'",
	"found duplicate %YAML directive",
	"found incompatible YAML document",
	"found duplicate %TAG directive",
}

// Read gives the line of an error, from 1 (0: it has none), and the rest of its first line.
func Read(err error) (line int, reason string) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	text, _, _ = strings.Cut(text, "\n")
	parts := withLine.FindStringSubmatch(text)
	line, _ = strconv.Atoi(parts[1])
	if slices.Contains(lineCountsFromZero, parts[2]) {
		line++
	}
	return line, parts[2]
}

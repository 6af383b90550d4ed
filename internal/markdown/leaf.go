package markdown

import (
	"regexp"
	"strings"
)

// An openFence is a fenced code block whose end was not met.
type openFence struct {
	found Fence
	// mark that opened it; a closing is at least as long.
	mark string
	// indent of the opening, which lines of the content may have as well.
	indent  int
	content strings.Builder
}

var fenceMark = regexp.MustCompile("^(```+|~~~+)(.*)$")

// readOpening reads the opening of a fenced code block.
func readOpening(rest string, indent int) (fence openFence, ok bool) {
	opening := fenceMark.FindStringSubmatch(rest)
	if opening == nil || opening[1][0] == '`' && strings.Contains(opening[2], "`") {
		return openFence{}, false
	}
	return openFence{found: Fence{Info: strings.Trim(opening[2], " \t")}, mark: opening[1], indent: indent}, true
}

// readFence takes a line within a fenced code block.
func (s *scanner) readFence(c *cursor) {
	indent, isBlank := c.indent()
	if !isBlank && indent < codeIndent && s.fence.isClosedBy(strings.Trim(c.rest(), " \t")) {
		s.endFence()
		s.leaf = leafNone
		return
	}
	c.skip(min(indent, s.fence.indent))
	s.fence.content.WriteString(c.rest() + "\n")
}

func (f *openFence) isClosedBy(text string) bool {
	return len(text) >= len(f.mark) && strings.Trim(text, f.mark[:1]) == ""
}

func (s *scanner) endFence() {
	s.fence.found.Content = s.fence.content.String()
	s.found.Fences = append(s.found.Fences, s.fence.found)
	s.fence = openFence{}
}

// An htmlEnd is what ends a block of HTML: a text in its last line, or a blank line behind it.
type htmlEnd struct {
	pattern *regexp.Regexp // nil: a blank line
}

// htmlBlocks are the starts of blocks of HTML and their ends, as CommonMark lists them.
var htmlBlocks = []struct{ start, end *regexp.Regexp }{
	{regexp.MustCompile(`(?i)^<(?:script|pre|style|textarea)(?:[ \t>]|$)`), regexp.MustCompile(`(?i)</(?:script|pre|style|textarea)>`)},
	{regexp.MustCompile(`^<!--`), regexp.MustCompile(`-->`)},
	{regexp.MustCompile(`^<\?`), regexp.MustCompile(`\?>`)},
	{regexp.MustCompile(`^<![A-Za-z]`), regexp.MustCompile(`>`)},
	{regexp.MustCompile(`^<!\[CDATA\[`), regexp.MustCompile(`\]\]>`)},
	{regexp.MustCompile(`(?i)^</?(?:address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|` +
		`details|dialog|dir|div|dl|dt|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|` +
		`legend|li|link|main|menu|menuitem|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|` +
		`tfoot|th|thead|title|tr|track|ul)(?:[ \t]|/?>|$)`), nil},
}

// htmlRaw are tags that begin a block of another kind, or none.
var htmlRaw = regexp.MustCompile(`(?i)^</?(?:script|pre|style|textarea)[ \t/>]`)

// htmlTag is a whole tag that is alone in its line. It cannot begin in the middle of a paragraph.
var htmlTag = regexp.MustCompile(`^(?:<[A-Za-z][A-Za-z0-9-]*` +
	`(?:[ \t]+[A-Za-z_:][A-Za-z0-9_.:-]*(?:[ \t]*=[ \t]*(?:[^ \t"'=<>` + "`" + `]+|'[^']*'|"[^"]*"))?)*[ \t]*/?>` +
	`|</[A-Za-z][A-Za-z0-9-]*[ \t]*>)[ \t]*$`)

func readHTMLStart(rest string, inParagraph bool) (end htmlEnd, ok bool) {
	if rest[0] != '<' {
		return htmlEnd{}, false
	}
	for _, block := range htmlBlocks {
		if block.start.MatchString(rest) {
			return htmlEnd{block.end}, true
		}
	}
	return htmlEnd{}, !inParagraph && !htmlRaw.MatchString(rest) && htmlTag.MatchString(rest)
}

// readHTML takes a line within a block of HTML, its first one too.
func (s *scanner) readHTML(c *cursor) {
	rest := c.rest()
	isLast := strings.Trim(rest, " \t") == ""
	if s.html.pattern != nil {
		isLast = s.html.pattern.MatchString(rest)
	}
	if isLast {
		s.leaf = leafNone
	}
}

// Package markdown finds the headings and the fenced code blocks of a Markdown text, each with its line.
//
// It follows the block structure of CommonMark: containers (quotes and list items) around leaves (paragraphs, headings,
// fences and HTML). A line first goes through the containers that are open, then it may begin blocks, and what remains is
// text, perhaps of a paragraph that goes on without the marks of its containers. Definitions of links are taken for
// paragraphs. Each line takes time in proportion to its length and to maxContainers, whatever the text.
//
// The package knows nothing of what stands within a line, such as emphasis and links, or of how anything looks.
package markdown

import (
	"strings"
)

// maxContainers bounds how deep quotes and list items nest. What would go deeper is text.
const maxContainers = 64

// A Heading is one that stands in no container.
type Heading struct {
	// Level from 1 to 6.
	Level int
	// Text as it is written, without its marks; it can have several lines.
	Text string
	// Line of the text from 1, in which it begins.
	Line int
	// Start and End in the text, in bytes: of its first line, and behind its last one.
	Start, End int
}

// A Fence is a fenced code block, wherever it stands.
type Fence struct {
	// Info is the text behind the opening.
	Info string
	// Content without the marks of its containers.
	Content string
	// Line of the text from 1, in which the content begins.
	Line int
}

// Blocks are what was found, in the order of the text.
type Blocks struct {
	Headings []Heading
	Fences   []Fence
}

// Scan finds the blocks of a text.
func Scan(text string) Blocks {
	s := &scanner{text: text}
	for offset, number := 0, 1; offset < len(text); number++ {
		width, end := endOfLine(text[offset:])
		s.read(text[offset:offset+width], place{line: number, start: offset, end: offset + end})
		offset += end
	}
	s.close(0)
	return s.found
}

// endOfLine is where the text of the first line ends, and where the next line begins.
func endOfLine(text string) (width, end int) {
	at := strings.IndexAny(text, "\r\n")
	switch {
	case at < 0:
		return len(text), len(text)
	case strings.HasPrefix(text[at:], "\r\n"):
		return at, at + 2
	}
	return at, at + 1
}

// A place is that of a line in the text.
type place struct {
	line, start, end int
}

// A container is a quote or a list item that is open.
type container struct {
	isQuote bool
	// width is how many columns the content of an item is indented by.
	width int
	// isEmpty is true of an item as long as nothing stands behind its mark.
	isEmpty bool
}

// A leaf is what the innermost container holds at present.
type leaf int

const (
	leafNone leaf = iota
	leafParagraph
	leafFence
	leafHTML
)

type scanner struct {
	text  string
	found Blocks
	open  []container
	leaf  leaf

	paragraph place // its first line, but for the end, which is that of the last one
	fence     openFence
	html      htmlEnd
}

// read takes the next line.
func (s *scanner) read(line string, at place) {
	c := &cursor{text: line}
	matched := s.match(c)
	if matched == len(s.open) {
		switch s.leaf {
		case leafFence:
			s.readFence(c)
			return
		case leafHTML:
			s.readHTML(c)
			return
		case leafNone, leafParagraph:
		}
	}
	b := beginner{scanner: s, cursor: c, place: at, matched: matched}
	if !b.begin() {
		s.readText(b)
	}
}

// match leads a line through the containers that go on in it, and counts them.
func (s *scanner) match(c *cursor) int {
	for i := range s.open {
		if !s.open[i].goesOn(c) {
			return i
		}
	}
	return len(s.open)
}

// goesOn tells whether a container goes on in a line, and consumes what says so.
func (o *container) goesOn(c *cursor) bool {
	indent, isBlank := c.indent()
	switch {
	case o.isQuote:
		if isBlank || indent >= codeIndent || c.next() != '>' {
			return false
		}
		c.quote()
	case isBlank:
		c.skip(indent)
		return !o.isEmpty // an item can begin with at most one blank line
	case indent < o.width:
		return false
	default:
		o.isEmpty = false
		c.skip(o.width)
	}
	return true
}

// close ends all containers but the outer ones, and the leaf.
func (s *scanner) close(outer int) {
	if s.leaf == leafFence {
		s.endFence()
	}
	s.open, s.leaf = s.open[:outer], leafNone
}

// readText takes a line that begins no block.
func (s *scanner) readText(b beginner) {
	indent, isBlank := b.indent()
	goesOn := s.leaf == leafParagraph && !b.hasBegun
	switch {
	case isBlank:
		s.close(b.matched)
	case goesOn:
		// Its containers stay open even where they were not matched.
		s.paragraph.end = b.end
	default:
		s.close(b.matched)
		if indent < codeIndent {
			s.leaf, s.paragraph = leafParagraph, b.place
		}
	}
}

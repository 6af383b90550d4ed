package markdown

import (
	"regexp"
	"strconv"
	"strings"
)

// A beginner finds the blocks that begin in a line.
type beginner struct {
	*scanner
	*cursor
	place
	// matched counts the containers the rest of the line stands in.
	matched int
	// hasBegun tells that a container began in this line.
	hasBegun bool
}

// begin opens containers as long as some begin, and tells whether a leaf began that takes the rest of the line.
func (b *beginner) begin() bool {
	for {
		indent, isBlank := b.indent()
		if isBlank || indent >= codeIndent {
			return false
		}
		rest := strings.TrimLeft(b.rest(), " \t")
		if b.beginLeaf(rest, indent) {
			return true
		}
		if !b.beginContainer(rest, indent) {
			return false
		}
		b.hasBegun = true
	}
}

// goesOnWithParagraph tells whether the line would go on with a paragraph, no mark of a container missing.
func (b *beginner) goesOnWithParagraph() bool {
	return b.leaf == leafParagraph && !b.hasBegun && b.matched == len(b.open)
}

var (
	atxHeading    = regexp.MustCompile(`^(#{1,6})(?:[ \t]+(.*))?$`)
	atxClosing    = regexp.MustCompile(`(?:^|[ \t])#+[ \t]*$`)
	setextLine    = regexp.MustCompile(`^(?:=+|-+)[ \t]*$`)
	thematicBreak = regexp.MustCompile(`^(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$`)
)

// beginLeaf begins a block that holds no others.
func (b *beginner) beginLeaf(rest string, indent int) bool {
	if heading := atxHeading.FindStringSubmatch(rest); heading != nil {
		b.close(b.matched)
		text := atxClosing.ReplaceAllString(strings.TrimSpace(heading[2]), "")
		b.addHeading(Heading{Level: len(heading[1]), Text: strings.TrimSpace(text), Line: b.line, Start: b.start, End: b.end})
		return true
	}
	if fence, ok := readOpening(rest, indent); ok {
		b.close(b.matched)
		b.leaf, b.fence = leafFence, fence
		b.fence.found.Line = b.line + 1
		return true
	}
	if end, ok := readHTMLStart(rest, b.leaf == leafParagraph && !b.hasBegun); ok {
		b.close(b.matched)
		b.leaf, b.html = leafHTML, end
		b.readHTML(b.cursor)
		return true
	}
	if b.goesOnWithParagraph() && setextLine.MatchString(rest) {
		text := strings.TrimSpace(b.scanner.text[b.paragraph.start:b.paragraph.end])
		b.close(b.matched)
		b.addHeading(Heading{Level: setextLevel(rest), Text: text, Line: b.paragraph.line, Start: b.paragraph.start, End: b.end})
		return true
	}
	if thematicBreak.MatchString(rest) {
		b.close(b.matched)
		return true
	}
	return false
}

func setextLevel(underline string) int {
	if underline[0] == '=' {
		return 1
	}
	return 2
}

// addHeading keeps a heading unless a container holds it.
func (b *beginner) addHeading(h Heading) {
	if len(b.open) == 0 {
		b.found.Headings = append(b.found.Headings, h)
	}
}

// beginContainer begins a quote or a list item.
func (b *beginner) beginContainer(rest string, indent int) bool {
	if b.matched >= maxContainers {
		return false
	}
	if rest[0] == '>' {
		b.close(b.matched)
		b.quote()
		b.push(container{isQuote: true})
		return true
	}
	mark, ok := readMark(rest, b.goesOnWithParagraph())
	if !ok {
		return false
	}
	b.close(b.matched)
	b.skip(indent)
	b.pos, b.column = b.pos+mark, b.column+mark
	b.push(b.item(indent + mark))
	return true
}

func (b *beginner) push(c container) {
	b.open = append(b.open, c)
	b.matched++
}

// item is the list item whose mark was consumed and is of this width with its indentation. Its content begins behind the
// spaces that follow; but if they make code of it, or nothing follows, it begins behind the first of them.
func (b *beginner) item(width int) container {
	spaces, isBlank := b.indent()
	if isBlank || spaces > codeIndent {
		spaces = 1
	}
	b.skip(spaces)
	return container{width: width + spaces, isEmpty: isBlank}
}

var (
	bullet = regexp.MustCompile(`^[-+*](?:[ \t]|$)`)
	number = regexp.MustCompile(`^([0-9]{1,9})[.)](?:[ \t]|$)`)
)

// readMark finds how many bytes the mark of a list item has. Only some can begin in the middle of a paragraph: those
// with text, and of the numbered ones the first.
func readMark(rest string, inParagraph bool) (width int, ok bool) {
	switch found := number.FindStringSubmatch(rest); {
	case bullet.MatchString(rest):
		width = 1
	case found == nil:
		return 0, false
	default:
		width = len(found[1]) + 1
		if n, _ := strconv.Atoi(found[1]); inParagraph && n != 1 {
			return 0, false
		}
	}
	if inParagraph && strings.Trim(rest[width:], " \t") == "" {
		return 0, false
	}
	return width, true
}
